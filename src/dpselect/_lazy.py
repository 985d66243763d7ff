"""Packages whose public names are loaded when they are first used, since they need extras that are large."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from dpselect.errors import DpSelectError, how_to_install


def loader(package: str, modules: Mapping[str, str], what: str, extra: str) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, which finds each public name in the module that is stated for it.

    If a package of the extra is missing, the error says that `what` needs it.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            found = getattr(import_module(f"{package}.{modules[name]}"), name)
        except ModuleNotFoundError:
            raise DpSelectError(f"{what} needs further packages: {how_to_install(extra)}") from None
        # A module that is imported later, and has the same name, must not take its place.
        setattr(sys.modules[package], name, found)
        return found

    return load
