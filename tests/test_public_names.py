"""The names that users' code and scripts rely on: a change is seen here before they see it.

`python tests/test_public_names.py` writes `public_names.txt` again. What disappears from it breaks somebody's program:
it belongs into CHANGELOG.md, and into docs/migration.md.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from dpselect.cli.app import COMMANDS, imported

LISTED = Path(__file__).with_name("public_names.txt")
MADE = ("model_config", "model_fields", "model_computed_fields")
"""What Pydantic puts into its classes."""

MODULES = ("", "privacy", "ledger", "forecast", "ranking", "multiselect", "service", "desk", "verify")


def parameters(called: Any) -> str:
    """Return the names of the parameters, with the mark of those that are given by name only."""
    found = inspect.signature(called).parameters.values()
    words = [f"{'**' if each.kind is each.VAR_KEYWORD else ''}{each.name}" for each in found if each.name != "self"]
    by_name = [place for place, each in enumerate(found) if each.kind is each.KEYWORD_ONLY]
    if by_name:
        words.insert(by_name[0], "*")
    return f"({', '.join(words)})"


def names_of(module: str) -> Iterator[str]:
    """Yield the public names of a module, with what their calls take."""
    package = import_module(f"dpselect.{module}".rstrip("."))
    for name in package.__all__:
        value = getattr(package, name)
        shown = f"{package.__name__}.{name}"
        if inspect.isfunction(value) or (dataclasses.is_dataclass(value) and isinstance(value, type)):
            yield shown + parameters(value)
        else:
            yield shown
        if inspect.isclass(value) and value.__module__.startswith("dpselect"):
            ours = [kind for kind in value.__mro__ if kind.__module__.startswith("dpselect")]
            members = {each for kind in ours for each in vars(kind) if not each.startswith("_")}
            yield from (f"{shown}.{each}" for each in members if each not in MADE)


def options_of(name: str, command: Any) -> Iterator[str]:
    """Yield the options of a command and of its sub-commands."""
    for sub, inner in getattr(command, "commands", {}).items():
        yield from options_of(f"{name} {sub}", inner)
    options = sorted({option for each in command.params for option in each.opts if option.startswith("-")})
    yield " ".join([name, *options])


def public_names() -> list[str]:
    """Return all names, sorted."""
    found = {name for module in MODULES for name in names_of(module)}
    for command in COMMANDS:
        found.update(options_of(f"dpselect {command}", imported(command)))
    return sorted(found)


def test_public_names_change_only_on_purpose() -> None:
    listed = LISTED.read_text(encoding="utf-8").splitlines()
    now = public_names()
    advice = "if this is meant: python tests/test_public_names.py, and a line in CHANGELOG.md"
    assert sorted(set(listed) - set(now)) == [], f"gone or changed; {advice}"
    assert sorted(set(now) - set(listed)) == [], f"new; {advice}"


if __name__ == "__main__":
    LISTED.write_text("\n".join(public_names()) + "\n", encoding="utf-8")
