"""One release as an entry of the ledger: checked texts, what it costs, and whether that is left."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import sqlalchemy as sql

from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.ledger import records
from dpselect.ledger.chain import ANSWER, Account, Record, Tip, canonical_json, utc_now
from dpselect.ledger.rules import Amount, Budget
from dpselect.periods import UNITS, Period
from dpselect.privacy.guarantee import Guarantee

LONGEST_NAME = 200
LONGEST_PURPOSE = 2000


class Note:
    """What is recorded with a release besides its cost, checked."""

    def __init__(
        self,
        purpose: Any,
        parameters: Any,
        *,
        secure: bool = True,
        once: str = "",
        question: str = "",
        period: str | None = None,
    ) -> None:
        self.purpose = checked_text("purpose", purpose, LONGEST_PURPOSE)
        self.parameters = described("parameters", parameters)
        self.secure = bool(secure)
        self.once = once
        self.question = question
        self.period = None if period is None else Period.of(period)

    def without_key(self) -> Note:
        """Return the note for a further data set, which the hash of the question ties to the charge with the key."""
        note = copy.copy(self)
        note.once = ""
        return note


def charged(
    connection: sql.Connection, tip: Tip, account: Account, end: Record | None, guarantee: Guarantee, note: Note
) -> tuple[Record, Amount]:
    """Append the record of a release, or refuse it; return it, and what is spent then, in all periods."""
    period, cost, after, whole = priced(connection, account, end, guarantee, note.period)
    spent_epsilon, spent_delta, spent_rho = whole.text()
    record = Record(
        dataset=account.dataset,
        sequence=account.count + 1,
        # A clock that was set back must not make a later release look earlier.
        time=max(utc_now(), account.created if end is None else end.time),
        purpose=note.purpose,
        parameters=note.parameters,
        guarantee=canonical_json(guarantee.to_dict()),
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        rho=str(cost.rho),
        secure=int(note.secure),
        spent_epsilon=spent_epsilon,
        spent_delta=spent_delta,
        spent_rho=spent_rho,
        agreed=account.genesis,
        previous=account.head,
        once=note.once,
        question=note.question,
        period=period,
        period_spent=" ".join(after.text()) if period else "",
    )
    return records.append(connection, tip, record), whole


def priced(
    connection: sql.Connection, account: Account, end: Record | None, guarantee: Guarantee, during: Period | None
) -> tuple[str, Amount, Amount, Amount]:
    """Return the name of the period, the cost of a release, and what is spent then in the period and in all; or refuse.

    Without periods the name is empty, and the last two are the same.
    """
    period = checked_period(account, during)
    if during is not None:
        during.check_over(unfinished=True)
    _check_unit(account, guarantee)
    whole = spent = Amount() if end is None else end.spent
    if period:
        spent = records.spent_in_period(connection, account, period)
    cost = cost_of(account, guarantee, whole)
    after = spent + cost
    if not after.within(account.limit):
        raise _refusal(account, account.total, guarantee, cost, spent, f"for {period}" if period else "")
    whole += cost
    if account.lifetime is not None and not whole.within(account.rule.limit(account.lifetime)):
        raise _refusal(account, account.lifetime, guarantee, cost, whole - cost, "over all periods")
    return period, cost, after, whole


def cost_of(account: Account, guarantee: Guarantee, spent: Amount) -> Amount:
    """Return what a release costs after others.

    A zcdp release that takes the whole total alone may have more rho than that, which no sum over periods would show.
    """
    return account.rule.cost(guarantee, account.total, alone=not spent.rho and not account.every)


def answered(
    connection: sql.Connection, tip: Tip, account: Account, end: Record, charge: Record, answer: str
) -> Record:
    """Append the answer to a charge, which costs nothing."""
    record = replace(
        charge,
        sequence=account.count + 1,
        time=max(utc_now(), end.time),
        parameters=described("parameters", {}),
        epsilon=0.0,
        delta=0.0,
        rho="0",
        spent_epsilon=end.spent_epsilon,
        spent_delta=end.spent_delta,
        spent_rho=end.spent_rho,
        previous=account.head,
        kind=ANSWER,
        question="",
        answer=answer,
        period="",
        period_spent="",
    )
    return records.append(connection, tip, record)


def checked_name(dataset: Any) -> str:
    """Return the name of a data set, if it is a text that can be shown."""
    return checked_text("dataset", dataset, LONGEST_NAME, needed=True)


def checked_text(argument: str, value: Any, longest: int, needed: bool = False) -> str:
    """Return a text that any database can hold and any terminal can show."""
    if isinstance(value, str) and len(value) <= longest and value.isprintable() and (value.strip() or not needed):
        return value
    given = plain(f"a text of {len(value)} characters") if isinstance(value, str) and len(value) > longest else value
    raise InvalidInput(argument, given, f"must be a text of {1 if needed else 0} to {longest} printable characters")


def checked_key(once: Any) -> str:
    """Return the key of a release, if it is a text that can be shown."""
    return checked_text("once", once, LONGEST_NAME, needed=True)


def described(argument: str, data: Any) -> str:
    """Return a mapping of plain data as canonical JSON."""
    try:
        return canonical_json(dict(data or {}))
    except (TypeError, ValueError, RecursionError):
        given = plain(f"an object of type {type(data).__name__}")
        raise InvalidInput(argument, given, "must map names to plain data") from None


def check_guarantee(guarantee: Any) -> None:
    """Refuse what is not a guarantee."""
    if not isinstance(guarantee, Guarantee):
        raise InvalidInput("guarantee", guarantee, "must be a dpselect.Guarantee, as a mechanism or release has one")


def checked_period(account: Account, period: Period | None) -> str:
    """Return the name of a period of a data set, empty if the data set has none; refuse one that does not fit."""
    if not account.every:
        if period is not None:
            raise InvalidInput(
                "period",
                period.name,
                f"data set {account.dataset!r} has one total for all time; leave the period out, or use a data set "
                f"made with `dpselect ledger create --every {period.unit}`",
            )
        return ""
    if period is None or period.unit != account.every:
        raise InvalidInput(
            "period",
            None if period is None else period.name,
            f"must be a {account.every} such as {UNITS[account.every].example}, as data set {account.dataset!r} has a "
            f"total for each {account.every}",
        )
    return period.name


def _refusal(
    account: Account, total: Budget, guarantee: Guarantee, cost: Amount, spent: Amount, scope: str
) -> BudgetExceeded:
    left = account.rule.remaining(total, account.rule.limit(total) - spent)
    return BudgetExceeded(
        requested=account.rule.requested(guarantee, cost),
        remaining=left.epsilon,
        requested_delta=float(cost.delta),
        remaining_delta=left.delta,
        dataset=account.dataset,
        requested_rho=cost.rounded_up().rho,
        remaining_rho=left.rho,
        scope=scope,
    )


def _check_unit(account: Account, guarantee: Guarantee) -> None:
    """Refuse a release that protects another unit than its data set."""
    ours, theirs = (account.protects, account.neighbours), (guarantee.protects, guarantee.neighbours)
    if ours != theirs:
        raise InvalidInput(
            "guarantee",
            plain(f"one that protects {theirs[0]} ({theirs[1]})"),
            f"must protect {ours[0]} ({ours[1]}), as data set {account.dataset!r} does",
        )
