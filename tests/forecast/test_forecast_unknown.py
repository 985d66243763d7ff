"""Forecasts for unknown domains against enumerated laws, and public facts against the probabilities they state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.forecast.unknown import length_law
from dpselect.sampling.laws import sequence_law, threshold_probability
from dpselect.sampling.noise import NOISES

pytestmark = pytest.mark.slow

COUNTS = [round(2000 / rank) for rank in range(1, 1001)]


def lengths(mechanism: Any, scores: list[int]) -> list[float]:
    """Return the law of the number of items from the enumerated law."""
    found = [0.0] * (mechanism.k + 1)
    for outcome, probability in mechanism.law(scores).items():
        found[len(outcome)] += probability
    return found


@pytest.mark.parametrize("scores", [[9, 7, 7, 4, 2, 1], [30, 3, 3, 3, 3], [7, 6, 6, 5, 3]], ids=str)
@pytest.mark.parametrize(
    "mechanism",
    [
        dps.LimitedDomain(k=2, epsilon=3.0, delta=0.1, pool=4),
        dps.LimitedDomain(k=3, epsilon=6.0, delta=0.2, pool=4, max_items_per_person=2),
        dps.TopStable(k=2, epsilon=6.0, delta=0.1, pool=4),
        dps.TopStable(k=3, epsilon=9.0, delta=0.2, pool=3),
        dps.Discovered(
            inner=dps.Canonical(k=3, epsilon=1.0),
            discovery=dps.Discovery(epsilon=2.0, delta=0.1, max_items_per_person=2),
        ),
    ],
    ids=lambda mechanism: f"{mechanism.name}-{mechanism.k}",
)
def test_the_length_of_an_answer_is_that_of_the_enumerated_law(mechanism: Any, scores: list[int]) -> None:
    expected = lengths(mechanism, scores)
    assert max(expected) < 0.999999
    assert length_law(dps.Scores.of(scores), mechanism) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("scores", [[9, 7], [15, 14, 13], [5]], ids=str)
def test_nameless_items_change_the_length_by_delta_at_most(scores: list[int]) -> None:
    mechanisms: list[Any] = [
        dps.LimitedDomain(k=3, epsilon=3.0, delta=1e-3, pool=4),
        dps.TopStable(k=3, epsilon=3.0, delta=1e-3, pool=4),
    ]
    for mechanism in mechanisms:
        found = length_law(dps.Scores.of(scores), mechanism)
        assert found == pytest.approx(lengths(mechanism, scores), abs=1e-3)


def test_what_has_no_integral_is_simulated() -> None:
    for mechanism in (
        dps.RestrictedGumbel(k=2, epsilon=3.0, delta=0.1, pool=4),
        dps.LimitedDomain(k=2, epsilon=3.0, delta=0.1, pool=4, max_items_per_person=2, noise="laplace"),
        dps.LimitedDomain(k=2, epsilon=3.0, delta=0.1, pool=4, pool_epsilon=1.0),
        dps.LimitedDomain(k=10**3, epsilon=3.0, delta=0.1, pool=10**5),
    ):
        assert length_law(dps.Scores.of([9, 7, 5]), mechanism) is None


def test_figures_agree_with_the_enumerated_law() -> None:
    """Each interval of five standard errors misses the truth with probability below 1e-6."""
    scores = [14, 12, 9, 6, 5, 3]
    compared = dps.forecast.compare_unknown(scores, 3, epsilon=6.0, delta=0.1, pool=4, draws=2000)
    for outlook in compared.outlooks:
        law = outlook.mechanism.law(scores)
        top = np.array(scores[:3])
        expected = {
            "returned": sum(len(answer) * p for answer, p in law.items()),
            "full": sum(p for answer, p in law.items() if len(answer) == 3),
            "f1": sum(p * 2 * len({0, 1, 2} & set(answer)) / (3 + len(answer)) for answer, p in law.items()),
            "score_ratio": sum(p * sum(scores[place] for place in answer) / top.sum() for answer, p in law.items()),
        }
        for name, figure in outlook.figures().items():
            assert figure is not None
            assert figure.exact == (outlook.mechanism.name != "restricted" and name in ("returned", "full"))
            assert abs(figure.value - expected[name]) <= 2.5 * (figure.high - figure.low) + 1e-9


def test_without_draws_only_exact_figures_are_there_and_the_order_leaves_out_top_stable() -> None:
    compared = dps.forecast.compare_unknown(COUNTS, 10, epsilon=1.0, delta=1e-7, ordered=True, draws=0)
    restricted, limited = compared.outlooks
    assert set(restricted.figures().values()) == {None}
    assert limited.returned is not None
    assert limited.f1 is None
    assert compared.to_dict()["private"] is False
    assert "limited" in compared._repr_html_()


def test_fewer_items_than_k_are_no_error() -> None:
    compared = dps.forecast.compare_unknown([900, 800], 5, epsilon=2.0, delta=1e-6, draws=50)
    for outlook in compared.outlooks:
        assert outlook.returned is not None
        assert outlook.full is not None
        assert outlook.returned.value == pytest.approx(2, abs=1e-3)
        assert outlook.full.value <= 1e-5


def test_the_stated_leads_pass_with_the_stated_probabilities() -> None:
    restricted, limited, stable = dps.forecast.plan_unknown(5, epsilon=1.0, delta=1e-6)
    for facts in (restricted, stable):
        mechanism: Any = facts.mechanism
        for lead, probability in ((facts.half, 0.5), (facts.likely, 0.99)):
            margin = float(mechanism.rate()) * lead - float(mechanism.height())
            assert threshold_probability([margin], []) == pytest.approx(probability, abs=1e-7)
    chosen: Any = limited.mechanism
    for lead, probability in ((limited.half, 0.5), (limited.likely, 0.99)):
        ahead = float(chosen.rate()) * (lead - float(chosen.lead()))
        assert sequence_law([ahead, 0.0], 1, NOISES["gumbel"])[(0,)] == pytest.approx(probability, abs=1e-7)
    assert restricted.for_tests == restricted.mechanism.test_epsilon / 1.0  # type: ignore[attr-defined]
    assert (limited.for_tests, stable.for_tests) == (0.0, 0.5)


def test_the_stated_gap_is_enough_for_a_full_answer() -> None:
    """A pool of equal scores that leads by the gap; 0.99 is promised, and more is found."""
    for facts in dps.forecast.plan_unknown(2, epsilon=2.0, delta=1e-4, pool=4):
        gap = math.ceil(facts.full)
        tied = [gap] * 4
        if facts.mechanism.name == "top-stable":
            tied = [gap] * 2  # the gap behind rank k
        full = lengths(facts.mechanism, [*tied, *[0] * (5 - len(tied))])[-1]
        assert full >= 0.99
        assert lengths(facts.mechanism, [gap // 2 for _ in tied])[-1] < 0.99


@pytest.mark.parametrize("name", ["limited", "top-stable"])
def test_the_epsilon_for_some_items_is_the_smallest_to_two_digits(name: str) -> None:
    epsilon = dps.forecast.epsilon_for_items(COUNTS, name, 10, 8, delta=1e-7)
    at, below = (
        dps.forecast.compare_unknown(COUNTS, 10, epsilon=each, delta=1e-7, draws=0) for each in (epsilon, 0.9 * epsilon)
    )
    found = {each.mechanism.name: each.returned for each in at.outlooks}[name]
    less = {each.mechanism.name: each.returned for each in below.outlooks}[name]
    assert found is not None
    assert less is not None
    assert less.value < 8 <= found.value


def test_the_epsilon_of_restricted_is_simulated() -> None:
    epsilon = dps.forecast.epsilon_for_items(COUNTS, "restricted", 10, 8, delta=1e-7, draws=300)
    found = dps.forecast.compare_unknown(COUNTS, 10, epsilon=epsilon, delta=1e-7, draws=1000).outlooks[0].returned
    assert found is not None
    assert abs(found.value - 8) < 0.5
    # Nobody shares these items, so that no epsilon is enough.
    assert math.isinf(dps.forecast.epsilon_for_items([1] * 300, "limited", 10, 8, delta=1e-7))


@pytest.mark.parametrize(
    ("change", "argument"),
    [({"wanted": 10}, "wanted"), ({"wanted": 0}, "wanted"), ({"mechanism": "joint"}, "mechanism"), ({"k": 0}, "k")],
    ids=str,
)
def test_bad_questions_are_refused_by_name(change: dict[str, Any], argument: str) -> None:
    with pytest.raises(dps.InvalidInput) as caught:
        dps.forecast.epsilon_for_items(
            COUNTS, **{"mechanism": "limited", "k": 10, "wanted": 5, "delta": 1e-6, **change}
        )
    assert caught.value.argument == argument


def test_discovered_is_compared_if_a_limit_of_items_is_stated() -> None:
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "draws": 30}
    names = [outlook.mechanism.name for outlook in dps.forecast.compare_unknown(COUNTS, 20, **asked).outlooks]
    assert names == ["restricted", "limited", "top-stable"]
    compared = dps.forecast.compare_unknown(COUNTS, 20, max_items_per_person=5, **asked)
    discovered = compared.outlooks[-1]
    assert discovered.mechanism.name == "discovered"
    assert discovered.returned is not None
    assert discovered.returned.exact
    pooled = dps.forecast.compare_unknown(COUNTS, 20, max_items_per_person=5, pool=50, **asked)
    assert "discovered" not in [outlook.mechanism.name for outlook in pooled.outlooks]


def test_the_expected_number_of_discovered_items_is_that_of_draws() -> None:
    """300 draws; the mean is off by 5.5 standard errors with probability 4e-8."""
    discovery = dps.Discovery(epsilon=1.0, delta=1e-5, max_items_per_person=4)
    weights = [count * discovery.weight(4) for count in COUNTS]
    drawn = np.array([len(discovery.select(weights, seed=seed)) for seed in range(300)])
    expected = dps.forecast.expected_discovered(COUNTS, discovery)
    assert abs(drawn.mean() - expected) < 5.5 * drawn.std() / 300**0.5
    assert expected < dps.forecast.expected_discovered(COUNTS, discovery, items_per_person=1)
    with pytest.raises(dps.InvalidInput, match="items_per_person must be at most max_items_per_person = 4"):
        dps.forecast.expected_discovered(COUNTS, discovery, items_per_person=5)


def test_facts_of_discovered_are_the_counts_at_which_items_are_listed() -> None:
    facts = dps.forecast.plan_unknown(10, epsilon=1.0, delta=1e-6, max_items_per_person=3)[-1]
    assert isinstance(facts.mechanism, dps.Discovered)
    found = facts.mechanism.discovery
    counts = np.array([facts.half, facts.likely, facts.full])
    listed = found.probabilities(np.round(counts * found.weight(3)).astype(np.int64))
    assert listed == pytest.approx([0.5, 0.99, 0.999], abs=1e-3)
    assert facts.for_tests == 0.5
