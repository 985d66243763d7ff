"""Ledger: budgets that last, and that no accident, crash or race can overdraw."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sql

from dpselect._format import shown_above
from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.ledger import records
from dpselect.ledger.audit import faults
from dpselect.ledger.chain import Account, Entry, Fault, Record, Tip, canonical_json, utc_now
from dpselect.ledger.names import new_name
from dpselect.ledger.rules import Amount, Budget, rule_named
from dpselect.ledger.store import LedgerStore
from dpselect.privacy.guarantee import Guarantee

LONGEST_NAME = 200
LONGEST_PURPOSE = 2000


@dataclass(frozen=True)
class BudgetOffer:
    """How many releases of one cost the remainder allows."""

    releases: int
    cost: Budget
    like_the_last: bool

    def __str__(self) -> str:
        """Say what could be bought."""
        cost = f"epsilon {shown_above(self.cost.epsilon)}"
        cost += f", delta {shown_above(self.cost.delta)}" if self.cost.delta else ""
        plural = "" if self.releases == 1 else "s"
        if self.like_the_last:
            return f"{self.releases} more release{plural} like the last one ({cost})"
        return f"{self.releases} release{plural} of {cost}"


@dataclass(frozen=True)
class Statement:
    """One consistent view of a data set: its account, the exact sum of its costs, and its last entries.

    See `Ledger.statement`.
    """

    account: Account
    exact_spent: Amount
    entries: list[Entry]

    @property
    def spent(self) -> Budget:
        """What all releases cost together, rounded up."""
        return self.account.rule.spent(self.account.total, self.exact_spent)

    @property
    def remaining(self) -> Budget:
        """What is left of the total, rounded down."""
        return self.account.rule.remaining(self.account.total, self._left())

    def buys(self, cost: Guarantee) -> int:
        """Return how many releases with that guarantee the remainder allows."""
        return self._left().buys(self.account.rule.cost(cost, self.account.total, self.exact_spent))

    def offers(self) -> list[BudgetOffer]:
        """Return what the remainder buys: releases like the last one, or ten pure ones."""
        costs = [(self.entries[-1].guarantee, True)] if self.entries else []
        tenth = _three_digits_below(self.account.rule.largest_pure(self._left() / 10))
        if tenth > 0:
            costs.append((Guarantee(tenth), False))
        return [BudgetOffer(self.buys(cost), Budget(cost.epsilon, cost.delta), like) for cost, like in costs]

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain data that json.dumps accepts."""
        return {
            **self.account.to_dict(),
            "spent": self.spent.to_dict(),
            "remaining": self.remaining.to_dict(),
            "buys": [
                {"releases": offer.releases, "epsilon": offer.cost.epsilon, "delta": offer.cost.delta}
                for offer in self.offers()
            ],
            "entries": [entry.to_dict() for entry in self.entries],
        }

    def _left(self) -> Amount:
        return self.account.limit - self.exact_spent


class Ledger:
    """A total for each data set, and every release that was charged to it.

    A spend is on the disk when `spend` returns. The sum of all spends, from any number of processes, never exceeds the
    total. Nothing is ever given back: an answer that was seen cannot be unseen.

    Parameters
    ----------
    place
        The path of a file, or the URL of a PostgreSQL database (postgresql+psycopg://…) for shared use. `create` makes
        the ledger if there is none.

    Raises
    ------
    InvalidInput
        If `place` is neither.

    Examples
    --------
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
        """Give a data set its total, which never changes; make the file or tables of the ledger if there are none.

        Parameters
        ----------
        dataset
            Its name. One that looks like a name in the ledger is refused, and so is one that mixes scripts.
        epsilon, delta
            The total.
        protects, neighbours
            The unit of protection; only releases with the same unit can be charged.
        composition
            "basic" adds up epsilons and deltas. "zcdp" adds up rho, which suits many small releases; it needs a delta,
            and releases that are pure or state their rho.

        Returns
        -------
        The new account.

        Raises
        ------
        InvalidInput
            If the ledger has the data set already, or an argument cannot be used.
        SourceError
            If the database fails or was changed from outside.
        """
        account = Account(
            dataset=new_name(_name(dataset)),
            total=rule_named(composition).total(epsilon, delta),
            protects=_text("protects", protects, LONGEST_NAME, needed=True),
            neighbours=_text("neighbours", neighbours, LONGEST_NAME, needed=True),
            composition=composition,
            created=utc_now(),
            count=0,
            head="",
        )
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
        """Record a release on the disk, or refuse it. Call it before the answer is drawn.

        Parameters
        ----------
        dataset
            The name of the data set that is charged.
        guarantee
            What the release costs; its unit of protection must be that of the data set.
        purpose, parameters
            What the release is for, and plain data about it; both are kept with the entry.
        secure
            False if the release is drawn with a seed.

        Returns
        -------
        The entry.

        Raises
        ------
        BudgetExceeded
            If less is left than the release costs; nothing is recorded then.
        InvalidInput, SourceError
            If an argument cannot be used, or the database fails or was changed from outside.
        """
        if not isinstance(guarantee, Guarantee):
            raise InvalidInput(
                "guarantee", guarantee, "must be a dpselect.Guarantee, as a mechanism or release has one"
            )

        def checked(account: Account) -> Guarantee:
            _check_unit(account, guarantee)
            return guarantee

        return self._spend(dataset, checked, purpose, parameters, secure)[0].entry()

    def charge(
        self, dataset: str, *, epsilon: float, delta: float = 0.0, rho: float | None = None, purpose: str = ""
    ) -> Statement:
        """Record a release made by other means, which protects the unit of the data set.

        Parameters
        ----------
        dataset
            The name of the data set that is charged.
        epsilon, delta, rho
            What the release costs; `rho` is its zCDP parameter, if it has one.
        purpose
            What it is for.

        Returns
        -------
        The statement after it, with the last ten entries.

        Raises
        ------
        BudgetExceeded, InvalidInput, SourceError
            As `spend`.
        """
        cost = Guarantee(epsilon, delta, rho=rho)

        def of_its_unit(account: Account) -> Guarantee:
            return replace(cost, protects=account.protects, neighbours=account.neighbours)

        return self._spend(dataset, of_its_unit, purpose, None, True, last=10)[1]

    def account(self, dataset: str) -> Account:
        """Return what was agreed for a data set, and where its chain ends."""
        return self.statement(dataset, last=0).account

    def accounts(self) -> list[Account]:
        """Return all data sets, by name."""
        return self._store().read(records.all_accounts)

    def statement(self, dataset: str, last: int | None = 10) -> Statement:
        """Return what is spent and left, with the last entries (all of them if None), at one moment."""
        dataset = _name(dataset)
        if last is not None and (not isinstance(last, int) or last < 0):
            raise InvalidInput("last", last, "must be None or a whole number of at least 0")

        def work(connection: sql.Connection) -> tuple[Account, Record | None, list[Record]]:
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
        """Return every sign that the record was edited, cut or reordered; an empty list if there is none.

        Parameters
        ----------
        dataset
            Check this data set only.
        head
            A hash that `head`, `account` or an entry showed earlier; it must still be in the ledger. Without one, a
            ledger that was replaced by an older copy, or whose hashes were all computed again, shows no sign.
        """
        if dataset is not None:
            dataset = _name(dataset)
        if head is not None:
            head = _text("head", head, LONGEST_NAME, needed=True).strip()
        return self._store().read(lambda connection: faults(connection, dataset, head))

    def head(self) -> str:
        """Return the hash of everything created and spent; a copy kept elsewhere lets `check` find any change."""
        return self._store().tip().seal

    def close(self) -> None:
        """Close the database; the ledger opens it again when it is used again."""
        self._current.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connection out: another process opens its own."""
        return {"place": self._current.file or self._place}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._place = state["place"]
        self._open()

    def __repr__(self) -> str:
        """Name the ledger without its address, which can hold a password."""
        return f"<Ledger: {self._current.name}>"

    def _spend(
        self,
        dataset: str,
        guarantee_for: Callable[[Account], Guarantee],
        purpose: str,
        parameters: Mapping[str, Any] | None,
        secure: bool,
        last: int = 0,
    ) -> tuple[Record, Statement]:
        """Record a release in one transaction; return its record and the statement after it."""
        purpose, described = _text("purpose", purpose, LONGEST_PURPOSE), _described(parameters)
        dataset = _name(dataset)

        def work(connection: sql.Connection, tip: Tip) -> tuple[Record, Account, Amount, list[Record]]:
            account, end = records.state(connection, dataset, tip)
            guarantee = guarantee_for(account)
            spent = Amount() if end is None else end.spent
            cost = account.rule.cost(guarantee, account.total, spent)
            after = spent + cost
            if not after.within(account.limit):
                raise _refusal(account, guarantee, cost, spent)
            spent_epsilon, spent_delta, spent_rho = after.text()
            record = Record(
                dataset=account.dataset,
                sequence=account.count + 1,
                # A clock that was set back must not make a later release look earlier.
                time=max(utc_now(), account.created if end is None else end.time),
                purpose=purpose,
                parameters=described,
                guarantee=canonical_json(guarantee.to_dict()),
                epsilon=guarantee.epsilon,
                delta=guarantee.delta,
                rho=str(cost.rho),
                secure=int(bool(secure)),
                spent_epsilon=spent_epsilon,
                spent_delta=spent_delta,
                spent_rho=spent_rho,
                agreed=account.genesis,
                previous=account.head,
            )
            record = records.append(connection, tip, record)
            account = replace(account, count=record.sequence, head=record.hash)
            return record, account, after, records.entries_of(connection, account, last) if last else []

        record, account, after, found = self._store().write(
            work, lambda connection, tip, written: records.confirm_entry(connection, tip, written[0])
        )
        return record, Statement(account, after, [one.entry() for one in found])

    def _open(self) -> None:
        self._current = LedgerStore(self._place)
        weakref.finalize(self, self._current.close)

    def _store(self) -> LedgerStore:
        if self._current.process != os.getpid():
            # SQLite connections must not be used, nor even closed, on the other side of a fork.
            _ABANDONED.append(self._current)
            self._open()
        return self._current


_ABANDONED: list[LedgerStore] = []


def _name(dataset: Any) -> str:
    return _text("dataset", dataset, LONGEST_NAME, needed=True)


def _text(argument: str, value: Any, longest: int, needed: bool = False) -> str:
    """Return a text that any database can hold and any terminal can show."""
    if isinstance(value, str) and len(value) <= longest and value.isprintable() and (value.strip() or not needed):
        return value
    given = plain(f"a text of {len(value)} characters") if isinstance(value, str) and len(value) > longest else value
    raise InvalidInput(argument, given, f"must be a text of {1 if needed else 0} to {longest} printable characters")


def _described(parameters: Any) -> str:
    try:
        return canonical_json(dict(parameters or {}))
    except (TypeError, ValueError, RecursionError):
        given = plain(f"an object of type {type(parameters).__name__}")
        raise InvalidInput("parameters", given, "must map names to plain data") from None


def _refusal(account: Account, guarantee: Guarantee, cost: Amount, spent: Amount) -> BudgetExceeded:
    left = account.rule.remaining(account.total, account.limit - spent)
    return BudgetExceeded(
        requested=account.rule.requested(guarantee, cost),
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
            f"must protect {ours[0]} ({ours[1]}), as data set {account.dataset!r} does",
        )


def _three_digits_below(amount: Fraction) -> float:
    """Return the largest number of three decimal digits whose float does not exceed a positive amount, or else 0."""
    if amount < Fraction(1, 10**300):
        return 0.0
    unit = Fraction(10) ** (math.floor(math.log10(amount)) - 2)
    digits = math.floor(amount / unit)
    next_below = Fraction(999, 10) if digits == 100 else Fraction(digits - 1)
    return next(number for number in (float(digits * unit), float(next_below * unit)) if Fraction(number) <= amount)
