"""What a question would cost and how good its answer would be, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from dpselect import forecast
from dpselect._format import shown_above
from dpselect._top import TopQuestion
from dpselect.desk.datasets import DataSet
from dpselect.desk.questions import BudgetState, Estimate, EstimateQuestion, Question
from dpselect.errors import InvalidInput
from dpselect.mechanisms import Mechanism, UnknownDomain
from dpselect.mechanisms.auto import resolution
from dpselect.privacy import Guarantee
from dpselect.scores import Scores

EPSILONS = tuple(float(f"{each:.3g}") for each in np.geomspace(0.01, 10, 25))
"""Where curves are computed."""

_STEEP = 0.1
"""A rise of the probability between two points that asks for more points."""

_NOTHING = 1e-12
"""A probability below which a curve is at its foot."""

USUAL_PROBABILITY = 0.9

MOST_LEADS = 1000
"""The largest k for which an ordered answer has an estimate from a lead: each of its k leads takes time."""


def estimate(dataset: DataSet, asked: EstimateQuestion, analyst: str, curve: dict[str, Any] | None = None) -> Estimate:
    """Return the estimate of a question; `curve` is one that was computed from a look-alike."""
    if asked.lead is not None and asked.ordered and asked.k > MOST_LEADS:
        raise InvalidInput("lead", asked.lead, f"must be left out for an ordered answer of more than {MOST_LEADS}")
    settled = dataset.question(asked)
    plan = settled.plan
    size = dataset.size_of(asked.item)
    reach = _reach(plan.mechanism, size, plan.guarantee.protects)
    budgets = dataset.budgets(analyst, asked.period)
    tightest = min(budgets, key=lambda budget: budget.remaining)
    needed = None
    if curve is None and size is not None:
        curve = _public_curve(asked, settled, size)
        needed = _needed(asked, settled, size)
    elif curve is not None and asked.accuracy is not None:
        needed = _needed_on_curve(curve, asked)
    return Estimate(
        cost=_cost(tightest, asked, plan.guarantee),
        budgets=budgets,
        mechanism=plan.mechanism.describe(),
        guarantee=plan.guarantee.to_dict(),
        words=words(plan.guarantee, None if reach is None else str(reach), _unknown_reach(asked, settled)),
        domain_size=size,
        reach=None if reach is None else reach.to_dict(),
        curve=curve,
        needed=needed,
        buys=_buys(tightest, plan.guarantee),
    )


def warm_up() -> None:
    """Load what estimates need, so that the first one takes no longer than others."""
    for delta in (0.0, 1e-6):
        asked = EstimateQuestion(item="item", k=10, epsilon=1.0, delta=delta)
        _public_curve(asked, TopQuestion.of(k=10, epsilon=1.0, delta=delta, domain=list(range(20))), 20)


def words(guarantee: Guarantee, reach: str | None, otherwise: str | None = None) -> dict[str, str | None]:
    """Return a sentence about the guarantee, one about what the answer can tell apart, one about its strength."""
    promise = str(guarantee).partition(": ")[2]
    strength = f"{guarantee.strength} protection (epsilon {shown_above(guarantee.epsilon)})"
    if guarantee.delta:
        # As a fraction: a float can be so small that 1 / delta is infinite.
        people = math.floor(1 / Fraction(repr(float(guarantee.delta))))
        strength += f", if the data are of fewer than {people:,} people"
    return {
        "guarantee": f"This release {promise}.",
        "reach": _sentence(reach or otherwise),
        "protection": f"{_sentence(strength)}",
    }


def look_alike_task(asked: Question, settled: TopQuestion, scores: list[Any], items: list[int]) -> dict[str, Any]:
    """Return the task of the worker that computes how many items would be right at each ε, as plain data."""
    mechanism = settled.plan.mechanism
    if isinstance(mechanism, UnknownDomain):
        raise InvalidInput(
            "like", "a look-alike", "must be left out if the list of items is unknown; use `dpselect forecast` instead"
        )
    return {
        "mechanism": mechanism.describe(),
        "ratio": mechanism.epsilon / asked.epsilon,
        "epsilons": EPSILONS[::3],
        "at": asked.epsilon,
        "scores": [float(score) for score in scores],
        "items": items,
    }


def _public_curve(asked: EstimateQuestion, settled: TopQuestion, size: int) -> dict[str, Any] | None:
    """Return the curve of success against ε for a stated lead, or of the lead that is needed."""
    mechanism: Any = settled.plan.mechanism
    ratio = mechanism.epsilon / asked.epsilon
    right = "the right item" if asked.k == 1 else f"exactly the right {asked.k}{' in order' if asked.ordered else ''}"
    leads = "it leads" if asked.k == 1 else "each leads the next" if asked.ordered else "the last leads the rest"
    # With a delta the noise of each point is calibrated anew, which takes a while.
    epsilons = EPSILONS if _is_pure(mechanism) else EPSILONS[::4]
    if asked.lead is not None:
        curve = forecast.success(_worst_case(asked, size), mechanism)
        values = _rising([each * ratio for each in epsilons], curve.chance)
        between = _where_steep(epsilons, values) if _is_pure(mechanism) else ()
        values += curve.chances([each * ratio for each in between])
        epsilons += between
        at = curve.chance(mechanism.epsilon)
        label = f"least probability of {right}, if {leads} by {asked.lead:g} people"
        kind = "success"
    else:
        found = forecast.reach(mechanism, size, USUAL_PROBABILITY)
        if found is None:
            return None
        at, kind = found.lead, "lead"
        values = [math.ceil(found.lead * _coarseness(mechanism, each * ratio)) for each in epsilons]
        label = f"lead in people that gives {right} with probability {USUAL_PROBABILITY:g}"
    return {
        "kind": kind,
        "x": "epsilon",
        "points": [{"epsilon": x, "value": y} for x, y in sorted(zip(epsilons, values, strict=True))],
        "value_label": label,
        "at": {"epsilon": asked.epsilon, "value": at},
    }


def _rising(epsilons: list[float], chance: Callable[[float], float]) -> list[float]:
    """Return the probability at each ε; below one where it is next to nothing, it is not computed."""
    values: list[float] = []
    for epsilon in reversed(epsilons):
        values.append(0.0 if values and values[-1] < _NOTHING else chance(epsilon))
    return values[::-1]


def _where_steep(epsilons: tuple[float, ...], values: list[float]) -> tuple[float, ...]:
    """Return further places where a curve rises steeply, so that straight lines between its points show it."""
    rises = zip(pairwise(epsilons), pairwise(values), strict=True)
    steep = [ends for ends, (low, high) in rises if high - low > _STEEP]
    return tuple(float(f"{each:.4g}") for ends in steep for each in np.geomspace(*ends, 7)[1:-1])


def _is_pure(mechanism: Any) -> bool:
    """Whether the mechanism's noise depends on ε alone."""
    return not getattr(mechanism, "delta", 0.0)


def _coarseness(mechanism: Any, epsilon: float) -> float:
    """Return by which factor the lead that is needed grows at another ε: all noise is a multiple of one law."""
    if _is_pure(mechanism):
        return float(mechanism.epsilon / epsilon)
    return float(resolution(replace(mechanism, epsilon=epsilon)) / resolution(mechanism))


def _needed(asked: EstimateQuestion, settled: TopQuestion, size: int) -> dict[str, Any] | None:
    """Return the ε with which the wanted accuracy is reached at the stated lead."""
    if asked.accuracy is None or asked.lead is None:
        return None
    mechanism: Any = settled.plan.mechanism
    ratio = mechanism.epsilon / asked.epsilon
    found = forecast.smallest_epsilon(_worst_case(asked, size), mechanism, asked.accuracy) / ratio
    return _need(found, asked.accuracy, asked.k)


def _needed_on_curve(curve: dict[str, Any], asked: EstimateQuestion) -> dict[str, Any] | None:
    """Return the least ε of a look-alike's curve at which the wanted share of the answer is right."""
    assert asked.accuracy is not None
    wanted = asked.accuracy * asked.k
    reached = [point["epsilon"] for point in curve["points"] if point["value"] >= wanted]
    if not reached:
        return None
    needed = min(reached)
    text = f"at epsilon {shown_above(needed)}, {wanted:.3g} of {asked.k} items are expected to be right"
    return {"epsilon": needed, "accuracy": asked.accuracy, "words": text}


def _need(epsilon: float, accuracy: float, k: int) -> dict[str, Any] | None:
    if not math.isfinite(epsilon):
        return None
    shown = float(shown_above(epsilon, 3))
    right = "the right item" if k == 1 else f"exactly the right {k}"
    text = f"epsilon {shown:g} gives {right} with probability {accuracy:g}"
    return {"epsilon": shown, "accuracy": accuracy, "words": text}


def _worst_case(asked: EstimateQuestion, size: int) -> Scores:
    """Return scores in which every lead is the stated one and all other items are tied."""
    lead: Any = asked.lead
    lead = int(lead) if float(lead).is_integer() else lead
    rest = size - asked.k
    if asked.ordered:
        highest = [lead * place for place in range(asked.k, 0, -1)]
        return Scores.from_histogram([*highest, 0][: asked.k + bool(rest)], [1] * asked.k + [rest] * bool(rest))
    return Scores.from_histogram([lead, 0][: 1 + bool(rest)], [asked.k, rest][: 1 + bool(rest)])


def _reach(mechanism: Mechanism, size: int | None, protects: str) -> forecast.Reach | None:
    return None if size is None else forecast.reach(mechanism, size, USUAL_PROBABILITY, protects=protects)


def _unknown_reach(asked: Question, settled: TopQuestion) -> str | None:
    """Say what an item of an unknown domain needs, in words."""
    mechanism = settled.plan.mechanism
    if not isinstance(mechanism, UnknownDomain):
        return None
    found = forecast.plan_unknown(
        asked.k,
        epsilon=asked.epsilon,
        delta=asked.delta,
        ordered=asked.ordered,
        max_items_per_person=settled.contribution.max_items_per_person,
    )
    facts = next((each for each in found if each.mechanism.name == mechanism.name), None)
    if facts is None:
        return None
    return f"to be in the answer, an item needs about {math.ceil(facts.likely):,} people more than unpopular items have"


def _cost(budget: BudgetState, asked: Question, guarantee: Guarantee) -> dict[str, Any]:
    after = Fraction(budget.remaining) - Fraction(guarantee.epsilon)
    rounding = Fraction(guarantee.epsilon) / 10**9
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "remaining": budget.remaining,
        "remaining_delta": budget.remaining_delta,
        "after": max(0.0, float(after)),
        "affordable": after >= -rounding and guarantee.delta <= budget.remaining_delta,
        "period": asked.period,
    }


def _buys(budget: BudgetState, guarantee: Guarantee) -> dict[str, Any]:
    """Return how many more releases like this one the rest would pay for."""
    number = math.floor(Fraction(budget.remaining) / Fraction(guarantee.epsilon) + Fraction(1, 10**9))
    if guarantee.delta:
        number = min(number, math.floor(Fraction(budget.remaining_delta) / Fraction(guarantee.delta)))
    after = max(0, number - 1)
    if not number:
        text = "what is left does not pay for this release"
    elif not after:
        text = "after this release, nothing like it can be paid for"
    else:
        text = f"after this release, what is left buys {after:,} more like it"
    return {"releases": after, "words": f"{text}."}


def _sentence(text: str | None) -> str | None:
    return None if text is None else f"{text[:1].upper()}{text[1:]}."
