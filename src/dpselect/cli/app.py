"""The command itself: its sub-commands, exit statuses and error messages."""

from __future__ import annotations

import functools
import gc
import os
import sys
import traceback
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

import dpselect
from dpselect.cli.common import place_of, with_common_options
from dpselect.cli.options import examples
from dpselect.cli.output import Verbosity, failure, is_verbose, set_verbosity
from dpselect.errors import has_password

REFUSED, BAD_INPUT, INTERNAL_ERROR, INTERRUPTED, CLOSED_PIPE = 1, 2, 70, 130, 141
"""Exit statuses; success is 0."""

_OBJECTS_BETWEEN_COLLECTIONS = 50_000

_OPTIONS = {
    "k": "-k",
    "table": "SOURCE",
    "comparisons": "SOURCE",
    "catalogue": "FILE",
    "file": "FILE",
    "files": "FILES",
    "sensitivity.low": "--sensitivity LOW",
    "sensitivity.high": "--sensitivity HIGH",
    "table_name": "--table",
    "domain_header": "--domain-no-header",
    "paper": "PAPER",
    "guarantee": "the release",
    "margin": "--no-margin",
}
"""Arguments of the package whose name on the command line is not --NAME."""


_PAGES = {
    "files.md#the-domain": ["domain", "domain_column", "domain_header"],
    "files.md#counts-in-a-file": ["sensitivity"],
    "engines.md#connections": ["table_name"],
    "engines.md#filters": ["where"],
    "engines.md#score-kinds": ["value", "clip", "weight"],
    "groups.md": ["by", "groups", "max_groups_per_person"],
    "ledger.md#a-total-for-each-week": ["time", "period"],
    "ledger.md#answered-once": ["once"],
    "ledger.md#where-it-is-kept": ["ledger"],
    "mechanisms.md#options": ["mechanism", "noise", "gamma", "inner", "test_share"],
    "ranking.md#arguments": ["comparisons_per_pair", "max_degree", "damping", "promised_rho", "max_votes_per_person"],
    "unknown.md": ["pool"],
    "values.md": ["values"],
}
PAGE_OF = {argument: f"docs/{page}" for page, arguments in _PAGES.items() for argument in arguments}
"""The page of the manual that explains an argument, for those whose error does not say it all."""


_PAGE_OF_COMMAND = {
    "multiselect": "docs/multiselect.md",
    "serve": "docs/multiselect.md",
    "verify": "docs/verify.md",
}
"""The page of commands whose options have the names of others'."""


class Command(NamedTuple):
    """A sub-command: its line in the list of commands, and where to find its function or group, and its examples."""

    help: str
    module: str
    function: str
    examples: str = "EXAMPLES"


COMMANDS = {
    "top": Command(
        "Publish the K items that most people have, without revealing whether any one person is in the data.",
        "top",
        "top_command",
    ),
    "select": Command(
        "Publish the K items with the highest counts in a file, without revealing whether any one person is in the "
        "data.",
        "select",
        "select_command",
    ),
    "domain": Command(
        "Publish which items exist, as far as enough people have them: a list for --domain.",
        "domain",
        "domain_command",
    ),
    "rank": Command(
        "Publish the K best items from comparisons of pairs, without revealing any one vote.", "rank", "rank_command"
    ),
    "demo": Command(
        "Generate viewers and films, publish the private top 10, and show it beside the true one.",
        "demo",
        "demo_command",
    ),
    "plan": Command(
        "Show which epsilon each mechanism needs, or what it can do with one, before any private row is read.",
        "plan",
        "plan_command",
        "PLAN_EXAMPLES",
    ),
    "forecast": Command(
        "Show how likely each mechanism is to return exactly the right items.",
        "forecast",
        "forecast_command",
        "FORECAST_EXAMPLES",
    ),
    "verify": Command(
        "Check the guarantee of every mechanism on all neighbours of small domains.", "verify", "verify_command"
    ),
    "reproduce": Command(
        "Compute the figures and tables of a paper again, and show whether its claims hold.",
        "reproduce",
        "reproduce_command",
    ),
    "serve": Command(
        "Answer noisy signals over HTTP, and show the page that sends them.",
        "serve",
        "serve_command",
        "SERVE_EXAMPLES",
    ),
    "desk": Command(
        "Open the curator's page: describe, estimate, preview and release, under a budget.", "desk", "desk_commands"
    ),
    "ledger": Command(
        "Keep a budget per data set, which no crash or race can overdraw.", "ledger", "ledger_commands", ""
    ),
    "multiselect": Command(
        "Recommend without seeing the user: a noisy signal, k answers, a private choice.",
        "multiselect",
        "multiselect_commands",
        "",
    ),
}
"""The sub-commands, in the order of the help. A module is imported when its command is called, not before."""


class Commands(TyperGroup):
    """The group of all sub-commands, which turns every failure into a short message and an exit status."""

    def resolve_command(self, context: Any, arguments: list[str]) -> Any:
        """Return the sub-command that is called, imported now."""
        name, _, rest = super().resolve_command(context, arguments)
        return name, name and imported(name), rest

    def invoke(self, context: Any) -> Any:
        """Run the sub-command."""
        set_verbosity(Verbosity.normal)
        try:
            return super().invoke(context)
        except dpselect.DpSelectError as error:
            failure(_message(error) + _page(error, context.invoked_subcommand))
            raise typer.Exit(REFUSED if isinstance(error, dpselect.BudgetExceeded) else BAD_INPUT) from None
        except KeyboardInterrupt:
            failure("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _silence_output()
            raise typer.Exit(CLOSED_PIPE) from None
        except (typer.Exit, typer.Abort):
            raise
        except MemoryError:
            failure("not enough memory; ask for less, such as fewer items, or use a machine with more")
            raise typer.Exit(BAD_INPUT) from None
        except Exception as error:
            if hasattr(error, "format_message"):
                said = error.format_message()
                if not said:  # a group without a command has shown its help
                    raise typer.Exit(BAD_INPUT) from None
                failure("cannot parse an argument that contains a password" if has_password(said) else said)
                if "unexpected extra argument" in said:  # the shell replaced an unquoted pattern by the names of files
                    failure("to read several files, quote the pattern, as in 'data/*.csv', or name their folder")
                place = place_of(getattr(error, "ctx", None) or context)
                failure(" ".join(["see dpselect", *place, "--help"]))
                raise typer.Exit(BAD_INPUT) from None
            # The error's message could quote a row, so only its type is shown.
            failure(f"internal error ({type(error).__name__}); please report it, with what --verbose shows")
            if is_verbose():
                failure("".join(traceback.format_tb(error.__traceback__)))
            raise typer.Exit(INTERNAL_ERROR) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "dpselect demo --out demo",
        "dpselect top demo/views.parquet --item film --person viewer \\",
        "    -k 5 --epsilon 1 --domain demo/films.csv",
        title="Start with generated data, then ask a question about it:",
    ),
)
for name, command in COMMANDS.items():
    # Stands for the command in the list of commands; `Commands.resolve_command` imports the real one.
    app.command(name, help=command.help)(lambda: None)


@functools.cache
def imported(name: str) -> Any:
    """Return a sub-command from its module, with the options that every command has."""
    command = COMMANDS[name]
    module = import_module(f"dpselect.cli.{command.module}")
    found = getattr(module, command.function)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name, epilog=getattr(module, command.examples, None))(found)
        found = alone
    _add_common_options(found)
    whole = typer.main.get_command(found)
    _join_lines(whole)
    return whole


def _add_common_options(group: typer.Typer) -> None:
    for registered in group.registered_commands:
        if registered.callback is not None:
            registered.callback = with_common_options(registered.callback)
    for below in group.registered_groups:
        if below.typer_instance is not None:
            _add_common_options(below.typer_instance)


def _join_lines(command: Any) -> None:
    """Let the help wrap its paragraphs by the width of the terminal, not by that of the source."""
    paragraphs = (command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(each.split("\n")) for each in paragraphs) or None
    for below in getattr(command, "commands", {}).values():
        _join_lines(below)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpselect {dpselect.__version__}")
        raise typer.Exit()


@app.callback()
def dpselect_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Publish the top items of data about people with differential privacy.

    The answer does not reveal whether any one person is in the data.
    """


def main() -> None:
    """Run the command and exit with its status."""
    if sys.stdout is None:  # an answer would be paid for and lost
        failure("standard output is closed; send it to a file, such as /dev/null")
        sys.exit(BAD_INPUT)
    if sys.stdout.encoding.lower().replace("-", "") != "utf8":
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    # Nearly all objects belong to imported packages, so that searching for garbage takes time and finds none: search
    # rarely, and with `freeze` not at exit.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        app()
    finally:
        _skip_garbage_at_exit()
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _silence_output()
            sys.exit(CLOSED_PIPE)


def _skip_garbage_at_exit() -> None:
    """Keep Python from searching for garbage at exit.

    DuckDB's constants are deleted first: at exit its binding reports on standard error what nobody collected.
    """
    types = sys.modules.get("_duckdb._sqltypes")
    if types is not None:
        modules = [sys.modules.get(name) for name in ("duckdb.value.constant", "duckdb.sqltypes")]
        for module in filter(None, [types, *modules]):
            for name in [name for name, value in vars(module).items() if isinstance(value, types.DuckDBPyType)]:
                delattr(module, name)
    gc.freeze()


def _message(error: dpselect.DpSelectError) -> str:
    """Return the error's text, with the argument under its name on the command line."""
    text = str(error)
    if isinstance(error, dpselect.InvalidInput) and (error.argument.isidentifier() or error.argument in _OPTIONS):
        option = _OPTIONS.get(error.argument, f"--{error.argument.replace('_', '-')}")
        if error.given is None or isinstance(error.given, bool):  # left out, or a flag, which has no value here
            text = text.replace(f", got {error.given}", "", 1)
        return option + text.removeprefix(error.argument)
    return text


def _page(error: dpselect.DpSelectError, command: str | None) -> str:
    """Return where the manual explains the argument of a command, if it does better than the error."""
    page = PAGE_OF.get(error.argument) if isinstance(error, dpselect.InvalidInput) else None
    return "" if page is None else f"; see {_PAGE_OF_COMMAND.get(command or '', page)}"


def _silence_output() -> None:
    """Discard buffered output, so that Python does not fail on the closed pipe again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
