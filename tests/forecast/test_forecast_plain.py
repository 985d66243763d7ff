"""The expectations for noisy scores, and the errors of their order, are those of a plain slow computation."""

from __future__ import annotations

import numpy as np
import pytest

import dpselect as dps
from dpselect.forecast import misplaced, misplaced_at
from dpselect.forecast.figures import ExactFigures, exact_figures

RANDOM = np.random.default_rng(11)
DATA = {
    "steps": np.array([40, 37, 36, 30, 29, 21, 20, 19, 12, 11, 10, 9, 4, 3, 2, 1, 0], dtype=float),
    "tied": np.array([50, 50, 44, 30, 30, 30, 30, 30, 18, 18, 17, 5, 5, 5, 5, 0], dtype=float),
    "random": np.round(RANDOM.random(24) * 60, 2),
    "near": 100 + np.round(RANDOM.random(20), 3),
}


def plain(mechanism: dps.Mechanism, scores: np.ndarray) -> dict[str, float]:
    """Return the figures by even steps in z, and at each z the law of the number of items above it, item by item.

    Items are in order of their scores; tied ones are told apart by place, which these figures do not depend on.
    """
    x, k = np.sort(scores)[::-1], mechanism.k
    noisy = ExactFigures(dps.Scores.of(scores), mechanism)._noisy
    assert noisy is not None
    a = np.repeat(noisy.locations, noisy.sizes.astype(int))
    z = np.linspace(a[-1] - 45, a[0] + 45, 6001)
    step = z[1] - z[0]
    noise = noisy.noise
    with np.errstate(over="ignore", under="ignore"):
        below, above, at_z = (part(z - a[:, None]) for part in (noise.cdf, noise.survival, noise.density))
    size = len(x)
    ranks = np.zeros((size, size))
    for item in range(size):
        law = np.zeros((size, len(z)))
        law[0] = 1.0
        for other in range(size):
            if other != item:
                law[1:] = law[1:] * below[other] + law[:-1] * above[other]
                law[0] *= below[other]
        ranks[item] = (law * at_z[item]).sum(axis=1) * step
    assert ranks.sum(axis=0) == pytest.approx(np.ones(size), abs=1e-9)
    chosen = ranks[:, :k].sum(axis=1)
    total = sum(ranks[item, rank] * abs(x[rank] - x[item]) for item in range(size) for rank in range(k))
    lost = x[:k].sum() - chosen @ x
    return {"total_error": total if mechanism.ordered else lost, "score_ratio": 1 - lost / x[:k].sum()}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("k", [1, 4, 7])
@pytest.mark.parametrize("epsilon", [0.05, 0.6, 4.0, 40.0])
def test_gumbel_peeling(name: str, k: int, epsilon: float) -> None:
    mechanism = dps.Peeling(k=k, epsilon=epsilon, noise="gumbel")
    found, wanted = exact_figures(dps.Scores.of(DATA[name]), mechanism), plain(mechanism, DATA[name])
    assert found["total_error"] == pytest.approx(wanted["total_error"], rel=1e-8, abs=1e-9)
    assert found["score_ratio"] == pytest.approx(wanted["score_ratio"], abs=1e-9)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_gaussian(name: str, k: int, epsilon: float) -> None:
    mechanism = dps.Gaussian(k=k, epsilon=epsilon, delta=1e-5, max_items_per_person=2)
    found, wanted = exact_figures(dps.Scores.of(DATA[name]), mechanism), plain(mechanism, DATA[name])
    assert found["total_error"] == pytest.approx(wanted["total_error"], rel=1e-8, abs=1e-9)
    assert found["score_ratio"] == pytest.approx(wanted["score_ratio"], abs=1e-9)


@pytest.mark.parametrize("noise", ["gumbel", "logistic"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_one_shot(noise: str, epsilon: float) -> None:
    for scores in DATA.values():
        mechanism = dps.OneShot(k=6, epsilon=epsilon, noise=noise)
        found, wanted = exact_figures(dps.Scores.of(scores), mechanism), plain(mechanism, scores)
        assert found["total_error"] == pytest.approx(wanted["total_error"], rel=1e-8, abs=1e-9)


def test_order_errors_too_rare_to_see_keep_their_digits() -> None:
    """Two items that swap once in e^60: what is misplaced is twice their gap, times that."""
    mechanism = dps.Peeling(k=2, epsilon=2.0, noise="gumbel")
    scores = [160.0, 100.0, 0.0]
    swap = float(np.exp(-60.0))
    found = exact_figures(dps.Scores.of(scores), mechanism)["total_error"]
    assert found == pytest.approx(2 * 60.0 * swap, rel=1e-8)


def test_windows_hold_all_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.round(4000 / np.arange(1, 401) ** 0.6)
    for mechanism in (
        dps.Peeling(k=20, epsilon=2.0, noise="gumbel"),
        dps.Gaussian(k=20, epsilon=0.5, delta=1e-6, max_items_per_person=5),
    ):
        table = dps.Scores.of(counts)
        found = exact_figures(table, mechanism)["total_error"]
        with monkeypatch.context() as wider:
            for name, value in (("_NEVER", 60.0), ("_PANEL", 1.3), ("_DEPTH", 36.0), ("_REACH", 60.0)):
                wider.setattr(misplaced, name, value)
            wider.setattr(misplaced_at, "_NEAR", 20.0)
            assert exact_figures(table, mechanism)["total_error"] == pytest.approx(found, rel=2e-9)


def test_the_plain_computation_notices_a_wrong_order() -> None:
    mechanism = dps.Peeling(k=4, epsilon=4.0, noise="gumbel")
    as_set = exact_figures(dps.Scores.of(DATA["steps"]), dps.OneShot(k=4, epsilon=4.0, noise="gumbel"))["total_error"]
    assert as_set < 0.9 * plain(mechanism, DATA["steps"])["total_error"]
