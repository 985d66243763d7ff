"""`dpselect ledger`: budgets that last: create, spend, show, check, list."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dpselect import Guarantee, InvalidInput
from dpselect.cli.numbers import number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, note, publish, shown
from dpselect.privacy.ledger import Entry, Ledger, Statement

_FAILED = 1
_BAR_WIDTH = 30
_COLUMNS = ("dataset", "sequence", "time", "epsilon", "delta", "mechanism", "k", "secure", "purpose", "hash")

ledger_commands = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", add_completion=False)

Place = Annotated[
    str,
    typer.Option("--ledger", help="A file, or a postgresql+psycopg:// URL.", envvar="DPSELECT_LEDGER", metavar="PLACE"),
]
Name = Annotated[str, typer.Argument(metavar="DATASET", help="Name of the data set.")]
MaybeName = Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Name of the data set; default: all.")]
Delta = Annotated[float, typer.Option(parser=number, help="Failure probability.", metavar="NUMBER")]
Form = Annotated[Format, typer.Option("--format", help="How to show it.")]

_DEFAULT = "ledger.sqlite"


@ledger_commands.callback()
def ledger_command() -> None:
    """Keep a budget per data set, which no crash or race can overdraw.

    Example, which makes the file ledger.sqlite:

    [bold]dpselect ledger create films --epsilon 1[/bold]
    """


@ledger_commands.command("create")
def create_command(
    dataset: Name,
    epsilon: Annotated[float, typer.Option(parser=number, help="The total, for good.", metavar="NUMBER")],
    delta: Delta = 0.0,
    protects: Annotated[str, typer.Option(help="Unit of protection.", metavar="TEXT")] = "one person",
    composition: Annotated[str, typer.Option(help="How costs add up: basic or zcdp.", metavar="RULE")] = "basic",
    ledger: Place = _DEFAULT,
    form: Form = Format.table,
) -> None:
    """Give a data set its total; makes the ledger if there is none.

    Example:
    [bold]dpselect ledger create films --epsilon 1[/bold]
    """
    with _opened(ledger) as book:
        book.create(dataset, epsilon=epsilon, delta=delta, protects=protects, composition=composition)
        publish(_statement_text(book.statement(dataset), form), None)


@ledger_commands.command("spend")
def spend_command(
    dataset: Name,
    epsilon: Annotated[float, typer.Option(parser=number, help="What the release costs.", metavar="NUMBER")],
    delta: Delta = 0.0,
    purpose: Annotated[str, typer.Option(help="What it is for.", metavar="TEXT")] = "",
    ledger: Place = _DEFAULT,
    form: Form = Format.table,
) -> None:
    """Record a release made by other means, before it is published.

    [bold]dpselect top[/bold] records its own with --ledger and --dataset. Exit status 1 if too little is left.

    Example, after [bold]dpselect ledger create films --epsilon 1[/bold]:

    [bold]dpselect ledger spend films --epsilon 0.25 --purpose chart[/bold]
    """
    with _opened(ledger) as book:
        unit = book.account(dataset)
        book.spend(dataset, Guarantee(epsilon, delta, unit.protects, unit.neighbours), purpose)
        publish(_statement_text(book.statement(dataset), form), None)


@ledger_commands.command("show")
def show_command(
    dataset: MaybeName = None,
    last: Annotated[int, typer.Option(parser=whole_number, help="How many entries to show.", metavar="N")] = 10,
    everything: Annotated[bool, typer.Option("--all", help="Show every entry.")] = False,
    ledger: Place = _DEFAULT,
    form: Form = Format.table,
) -> None:
    """Show what is spent, what is left, and what that would still buy.

    Example, after [bold]dpselect ledger create films --epsilon 1[/bold]:

    [bold]dpselect ledger show films[/bold]
    """
    if not isinstance(last, int) or last < 0:
        raise InvalidInput("last", last, "a whole number of at least 0 is needed")
    with _opened(ledger) as book:
        names = [account.dataset for account in book.accounts()] if dataset is None else [dataset]
        statements = [book.statement(name, None if everything else last) for name in names]
    if form is Format.csv:
        publish(_csv([entry for statement in statements for entry in statement.entries]), None)
    elif form is Format.json and dataset is None:
        publish(as_json({"datasets": [statement.to_dict() for statement in statements]}), None)
    else:
        publish("\n".join(_statement_text(statement, form) for statement in statements), None)


@ledger_commands.command("list")
def list_command(ledger: Place = _DEFAULT, form: Form = Format.table) -> None:
    """List the data sets of a ledger.

    Example, after [bold]dpselect ledger create films --epsilon 1[/bold]:

    [bold]dpselect ledger list[/bold]
    """
    with _opened(ledger) as book:
        statements = [book.statement(account.dataset, 0) for account in book.accounts()]
    columns = ("dataset", "total", "spent", "left", "delta", "entries", "protects")
    rows: list[dict[str, Any]] = [
        {
            "dataset": statement.account.dataset,
            "total": statement.account.total.epsilon,
            "spent": statement.spent.epsilon,
            "left": statement.remaining.epsilon,
            "delta": statement.remaining.delta,
            "entries": statement.account.count,
            "protects": statement.account.protects,
        }
        for statement in statements
    ]
    if form is Format.json:
        publish(as_json({"datasets": rows}), None)
    elif form is Format.csv:
        publish(as_csv(rows) if rows else ",".join(columns) + "\n", None)
    else:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for column in columns:
            heading = "delta left" if column == "delta" else column
            table.add_column(heading, justify="left" if column in ("dataset", "protects") else "right")
        for row in rows:
            table.add_row(*(shown(_figure(value)) for value in row.values()))
        publish(as_text(table), None)


@ledger_commands.command("check")
def check_command(
    dataset: MaybeName = None,
    head: Annotated[
        str | None, typer.Option(help="A hash that was shown before; it must still be there.", metavar="HASH")
    ] = None,
    ledger: Place = _DEFAULT,
    form: Form = Format.table,
) -> None:
    """Look for entries that were edited, removed or reordered.

    Exit status 1 if there are any.

    Example, after [bold]dpselect ledger create films --epsilon 1[/bold]:

    [bold]dpselect ledger check[/bold]
    """
    with _opened(ledger) as book:
        faults = book.check(dataset, head)
        accounts = [account for account in book.accounts() if dataset in (None, account.dataset)]
    found = [fault.to_dict() for fault in faults]
    if form is Format.json:
        heads = [{"dataset": one.dataset, "count": one.count, "head": one.head} for one in accounts]
        publish(as_json({"passed": not faults, "faults": found, "datasets": heads}), None)
    elif form is Format.csv:
        publish(as_csv(found) if found else "dataset,sequence,problem\n", None)
    else:
        broken = {fault.dataset for fault in faults}
        sound = [
            f"{one.dataset}: {one.count} entries, all as written; head {one.head}"
            for one in accounts
            if one.dataset not in broken
        ]
        publish("".join(f"{shown(line)}\n" for line in [*map(str, faults), *sound]), None)
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        note(f"{count}: what is left is not known; release nothing until the ledger is restored from a copy")
        raise typer.Exit(_FAILED)


@contextlib.contextmanager
def _opened(place: str) -> Iterator[Ledger]:
    """Open a ledger, and name the data set in errors as these commands do."""
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


def _statement_text(statement: Statement, form: Format) -> str:
    if form is Format.json:
        return as_json(statement.to_dict())
    if form is Format.csv:
        return _csv(statement.entries)
    account = statement.account
    parts: list[Any] = [
        Text.assemble((str(shown(account.dataset)), "bold"), f": protects {account.protects}"),
        _bars(statement),
    ]
    if statement.entries:
        parts.append(_entries(statement.entries))
        hidden = account.count - len(statement.entries)
        if hidden > 0:
            parts.append(Text(f"{hidden:,} earlier entries are left out", "dim"))
    return as_text(*parts)


def _bars(statement: Statement) -> Table:
    total, spent, left = statement.account.total, statement.spent, statement.remaining
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    if statement.account.composition == "zcdp":
        grid.add_row("rho", _bar(spent.rho, left.rho, total.rho))
        grid.add_row("", f"epsilon {spent.epsilon:g} of {total.epsilon:g} at delta {total.delta:g}")
    else:
        grid.add_row("epsilon", _bar(spent.epsilon, left.epsilon, total.epsilon))
        if total.delta:
            grid.add_row("delta", _bar(spent.delta, left.delta, total.delta))
    for place, offer in enumerate(statement.offers()):
        grid.add_row("" if place else "buys", str(offer))
    return grid


def _bar(spent: float, left: float, total: float) -> Text:
    """Draw what is spent; a full bar means that nothing is left, an empty one that nothing is spent."""
    filled = round(_BAR_WIDTH * spent / total)
    filled = min(max(filled, 1 if spent else 0), _BAR_WIDTH - (1 if left else 0))
    colour = "red" if left < total / 10 else "yellow" if left < total / 2 else "green"
    bar = Text("█" * filled, colour)
    return bar.append("░" * (_BAR_WIDTH - filled), "dim").append(f"  {spent:g} of {total:g} spent, {left:g} left", "")


def _entries(entries: list[Entry]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    with_delta = any(entry.guarantee.delta for entry in entries)
    if with_delta:
        table.add_column("delta", justify="right", no_wrap=True)
    table.add_column("release", no_wrap=True)
    table.add_column("purpose", overflow="fold")
    for entry in entries:
        cells = [str(entry.sequence), f"{entry.time:%Y-%m-%d %H:%M:%S}", f"{entry.guarantee.epsilon:g}"]
        if with_delta:
            cells.append(f"{entry.guarantee.delta:g}")
        release = " ".join(filter(None, [_named(entry, "name"), _named(entry, "k") and f"top {_named(entry, 'k')}"]))
        seeded = "" if entry.secure else " (seeded)"
        table.add_row(*cells, Text(release + seeded), shown(entry.purpose) if entry.purpose else "")
    return table


def _csv(entries: list[Entry]) -> str:
    rows = [
        {
            "dataset": entry.dataset,
            "sequence": entry.sequence,
            "time": entry.time.isoformat(),
            "epsilon": entry.guarantee.epsilon,
            "delta": entry.guarantee.delta,
            "mechanism": _named(entry, "name"),
            "k": _named(entry, "k"),
            "secure": entry.secure,
            "purpose": entry.purpose,
            "hash": entry.hash,
        }
        for entry in entries
    ]
    return as_csv(rows) if rows else ",".join(_COLUMNS) + "\n"


def _named(entry: Entry, parameter: str) -> str:
    return str(entry.parameters.get(parameter, ""))


def _figure(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
