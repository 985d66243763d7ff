"""select(): from scores to a release, the path of the whole package in one function."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpselect._numbers import positive_integer, seed_or_none
from dpselect.charging import ChargeTarget
from dpselect.errors import InvalidInput
from dpselect.items import digest_of, plain_item
from dpselect.mechanisms import FOR_UNKNOWN_DOMAINS, Mechanism, UnknownDomain
from dpselect.periods import asked_period
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.release import PUBLIC, UNKNOWN, Release, StatedDomain
from dpselect.request import ReleaseRequest
from dpselect.sampling import bit_source
from dpselect.scores import Scores

if TYPE_CHECKING:
    from dpselect.ledger import Ledger


def select(
    scores: Any,
    k: int | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    mechanism: str | Mechanism = "auto",
    options: Mapping[str, Any] | None = None,
    aim: str = "most",
    sensitivity: Sensitivity = COUNTS,
    max_items_per_person: int | None = None,
    pool: int | None = None,
    ordered: bool = False,
    lowest: bool = False,
    values: float | bool | None = None,
    protects: str = "one person",
    period: str | None = None,
    unfinished: bool = False,
    seed: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | Sequence[str] | None = None,
    purpose: str = "",
    once: str | None = None,
) -> Release:
    """Choose k items with high scores, without revealing whether any one person is in the data.

    Parameters
    ----------
    scores
        A mapping item → score, a pandas or polars Series, a one-dimensional array or list (items are then 0..d−1), or
        `Scores`. The items are taken to be public; only their scores are private.
    k, epsilon
        How many items, and the total privacy cost. May be left out if `mechanism` is an object, which has both.
    delta
        The largest δ that the mechanism may use; pure mechanisms use none. By default 0, or what a mechanism object
        states.
    mechanism
        "auto", a name, or a mechanism object. "auto" chooses from public facts only, never from the scores.
    options
        Further arguments of the mechanism that is named, such as {"noise": "laplace"}.
    aim
        What "auto" aims at: "most", the most right items to be expected, or "exact", the highest probability of exactly
        the right answer.
    sensitivity
        How far one person can move a score; `COUNTS` if each person counts at most once per item. This is your
        promise, on which the guarantee rests: the scores do not show whether it holds.
    max_items_per_person
        None, or your promise that one person moves at most that many scores. "laplace" and "gaussian" need it.
    pool
        For a mechanism for unknown domains, how many of the highest scores are considered; by default 10 k.
    ordered
        Whether the order of the answer must be part of the private output.
    lowest
        Whether to choose the k lowest scores instead. Not for unknown domains.
    values
        None, or the share of epsilon, above 0 and below 1, to spend on publishing noisy scores of the chosen items.
        The epsilon of a mechanism object is that of the choice alone; the values are charged beside it, so that they
        take that share of the total. They use a delta only if `delta`, the total, exceeds that of the object.
        True for `Laplace` and `Gaussian`, whose release includes them at no further cost (docs/values.md).
    protects
        The unit of protection, if it is not one person: "one household", say. The guarantee states it, and it must be
        that of the data set in the ledger.
    period, unfinished
        The period that the scores are of, such as "2026-W46", as a data set with periods needs it. You promise that
        they are computed from rows of that period alone; the release then protects "one person's week". A period that
        is not over is refused unless `unfinished`.
    seed
        For tests and examples only: makes the release reproducible, which also means that it protects nobody.
    ledger, dataset, purpose
        A `dpselect.ledger.Ledger`, or its path or URL; the data set in it to charge, before the draw, or several that
        are charged the same, all or none; and a note for the record. If the cost exceeds the remaining budget by less
        than a billionth, the release uses the remaining budget and states the smaller epsilon. A release that fails
        after the charge stays charged.
    once
        A key, such as "chart 2026-W46"; needs a ledger, which then keeps the answer. The same question under the same
        key returns it and costs nothing more, also after a crash or in several processes at once. Another question is
        refused with `KeyReused`. The items of the answer are as JSON holds them: a date is its text.

    Returns
    -------
    The release.

    Raises
    ------
    InvalidInput
        If an argument cannot be used.
    BudgetExceeded
        If less is left in the ledger than the release costs.
    SourceError
        If the ledger fails or was changed from outside.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.select({"tea": 90, "coffee": 80, "milk": 3}, k=2, epsilon=1.0, seed=1).k
    2
    >>> dps.select({"tea": 900, "coffee": 800, "milk": 3}, k=1, epsilon=1.0, lowest=True, seed=1).items
    ['milk']
    """
    _check_limits(mechanism, max_items_per_person, pool)
    plan = ReleaseRequest(
        mechanism=mechanism,
        k=k,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        ordered=ordered,
        aim=aim,
        values=values,
        protects=protects,
        max_items_per_person=max_items_per_person,
        pool=pool,
        options=options,
        lowest=lowest,
        period=asked_period(period, unfinished),
    ).plan()
    target = ChargeTarget.of(ledger, dataset, purpose, once, seed=seed, period=period)
    bits = bit_source(seed_or_none(seed))
    table = plan.seen(plan.mechanism.table(scores))
    plan.mechanism.check_size(table.size)
    # Mechanisms for unknown domains hide which items exist, and so their number.
    hidden = isinstance(plan.mechanism, UnknownDomain)
    domain = StatedDomain(None, UNKNOWN) if hidden else StatedDomain(table.size, PUBLIC)
    charge = target.charge(plan, secure=bits.secure, asked=lambda: {**_asked(table, domain), "unfinished": unfinished})
    if charge.stored is not None:
        return charge.plan.answer_of(charge.stored)
    plan = charge.plan
    members, noisy = plan.draw(table, bits)
    items = table.items(members.positions().tolist())
    return charge.published(plan.release(items, plan.scores_of(members), bits, domain, noisy))


def _asked(table: Scores, domain: StatedDomain) -> dict[str, Any]:
    """Return what identifies the question besides the request: the items, as far as they are public."""
    listed = [] if domain.items is None else [plain_item(item) for item in table.listed()]
    is_named = listed and listed != list(range(len(listed)))
    items = digest_of(json.dumps(item) for item in listed) if is_named else str(domain)
    return {"command": "select", "domain": items}


def _check_limits(mechanism: str | Mechanism, max_items_per_person: Any, pool: Any) -> None:
    """Refuse a limit that is not a whole number, that a mechanism object contradicts, or that nothing would use."""
    for argument, given in (("max_items_per_person", max_items_per_person), ("pool", pool)):
        if given is None:
            continue
        given = positive_integer(argument, given)
        stated = getattr(mechanism, argument, None)
        if isinstance(mechanism, Mechanism) and stated is not None and stated != given:
            raise InvalidInput(argument, given, f"must be {stated}, as the mechanism object states; leave it out")
    if pool is not None and not (isinstance(mechanism, UnknownDomain) or mechanism in FOR_UNKNOWN_DOMAINS):
        names = ", ".join(FOR_UNKNOWN_DOMAINS)
        raise InvalidInput("pool", pool, f"must be left out unless the mechanism is one of {names}")
