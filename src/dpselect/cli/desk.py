"""`dpselect desk`: the curator's page, alone or as a shared service, and the tokens of the latter."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

import dpselect
from dpselect.cli.options import ResultFormat, examples, number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, note, publish

EXAMPLES = examples(
    "dpselect desk",
    "dpselect desk views.parquet films.csv",
    "dpselect desk --config desk.toml --port 8417",
    title="Examples; the files are yours. Without files it offers generated ones:",
)
TOKEN_EXAMPLES = examples(
    "dpselect desk token create ann --config desk.toml --dataset views \\",
    "    --epsilon 0.5 --days 30",
    "dpselect desk token list --config desk.toml",
    title="Examples; the configuration is yours:",
)
DEMO = "demo"


class DeskGroup(TyperGroup):
    """Opens the desk unless the first word is `token`."""

    unnamed = "open"

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Let whatever is not a sub-command be an option or a file of the page."""
        return super().parse_args(context, arguments if arguments[:1] == ["token"] else [self.unnamed, *arguments])

    def resolve_command(self, context: Any, arguments: list[str]) -> Any:
        """Return the command; the page has no name of its own in usage lines."""
        name, command, rest = super().resolve_command(context, arguments)
        return "" if name == self.unnamed else name, command, rest


desk_commands = typer.Typer(cls=DeskGroup, rich_markup_mode="rich", add_completion=False)
token_commands = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", add_completion=False)
desk_commands.add_typer(token_commands, name="token")

Config = Annotated[
    Path, typer.Option(help="Configuration of the shared desk, a TOML file.", metavar="FILE", show_default=True)
]


@desk_commands.callback()
def desk_command() -> None:
    """Open the curator's page: describe, estimate, preview and release, under a budget."""


@desk_commands.command("open", epilog=EXAMPLES)
def open_command(
    context: typer.Context,
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files that the page offers: people's rows, and public lists of items or groups.",
            metavar="[FILES]",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Serve analysts with tokens, as this TOML file says.", metavar="FILE", show_default=False),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than 127.0.0.1 need --config.", metavar="HOST")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(parser=whole_number, help="Port to listen on; 0 takes a free one.", metavar="N")
    ] = 8417,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in a browser.")] = False,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Alone, where budgets are kept: a file or URL. Default: ledger.sqlite. Later it must be the same.",
            envvar="DPSELECT_LEDGER",
            metavar="PLACE",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Open the curator's page: describe, estimate, preview and release, under a budget.

    Alone, it serves this machine only. Budgets are kept in ledger.sqlite and
    what you state about the data in desk.toml, both in the working folder.
    With --config it serves analysts, whose tokens `dpselect desk token` makes;
    that file names the ledger. Stop it with Ctrl-C.
    """
    from dpselect.desk import run

    if not isinstance(port, int) or not 0 <= port < 65536:
        raise dpselect.InvalidInput("port", port, "must be a whole number from 0 to 65535")
    source = context.get_parameter_source("ledger")
    if config is not None and (source is None or source.name != "COMMANDLINE"):
        ledger = None  # the environment and dpselect.toml name that of commands without a file of their own
    files = list(sources or [])
    for file in files:
        if not file.exists():
            raise dpselect.InvalidInput("files", str(file), "must be files that exist")
    if config is None and not files and not Path("desk.toml").exists():
        files = _demo_files()
    signal.signal(signal.SIGTERM, _stopped)
    run(files, config=config, ledger=ledger, host=host, port=port, open_browser=browser, ready=_announce)


def _stopped(number: int, frame: Any) -> None:
    """End the process as a success; the server calls this when it has finished what was asked."""
    raise SystemExit(0)


def _demo_files() -> list[Path]:
    """Write the demo's generated files into a folder, unless they are there."""
    from dpselect.cli.demo import demo_files

    note(f"no file was named: the page offers generated data, in the folder {DEMO}")
    return demo_files(Path(DEMO))


def _announce(address: str) -> None:
    note(f"the page is at {address}")
    note("keep that address to yourself: whoever has it can use the page" if "#" in address else "it asks for a token")
    note("stop with Ctrl-C")


@token_commands.callback(epilog=TOKEN_EXAMPLES)
def token_command() -> None:
    """Make, list and revoke the tokens with which analysts use a shared desk."""


@token_commands.command("create", epilog=TOKEN_EXAMPLES)
def create_command(
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="Name of the analyst: letters, digits, - and _.")],
    config: Config = Path("desk.toml"),
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Allow this data set only; may be repeated. Default: all.", metavar="NAME"),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="Give the analyst a budget of their own in each of these data sets; it never changes.",
            metavar="NUMBER",
        ),
    ] = None,
    days: Annotated[
        float | None, typer.Option(parser=number, help="Days until the token expires. Default: never.", metavar="N")
    ] = None,
    curator: Annotated[bool, typer.Option("--curator", help="Also allow everybody's history.")] = False,
) -> None:
    """Make a token and print it, once.

    Budgets belong to analysts, not to tokens: a second token for the same
    analyst brings no new budget.
    """
    import re

    from dpselect.desk import (
        TokenStore,
        analyst_account,
        check_days,
        check_spelling,
        ensure_account,
        ensure_accounts,
        read_config,
    )
    from dpselect.ledger import Ledger

    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", analyst):
        raise dpselect.InvalidInput("analyst", analyst, "must be letters, digits, - and _, at most 60 characters")
    check_days(days)  # a budget would stay
    settings = read_config(config)
    for name in dataset or []:
        if name not in settings.datasets:
            raise dpselect.InvalidInput("dataset", name, f"must be one of {', '.join(settings.datasets)}")
    with Ledger(settings.ledger) as ledger:
        ensure_accounts(settings, ledger, config)
        tokens = TokenStore(settings.ledger)
        check_spelling(analyst, settings, ledger, tokens)
        for name in dataset or settings.datasets if epsilon is not None else []:
            described = settings.datasets[name]
            account = analyst_account(described.budget or name, analyst)
            ensure_account(ledger, account, described, epsilon or 0.0)
    scopes = ["ask", "curate"] if curator else ["ask"]
    text, token = tokens.create(analyst, scopes=scopes, datasets=dataset or None, days=days)
    until = "never expires" if token.expires is None else f"expires on {token.expires:%Y-%m-%d}"
    note(f"token {token.id} of {analyst}, which {until}; it is shown once:")
    typer.echo(text)


@token_commands.command("list")
def list_command(
    config: Config = Path("desk.toml"),
    form: ResultFormat = Format.table,
) -> None:
    """List all tokens, without their secrets."""
    tokens = [token.to_dict() for token in _store(config).all()]
    if form is Format.json:
        return publish(as_json({"tokens": tokens}), None)
    rows = [
        {**token, "datasets": ", ".join(token["datasets"] or ["all"]), "scopes": ", ".join(token["scopes"])}
        for token in tokens
    ]
    columns = ["id", "analyst", "datasets", "scopes", "created", "expires", "state"]
    if form is Format.csv:
        return publish(as_csv(rows, columns), None)
    table = Table(*columns)
    for row in rows:
        table.add_row(*(Text(str(row[column] or "never")[:19]) for column in columns))
    publish(as_text(table), None)


@token_commands.command("revoke")
def revoke_command(
    identity: Annotated[str, typer.Argument(metavar="ID", help="ID of the token, as `token list` shows it.")],
    config: Config = Path("desk.toml"),
) -> None:
    """Revoke a token for good, from the next request on."""
    token = _store(config).revoke(identity)
    note(f"token {token.id} of {token.analyst} is revoked; the budget of {token.analyst} stays as it is")


def _store(config: Path) -> Any:
    """Return the tokens; a data set that is missing at the moment must not keep a token from being revoked."""
    from dpselect.desk import TokenStore, read_ledger_place
    from dpselect.ledger import Ledger

    place = read_ledger_place(config)
    with Ledger(place) as ledger:
        ledger.accounts()  # an error if there is no ledger yet
    return TokenStore(place)
