"""P[the right order]: rounds of peeling, and nested integrals of noisy scores."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from forecast_brute import expected, found
from scipy.special import ndtr

import dpselect as dps
from dpselect.forecast import rounds, smallest_epsilon
from dpselect.sampling import NOISES


def gaussian(k: int, epsilon: float) -> dps.Gaussian:
    return dps.Gaussian(k=k, epsilon=epsilon, delta=1e-6, max_items_per_person=1)


def oneshot(k: int, epsilon: float, noise: str = "exponential") -> dps.OneShot:
    return dps.OneShot(k=k, epsilon=epsilon, noise=noise, ordered=True)


def in_order(scores: object, mechanism: dps.Mechanism) -> float:
    result = rounds.noisy_in_order(dps.Scores.of(scores), mechanism)
    assert result is not None
    return result[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scores", "k"),
    [([9, 7, 4, 4, 1], 3), ([5, 5, 5, 2, 2, 0], 4), ([3, 3, 3, 3], 2), ([8, 8, 1, 1, 1], 3), ([400, 3, 2, 1], 4)],
    ids=str,
)
def test_the_order_of_noisy_scores_is_that_of_the_law(scores: list[float], k: int) -> None:
    for epsilon in (0.05, 1.0, 4.0):
        for mechanism in (gaussian(k, epsilon), *(oneshot(k, 2 * epsilon, noise) for noise in NOISES)):
            figures, law = found(mechanism, scores), expected(mechanism, scores)
            assert figures["exact"] == pytest.approx(law["exact"], rel=1e-8)
            assert figures["inexact"] == pytest.approx(law["inexact"], rel=1e-8, abs=1e-12)
            assert figures["correct"] == pytest.approx(law["correct"], rel=1e-6)


@pytest.mark.slow
def test_with_gumbel_noise_oneshot_and_peeling_are_one_mechanism() -> None:
    """The integrals of one-shot are compared with the product of rounds, down to rare orders and rare mistakes."""
    scores = [round(5000 / rank**0.9) for rank in range(1, 3000)]
    for k, epsilon in ((10, 0.3), (30, 3.0), (200, 3e4), (300, 2e5)):
        listed, rounds_of = oneshot(k, epsilon, "gumbel"), dps.Peeling(k=k, epsilon=epsilon, noise="gumbel")
        for name in ("exact", "inexact", "f1"):
            assert found(listed, scores)[name] == pytest.approx(found(rounds_of, scores)[name], rel=1e-6)
    assert smallest_epsilon(scores, listed, 1 - 1e-9) == pytest.approx(smallest_epsilon(scores, rounds_of, 1 - 1e-9))


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 9, 300, 10**6, 10**12])
def test_ties_at_the_top_are_in_order_anyway(size: int) -> None:
    table = dps.Scores.from_histogram([1000, 0], [size, 5])
    for k in {min(size, k) for k in (1, 8, 9, 100, 10**4)}:
        assert in_order(table, gaussian(k, 3.0)) == pytest.approx(1.0, rel=1e-8)
        assert in_order(table, oneshot(k, 3.0 * k)) == pytest.approx(1.0, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "k"), [(30, 12), (30, 30), (300, 12), (50, 25)])
@pytest.mark.parametrize("gap", [2.0, 12.0])
def test_tied_items_taken_at_once_are_those_taken_one_by_one(
    size: int, k: int, gap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = np.concatenate([[2 * gap, gap], np.zeros(size), [-gap, -gap]])
    mechanisms = {gaussian(k + 2, 1.0): 1e-6, oneshot(k + 2, k / 4): 1e-6, oneshot(k + 2, k / 4, "laplace"): 1e-4}
    monkeypatch.setattr(rounds, "_STEEPEST", 3.0)
    together = [in_order(scores, mechanism) for mechanism in mechanisms]
    monkeypatch.setattr(rounds, "_STEEPEST", 20.0)
    for value, (mechanism, tolerance) in zip(together, mechanisms.items(), strict=True):
        assert in_order(scores, mechanism) == pytest.approx(value, rel=tolerance)


@pytest.mark.parametrize("k", [1, 4, 100])
def test_far_apart_each_pair_of_neighbours_decides_for_itself(k: int) -> None:
    mechanism = gaussian(k, 1.0)
    sigma = float(mechanism.sigma)
    scores = -7.0 * sigma * np.arange(k + 1)
    wrong = k * float(ndtr(-7.0 / math.sqrt(2)))
    assert found(mechanism, scores)["inexact"] == pytest.approx(wrong, rel=1e-3)


def test_finer_panels_change_nothing_and_coarser_ones_would(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.concatenate([np.linspace(40, 0, 12), np.full(40, -2.0), np.linspace(-3, -60, 50)])
    for mechanism in (gaussian(30, 1.5), oneshot(30, 6.0, "logistic")):
        monkeypatch.setattr(rounds, "PANELS", 400)
        whole = in_order(scores, mechanism)
        assert 1e-20 < whole < 1
        monkeypatch.setattr(rounds, "PANELS", 800)
        assert in_order(scores, mechanism) == pytest.approx(whole, rel=1e-7)
        monkeypatch.setattr(rounds, "PANELS", 5)
        assert in_order(scores, mechanism) != pytest.approx(whole, rel=1e-5)


def test_very_long_lists_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MOST_IN_ORDER", 2)
    outlook = dps.forecast.forecast([9, 7, 5, 3, 1], gaussian(3, 4.0), draws=50)
    assert outlook.exact is not None
    assert not outlook.exact.exact
    assert outlook.inexact is not None
    assert outlook.inexact.value == 1 - outlook.exact.value
    with pytest.raises(dps.InvalidInput, match="k must be smaller"):
        dps.forecast.success([9, 7, 5, 3, 1], gaussian(3, 4.0)).chance(1.0)


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
def test_peeling_is_a_product_over_rounds(noise: str) -> None:
    """Each round is a choice of one item among those left."""
    scores = [round(900 / rank**0.8) for rank in range(1, 61)]
    mechanism = dps.Peeling(k=10, epsilon=1.5, noise=noise)
    one = dps.OneShot(k=1, epsilon=0.15, noise=noise)
    wanted = math.prod(found(one, scores[taken:])["exact"] for taken in range(10))
    assert found(mechanism, scores)["exact"] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 40.0])
def test_peeling_with_ties_counts_any_of_them(epsilon: float) -> None:
    """Of 10^15 tied items any may come first: with Gumbel noise the best group keeps N of N + W."""
    table = dps.Scores.from_histogram([60, 0], [2, 10**15])
    weight = 1e15 * math.exp(-60 * epsilon / 2)
    figures = found(dps.Peeling(k=2, epsilon=epsilon, noise="gumbel"), table)
    wrong = 1 - 2 / (2 + weight) * 1 / (1 + weight) if weight > 1e-9 else 1.5 * weight
    assert figures["inexact"] == pytest.approx(wrong, rel=1e-7, abs=0)


def test_an_order_is_never_likelier_than_its_set() -> None:
    scores = [round(300 / rank) for rank in range(1, 40)]
    for epsilon in (0.1, 1.0, 10.0):
        for noise in ("exponential", "gumbel"):
            listed = found(dps.Peeling(k=5, epsilon=epsilon, noise=noise), scores)["exact"]
            assert listed <= found(dps.OneShot(k=5, epsilon=epsilon, noise=noise), scores)["exact"] * 1.2


def test_the_order_grows_likelier_with_epsilon() -> None:
    scores = [90, 70, 52, 40, 30, 8, 2]
    for kind in (dps.Joint, dps.Peeling):
        found_at = [found(kind(k=4, epsilon=epsilon), scores)["exact"] for epsilon in (0.1, 0.5, 2.0)]
        assert all(less < more for less, more in pairwise(found_at))
