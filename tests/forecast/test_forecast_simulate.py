"""Simulated figures: their draws follow the mechanism's law, and their intervals hold the exact value."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from forecast_brute import expected, found

import dpselect as dps
from dpselect.forecast import metrics
from dpselect.forecast.simulate import distinct_ranks, drawn_groups, simulated
from dpselect.sampling import NOISES

SCORES = [9, 7, 4, 4, 4, 1, 0]
DRAWS = 20_000
MECHANISMS: dict[str, dps.Mechanism] = {
    "canonical": dps.Canonical(k=3, epsilon=0.6),
    "published": dps.Canonical(k=3, epsilon=0.9, noise="gumbel", margin=False),
    "joint": dps.Joint(k=3, epsilon=0.9),
    "peeling": dps.Peeling(k=3, epsilon=1.2),
    "peeling-gumbel": dps.Peeling(k=3, epsilon=1.2, noise="gumbel"),
    "gaussian": dps.Gaussian(k=3, epsilon=0.8, delta=0.01, max_items_per_person=1),
    **{noise: dps.OneShot(k=3, epsilon=1.2, noise=noise) for noise in NOISES},
    "in order": dps.OneShot(k=3, epsilon=1.2, ordered=True),
}


def law_of_groups(mechanism: dps.Mechanism) -> Counter[tuple[int, ...]]:
    """Return the law of the groups of an answer, in order if the answer has one."""
    values = sorted(set(SCORES), reverse=True)
    law: Counter[tuple[int, ...]] = Counter()
    for outcome, probability in mechanism.law(SCORES).items():
        groups = [values.index(SCORES[item]) for item in outcome]
        law[tuple(groups if mechanism.ordered else sorted(groups))] += probability
    return law


def distance(mechanism: dps.Mechanism, law: Counter[tuple[int, ...]]) -> tuple[float, int]:
    """Return the χ² distance of seeded draws from a law, over outcomes expected at least 20 times, and their number."""
    groups = drawn_groups(dps.Scores.of(SCORES), mechanism, DRAWS, np.random.default_rng(5))
    assert groups is not None
    counts = Counter(tuple(row if mechanism.ordered else sorted(row)) for row in groups.tolist())
    assert set(counts) <= set(law)
    likely = [outcome for outcome, probability in law.items() if probability * DRAWS > 20]
    parts = [(counts[each] - law[each] * DRAWS) ** 2 / (law[each] * DRAWS) for each in likely]
    return sum(parts), len(likely)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_follow_the_law(name: str) -> None:
    """The sum exceeds n + 6 √(2n) + 18 with probability below 1e-6."""
    squares, number = distance(MECHANISMS[name], law_of_groups(MECHANISMS[name]))
    assert number > 3
    assert squares < number + 6 * math.sqrt(2 * number) + 18


@pytest.mark.slow
@pytest.mark.parametrize("name", ["canonical", "joint", "peeling", "exponential", "gaussian"])
def test_draws_of_another_epsilon_are_noticed(name: str) -> None:
    from dataclasses import replace

    mechanism: Any = MECHANISMS[name]
    squares, number = distance(mechanism, law_of_groups(replace(mechanism, epsilon=1.2 * mechanism.epsilon)))
    assert squares > number + 6 * math.sqrt(2 * number) + 18


def test_bounded_sequences_are_uniform() -> None:
    """Rows bounded by 2, 3 and 5 ranks have 2 · 2 · 3 sequences; a χ² of 11 degrees exceeds 55 less often than 1e-7."""
    bounds = np.tile([2.0, 3.0, 5.0], (24_000, 1))
    counts = Counter(map(tuple, distinct_ranks(bounds, np.random.default_rng(1)).tolist()))
    assert len(counts) == 12
    assert all(len(set(ranks)) == 3 for ranks in counts)
    assert sum((count - 2000) ** 2 / 2000 for count in counts.values()) < 55


COUNTS = [round(4000 / rank**0.6) for rank in range(1, 401)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        dps.Canonical(k=20, epsilon=0.12),
        dps.OneShot(k=20, epsilon=3.0, noise="laplace"),
        dps.Peeling(k=20, epsilon=8.0, noise="gumbel"),
        dps.Joint(k=20, epsilon=0.3),
        dps.Gaussian(k=20, epsilon=0.2, delta=1e-3, max_items_per_person=1),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_intervals_hold_the_exact_value(mechanism: dps.Mechanism) -> None:
    """3.5 half-widths of a 95% interval are 6.9 standard errors: a miss is less likely than 1e-7 for a fixed seed."""
    exact = found(mechanism, COUNTS)
    names = [name for name in exact if name != "inexact"]
    for name, figure in simulated(dps.Scores.of(COUNTS), mechanism, 1500, 7, names, mechanism.ordered).items():
        assert figure is not None
        assert not figure.exact
        assert abs(figure.value - exact[name]) <= 3.5 * max(figure.high - figure.low, 1e-3) / 2, (name, figure)


@pytest.mark.parametrize("k", [1, 4])
def test_simulated_errors_are_those_of_the_law(k: int) -> None:
    scores = [9.0, 7.0, 4.0, 4.0, 1.0, 0.0]
    for mechanism in (dps.Joint(k=k, epsilon=0.7), dps.Peeling(k=k, epsilon=2.0), dps.OneShot(k=k, epsilon=2.0)):
        outlook, law = dps.forecast.forecast(scores, mechanism, draws=2000, seed=3), expected(mechanism, scores)
        for name in ("largest_error", "total_error", "relative_error"):
            figure = getattr(outlook, name)
            assert abs(figure.value - law[name]) <= 3.5 * (figure.high - figure.low) / 2 + 1e-9, (name, mechanism)


def test_ties_larger_than_memory_can_be_drawn() -> None:
    for sizes in ([2, 3, 10**18], [2, 3, 10**304], [10**12, 5, 10**20]):
        table = dps.Scores.from_histogram([60, 50, 0], sizes)
        for mechanism in (
            dps.OneShot(k=3, epsilon=3.0),
            dps.Peeling(k=3, epsilon=3.0),
            dps.Joint(k=3, epsilon=3.0),
            dps.Canonical(k=3, epsilon=3.0),
        ):
            figures = dps.forecast.forecast(table, mechanism, draws=50).figures()
            assert all(figure is not None and math.isfinite(figure.value) for figure in figures.values())


def test_the_largest_error_lies_between_the_others() -> None:
    """Few draws may say otherwise of a mean; the exact bounds correct them."""
    for seed in range(5):
        outlook = dps.forecast.forecast(COUNTS, dps.Canonical(k=5, epsilon=0.05), draws=2, seed=seed)
        low, middle, high = outlook.relative_error, outlook.largest_error, outlook.total_error
        assert low is not None
        assert middle is not None
        assert high is not None
        assert low.value <= middle.low <= middle.value <= middle.high <= high.value


def test_draws_that_miss_rare_errors_leave_the_exact_bounds() -> None:
    outlook = dps.forecast.forecast(COUNTS, dps.Canonical(k=20, epsilon=0.4), draws=20)
    low, middle, high = outlook.relative_error, outlook.largest_error, outlook.total_error
    assert low is not None
    assert middle is not None
    assert high is not None
    assert 0 < low.value == middle.low < middle.high == high.value


def test_one_item_has_one_error() -> None:
    """With k = 1 the ℓ∞ error is the ℓ1 error, and needs no draws."""
    outlook = dps.forecast.forecast([9, 7, 4], dps.Canonical(k=1, epsilon=0.3), draws=20)
    assert outlook.largest_error == outlook.total_error
    assert outlook.largest_error is not None
    assert outlook.largest_error.exact


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        dps.LimitedDomain(k=2, epsilon=1.0, delta=1e-3, pool=4),
        dps.TopStable(k=2, epsilon=6.0, delta=1e-3, pool=4),
        dps.Restricted(inner=dps.OneShot(k=2, epsilon=1.0), pool=4, test_epsilon=1.0, test_delta=1e-3),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_unknown_domains_are_simulated(mechanism: dps.Mechanism) -> None:
    """Answers may be short: then errors by rank are not defined."""
    scores = [24, 17, 9, 4, 1, 0]
    outlook = dps.forecast.forecast(scores, mechanism, draws=400)
    assert outlook.figures() == dps.forecast.forecast(scores, mechanism, draws=400).figures()
    assert outlook.total_error is None
    data, top = np.array(scores), np.array(scores[:2])
    judges = {"exact": metrics.is_exact, "correct": metrics.number_correct, "f1": metrics.f1_score}
    wanted = dict.fromkeys(judges, 0.0)
    for outcome, probability in mechanism.law(scores).items():
        chosen = data[[item for item in outcome if isinstance(item, int)]]
        chosen = chosen if mechanism.ordered else np.sort(chosen)[::-1]
        for name, judge in judges.items():
            wanted[name] += probability * judge(top, chosen)
    for name, value in wanted.items():
        figure = getattr(outlook, name)
        assert not figure.exact
        assert abs(figure.value - value) <= 3.5 * (figure.high - figure.low) / 2, name


def test_other_mechanisms_are_simulated_with_an_interval() -> None:
    mechanism, scores = dps.Gamma(k=2, epsilon=0.3), [40.0, 30.0, 20.0, 10.0, 0.0]
    outlook, law = dps.forecast.forecast(scores, mechanism, draws=400), expected(mechanism, scores)
    for name, figure in outlook.figures().items():
        assert figure is not None
        assert not figure.exact
        assert figure.low <= figure.value <= figure.high
        assert abs(figure.value - law[name]) <= 3.5 * (figure.high - figure.low) / 2, name


def test_an_error_that_no_draw_had_is_bounded_by_the_exact_probability_of_a_mistake() -> None:
    outlook = dps.forecast.forecast([90, 70, 40, 10, 5], dps.Joint(k=2, epsilon=3.0))
    assert outlook.inexact is not None
    for figure, places in ((outlook.largest_error, 1), (outlook.relative_error, 1), (outlook.total_error, 2)):
        assert figure is not None
        assert (figure.value, figure.low) == (0, 0)
        assert figure.high == pytest.approx(outlook.inexact.value * 85 * places)


def test_simulated_errors_of_sets_stay_below_the_exact_total() -> None:
    for epsilon in (0.05, 0.3, 0.9):
        outlook = dps.forecast.forecast([90, 70, 40, 10, 5], dps.OneShot(k=2, epsilon=epsilon), draws=20)
        errors = (outlook.relative_error, outlook.largest_error, outlook.total_error)
        values = [figure.value for figure in errors if figure is not None]
        assert values == sorted(values)
        assert len(values) == 3


def test_a_border_of_more_ties_than_floats_tell_apart_is_simulated() -> None:
    table = dps.Scores.from_histogram([100, 50, 0], [5, 3, 10**18])
    outlook = dps.forecast.forecast(table, dps.OneShot(k=9, epsilon=1e-9))
    assert outlook.correct is not None
    assert not outlook.correct.exact
    assert outlook.correct.value == 1
