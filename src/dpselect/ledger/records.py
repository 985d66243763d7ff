"""Reading and writing the rows of a ledger, inside a transaction that the store has begun.

All writers first lock the one row of the table `ledger`, which holds the version of the tables and the tip.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sql

from dpselect._format import shown_below
from dpselect.errors import InvalidInput, SourceError
from dpselect.ledger import schema
from dpselect.ledger.chain import ANSWER, CHARGE, Account, Record, Tip, lifetime_text, unreadable
from dpselect.ledger.names import alike
from dpselect.ledger.rules import Amount, Budget
from dpselect.ledger.schema import accounts, entries

_TIP = sql.select(schema.ledger.c.version, schema.ledger.c.events, schema.ledger.c.seal)
_LOCKED_TIP = _TIP.with_for_update()
_MOVE_TIP = sql.update(schema.ledger).values(events=sql.bindparam("new_events"), seal=sql.bindparam("new_seal"))
_ACCOUNT = sql.select(accounts).where(accounts.c.dataset == sql.bindparam("name"))
_EVENTS = sql.select(sql.func.count() + sql.func.coalesce(sql.func.sum(accounts.alias().c.count), 0)).scalar_subquery()
_ACCOUNT_WITH_LAST = (
    sql.select(_EVENTS, accounts, entries)
    .select_from(
        accounts.outerjoin(
            entries, (entries.c.dataset == accounts.c.dataset) & (entries.c.sequence == accounts.c.count)
        )
    )
    .where(accounts.c.dataset == sql.bindparam("name"))
)
_ACCOUNT_FROM = (
    sql.select(_EVENTS, accounts, entries)
    .select_from(
        accounts.outerjoin(
            entries, (entries.c.dataset == accounts.c.dataset) & (entries.c.sequence >= sql.bindparam("first"))
        )
    )
    .where(accounts.c.dataset == sql.bindparam("name"))
    .order_by(entries.c.sequence)
)
# The places of entries are found first, in an index that holds them: SQLite would otherwise search the whole data set.
_OF_KEY = sql.select(entries.c.sequence).where(
    entries.c.dataset == sql.bindparam("name"), entries.c.once == sql.bindparam("key"), schema.has_key
)
_LAST_OF_PERIOD = sql.select(sql.func.max(entries.c.sequence)).where(
    entries.c.dataset == sql.bindparam("name"), entries.c.period == sql.bindparam("wanted"), schema.has_period
)
_found = entries.alias()
_UNDER_KEY = sql.select(_found).where(_found.c.dataset == sql.bindparam("name"), _found.c.sequence.in_(_OF_KEY))
_LAST_IN_PERIOD = sql.select(_found).where(
    _found.c.dataset == sql.bindparam("name"), _found.c.sequence == _LAST_OF_PERIOD.scalar_subquery()
)
_ANSWERED = sql.select(entries.c.once).where(
    entries.c.dataset == sql.bindparam("name"), entries.c.kind == ANSWER, schema.has_key
)
_NUMBER_OF_ANSWERS = _ANSWERED.with_only_columns(sql.func.count())
_APPEND = sql.insert(entries).execution_options(preserve_rowcount=True)
_CREATE = sql.insert(accounts).execution_options(preserve_rowcount=True)
_MOVE_HEAD = (
    sql.update(accounts)
    .where(accounts.c.dataset == sql.bindparam("name"))
    .values(count=sql.bindparam("new_count"), head=sql.bindparam("new_head"))
)
_ALIKE = "which differs only in case, blanks or the encoding of its characters"


class Outdated(SourceError):
    """The tables have another version than when the ledger was opened."""


def read_tip(connection: sql.Connection, *, lock: bool) -> Tip:
    """Return the end of the ledger; with a lock, no other process can write until the transaction ends."""
    rows = connection.execute(_LOCKED_TIP if lock else _TIP).all()
    if len(rows) != 1 or not isinstance(rows[0].events, int) or not isinstance(rows[0].seal, str):
        raise SourceError(
            "ledger: it was changed from outside: where it ends cannot be read; nothing was released. Restore a copy"
        )
    version, events, seal = rows[0]
    if version != schema.VERSION:
        raise Outdated(
            f"ledger: another program changed its tables to version {version}; nothing was released. Ask again"
        )
    return Tip(events, seal)


def write_tip(connection: sql.Connection, tip: Tip) -> None:
    """Store the new end of the ledger."""
    _check_written(connection.execute(_MOVE_TIP, {"new_events": tip.events, "new_seal": tip.seal}))


def add_account(connection: sql.Connection, tip: Tip, account: Account) -> Account:
    """Add a data set, unless the ledger has one of this name or of one that looks like it."""
    account = replace(account, head=account.genesis)
    found = connection.execute(_ACCOUNT, {"name": account.dataset}).first()
    if found is not None:
        agreed = _account(found).total
        delta = f", delta {shown_below(agreed.delta)}" if agreed.delta else ""
        raise InvalidInput(
            "dataset",
            account.dataset,
            f"the ledger has a data set of that name, with a total of epsilon {shown_below(agreed.epsilon)}{delta}, "
            "which cannot be changed; use it, or choose another name",
        )
    if others := alike(account.dataset, _names(connection)):
        raise InvalidInput("dataset", account.dataset, f"the ledger has {others}, {_ALIKE}; use it, or choose another")
    # A name that was removed from outside must not come back with a fresh total.
    _check_whole(tip, connection.execute(sql.select(_EVENTS)).scalar_one())
    row = {**asdict(account), "lifetime": lifetime_text(account.lifetime)}
    row.update(row.pop("total"))
    row["event"], row["seal"] = tip.add(account.genesis)
    _check_written(connection.execute(_CREATE, row))
    return account


def state(connection: sql.Connection, dataset: str, tip: Tip | None = None) -> tuple[Account, Record | None]:
    """Return a data set and its last entry; given the tip, check that the ledger lacks nothing."""
    found = connection.execute(_ACCOUNT_WITH_LAST, {"name": dataset}).first()
    if found is None:
        raise unknown_dataset(connection, dataset)
    events, *row = found
    fields = row[len(accounts.c) :]
    checked = _checked(_account(row), None if fields[0] is None else Record(*fields))
    if tip is not None:
        _check_whole(tip, events)
    return checked


def append(connection: sql.Connection, tip: Tip, record: Record) -> Record:
    """Write an entry and move the head of its data set to it."""
    new_hash = record.expected_hash()
    event, seal = tip.add(new_hash)
    record = replace(record, hash=new_hash, event=event, seal=seal)
    _check_written(connection.execute(_APPEND, record.__dict__))
    moved = {"name": record.dataset, "new_count": record.sequence, "new_head": record.hash}
    _check_written(connection.execute(_MOVE_HEAD, moved))
    return record


def confirm_account(connection: sql.Connection, tip: Tip, created: Account) -> None:
    """Check that a new data set is in the ledger as agreed; others may have spent from it by now."""
    row = connection.execute(_ACCOUNT_WITH_LAST, {"name": created.dataset}).first()
    if row is None or row[0] != tip.events or replace(_account(row[1:]), count=0, head=created.head) != created:
        raise _not_kept()


def confirm_entry(connection: sql.Connection, tip: Tip, written: Record) -> None:
    """Check that an entry is in the ledger as written, and that both chains end with it or go on from it."""
    rows = connection.execute(_ACCOUNT_FROM, {"name": written.dataset, "first": written.sequence}).all()
    found = [Record(*row[1 + len(accounts.c) :]) for row in rows]
    if not found or found[0] != written:
        raise _not_kept()
    events, *row = rows[0]
    account, last = _account(row), found[-1]
    leads_on = all(after.previous == before.hash for before, after in itertools.pairwise(found))
    ends = (account.count, account.head) == (last.sequence, last.hash) and events == tip.events
    if not (leads_on and ends and tip.follows(Tip(written.event, written.seal))):
        raise _not_kept()


def all_accounts(connection: sql.Connection) -> list[Account]:
    """Return all data sets, by name."""
    return sorted((_account(row) for row in connection.execute(sql.select(accounts))), key=lambda one: one.dataset)


def charges_of(connection: sql.Connection, dataset: str, last: int | None) -> list[Record]:
    """Return the charges of a data set, oldest first; with `last`, only that many of the newest."""
    charges = sql.select(entries).where(entries.c.dataset == dataset, entries.c.kind == CHARGE)
    newest_first = charges.order_by(entries.c.sequence.desc()).limit(last)
    return [Record(*row) for row in connection.execute(newest_first)][::-1]


def spent_in_period(connection: sql.Connection, account: Account, period: str) -> Amount:
    """Return what was spent in a period of a data set."""
    found = connection.execute(_LAST_IN_PERIOD, {"name": account.dataset, "wanted": period}).first()
    if found is None:
        return Amount()
    record = Record(*found)
    if record.hash != record.expected_hash() or record.agreed != account.genesis:
        raise _changed(account.dataset)
    return record.spent_in_period


def latest_periods(connection: sql.Connection, account: Account, number: int) -> dict[str, Amount]:
    """Return what was spent in the latest periods of a data set, the latest first."""
    wanted = sql.select(entries.c.period).where(entries.c.dataset == account.dataset, schema.has_period).distinct()
    names = connection.execute(wanted.order_by(entries.c.period.desc()).limit(number)).scalars().all()
    return {name: spent_in_period(connection, account, name) for name in names}


def answered_keys(connection: sql.Connection, dataset: str) -> set[str]:
    """Return the keys under which a data set keeps an answer."""
    return set(connection.execute(_ANSWERED, {"name": dataset}).scalars())


def number_of_answers(connection: sql.Connection, dataset: str) -> int:
    """Return how many answers a data set keeps."""
    return int(connection.execute(_NUMBER_OF_ANSWERS, {"name": dataset}).scalar_one())


def under_key(connection: sql.Connection, dataset: str, key: str) -> dict[str, Record]:
    """Return the charge and the answer under a key of a data set, by kind, as far as there are any."""
    found = [Record(*row) for row in connection.execute(_UNDER_KEY, {"name": dataset, "key": key})]
    if any(record.hash != record.expected_hash() for record in found):
        raise _changed(dataset)
    return {record.kind: record for record in found}


def charged_with(connection: sql.Connection, charge: Record, number: int) -> set[str]:
    """Return up to a number of further data sets that were charged in the transaction of a charge with a key.

    The salt of the question's hash is drawn for each charge, so that no other release has the same hash.
    """
    following = entries.c.event.between(charge.event + 1, charge.event + number)
    found = [Record(*row) for row in connection.execute(sql.select(entries).where(following))]
    return {each.dataset for each in found if each.question == charge.question and each.hash == each.expected_hash()}


def unknown_dataset(connection: sql.Connection, dataset: str) -> InvalidInput:
    """Return the error for a name that the ledger does not have, with names that look like it or all names."""
    known = sorted(_names(connection))
    if others := alike(dataset, known):
        return InvalidInput("dataset", dataset, f"the ledger has {others}, {_ALIKE}; write the name as it is there")
    names = ", ".join(known[:10]) or "it has none yet"
    return InvalidInput(
        "dataset",
        dataset,
        f"must be the name of a data set in the ledger ({names}); make a new one with `dpselect ledger create`",
    )


def _names(connection: sql.Connection) -> list[str]:
    names = list(connection.execute(sql.select(accounts.c.dataset)).scalars())
    if not all(isinstance(name, str) for name in names):
        raise unreadable()
    return names


def _checked(account: Account, last: Record | None) -> tuple[Account, Record | None]:
    """Return both if the last entry is the one that the data set names, and was charged to the same total."""
    if last is None:
        sound = account.count == 0 and account.head == account.genesis
    else:
        sound = account.head == last.hash == last.expected_hash() and last.agreed == account.genesis
    if not sound:
        raise _changed(account.dataset)
    return account, last


def _changed(dataset: str) -> SourceError:
    return SourceError(
        f"ledger: the record of data set {dataset!r} was changed from outside, so what is left of its budget is not "
        "known; nothing was released. Find out where with `dpselect ledger check`, and restore a copy"
    )


def _check_whole(tip: Tip, events: int) -> None:
    """Check that all data sets together count as many entries as were written."""
    if events != tip.events:
        raise SourceError(
            "ledger: it was changed from outside: entries or data sets are missing, so what is left is not known; "
            "nothing was released. Find out where with `dpselect ledger check`, and restore a copy"
        )


def _account(row: Any) -> Account:
    dataset, epsilon, delta, rho, protects, neighbours, composition, created, count, head, _, _, every, lifetime = row[
        :14
    ]
    numbers = all(isinstance(part, float | int) for part in (epsilon, delta, rho)) and isinstance(count, int)
    if not numbers or not all(isinstance(part, str) for part in (composition, created, head, every, lifetime)):
        raise unreadable()
    try:
        whole = Budget(**json.loads(lifetime)) if lifetime else None
    except (ValueError, TypeError):
        raise unreadable() from None
    total = Budget(epsilon, delta, rho)
    return Account(dataset, total, protects, neighbours, composition, created, count, head, every, whole)


def _check_written(result: sql.CursorResult[Any]) -> None:
    """Check that one row was written: triggers and row policies can drop it without an error."""
    if result.rowcount != 1:
        raise _not_kept()


def _not_kept() -> SourceError:
    """Return the error for a database that holds something other than what was written."""
    return SourceError(
        "ledger: the database did not keep what was written; nothing was released. Remove triggers, rules and row "
        "policies from its tables, and find out with `dpselect ledger check` whether a copy must be restored"
    )
