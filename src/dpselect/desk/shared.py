"""The desk as a shared service: data sets, budgets and columns from a configuration, and tokens for analysts."""

from __future__ import annotations

from pathlib import Path

from dpselect._toml import Place
from dpselect.desk.accounts import check_tokens, ensure_accounts
from dpselect.desk.config import DataSetConfig, DeskConfig, lines_of, refusal
from dpselect.desk.datasets import DataSet
from dpselect.desk.door import ASK, CURATE, Caller
from dpselect.desk.questions import DataSetState, Mode
from dpselect.desk.tokens import TokenStore
from dpselect.errors import DpSelectError, InvalidInput
from dpselect.ledger import Ledger
from dpselect.sources import KeptCounts

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class SharedDesk:
    """Data sets that several analysts may ask about.

    Parameters
    ----------
    config : DeskConfig
        The configuration, checked; accounts that the ledger lacks are made, others must agree with it. A token must
        not be of another spelling of an analyst with a budget.
    host : str
        The address that the service listens on, by which it may be called.
    path : Path, optional
        The file of the configuration, whose lines errors then name.
    """

    mode: Mode = "shared"

    def __init__(self, config: DeskConfig, *, host: str = "127.0.0.1", path: Path | None = None) -> None:
        self._ledger = Ledger(config.ledger)
        ensure_accounts(config, self._ledger, path)
        self._tokens = TokenStore(config.ledger)
        check_tokens(config, self._ledger, self._tokens)
        kept = KeptCounts()
        self._datasets = {name: DataSet(name, each, self._ledger, kept) for name, each in config.datasets.items()}
        self.hosts = LOOPBACK | {host, *config.hosts}
        self.requests_per_minute = config.requests_per_minute
        self.offered: list[str] = []

    def check(self, path: Path) -> None:
        """Open the source of every data set, so that a mistake is found now and not by the first question.

        No row is read. `path` is the configuration, whose lines the errors name.
        """
        lines = lines_of(path)
        mistakes = []
        for name, dataset in self._datasets.items():
            try:
                dataset.check()
            except DpSelectError as error:
                place = ("datasets", name, *_stated_at(dataset.config, error))
                mistakes.append((lines.of(place), f"{'.'.join(place)}: {error}"))
        if mistakes:
            raise refusal(path, mistakes)

    def caller(self, token: str) -> Caller | None:
        """Return whose token this is, or None."""
        found = self._tokens.check(token)
        if found is None:
            return None
        datasets = None if found.datasets is None else frozenset(found.datasets)
        return Caller(found.analyst, frozenset(found.scopes) & {ASK, CURATE}, datasets)

    def states(self, caller: Caller) -> list[DataSetState]:
        """Return the public facts of all data sets that the caller may ask about."""
        return [
            dataset.state(caller.analyst)
            for name, dataset in self._datasets.items()
            if caller.datasets is None or name in caller.datasets
        ]

    def dataset(self, name: str) -> DataSet | None:
        """Return a data set."""
        return self._datasets.get(name)

    def sharing(self, budget: str) -> frozenset[str]:
        """Return the names of the data sets that share a budget."""
        return frozenset(name for name, dataset in self._datasets.items() if dataset.budget == budget)

    def ready(self) -> bool:
        """Whether the ledger can be read."""
        try:
            self._ledger.accounts()
        except DpSelectError:
            return False
        return True


def _stated_at(config: DataSetConfig, error: DpSelectError) -> Place:
    """Return the key of a data set that states what an error is about."""
    if not isinstance(error, InvalidInput):
        return ("source",)
    columns: dict[str | None, Place] = {config.person: ("person",), config.time: ("time",)}
    columns |= {column: (kind, column) for kind in ("items", "groups") for column in getattr(config, kind)}
    missing = [place for column, place in columns.items() if f"column {column!r}" in str(error)]
    if error.argument == "table" and missing:
        return missing[0]
    return (_KEYS.get(error.argument, "source"),)


_KEYS = {"person": "person", "domain": "items", "item": "items", "groups": "groups", "by": "groups"}
_KEYS |= {"like": "like", "table_name": "table", "time": "time", "where": "filters"}
"""The key of a data set that states an argument of the library."""
