"""Sampler checks: they accept what follows the law, and reject what departs from it a little.

Seeds are fixed. A sound sampler would fail one of these checks with probability at most 1e-6 (THRESHOLD).
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
from dpselect.verify.broken import Altered
from dpselect.verify.broken.noisy_scores import DRAWN, first_members, noisy_draw, scaled_by, smallest_noises
from dpselect.verify.registry import NAMES
from dpselect.verify.sampler import THRESHOLD, _pooled, oneshot_groups, peeling_groups
from dpselect.verify.subjects import HUGE_SIZES, HUGE_VALUES, RACES, UNDER_TEST


def failures(checks: list[Callable[[], SamplerCheck]]) -> list[SamplerCheck]:
    return [result for result in (check() for check in checks) if not result.passed]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_sampler_follows_its_law(name: str) -> None:
    assert failures(sampler_checks(name, quick=True)) == []


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_every_sampler_follows_its_law_over_more_draws(name: str) -> None:
    assert failures(sampler_checks(name)) == []


CLOSELY = [
    *[(OneShot(k=2, epsilon=4.0, noise=noise), [2, 1, 0, 1, 1], [2, 1, 0], 10_000) for noise in NOISES],
    *[(Peeling(k=3, epsilon=4.0, noise=noise), [2, 1, 0, 1, 1], [2, 1, 0], 10_000) for noise in RACES],
    *[(Joint(k=3, epsilon=2.0, noise=noise), [4, 2, 3, 0, 0], [3, 1, 0], 2000) for noise in RACES],
    *[
        (replace(variant, k=3, epsilon=1.5), [4, 2, 2, 0, 1], [3, 1, 0], 1000)
        for variant in UNDER_TEST["canonical"].variants
    ],
]


@pytest.mark.long
@pytest.mark.parametrize(("mechanism", "listed", "values", "draws"), CLOSELY, ids=range(len(CLOSELY)))
def test_draws_follow_the_law_closely(mechanism: Mechanism, listed: Any, values: Any, draws: int) -> None:
    for scores in (listed, Scores.from_histogram(values, [1, 3, 2])):
        assert check_sampler(mechanism, scores, draws=draws, seed=11).passed


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["exponential", "logistic"])
def test_a_slightly_wrong_scale_is_rejected(noise: str) -> None:
    sound = OneShot(k=2, epsilon=4.0, noise=noise)
    twin = Altered(sound=sound, wrong_draw=noisy_draw(sound, scaled_by(1.2)))
    result = check_sampler(twin, [2, 1, 0, 1, 1], draws=10_000, seed=1)
    assert not result.passed
    assert result.p_value < THRESHOLD / 10


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_group_law_for_another_scale_is_rejected_with_huge_groups() -> None:
    mechanism = OneShot(k=2, epsilon=2.0)
    law = oneshot_groups(mechanism, HUGE_VALUES, HUGE_SIZES)
    wrong = oneshot_groups(OneShot(k=2, epsilon=2.1), HUGE_VALUES, HUGE_SIZES)
    assert check_groups(mechanism, HUGE_VALUES, HUGE_SIZES, law, draws=2000, seed=3).passed
    assert not check_groups(mechanism, HUGE_VALUES, HUGE_SIZES, wrong, draws=2000, seed=3).passed


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [smallest_noises, first_members], ids=["order statistics", "members"])
def test_group_checks_reject_twins_that_treat_ties_wrongly(noisy: Any) -> None:
    twin = Altered(sound=DRAWN, wrong_draw=noisy_draw(DRAWN, noisy))
    law = oneshot_groups(DRAWN, [1, 0], [3, 4])
    assert check_groups(DRAWN, [1, 0], [3, 4], law, draws=2000, seed=4).passed
    assert not check_groups(twin, [1, 0], [3, 4], law, draws=2000, seed=4).passed
