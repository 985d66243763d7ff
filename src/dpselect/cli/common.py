"""The options that every command has: --quiet, --verbose and --config, the file with values for repeated options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect._toml import KeyLines, read_toml
from dpselect.cli.options import OUTPUT
from dpselect.cli.output import Verbosity, detail, set_verbosity
from dpselect.errors import InvalidInput

CONFIG = Path("dpselect.toml")
"""The file that is read if no other is named."""


def _quieter(wanted: bool) -> None:
    if wanted:
        set_verbosity(Verbosity.quiet)


def _louder(wanted: bool) -> None:
    if wanted:
        set_verbosity(Verbosity.verbose)


def _with_defaults(context: typer.Context, given: str | None) -> None:
    """Take the values of options that the command line leaves out from the configuration."""
    if context.resilient_parsing or (given is None and not CONFIG.is_file()):
        return
    path = CONFIG if given is None else Path(given)
    context.default_map = stated_options(path, context)
    if context.default_map:
        detail(f"from {path}: {', '.join(map(str, context.default_map))}")


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        callback=_quieter,
        is_eager=True,
        expose_value=False,
        help="Show results and errors only: no notes, no warnings, no progress.",
        rich_help_panel=OUTPUT,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        callback=_louder,
        is_eager=True,
        expose_value=False,
        help="Also show each step, on standard error.",
        rich_help_panel=OUTPUT,
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        callback=_with_defaults,
        is_eager=True,
        expose_value=False,
        envvar="DPSELECT_CONFIG",
        show_envvar=False,
        help="TOML file with options for each command. Default: dpselect.toml, if there is one.",
        metavar="FILE",
        rich_help_panel=OUTPUT,
    ),
]
Defaults = Annotated[
    str | None,
    typer.Option(
        "--defaults",
        callback=_with_defaults,
        is_eager=True,
        expose_value=False,
        envvar="DPSELECT_CONFIG",
        show_envvar=False,
        help="TOML file with values for these options. Default: dpselect.toml, if there is one.",
        metavar="FILE",
        rich_help_panel=OUTPUT,
    ),
]
"""What --config is otherwise, for commands whose --config is another file."""

_COMMON: dict[str, tuple[Any, Any]] = {"quiet": (Quiet, False), "verbose": (Verbose, False), "config": (Config, None)}


def with_common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command's function with these options; one that has a --config of its own keeps it."""
    signature = inspect.signature(function, eval_str=True)
    common = _COMMON | ({"defaults": (Defaults, None)} if "config" in signature.parameters else {})
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in common.items()
        if name not in signature.parameters
    ]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        function(**{name: value for name, value in given.items() if name in signature.parameters})

    parameters = [*signature.parameters.values(), *added]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def stated_options(path: Path, context: typer.Context) -> dict[str, Any]:
    """Return what a configuration states for a command: texts as on the command line, by the names of parameters."""
    stated, text = read_toml(path)
    place, lines = place_of(context), KeyLines(text)

    def refused(key: str, problem: str, at: tuple[str, ...] = place) -> InvalidInput:
        return InvalidInput("config", str(path), f"line {lines.of((*at, key))}: {problem}")

    groups = [each for each in _above(context) if place_of(each) != place]
    for group in groups:
        at = place_of(group)
        below: Any = group.command
        sections = _sections(below)
        unnamed = _options(below.commands[below.unnamed]) if hasattr(below, "unnamed") else {}
        for key, value in _section(stated, at).items():
            if not (key in sections and isinstance(value, dict)) and key.replace("_", "-") not in unnamed:
                called = ".".join((*at, key))
                problem = f"{called} is not a section; a section has the name of a command: {', '.join(sections)}"
                raise refused(key, problem, at)
    options = _options(context.command)
    found: dict[str, Any] = {}
    # The unnamed command of a group shares its section with the sections of the group's other commands.
    beside = _sections(context.parent.command) if context.parent and not context.info_name else []
    for key, value in _section(stated, place).items():
        if key in beside and isinstance(value, dict):
            continue
        name = key.replace("_", "-")
        if name not in options or name in ("config", "defaults", "help"):
            raise refused(key, f"{' '.join(place)} has no option {key}; see dpselect {' '.join(place)} --help")
        stated_as = str(options[name].name)
        if stated_as in found:
            raise refused(key, f"{name} is stated twice, with - and with _")
        found[stated_as] = _as_given(options[name], value, functools.partial(refused, key))
    return found


def _sections(group: Any) -> list[str]:
    """Return the commands of a group that have a section of their own, which one without a name has not."""
    return [name for name in group.commands if name != getattr(group, "unnamed", None)]


def _options(command: Any) -> dict[str, Any]:
    return {_option(param): param for param in command.params if param.param_type_name == "option"}


def _above(context: Any) -> Iterator[Any]:
    """Yield the contexts around one, from `dpselect` inwards."""
    if context.parent is not None:
        yield from _above(context.parent)
        yield context.parent


def place_of(context: Any) -> tuple[str, ...]:
    """Return the names of a command below `dpselect`, such as ("ledger", "create")."""
    names: list[str] = []
    while context.parent is not None:
        names.insert(0, context.info_name or "")
        context = context.parent
    return tuple(filter(None, names))


def _section(stated: Mapping[str, Any], place: tuple[str, ...]) -> Mapping[str, Any]:
    for name in place:
        stated = stated.get(name, {})
    return stated


def _option(param: Any) -> str:
    """Return the name of an option without its dashes."""
    return max(param.opts, key=len).lstrip("-") if param.opts else ""


def _as_given(param: Any, value: Any, refused: Callable[[str], InvalidInput]) -> Any:
    """Return a value as the text that the command line would hold; a flag is true or false."""
    if getattr(param, "is_flag", False) != isinstance(value, bool):
        raise refused(f"{_option(param)} must be {'true or false' if param.is_flag else 'a text or a number'}")
    if isinstance(value, bool):
        return value
    several = param.nargs != 1 or param.multiple
    if isinstance(value, dict) or isinstance(value, list) != several:
        raise refused(f"{_option(param)} must be {'a list' if several else 'a text or a number'}")
    return [str(each) for each in value] if several else str(value)
