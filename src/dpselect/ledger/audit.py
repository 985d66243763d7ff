"""Checks that a ledger holds what was written: every hash, link and sum, from the first entry to the last."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction

import sqlalchemy as sql

from dpselect.errors import InvalidInput, SourceError
from dpselect.ledger.chain import ANSWER, CHARGE, Account, Fault, Record, sealed
from dpselect.ledger.records import all_accounts, read_tip, unknown_dataset
from dpselect.ledger.rules import Amount, Rule
from dpselect.ledger.schema import accounts, entries
from dpselect.periods import Period

_IN_ORDER = sql.union_all(
    sql.select(
        accounts.c.dataset, sql.null().label("sequence"), sql.null().label("hash"), accounts.c.event, accounts.c.seal
    ),
    sql.select(entries.c.dataset, entries.c.sequence, entries.c.hash, entries.c.event, entries.c.seal),
).order_by("event")


def faults(connection: sql.Connection, dataset: str | None, head: str | None) -> list[Fault]:
    """Return the faults of one data set, or of all."""
    known = all_accounts(connection)
    if dataset is not None and dataset not in {account.dataset for account in known}:
        raise unknown_dataset(connection, dataset)
    chosen = [account for account in known if dataset in (None, account.dataset)]
    found = [fault for account in chosen for fault in _all_account_faults(account, _records(connection, account))]
    if dataset is None:
        found += _orphans(connection)
    if dataset is None or head is not None:
        found += _ledger_faults(connection, known)
    if head is not None and not _has_hash(connection, chosen, head):
        found.append(Fault(dataset or "", None, "the given hash is no longer in it: entries were replaced or removed"))
    return found


def _records(connection: sql.Connection, account: Account) -> Iterator[Record]:
    wanted = sql.select(entries).where(entries.c.dataset == account.dataset).order_by(entries.c.sequence)
    for row in connection.execution_options(yield_per=1000).execute(wanted):
        yield Record(*row)


def _all_account_faults(account: Account, records: Iterator[Record]) -> Iterator[Fault]:
    """Yield the faults of an account, and one more if a part of it cannot be read at all."""
    try:
        yield from _account_faults(account, records)
    except (ValueError, TypeError, ZeroDivisionError, SourceError):
        yield Fault(account.dataset, None, "a part of its record cannot be read")


def _account_faults(account: Account, records: Iterator[Record]) -> Iterator[Fault]:
    name, previous, time, number = account.dataset, account.genesis, account.created, 0
    agreed, total = account.genesis, account.lifetime_limit if account.every else account.limit
    spent: Amount | None = Amount()  # None where the entry before is missing or changed
    keys: set[tuple[str, str]] = set()
    periods: dict[str, Amount] = {}
    for record in records:
        number += 1
        if record.sequence != number:
            yield Fault(name, record.sequence, f"{_missing(number, record.sequence - 1)} before it")
            number, spent = record.sequence, None
        elif record.previous != previous:
            before = "the agreed total and unit" if number == 1 else f"entry {number - 1}"
            yield Fault(name, number, f"it does not follow {before}: one of the two was changed or replaced")
        elif record.agreed != agreed:
            yield Fault(name, number, "it was charged to another total or unit than the entry before it")
        if record.hash != record.expected_hash():
            yield Fault(name, number, "it was changed: its content does not have its hash")
            spent = None
        elif not _is_readable(record):
            yield Fault(name, number, "it cannot be read")
            spent = None
        else:
            if record.time < time:
                yield Fault(name, number, "it is older than the entry before it")
            if spent is None:
                spent = record.spent
            else:
                spent += _cost(account.rule, record.epsilon, record.delta, record.rho)
            if spent.text() != (record.spent_epsilon, record.spent_delta, record.spent_rho):
                yield Fault(name, number, "its running sum is not the sum of the costs up to it")
                spent = None
            elif total is not None and not spent.within(total):
                yield Fault(name, number, "it overdraws the total")
            if problem := _problem_of_key(record, keys) or _problem_of_period(account, record, periods):
                yield Fault(name, number, problem)
            time = record.time
        if record.once:
            keys.add((record.kind, record.once))
        previous, agreed = record.hash, record.agreed
    if number < account.count:
        yield Fault(name, number + 1, f"{_missing(number + 1, account.count)} at the end")
    elif number > account.count:
        yield Fault(name, account.count + 1, f"the data set counts {account.count} entries only")
    elif account.head != previous:
        problem = (
            "it is not what the data set says its record ends with" if number else "its total or unit is not as agreed"
        )
        yield Fault(name, number or None, f"{problem}: one of the two was changed")


def _problem_of_key(record: Record, earlier: set[tuple[str, str]]) -> str:
    """Say what is wrong with the key of an entry, given the kinds and keys of the entries before it."""
    if record.kind not in (CHARGE, ANSWER):
        return "it is neither a charge nor an answer"
    if record.kind == ANSWER and (CHARGE, record.once) not in earlier:
        return "it is an answer that was not charged before"
    if record.once and (record.kind, record.once) in earlier:
        return f"it is a second {record.kind} under its key"
    if record.kind == CHARGE:
        # A charge without a key has a question if it was made together with one that has a key.
        is_wrong = record.answer or (record.once and not record.question)
    else:
        is_wrong = record.question or not record.answer
    if is_wrong:
        return "it lacks its question or its answer, or has one that belongs to another kind of entry"
    if record.kind == ANSWER and (record.epsilon or record.delta or record.rho != "0"):
        return "it is an answer, but was charged"
    return ""


def _problem_of_period(account: Account, record: Record, spent: dict[str, Amount]) -> str:
    """Say what is wrong with the period of an entry, given what was spent in each period before; add its cost."""
    if not account.every or record.kind == ANSWER:
        return "it has a period that it cannot have" if record.period or record.period_spent else ""
    try:
        if Period.of(record.period).unit != account.every:
            return f"its period is not a {account.every}"
    except InvalidInput:
        return "it has no period"
    after = spent.get(record.period, Amount()) + _cost(account.rule, record.epsilon, record.delta, record.rho)
    spent[record.period] = after
    if " ".join(after.text()) != record.period_spent:
        spent[record.period] = record.spent_in_period
        return "its running sum is not the sum of the costs of its period up to it"
    return "" if after.within(account.limit) else "it overdraws the total of its period"


def _ledger_faults(connection: sql.Connection, known: list[Account]) -> Iterator[Fault]:
    """Yield the faults of the chain through all creations and spends, in the order in which they happened."""
    genesis = {account.dataset: account.genesis for account in known}
    tip, number, seal = read_tip(connection, lock=False), 0, ""
    rows = connection.execution_options(yield_per=1000).execute(_IN_ORDER)
    for dataset, sequence, hash_of_record, event, stored in rows:
        if not isinstance(event, int) or event <= number:
            yield Fault(dataset, sequence, "its place in the ledger is taken by another")
            continue
        if event != number + 1:
            missing = _missing(number + 1, event - 1, "record", "records")
            yield Fault("", None, f"{missing}: entries or data sets were removed")
        elif stored != sealed(seal, event, genesis.get(dataset, "") if sequence is None else hash_of_record):
            yield Fault(dataset, sequence, "it does not follow what was written to the ledger before it")
        number, seal = event, stored
    if (number, seal) != (tip.events, tip.seal):
        yield Fault("", None, f"it does not end with record {tip.events}, as it says: the end was removed or replaced")


def _is_readable(record: Record) -> bool:
    try:
        record.entry()
        for text in {record.rho, record.spent_epsilon, record.spent_delta, record.spent_rho}:
            _fraction(text)
    except (ValueError, TypeError, ZeroDivisionError, SourceError):
        return False
    return True


_fraction = functools.lru_cache(maxsize=64)(Fraction)


@functools.lru_cache(maxsize=1024)
def _cost(rule: Rule, epsilon: float, delta: float, rho: str) -> Amount:
    return rule.stored_cost(epsilon, delta, rho)


def _missing(first: int, last: int, name: str = "entry", plural: str = "entries") -> str:
    """Say that entries or records are missing."""
    return f"{name} {first} is missing" if first == last else f"{plural} {first} to {last} are missing"


def _orphans(connection: sql.Connection) -> list[Fault]:
    wanted = sql.select(entries.c.dataset, sql.func.count()).group_by(entries.c.dataset)
    wanted = wanted.where(entries.c.dataset.not_in(sql.select(accounts.c.dataset)))
    return [
        Fault(name, None, f"the data set was removed, but {count} of its entries are there")
        for name, count in connection.execute(wanted)
    ]


def _has_hash(connection: sql.Connection, chosen: list[Account], head: str) -> bool:
    """Whether a hash belongs to one of the chosen data sets or their entries, or to the ledger as a whole."""
    if head in {account.genesis for account in chosen}:
        return True
    names = [account.dataset for account in chosen]
    own = (entries.c.hash == head) & entries.c.dataset.in_(names)
    wanted = (
        sql.select(sql.literal(1)).where(own | (entries.c.seal == head)),
        sql.select(sql.literal(1)).where(accounts.c.seal == head),
    )
    return any(connection.execute(one.limit(1)).first() for one in wanted)
