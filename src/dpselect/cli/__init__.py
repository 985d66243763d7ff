"""The `dpselect` command: one file a sub-command, results to standard output, all else to standard error."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import dpselect
from dpselect.cli.demo import demo_command
from dpselect.cli.forecast import forecast_command
from dpselect.cli.ledger import ledger_commands
from dpselect.cli.multiselect import multiselect_commands
from dpselect.cli.plan import plan_command
from dpselect.cli.rank import rank_command
from dpselect.cli.reproduce import reproduce_command
from dpselect.cli.serve import serve_command
from dpselect.cli.top import top_command
from dpselect.cli.verify import verify_command
from dpselect.errors import has_password

DONE, REFUSED, BAD_INPUT, INTERNAL_ERROR, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 70, 130, 141

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


class Commands(TyperGroup):
    """The group of all sub-commands, which turns every failure into a line or two and an exit status."""

    def invoke(self, context: Any) -> Any:
        """Run the sub-command."""
        try:
            return super().invoke(context)
        except dpselect.DpSelectError as error:
            _complain(_message(error))
            raise typer.Exit(REFUSED if isinstance(error, dpselect.BudgetExceeded) else BAD_INPUT) from None
        except KeyboardInterrupt:
            _complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _silence_output()
            raise typer.Exit(CLOSED_PIPE) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if hasattr(error, "format_message"):
                said = error.format_message()
                _complain("an argument with a password in it is not understood" if has_password(said) else said)
                _complain("see " + " ".join(filter(None, ["dpselect", context.invoked_subcommand, "--help"])))
                raise typer.Exit(BAD_INPUT) from None
            # The error's own words could quote a row, so only its kind is shown.
            _complain(f"this should not have happened ({type(error).__name__}); please report it")
            raise typer.Exit(INTERNAL_ERROR) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("top")(top_command)
app.command("rank")(rank_command)
app.command("demo")(demo_command)
app.command("plan")(plan_command)
app.command("forecast")(forecast_command)
app.command("verify")(verify_command)
app.command("reproduce")(reproduce_command)
app.command("serve")(serve_command)
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
    r"""Publish the top items of data about people, with a guarantee that no one person shows.

    Start with an invented example, and then ask a question of your own:

    [bold]dpselect demo --out demo
    dpselect top demo/views.parquet --item film --person viewer [/bold]\
    [bold]    -k 5 --epsilon 1 --domain demo/films.csv[/bold]
    """


def main() -> None:
    """Run the command and leave with its exit status."""
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
    """Return the error's text with the argument under its name on the command line."""
    text = str(error)
    if isinstance(error, dpselect.InvalidInput) and error.argument.isidentifier():
        option = _OPTIONS.get(error.argument, f"--{error.argument.replace('_', '-')}")
        return option + text.removeprefix(error.argument)
    return text


def _complain(text: str) -> None:
    typer.echo(f"dpselect: {text}", err=True)


def _silence_output() -> None:
    """Send what is still buffered nowhere, so that Python does not fail on it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
