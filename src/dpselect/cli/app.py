"""The command itself: its sub-commands, exit statuses and error messages."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import dpselect
from dpselect.cli import demo, forecast, plan, rank, reproduce, top
from dpselect.cli.ledger import ledger_commands
from dpselect.cli.multiselect import SERVE_EXAMPLES, multiselect_commands, serve_command
from dpselect.cli.options import examples
from dpselect.cli.output import note
from dpselect.cli.verify import verify_command
from dpselect.errors import has_password

REFUSED, BAD_INPUT, INTERNAL_ERROR, INTERRUPTED, CLOSED_PIPE = 1, 2, 70, 130, 141
"""Exit statuses; success is 0."""

_OPTIONS = {
    "k": "-k",
    "table": "SOURCE",
    "comparisons": "SOURCE",
    "catalogue": "FILE",
    "file": "FILE",
    "table_name": "--table",
    "domain_header": "--domain-no-header",
    "paper": "PAPER",
    "guarantee": "the release",
}
"""Arguments of the package whose name on the command line is not --NAME."""


class Commands(TyperGroup):
    """The group of all sub-commands, which turns every failure into a short message and an exit status."""

    def invoke(self, context: Any) -> Any:
        """Run the sub-command."""
        try:
            return super().invoke(context)
        except dpselect.DpSelectError as error:
            note(_message(error))
            raise typer.Exit(REFUSED if isinstance(error, dpselect.BudgetExceeded) else BAD_INPUT) from None
        except KeyboardInterrupt:
            note("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _silence_output()
            raise typer.Exit(CLOSED_PIPE) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if hasattr(error, "format_message"):
                said = error.format_message()
                note("cannot parse an argument that contains a password" if has_password(said) else said)
                note("see " + " ".join(filter(None, ["dpselect", context.invoked_subcommand, "--help"])))
                raise typer.Exit(BAD_INPUT) from None
            # The error's message could quote a row, so only its type is shown.
            note(f"internal error ({type(error).__name__}); please report it")
            raise typer.Exit(INTERNAL_ERROR) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "dpselect demo --out demo",
        "dpselect top demo/views.parquet --item film --person viewer \\",
        "    -k 5 --epsilon 1 --domain demo/films.csv",
        title="Start with generated data, then ask a question about it:",
    ),
)
app.command("top", epilog=top.EXAMPLES)(top.top_command)
app.command("rank", epilog=rank.EXAMPLES)(rank.rank_command)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo_command)
app.command("plan", epilog=plan.PLAN_EXAMPLES)(plan.plan_command)
app.command("forecast", epilog=forecast.FORECAST_EXAMPLES)(forecast.forecast_command)
app.command("verify")(verify_command)
app.command("reproduce", epilog=reproduce.EXAMPLES)(reproduce.reproduce_command)
app.command("serve", epilog=SERVE_EXAMPLES)(serve_command)
app.add_typer(ledger_commands, name="ledger")
app.add_typer(multiselect_commands, name="multiselect")


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
    if sys.stdout.encoding.lower().replace("-", "") != "utf8":
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _silence_output()
            sys.exit(CLOSED_PIPE)


def _message(error: dpselect.DpSelectError) -> str:
    """Return the error's text, with the argument under its name on the command line."""
    text = str(error)
    if isinstance(error, dpselect.InvalidInput) and error.argument.isidentifier():
        option = _OPTIONS.get(error.argument, f"--{error.argument.replace('_', '-')}")
        return option + text.removeprefix(error.argument)
    return text


def _silence_output() -> None:
    """Discard buffered output, so that Python does not fail on the closed pipe again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
