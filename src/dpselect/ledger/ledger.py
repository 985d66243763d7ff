"""Ledger: budgets that last, and that no accident, crash or race can overdraw."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sql

from dpselect.errors import InvalidInput, plain
from dpselect.ledger import records
from dpselect.ledger.audit import faults
from dpselect.ledger.chain import ANSWER, CHARGE, Account, Entry, Fault, Record, Tip, utc_now
from dpselect.ledger.charges import (
    LONGEST_NAME,
    Note,
    answered,
    charged,
    check_guarantee,
    checked_key,
    checked_name,
    checked_period,
    checked_text,
    described,
    priced,
)
from dpselect.ledger.names import new_name
from dpselect.ledger.once import OnceCharge, check_same, found_charge, hash_of, stored_answer
from dpselect.ledger.rules import Amount, Budget, rule_named
from dpselect.ledger.statement import PERIODS_SHOWN, Statement, remaining_in_period
from dpselect.ledger.store import LedgerStore
from dpselect.periods import Period, protected_unit, unit_named
from dpselect.privacy.guarantee import Guarantee


class Ledger:
    """A total for each data set, and every release that was charged to it.

    A spend is on the disk when `spend` returns. The sum of all spends, from any number of processes, never exceeds the
    total. Nothing is ever given back: an answer that was seen cannot be unseen.

    Parameters
    ----------
    place
        The path of a file, or the URL of a PostgreSQL database (postgresql://…) for shared use. `create` makes
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
        every: str | None = None,
        lifetime: float | None = None,
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
        every
            "day", "week" or "month": the total is then that of each period, what is protected is "one person's week",
            and every release must name its period.
        lifetime
            With `every`, the epsilon that all periods may cost together, for a person who is in all of them. Without
            it, the sum is not limited.

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
        rule = rule_named(composition)
        total = rule.total(epsilon, delta)
        protects = checked_text("protects", protects, LONGEST_NAME, needed=True)
        if every is None and lifetime is not None:
            raise InvalidInput(
                "lifetime", lifetime, "must be left out without periods; epsilon is the total for all time"
            )
        account = Account(
            dataset=new_name(checked_name(dataset)),
            total=total,
            protects=protects if every is None else protected_unit(protects, unit_named(every)),
            neighbours=checked_text("neighbours", neighbours, LONGEST_NAME, needed=True),
            composition=composition,
            created=utc_now(),
            count=0,
            head="",
            every=every or "",
            lifetime=None if lifetime is None else rule.lifetime(total, lifetime),
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
        period: str | None = None,
        also: Sequence[str] = (),
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
        period
            The period that the release is about, such as "2026-W46", for a data set with periods.
        also
            Further data sets that are charged the same: all of them or none, in one transaction.

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
        check_guarantee(guarantee)
        note = Note(purpose, parameters, secure=secure, period=period)
        return self._spend(dataset, lambda _: guarantee, note, also=also)[0].entry()

    def spend_once(
        self,
        dataset: str,
        guarantee: Guarantee,
        once: str,
        question: Mapping[str, Any],
        purpose: str = "",
        parameters: Mapping[str, Any] | None = None,
        *,
        period: str | None = None,
        also: Sequence[str] = (),
    ) -> OnceCharge:
        """Record a release under a key unless that was done before; return its entry, and its answer if there is one.

        If there is no answer, draw one and store it with `keep_answer` before anybody sees it.

        Parameters
        ----------
        dataset, guarantee, purpose, parameters, period, also
            As in `spend`; the key and the answer belong to `dataset`.
        once
            The key. It belongs to the data set: another data set may use the same one.
        question
            Plain data that say what is asked. The ledger keeps a salted hash of it.

        Returns
        -------
        The entry of the charge, whoever made it, and the answer.

        Raises
        ------
        KeyReused
            If another question was asked under this key; nothing of it is shown.
        BudgetExceeded, InvalidInput, SourceError
            As `spend`; also if the key was charged, but not to all data sets in `also`, and has no answer yet.

        Examples
        --------
        >>> import dpselect as dps, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with dps.privacy.Ledger(f"{folder.name}/budget.sqlite") as ledger:
        ...     account = ledger.create("films", epsilon=1.0)
        ...     for attempt in (1, 2):
        ...         charge = ledger.spend_once("films", dps.Guarantee(0.25), "week 46", {"k": 1})
        ...         answer = charge.answer or ledger.keep_answer(charge.entry, {"drawn in attempt": attempt})
        ...         print(answer, ledger.remaining("films").epsilon)
        {'drawn in attempt': 1} 0.75
        {'drawn in attempt': 1} 0.75
        >>> folder.cleanup()
        """
        check_guarantee(guarantee)
        note = Note(purpose, parameters, once=checked_key(once), question=hash_of(question), period=period)
        dataset = checked_name(dataset)

        def work(connection: sql.Connection, tip: Tip) -> tuple[OnceCharge, list[Record]]:
            account, end = records.state(connection, dataset, tip)
            found = records.under_key(connection, dataset, note.once)
            if CHARGE in found:
                _check_found(connection, found, question, also)
                return found_charge(found), []
            record, _ = charged(connection, tip, account, end, guarantee, note)
            return OnceCharge(record.entry()), [record, *_charged_also(connection, tip, also, guarantee, note)]

        return self._store().write(work, _confirm_new)[0]

    def keep_answer(self, charge: Entry, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """Store the answer of a release that is answered once; return the answer that counts.

        When it returns, the answer is on the disk and may be shown. If another process was faster, its answer is
        returned and this one is discarded: show what is returned.

        Parameters
        ----------
        charge
            The entry from `spend_once`.
        answer
            The answer as plain data. Keep it secret until this returns.

        Returns
        -------
        The stored answer; the object `answer` itself if this call has stored it.

        Raises
        ------
        InvalidInput
            If the ledger has no such charge, or the answer is not plain data.
        SourceError
            If the database fails or was changed from outside.
        """
        text = described("answer", answer)

        def work(connection: sql.Connection, tip: Tip) -> tuple[Mapping[str, Any], list[Record]]:
            account, end = records.state(connection, charge.dataset, tip)
            found = records.under_key(connection, charge.dataset, charge.once or "")
            if CHARGE not in found or found[CHARGE].hash != charge.hash or end is None:
                raise InvalidInput("charge", plain("an entry"), "must be an entry from `spend_once` of this ledger")
            if ANSWER in found:
                return stored_answer(found[ANSWER]), []
            return answer, [answered(connection, tip, account, end, found[CHARGE], text)]

        return self._store().write(work, _confirm_new)[0]

    def rehearse(self, dataset: str, guarantee: Guarantee, *, period: str | None = None) -> Budget:
        """Return what would be left after a release, or refuse it as `spend` would; nothing is recorded.

        Parameters
        ----------
        dataset, guarantee, period
            As in `spend`.

        Returns
        -------
        What would be left of the total, or of that of the period, rounded down.

        Raises
        ------
        BudgetExceeded, InvalidInput, SourceError
            As `spend`.
        """
        check_guarantee(guarantee)
        dataset, during = checked_name(dataset), None if period is None else Period.of(period)

        def work(connection: sql.Connection) -> Budget:
            account, end = records.state(connection, dataset)
            _, _, after, whole = priced(connection, account, end, guarantee, during)
            return remaining_in_period(account, whole, after)

        return self._store().read(work)

    def find(
        self, dataset: str, once: str, question: Mapping[str, Any] | None = None, *, also: Sequence[str] = ()
    ) -> OnceCharge | None:
        """Return the charge under a key of a data set, with its answer if there is one; None if nothing was charged.

        With a question, refuse what `spend_once` would refuse.
        """
        dataset, once = checked_name(dataset), checked_key(once)

        def work(connection: sql.Connection) -> dict[str, Record]:
            records.state(connection, dataset)
            found = records.under_key(connection, dataset, once)
            if question is not None and CHARGE in found:
                _check_found(connection, found, question, also)
            return found

        found = self._store().read(work)
        return found_charge(found) if CHARGE in found else None

    def answer(self, dataset: str, once: str) -> dict[str, Any] | None:
        """Return the answer that is kept under a key of a data set, or None if there is none."""
        found = self.find(dataset, once)
        return None if found is None else found.answer

    def charge(
        self,
        dataset: str,
        *,
        epsilon: float,
        delta: float = 0.0,
        rho: float | None = None,
        purpose: str = "",
        period: str | None = None,
    ) -> Statement:
        """Record a release made by other means, which protects the unit of the data set.

        Parameters
        ----------
        dataset
            The name of the data set that is charged.
        epsilon, delta, rho
            What the release costs; `rho` is its zCDP parameter, if it has one.
        purpose, period
            What it is for, and the period that it is about, for a data set with periods.

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

        return self._spend(dataset, of_its_unit, Note(purpose, None, period=period), last=10)[1]

    def account(self, dataset: str) -> Account:
        """Return what was agreed for a data set, and where its chain ends."""
        dataset = checked_name(dataset)
        return self._store().read(lambda connection: records.state(connection, dataset)[0])

    def accounts(self) -> list[Account]:
        """Return all data sets, by name."""
        return self._store().read(records.all_accounts)

    def statement(self, dataset: str, last: int | None = 10) -> Statement:
        """Return what is spent and left, with the last entries (all of them if None), at one moment."""
        dataset = checked_name(dataset)
        if last is not None and (not isinstance(last, int) or last < 0):
            raise InvalidInput("last", last, "must be None or a whole number of at least 0")

        def work(connection: sql.Connection) -> Statement:
            account, end = records.state(connection, dataset)
            return _statement(connection, account, Amount() if end is None else end.spent, last)

        return self._store().read(work)

    def spent(self, dataset: str, period: str | None = None) -> Budget:
        """Return the sum of all releases, or of those about one period, rounded up."""
        dataset = checked_name(dataset)
        if period is None:
            return self.statement(dataset, last=0).spent
        wanted = Period.of(period)

        def work(connection: sql.Connection) -> Budget:
            account = records.state(connection, dataset)[0]
            spent = records.spent_in_period(connection, account, checked_period(account, wanted))
            return account.rule.spent(account.total, spent)

        return self._store().read(work)

    def remaining(self, dataset: str, period: str | None = None) -> Budget:
        """Return what is left of the total, rounded down; with periods, in one of them, by default in an unused one."""
        dataset = checked_name(dataset)
        if period is None:
            return self.statement(dataset, last=0).remaining
        wanted = Period.of(period)

        def work(connection: sql.Connection) -> Budget:
            account, end = records.state(connection, dataset)
            spent = records.spent_in_period(connection, account, checked_period(account, wanted))
            return remaining_in_period(account, Amount() if end is None else end.spent, spent)

        return self._store().read(work)

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
            dataset = checked_name(dataset)
        if head is not None:
            head = checked_text("head", head, LONGEST_NAME, needed=True).strip()
        return self._store().read(lambda connection: faults(connection, dataset, head))

    def head(self) -> str:
        """Return the hash of everything created and spent; a copy kept elsewhere lets `check` find any change."""
        return self._store().tip().seal

    def backup(self, file: str | os.PathLike[str]) -> None:
        """Copy the file of a ledger as it stands at one moment, while others may use it.

        Parameters
        ----------
        file
            The copy, which must not exist yet; only its owner can read it.

        Raises
        ------
        InvalidInput
            If the copy cannot be made there, or the ledger is in PostgreSQL, which has `pg_dump`.
        """
        self._store().backup(Path(file))

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
        note: Note,
        last: int = 0,
        also: Sequence[str] = (),
    ) -> tuple[Record, Statement]:
        """Record a release in one transaction; return its record and the statement after it."""
        dataset = checked_name(dataset)

        def work(connection: sql.Connection, tip: Tip) -> tuple[tuple[Record, Statement], list[Record]]:
            account, end = records.state(connection, dataset, tip)
            guarantee = guarantee_for(account)
            record, after = charged(connection, tip, account, end, guarantee, note)
            written = [record, *_charged_also(connection, tip, also, guarantee, note)]
            account = replace(account, count=record.sequence, head=record.hash)
            statement = _statement(connection, account, after, last) if last else Statement(account, after, [])
            return (record, statement), written

        return self._store().write(work, _confirm_new)[0]

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


def _statement(connection: sql.Connection, account: Account, spent: Amount, last: int | None) -> Statement:
    if last == 0:
        return Statement(account, spent, [], records.number_of_answers(connection, account.dataset))
    answered = records.answered_keys(connection, account.dataset)
    charges = records.charges_of(connection, account.dataset, last)
    entries = [record.entry(answered=record.once in answered) for record in charges]
    periods = records.latest_periods(connection, account, PERIODS_SHOWN) if account.every else {}
    return Statement(account, spent, entries, len(answered), periods)


def _charged_also(
    connection: sql.Connection, tip: Tip, also: Sequence[str], guarantee: Guarantee, note: Note
) -> list[Record]:
    """Charge further data sets in the same transaction. Keys and answers belong to the first data set alone."""
    written = []
    for name in also:
        account, end = records.state(connection, checked_name(name))
        written.append(charged(connection, tip, account, end, guarantee, note.without_key())[0])
    return written


def _check_found(
    connection: sql.Connection, found: Mapping[str, Record], question: Mapping[str, Any], also: Sequence[str]
) -> None:
    """Refuse another question, and further data sets that were not charged for an answer that is still to be drawn."""
    check_same(found[CHARGE], question)
    if ANSWER not in found and not set(also) <= records.charged_with(connection, found[CHARGE], len(also)):
        raise InvalidInput(
            "dataset",
            plain("another list of data sets"),
            "must name the data sets that were charged under this key before; or choose another key",
        )


def _confirm_new(connection: sql.Connection, tip: Tip, result: tuple[Any, list[Record]]) -> None:
    """Check that all new entries are in the ledger as written."""
    for record in result[1]:
        records.confirm_entry(connection, tip, record)
