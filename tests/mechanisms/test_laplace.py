"""The Laplace mechanism: its scale, its pure guarantee, and draws that follow the law, with and without values."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import dpselect as dps
from dpselect.mechanisms import NoisyVector
from dpselect.sampling import SeededBits
from dpselect.verify import check_groups, check_sampler
from dpselect.verify.broken.noisy_scores import VECTORS
from dpselect.verify.included import GaussianShown, LaplaceShown
from dpselect.verify.privacy import Check
from dpselect.verify.registry import reject
from dpselect.verify.sampler import vector_groups


def laplace(**changes: object) -> dps.Laplace:
    return dps.Laplace(**{"k": 2, "epsilon": 1.0, "max_items_per_person": 3, **changes})  # type: ignore[arg-type]


def test_the_scale_follows_the_items_and_the_reach_of_a_person_and_neither_k_nor_the_spread() -> None:
    for k in (1, 2, 50):
        assert laplace(k=k).rate() == Fraction(1, 3)
    assert laplace(sensitivity=dps.Sensitivity(2, 3)).scale == 9.0
    assert laplace(sensitivity=dps.Sensitivity(-5, 1), epsilon=0.5).scale == 30.0
    exact = laplace(epsilon=0.3)
    assert exact.rate() == Fraction(0.3) / 3
    assert Fraction(exact.scale) >= 1 / exact.rate()


def test_the_guarantee_is_pure_and_the_answer_ordered() -> None:
    assert laplace().guarantee == dps.Guarantee(epsilon=1.0)
    assert laplace().ordered


def test_with_k_items_per_person_it_is_the_order_of_one_shot_laplace_noise() -> None:
    scores = [3, 1, 1, 0]
    sets: dict[frozenset[int], float] = {}
    for sequence, probability in laplace(max_items_per_person=2).law(scores).items():
        sets[frozenset(sequence)] = sets.get(frozenset(sequence), 0.0) + probability
    assert sets == pytest.approx(dps.OneShot(k=2, epsilon=1.0, noise="laplace").law(scores), rel=1e-9)


def test_broken_twins_lose_what_they_must() -> None:
    """The spread in place of the reach at Sensitivity(2, 3) loses 3ε."""
    for twin, loss in zip(VECTORS, [3.0, 1.6635, math.inf, math.inf], strict=True):
        rejection = reject(twin)
        assert rejection.passed
        assert isinstance(rejection.of_broken, Check)
        assert rejection.of_broken.worst_loss == pytest.approx(loss, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scores", [[2, 1, 0, 1, 1], dps.Scores.from_histogram([2, 1, 0], [1, 3, 2])], ids=["list", "ties"]
)
def test_draws_follow_the_law(scores: object) -> None:
    """A sound sampler fails with a probability of at most 1e-6 (verify.sampler)."""
    assert check_sampler(laplace(epsilon=2.0), scores, draws=1000).passed


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        LaplaceShown(k=2, epsilon=2.0, max_items_per_person=2),
        GaussianShown(k=2, epsilon=2.0, delta=0.1, max_items_per_person=2),
    ],
    ids=["laplace", "gaussian"],
)
@pytest.mark.parametrize("scores", [[2, 1.5, 1], dps.Scores.from_histogram([2, 1], [1, 2])], ids=["list", "ties"])
def test_draws_with_values_follow_the_law(mechanism: NoisyVector, scores: object) -> None:
    assert check_sampler(mechanism, scores, draws=2000).passed


@pytest.mark.slow
def test_draws_from_groups_beyond_memory_follow_the_law() -> None:
    values, sizes = [40, 21, 0], [3, 10**9, 10**18]
    mechanism = laplace(epsilon=4.0)
    assert check_groups(mechanism, values, sizes, vector_groups(mechanism, values, sizes), draws=1000).passed


@pytest.mark.parametrize(
    "mechanism",
    [laplace(k=5), dps.Gaussian(k=5, epsilon=1.0, delta=1e-6, max_items_per_person=3)],
    ids=["laplace", "gaussian"],
)
def test_the_answer_with_values_is_the_answer_without(mechanism: NoisyVector) -> None:
    for scores in ([90, 80, 70, 70, 70, 0.5], dps.Scores.from_histogram([(50, 2), (9, 10**9), (0, 10**18)])):
        table = dps.Scores.of(scores)
        for seed in range(20):
            members, steps = mechanism.draw_rounded(table, Fraction(1), SeededBits(seed))
            assert members.positions().tolist() == mechanism.select(table, seed=seed).tolist()
            assert steps == sorted(steps, reverse=True)


def test_the_tail_is_exceeded_with_the_stated_probability() -> None:
    for failure in (Fraction(1, 40), Fraction(1, 10**20)):
        for mechanism in (laplace(), dps.Gaussian(k=1, epsilon=1.0, delta=1e-6, max_items_per_person=3)):
            z = float(mechanism.tail(failure) * mechanism.rate())
            exceeded = float(mechanism.distribution.survival(z))  # type: ignore[arg-type]
            assert exceeded <= failure * (1 + Fraction(1, 10**9))
            assert exceeded == pytest.approx(float(failure), rel=1e-9)


BAD_PARAMETERS: list[tuple[dict[str, object], str]] = [
    ({"max_items_per_person": None}, "max_items_per_person"),
    ({"max_items_per_person": 0}, "max_items_per_person"),
    ({"max_items_per_person": 1.5}, "max_items_per_person"),
    ({"sensitivity": dps.Sensitivity(-1e248, 1e248), "max_items_per_person": 10**8}, "sensitivity"),
    ({"epsilon": 0.0}, "epsilon"),
]


def test_bad_parameters_are_refused() -> None:
    for change, argument in BAD_PARAMETERS:
        with pytest.raises(dps.InvalidInput) as caught:
            laplace(**change)
        assert caught.value.argument == argument
