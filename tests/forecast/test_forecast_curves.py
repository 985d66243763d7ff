"""P[exact] against ε, and the ε that is needed."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from forecast_brute import DATA, expected

import dpselect as dps
from dpselect.forecast import gap_limit, proven_limit, smallest_epsilon, success, swap_yardstick

MECHANISMS: dict[str, dps.Mechanism] = {
    "canonical": dps.Canonical(k=2, epsilon=1.0),
    "published": dps.Canonical(k=2, epsilon=1.0, noise="gumbel", margin=False),
    "joint": dps.Joint(k=2, epsilon=1.0),
    "logistic": dps.OneShot(k=2, epsilon=1.0, noise="logistic"),
    "with-delta": dps.OneShot(k=2, epsilon=1.0, noise="gumbel", delta=0.01),
    "in-order": dps.OneShot(k=2, epsilon=1.0, ordered=True),
    "laplace-in-order": dps.OneShot(k=2, epsilon=1.0, noise="laplace", ordered=True),
    "peeling": dps.Peeling(k=2, epsilon=1.0),
    "peeling-laplace": dps.Peeling(k=2, epsilon=1.0, noise="laplace"),
    "peeling-gumbel": dps.Peeling(k=2, epsilon=1.0, noise="gumbel"),
    "gaussian": dps.Gaussian(k=2, epsilon=1.0, delta=0.01, max_items_per_person=2),
    "laplace": dps.Laplace(k=2, epsilon=1.0, max_items_per_person=2),
}
COUNTS = [round(4000 / rank**0.6) for rank in range(1, 301)]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_curve_is_the_law_at_every_epsilon_and_rises(name: str) -> None:
    for scores in DATA[:4:3]:
        curve, epsilons = success(np.array(scores), MECHANISMS[name]), [0.1, 0.7, 3.0, 20.0]
        found = curve.chances(epsilons)
        assert found == sorted(found)
        assert found[-1] <= curve.limit + 1e-12
        for epsilon, probability in zip(epsilons, found, strict=True):
            law = expected(replace(MECHANISMS[name], epsilon=epsilon), scores)
            assert probability == pytest.approx(law["exact"], rel=1e-7)
            right, wrong = curve.probabilities(epsilon)
            assert right + wrong == pytest.approx(1.0, rel=1e-8)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_smallest_epsilon_gives_that_accuracy_and_less_does_not(name: str) -> None:
    scores = [9.0, 7.0, 4.0, 4.0, 1.0, 0.0]
    for accuracy in (0.3, 0.9, 0.999):
        epsilon = smallest_epsilon(scores, MECHANISMS[name], accuracy)
        at, below = (
            expected(replace(MECHANISMS[name], epsilon=value), scores)["exact"]
            for value in (epsilon * (1 + 1e-7), epsilon * (1 - 1e-4))
        )
        assert below < accuracy <= at
        assert at == pytest.approx(accuracy, abs=1e-6)


@pytest.mark.slow
def test_the_table_of_the_manual() -> None:
    """Mathematics, section 3, on data that anyone can generate: Zipf's law with s = 0.04."""
    shares = np.arange(1, 10_001) ** -0.04
    counts = np.round(1.5e8 * shares / shares.sum()).astype(np.int64)
    published = dps.Canonical(k=1000, epsilon=1.0, margin=False, noise="gumbel")
    assert smallest_epsilon(counts, replace(published, margin=True), 0.99) == pytest.approx(5.55, abs=0.005)
    assert smallest_epsilon(counts, published, 0.99) == pytest.approx(10.6, abs=0.05)


def test_no_pure_mechanism_undercuts_the_limit() -> None:
    for k, accuracy in itertools.product((1, 20), (0.6, 0.99)):
        for kind in (dps.Canonical, dps.OneShot, dps.Joint, dps.Peeling):
            mechanism = kind(k=k, epsilon=1.0)
            gap = gap_limit(COUNTS, mechanism, accuracy)
            limit = proven_limit(COUNTS, k, accuracy, ordered=mechanism.ordered)
            assert 0 < gap * (1 - 1e-8) <= limit <= smallest_epsilon(COUNTS, mechanism, accuracy)
            assert gap <= swap_yardstick(COUNTS, mechanism, accuracy) * (1 + 1e-9)


def test_two_items_reach_the_limit_exactly() -> None:
    """Permute-and-flip on two items fails with ½ e^{−ε g}, which is the limit itself."""
    mechanism = dps.Canonical(k=1, epsilon=1.0, gamma=1.0)
    wanted = gap_limit([50, 0], mechanism, 0.99)
    assert wanted == pytest.approx(math.log(50) / 50)
    assert smallest_epsilon([50, 0], mechanism, 0.99) == pytest.approx(wanted, rel=1e-9)
    assert swap_yardstick([50, 0], mechanism, 0.99) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("kind", [dps.OneShot, dps.Peeling, dps.Canonical])
def test_accuracies_next_to_one_are_told_apart(kind: Any) -> None:
    """Two items under permute-and-flip: `ε = ln(1 / (2 (1 − p)))`."""
    for accuracy in (1 - 1e-6, 1 - 1e-9, 1 - 1e-12):
        found = smallest_epsilon([1, 0], kind(k=1, epsilon=1.0), accuracy)
        assert found == pytest.approx(-math.log(2 * (1 - accuracy)), rel=1e-7)


def test_where_any_epsilon_or_none_will_do() -> None:
    assert smallest_epsilon([3, 2, 1], dps.Canonical(k=3, epsilon=1.0), 0.99) == 0
    assert smallest_epsilon([2, 2, 2], dps.OneShot(k=1, epsilon=1.0), 0.99) == 0
    assert smallest_epsilon([5, 0], dps.Canonical(k=1, epsilon=1.0), 0.4) == 0
    # γ = 1 only sees the worst item held, so that {3, 3} is as good to it as {5, 3}.
    assert smallest_epsilon([5, 3, 3], dps.Canonical(k=2, epsilon=1.0, gamma=1.0), 0.7) == math.inf
    assert smallest_epsilon([5, 3, 3], dps.Canonical(k=2, epsilon=1.0), 0.7) < 2


@pytest.mark.parametrize("kind", [dps.Canonical, dps.Joint])
def test_epsilons_may_be_asked_for_in_any_order(kind: Any) -> None:
    """Classes are kept for the next ε, and listed again for a smaller one."""
    curve, epsilons = success(COUNTS, kind(k=20, epsilon=1.0)), np.geomspace(0.003, 3.0, 12).tolist()
    falling = [curve.chance(epsilon) for epsilon in epsilons[::-1]][::-1]
    assert success(COUNTS, kind(k=20, epsilon=1.0)).chances(epsilons) == pytest.approx(falling, rel=1e-9)
    alone = [dps.forecast.forecast(COUNTS, kind(k=20, epsilon=epsilon), draws=0).exact for epsilon in epsilons]
    assert [figure and figure.value for figure in alone] == pytest.approx(falling, rel=1e-9)


@pytest.mark.parametrize("accuracy", [0.0, 1.0, -0.5, math.nan, "much"])
def test_an_accuracy_that_is_no_probability_is_refused(accuracy: Any) -> None:
    for call in (smallest_epsilon, gap_limit, swap_yardstick):
        with pytest.raises(dps.InvalidInput, match="accuracy"):
            call([3, 2, 1], dps.Canonical(k=1, epsilon=1.0), accuracy)


def test_a_mechanism_without_an_exact_curve_is_refused() -> None:
    with pytest.raises(dps.InvalidInput, match="to have an exact curve"):
        success([3, 2, 1], dps.Gamma(k=1, epsilon=1.0))
    with pytest.raises(dps.InvalidInput, match=r"^k"):
        success([3, 2, 1], dps.Canonical(k=4, epsilon=1.0))


@pytest.mark.parametrize(("accuracy", "needed"), [(0.2, 0.0), (0.5, 0.0), (0.75, math.log(2) / 7)])
def test_the_yardstick_is_0_where_any_epsilon_will_do(accuracy: float, needed: float) -> None:
    found = swap_yardstick([10, 3], dps.Canonical(k=1, epsilon=1.0), accuracy)
    assert found == pytest.approx(needed, abs=1e-9)


def test_more_classes_than_fit_are_refused_by_name() -> None:
    scores = dps.Scores.of(np.arange(200_000) / 7.0)
    with pytest.raises(dps.InvalidInput, match="too many distinct ones"):
        success(scores, dps.Canonical(k=100, epsilon=1.0)).chance(1e-6)
    assert success(scores, dps.Canonical(k=100, epsilon=1.0), smallest=900.0).chance(900.0) > 0.99
