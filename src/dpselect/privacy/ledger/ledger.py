"""Ledger: budgets that last, and that cannot be overdrawn by accident, crash or race."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.ledger import rules
from dpselect.privacy.ledger.amounts import Amount, Budget
from dpselect.privacy.ledger.chain import Account, Entry, Fault, Record, canonical, utc_now
from dpselect.privacy.ledger.names import new_name
from dpselect.privacy.ledger.statement import Statement

if TYPE_CHECKING:
    from dpselect.privacy.ledger.store import Store

LONGEST_NAME = 200
LONGEST_PURPOSE = 2000


class Ledger:
    """Per data set a total, and every release that was charged to it; a file, or a PostgreSQL database for shared use.

    A spend is on the disk when `spend` returns, and the sum of all spends, from whatever processes, never exceeds the
    total. Nothing is ever given back: whoever saw an answer cannot unsee it.

    >>> import dpselect as dps, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with dps.privacy.Ledger(f"{folder.name}/budget.sqlite") as ledger:
    ...     account = ledger.create("films", epsilon=1.0)
    ...     entry = ledger.spend("films", dps.Guarantee(epsilon=0.25), purpose="weekly chart")
    ...     ledger.remaining("films")
    Budget(epsilon=0.75, delta=0.0, rho=0.0)
    >>> folder.cleanup()
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self._place = place
        self._open()

    def create(
        self,
        dataset: str,
        *,
        epsilon: float,
        delta: float = 0.0,
        protects: str = "one person",
        neighbours: str = "add or remove",
        composition: str = "basic",
    ) -> Account:
        """Give a data set its total, for good; the file or tables of the ledger are made if there are none.

        dataset: a name that looks like one in the ledger is refused, and so is one that mixes scripts.
        composition: "basic" adds up epsilons and deltas. "zcdp" adds up rho, which suits many small releases; it needs
        a delta, and pure releases or such that state their rho.
        """
        account = Account(
            dataset=new_name(_text("dataset", dataset, LONGEST_NAME, needed=True)),
            total=rules.total_for(composition, epsilon, delta),
            protects=_text("protects", protects, LONGEST_NAME, needed=True),
            neighbours=_text("neighbours", neighbours, LONGEST_NAME, needed=True),
            composition=composition,
            created=utc_now(),
            count=0,
            head="",
        )
        from dpselect.privacy.ledger import records

        store = self._store()
        store.install()
        return store.write(
            lambda connection, tip: records.add_account(connection, tip, account), records.confirm_account
        )

    def spend(
        self,
        dataset: str,
        guarantee: Guarantee,
        purpose: str = "",
        parameters: Mapping[str, Any] | None = None,
        *,
        secure: bool = True,
    ) -> Entry:
        """Record a release, durably, or refuse it with BudgetExceeded; call it before the answer is drawn."""
        if not isinstance(guarantee, Guarantee):
            raise InvalidInput("guarantee", guarantee, "a dpselect.Guarantee is needed, as of a mechanism or a release")
        purpose = _text("purpose", purpose, LONGEST_PURPOSE)
        described = _described(parameters)
        dataset = _text("dataset", dataset, LONGEST_NAME, needed=True)
        from dpselect.privacy.ledger import records

        def work(connection: Any, tip: Any) -> Record:
            account, last = records.state(connection, dataset, tip)
            _check_unit(account, guarantee)
            spent = Amount() if last is None else last.spent
            cost = rules.cost(account, guarantee)
            after = spent + cost
            if not after.within(rules.limit(account)):
                raise _refusal(account, guarantee, cost, spent)
            record = Record(
                dataset=account.dataset,
                sequence=account.count + 1,
                # A clock that was set back must not make a later release look earlier.
                time=max(utc_now(), account.created if last is None else last.time),
                purpose=purpose,
                parameters=described,
                guarantee=canonical(guarantee.to_dict()),
                epsilon=guarantee.epsilon,
                delta=guarantee.delta,
                rho=str(cost.rho),
                secure=int(bool(secure)),
                spent_epsilon=after.text()[0],
                spent_delta=after.text()[1],
                spent_rho=after.text()[2],
                agreed=account.genesis,
                previous=account.head,
            )
            return records.append(connection, tip, record)

        return self._store().write(work, records.confirm_entry).entry()

    def account(self, dataset: str) -> Account:
        """Return what was agreed for a data set, and where its chain ends."""
        return self.statement(dataset, last=0).account

    def accounts(self) -> list[Account]:
        """Return all data sets, by name."""
        from dpselect.privacy.ledger import records

        return self._store().read(records.all_accounts)

    def statement(self, dataset: str, last: int | None = 10) -> Statement:
        """Return spent, left and the last entries (all of them if None), as they stood at one moment."""
        from dpselect.privacy.ledger import records

        dataset = _text("dataset", dataset, LONGEST_NAME, needed=True)
        if last is not None and (not isinstance(last, int) or last < 0):
            raise InvalidInput("last", last, "None or a whole number of at least 0 is needed")

        def work(connection: Any) -> tuple[Account, Record | None, list[Record]]:
            account, end = records.state(connection, dataset)
            return account, end, records.entries_of(connection, account, last)

        account, end, found = self._store().read(work)
        return Statement(account, Amount() if end is None else end.spent, [record.entry() for record in found])

    def spent(self, dataset: str) -> Budget:
        """Return the sum of all releases, rounded up."""
        return self.statement(dataset, last=0).spent

    def remaining(self, dataset: str) -> Budget:
        """Return what is left of the total, rounded down."""
        return self.statement(dataset, last=0).remaining

    def entries(self, dataset: str) -> list[Entry]:
        """Return every recorded release, oldest first."""
        return self.statement(dataset, last=None).entries

    def check(self, dataset: str | None = None, head: str | None = None) -> list[Fault]:
        """Return every sign that the record was edited, cut or reordered; an empty list when there is none.

        dataset: look at this one only. head: a hash that `head`, `account` or an entry once showed; it must still be
        there. Without one, a ledger that was set back as a whole, and hashes that were all computed anew, leave no
        sign.
        """
        from dpselect.privacy.ledger.audit import faults

        if dataset is not None:
            dataset = _text("dataset", dataset, LONGEST_NAME, needed=True)
        if head is not None:
            head = _text("head", head, LONGEST_NAME, needed=True).strip()
        return self._store().read(lambda connection: faults(connection, dataset, head))

    def head(self) -> str:
        """Return the hash of all that was ever created and spent; kept elsewhere, it lets `check` find any change."""
        return self._store().tip().seal

    def close(self) -> None:
        """Let go of the database; the ledger opens it again when it is used again."""
        self._current.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connection behind: another process opens its own."""
        return {"place": self._current.file or self._place}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._place = state["place"]
        self._open()

    def __repr__(self) -> str:
        """Name the ledger without its address, which can hold a password."""
        return f"<Ledger: {self._current.name}>"

    def _open(self) -> None:
        from dpselect.privacy.ledger.store import Store

        self._current = Store(self._place)
        weakref.finalize(self, self._current.close)

    def _store(self) -> Store:
        if self._current.process != os.getpid():
            # SQLite connections must not be used, nor even closed, on the other side of a fork.
            _ABANDONED.append(self._current)
            self._open()
        return self._current


_ABANDONED: list[Store] = []


def _text(argument: str, value: Any, longest: int, needed: bool = False) -> str:
    """Return a text that any database can hold and any terminal can show."""
    if isinstance(value, str) and len(value) <= longest and value.isprintable() and (value.strip() or not needed):
        return value
    given = plain(f"a text of {len(value)} characters") if isinstance(value, str) and len(value) > longest else value
    raise InvalidInput(argument, given, f"a text of {1 if needed else 0} to {longest} printable characters is needed")


def _described(parameters: Any) -> str:
    try:
        return canonical(dict(parameters or {}))
    except (TypeError, ValueError, RecursionError):
        given = plain(f"an object of type {type(parameters).__name__}")
        raise InvalidInput("parameters", given, "a mapping of names to plain data is needed") from None


def _refusal(account: Account, guarantee: Guarantee, cost: Amount, spent: Amount) -> BudgetExceeded:
    left = rules.remaining(account, rules.limit(account) - spent)
    return BudgetExceeded(
        requested=rules.requested(guarantee, cost),
        remaining=left.epsilon,
        requested_delta=float(cost.delta),
        remaining_delta=left.delta,
        dataset=account.dataset,
        requested_rho=cost.rounded_up().rho,
        remaining_rho=left.rho,
    )


def _check_unit(account: Account, guarantee: Guarantee) -> None:
    ours, theirs = (account.protects, account.neighbours), (guarantee.protects, guarantee.neighbours)
    if ours != theirs:
        raise InvalidInput(
            "guarantee",
            plain(f"one that protects {theirs[0]} ({theirs[1]})"),
            f"data set {account.dataset!r} protects {ours[0]} ({ours[1]}), and only such releases add up with it",
        )
