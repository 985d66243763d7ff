"""select(): from scores to a release, the path of the whole package in one function."""

from __future__ import annotations

import os
from typing import Any

from dpselect._numbers import seed_or_none
from dpselect.mechanisms import Mechanism, UnknownDomain
from dpselect.plan import plan_release
from dpselect.privacy.ledger import Ledger, reservation
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.release import PUBLIC, UNKNOWN, Release, StatedDomain
from dpselect.sampling import bit_source


def select(
    scores: Any,
    k: int | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    mechanism: str | Mechanism = "auto",
    sensitivity: Sensitivity = COUNTS,
    ordered: bool = False,
    values: float | None = None,
    protects: str = "one person",
    seed: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    purpose: str = "",
) -> Release:
    """Choose k items with high scores, so that no one person shows in the answer.

    scores: a mapping item → score, a pandas or polars Series, a one-dimensional array or list (items are then 0..d−1),
        or `Scores`. Which items there are is taken to be public; only their scores are private.
    k, epsilon: how many items, and the total privacy cost. May be left out when `mechanism` is an object that has them.
    delta: what mechanisms that can use it may use; pure ones give delta = 0 whatever is allowed. If left out, it is 0,
        or what a mechanism object states.
    mechanism: "auto", a name, or a mechanism object. "auto" looks at public facts only, never at the scores.
    sensitivity: how far one person can move a score; COUNTS when each person counts at most once per item.
    ordered: whether the order of the answer must mean something.
    values: None, or the share of epsilon, between 0 and 1, to spend on publishing noisy scores of the chosen items.
    protects: what one contributor stands for, where it is not one person: "one household", say. It is stated in the
        guarantee, and must be that of the data set in the ledger.
    seed: for tests and examples; the release is then reproducible and not secure.
    ledger, dataset, purpose: a `privacy.Ledger`, or its path or URL, in which the release is charged to that data set
        before it is drawn; BudgetExceeded is raised if not enough is left. A release that is short by less than a
        billionth is made with what is left, and states the smaller epsilon. One that fails later stays charged.

    >>> import dpselect as dps
    >>> dps.select({"tea": 90, "coffee": 80, "milk": 3}, k=2, epsilon=1.0, seed=1).k
    2
    """
    plan = plan_release(
        mechanism,
        k=k,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        ordered=ordered,
        values=values,
        protects=protects,
    )
    reserved = reservation(ledger, dataset, purpose)
    bits = bit_source(seed_or_none(seed))
    table = plan.mechanism.table(scores)
    plan.mechanism.check_size(table.size)
    plan = plan.charge(reserved, secure=bits.secure)
    members = plan.mechanism.draw(table, bits)
    # Mechanisms for unknown domains hide which items exist, and so how many.
    hidden = isinstance(plan.mechanism, UnknownDomain)
    domain = StatedDomain(None, UNKNOWN) if hidden else StatedDomain(table.size, PUBLIC)
    return plan.release(table.items(members.positions().tolist()), members.values, bits, domain)
