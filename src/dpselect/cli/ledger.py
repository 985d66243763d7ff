"""`dpselect ledger`: budgets that last: create, spend, show, list, check, backup."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpselect import InvalidInput
from dpselect._text import item_text
from dpselect.cli.ledger_text import accounts_text, entries_csv, statement_text
from dpselect.cli.options import LEDGER, ResultFormat, examples, number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, failure, publish

if TYPE_CHECKING:
    from dpselect.ledger import Ledger

_FAILED = 1

ledger_commands = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", add_completion=False)

Place = Annotated[
    str,
    typer.Option("--ledger", help="A file, or a postgresql:// URL.", envvar="DPSELECT_LEDGER", metavar="PLACE"),
]
Name = Annotated[str, typer.Argument(metavar="DATASET", help="Name of the data set.")]
MaybeName = Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Name of the data set; default: all.")]
Delta = Annotated[float, typer.Option(parser=number, help="Failure probability.", metavar="NUMBER")]


_CREATE = "dpselect ledger create films --epsilon 1"


def _after_create(line: str) -> str:
    return examples(line, title=f"Example, after [bold]{_CREATE}[/bold]:")


@ledger_commands.callback(epilog=examples(_CREATE, title="Example, which makes the file ledger.sqlite:"))
def ledger_command() -> None:
    """Keep a budget per data set, which no crash or race can overdraw."""


@ledger_commands.command(
    "create",
    epilog=examples(
        "dpselect ledger create views --epsilon 0.5 --every week --lifetime 5",
        _CREATE,
        title="Examples:",
    ),
)
def create_command(
    dataset: Name,
    epsilon: Annotated[float, typer.Option(parser=number, help="The total, which never changes.", metavar="NUMBER")],
    delta: Delta = 0.0,
    protects: Annotated[str, typer.Option(help="Unit of protection.", metavar="TEXT")] = "one person",
    composition: Annotated[str, typer.Option(help="How costs add up: basic or zcdp.", metavar="RULE")] = "basic",
    every: Annotated[
        str | None,
        typer.Option(
            help="Give each day, week or month a total of its own; releases then need --period.", metavar="UNIT"
        ),
    ] = None,
    lifetime: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="With --every: the epsilon that all periods may cost together a person who is in all of them.",
            metavar="NUMBER",
        ),
    ] = None,
    ledger: Place = LEDGER,
    form: ResultFormat = Format.table,
) -> None:
    """Give a data set its total; makes the ledger if there is none."""
    with _opened(ledger) as book:
        book.create(
            dataset,
            epsilon=epsilon,
            delta=delta,
            protects=protects,
            composition=composition,
            every=every,
            lifetime=lifetime,
        )
        publish(statement_text(book.statement(dataset), form), None)


@ledger_commands.command("spend", epilog=_after_create("dpselect ledger spend films --epsilon 0.25 --purpose chart"))
def spend_command(
    dataset: Name,
    epsilon: Annotated[float, typer.Option(parser=number, help="What the release costs.", metavar="NUMBER")],
    delta: Delta = 0.0,
    rho: Annotated[
        float | None, typer.Option(parser=number, help="Its zCDP parameter, if it has one.", metavar="NUMBER")
    ] = None,
    purpose: Annotated[str, typer.Option(help="What it is for.", metavar="TEXT")] = "",
    period: Annotated[
        str | None, typer.Option(help="The period that it is about, such as 2026-W46.", metavar="PERIOD")
    ] = None,
    ledger: Place = LEDGER,
    form: ResultFormat = Format.table,
) -> None:
    """Record a release made by other means, before it is published.

    [bold]dpselect top[/bold] records its own with --ledger and --dataset. Exit status 1 if too little is left.
    """
    with _opened(ledger) as book:
        statement = book.charge(dataset, epsilon=epsilon, delta=delta, rho=rho, purpose=purpose, period=period)
    publish(statement_text(statement, form), None)


@ledger_commands.command("show", epilog=_after_create("dpselect ledger show films"))
def show_command(
    dataset: MaybeName = None,
    last: Annotated[int, typer.Option(parser=whole_number, help="How many entries to show.", metavar="N")] = 10,
    everything: Annotated[bool, typer.Option("--all", help="Show every entry.")] = False,
    ledger: Place = LEDGER,
    form: ResultFormat = Format.table,
) -> None:
    """Show what is spent, what is left, and what that would still buy."""
    if not isinstance(last, int) or last < 0:
        raise InvalidInput("last", last, "must be a whole number of at least 0")
    with _opened(ledger) as book:
        names = [account.dataset for account in book.accounts()] if dataset is None else [dataset]
        statements = [book.statement(name, None if everything else last) for name in names]
    if form is Format.csv:
        publish(entries_csv([entry for statement in statements for entry in statement.entries]), None)
    elif form is Format.json and dataset is None:
        publish(as_json({"datasets": [statement.to_dict() for statement in statements]}), None)
    else:
        publish("\n".join(statement_text(statement, form) for statement in statements), None)


@ledger_commands.command("list", epilog=_after_create("dpselect ledger list"))
def list_command(ledger: Place = LEDGER, form: ResultFormat = Format.table) -> None:
    """List the data sets of a ledger."""
    with _opened(ledger) as book:
        statements = [book.statement(account.dataset, 0) for account in book.accounts()]
    publish(accounts_text(statements, form), None)


@ledger_commands.command("check", epilog=_after_create("dpselect ledger check"))
def check_command(
    dataset: MaybeName = None,
    head: Annotated[
        str | None, typer.Option(help="A hash that was shown earlier; it must still be there.", metavar="HASH")
    ] = None,
    ledger: Place = LEDGER,
    form: ResultFormat = Format.table,
) -> None:
    """Look for entries that were edited, removed or reordered.

    Exit status 1 if there are any. Keep a copy of the ledger's head elsewhere: with it, --head finds every change.
    """
    with _opened(ledger) as book:
        faults = book.check(dataset, head)
        accounts = [account for account in book.accounts() if dataset in (None, account.dataset)]
        whole = book.head()
    found: list[dict[str, Any]] = [fault.to_dict() for fault in faults]
    if form is Format.json:
        heads = [{"dataset": one.dataset, "count": one.count, "head": one.head} for one in accounts]
        publish(as_json({"passed": not faults, "faults": found, "datasets": heads, "head": whole}), None)
    elif form is Format.csv:
        publish(as_csv(found) if found else "dataset,sequence,problem\n", None)
    else:
        broken = {fault.dataset for fault in faults}
        sound = [
            f"{one.dataset}: {one.count} entries, all as written; head {one.head}"
            for one in accounts
            if one.dataset not in broken
        ]
        if dataset is None and not faults:
            sound.append(f"the ledger: nothing is missing; head {whole}")
        publish("".join(f"{item_text(line)}\n" for line in [*map(str, faults), *sound]), None)
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        failure(f"{count}: what is left is not known; release nothing until the ledger is restored from a copy")
        raise typer.Exit(_FAILED)


@ledger_commands.command("backup", epilog=_after_create("dpselect ledger backup ledger-copy.sqlite"))
def backup_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy; it must not exist yet.")],
    ledger: Place = LEDGER,
) -> None:
    """Copy a ledger in one file, with all that a desk keeps in it, while it may be in use.

    For a ledger in PostgreSQL, use pg_dump.
    """
    with _opened(ledger) as book:
        book.backup(file)
    check_command(ledger=str(file))


@contextlib.contextmanager
def _opened(place: str) -> Iterator[Ledger]:
    """Open a ledger; errors say "data set", as these commands do, for the argument `dataset`."""
    from dpselect.ledger import Ledger

    try:
        with Ledger(place) as book:
            yield book
    except InvalidInput as error:
        if error.argument != "dataset":
            raise
        failure = InvalidInput("data set", error.given, error.accepted)
    else:
        return
    raise failure
