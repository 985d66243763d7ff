"""Sampler checks: they accept what follows the law, and reject what departs from it a little.

Seeds are fixed. A sound sampler would fail one of these checks for a chance of at most 1e-6 of the seeds (THRESHOLD).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpselect.mechanisms import Joint, Mechanism, OneShot, Peeling
from dpselect.sampling.noise import NOISES
from dpselect.scores import Scores
from dpselect.verify import SamplerCheck, check_groups, check_sampler, sampler_checks
from dpselect.verify.broken import FavouredMembers, SlightlyWrongScale, SortedSet, SwappedOrderStatistics
from dpselect.verify.groups import oneshot_groups, peeling_groups
from dpselect.verify.registry import HUGE_SIZES, HUGE_VALUES, UNDER_TEST
from dpselect.verify.sampler import THRESHOLD, _pooled


def describe(check: Any) -> str:
    mechanism = check.args[0]
    return f"{mechanism.name}-{getattr(mechanism, 'noise', '')}-k{mechanism.k}-{check.func.__name__}"


@pytest.mark.parametrize("check", sampler_checks(quick=True), ids=describe)
def test_every_sampler_follows_its_law(check: Callable[[], SamplerCheck]) -> None:
    result = check()
    assert result.passed, result


@pytest.mark.slow
@pytest.mark.parametrize("check", sampler_checks(), ids=describe)
def test_every_sampler_follows_its_law_over_more_draws(check: Callable[[], SamplerCheck]) -> None:
    result = check()
    assert result.passed, result


@pytest.mark.slow
@pytest.mark.parametrize("noise", list(NOISES))
def test_one_shot_draws_follow_the_law_closely(noise: str) -> None:
    for scores in ([2, 1, 0, 1, 1], Scores.from_histogram([2, 1, 0], [1, 3, 2])):
        assert check_sampler(OneShot(k=2, epsilon=4.0, noise=noise), scores, draws=10_000, seed=11).passed


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_peeling_draws_follow_the_law_closely(noise: str) -> None:
    for scores in ([2, 1, 0, 1, 1], Scores.from_histogram([2, 1, 0], [1, 3, 2])):
        assert check_sampler(Peeling(k=3, epsilon=4.0, noise=noise), scores, draws=10_000, seed=12).passed


@pytest.mark.slow
@pytest.mark.parametrize("variant", UNDER_TEST["canonical"].variants, ids=repr)
def test_every_variant_of_canonical_draws_from_its_law(variant: Mechanism) -> None:
    mechanism = replace(variant, k=3, epsilon=1.5)
    for scores in ([4, 2, 2, 0, 1], Scores.from_histogram([3, 1, 0], [1, 3, 2])):
        assert check_sampler(mechanism, scores, draws=1000, seed=13).passed


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_joint_draws_follow_the_law_closely(noise: str) -> None:
    for scores in ([4, 2, 2, 0, 1], Scores.from_histogram([3, 1, 0], [1, 3, 2])):
        assert check_sampler(Joint(k=3, epsilon=2.0, noise=noise), scores, draws=2000, seed=14).passed


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "logistic"])
def test_a_slightly_wrong_scale_is_rejected(noise: str) -> None:
    twin = SlightlyWrongScale(k=2, epsilon=4.0, noise=noise)
    result = check_sampler(twin, [2, 1, 0, 1, 1], draws=10_000, seed=1)
    assert not result.passed
    assert result.p_value < THRESHOLD / 10


def test_an_order_that_tells_is_rejected_though_the_set_is_right() -> None:
    twin = SortedSet(k=2, epsilon=4.0, noise="gumbel")
    assert not check_sampler(twin, [2, 1, 0, 1, 1], draws=2000).passed


class Fixed:
    """A mechanism that always answers alike, with a law that says otherwise or not."""

    k = 1
    ordered = False

    def __init__(self, law: dict[Any, float]) -> None:
        self.law_given = law

    def law(self, scores: Any) -> dict[Any, float]:
        return self.law_given

    def select(self, scores: Any, *, seed: int | None = None) -> Any:
        return np.array([1])


@pytest.mark.parametrize(
    "law", [{frozenset({0}): 1.0}, {frozenset({0}): 1.0, frozenset({1}): 0.0}], ids=["unknown", "impossible"]
)
def test_an_impossible_outcome_is_proof(law: dict[Any, float]) -> None:
    assert check_sampler(Fixed(law), [0, 1], draws=1).p_value == 0.0  # type: ignore[arg-type]


def test_a_certain_outcome_agrees() -> None:
    assert check_sampler(Fixed({frozenset({1}): 1.0}), [0, 1], draws=50).p_value == 1.0  # type: ignore[arg-type]


def test_pools_keep_every_draw_and_expect_enough() -> None:
    pools = _pooled([(3.0, 1), (40.0, 44), (10.0, 9), (20.0, 21), (1.0, 0)])
    assert sum(expected for expected, _ in pools) == 74.0
    assert sum(observed for _, observed in pools) == 75
    assert all(expected >= 25 for expected, _ in pools)


@pytest.mark.parametrize(
    "mechanism", [OneShot(k=2, epsilon=2.0), Peeling(k=2, epsilon=2.0)], ids=["oneshot", "peeling"]
)
def test_group_laws_match_the_laws_of_items(mechanism: Any) -> None:
    sizes, group_of = [1, 3, 2], [0, 1, 1, 1, 2, 2]
    merged: dict[tuple[int, ...], float] = {}
    for outcome, probability in mechanism.law(Scores.from_histogram([2, 1, 0], sizes)).items():
        counts = tuple(sum(group_of[item] == group for item in outcome) for group in range(3))
        merged[counts] = merged.get(counts, 0.0) + probability
    of_groups = oneshot_groups if isinstance(mechanism, OneShot) else peeling_groups
    law = of_groups(mechanism, [2, 1, 0], sizes)
    assert law == pytest.approx(merged, rel=1e-10)


def test_a_group_law_for_another_scale_is_rejected_with_huge_groups() -> None:
    mechanism = OneShot(k=2, epsilon=2.0)
    law = oneshot_groups(mechanism, HUGE_VALUES, HUGE_SIZES)
    wrong = oneshot_groups(OneShot(k=2, epsilon=2.1), HUGE_VALUES, HUGE_SIZES)
    assert check_groups(mechanism, HUGE_VALUES, HUGE_SIZES, law, draws=2000, seed=3).passed
    assert not check_groups(mechanism, HUGE_VALUES, HUGE_SIZES, wrong, draws=2000, seed=3).passed


@pytest.mark.parametrize("kind", [SwappedOrderStatistics, FavouredMembers], ids=["order statistics", "members"])
def test_group_checks_reject_twins_that_treat_ties_wrongly(kind: Any) -> None:
    twin = kind(k=2, epsilon=4.0, noise="gumbel")
    law = oneshot_groups(twin.sound, [1, 0], [3, 4])
    assert check_groups(twin.sound, [1, 0], [3, 4], law, draws=2000, seed=4).passed
    assert not check_groups(twin, [1, 0], [3, 4], law, draws=2000, seed=4).passed
