"""The HTTP service of multi-selection: noisy signals come in, results go out, and no private position is ever seen.

* `Offer(catalogue)`: results with their public settings
* `create_app({"name": offer})`: the application, for any ASGI server; `run` serves it
* `RemoteServer(url, catalogue)`: the service as seen from a Python client
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpselect.service.app import create_app as create_app
    from dpselect.service.offer import Offer as Offer
    from dpselect.service.remote import RemoteServer as RemoteServer
    from dpselect.service.running import run as run

_HOMES = {"Offer": "offer", "RemoteServer": "remote", "create_app": "app", "run": "running"}

__all__ = ["Offer", "RemoteServer", "create_app", "run"]


def __getattr__(name: str) -> Any:
    """Load the module that a public name is in."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
