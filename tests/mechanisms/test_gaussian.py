"""The Gaussian mechanism: its calibration is proven and tight, its law keeps the claim, its draws follow the law."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import dpselect as dps
from dpselect.mechanisms.gaussian import Gaussian
from dpselect.privacy.calibration import gaussian_delta, unit_sigma
from dpselect.privacy.conversion import epsilon_of_zcdp, largest_rho
from dpselect.sampling.balls import working_precision
from dpselect.sampling.laws import group_law
from dpselect.sampling.noise import NORMAL
from dpselect.verify import Domain, check_privacy, check_sampler
from dpselect.verify.broken import Twin
from dpselect.verify.broken.noisy_scores import classical_sigma, forgotten_root
from dpselect.verify.domain import ScoreVector
from dpselect.verify.registry import reject
from dpselect.verify.sampler import check_groups

BOTH_WAYS = dps.Sensitivity(-1, 1)
TARGETS = [(1e-6, 1e-3), (0.1, 1e-9), (1.0, 1e-6), (1.0, 0.3), (10.0, 1e-5), (1e3, 1e-300), (1e6, 0.5), (1e-200, 1e-10)]


def test_sigma_is_proven_and_hardly_less_would_do() -> None:
    for epsilon, delta in TARGETS:
        sigma = unit_sigma(epsilon, delta)
        with working_precision(2000):
            assert gaussian_delta(sigma, epsilon) <= float(delta)
            assert gaussian_delta(sigma * (1 - 1e-11), epsilon) > float(delta)


def test_sigma_agrees_with_an_independent_program() -> None:
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    for epsilon, delta in [(0.1, 1e-9), (1.0, 1e-6), (1.0, 0.3), (10.0, 1e-5)]:
        loss = GaussianPrivacyLoss(unit_sigma(epsilon, delta))
        assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-6)


def test_sigma_is_below_the_classical_one_in_its_range_and_above_it_beyond() -> None:
    def classical(epsilon: float, delta: float) -> float:
        return math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    assert unit_sigma(0.5, 1e-6) < 0.85 * classical(0.5, 1e-6)
    assert unit_sigma(50.0, 1e-6) > 1.2 * classical(50.0, 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS[:5])
def test_rho_implies_the_target_and_hardly_more_would(epsilon: float, delta: float) -> None:
    """Compared with the same conversion solved for ρ, `(ε + (ln δ + ln(α−1) − α ln(1 − 1/α)) / (α − 1)) / α`.

    That is Canonne, Kamath and Steinke 2020, corollary 13; the largest over a fine grid of α is what can be had.
    """
    rho = largest_rho(epsilon, delta)
    assert epsilon_of_zcdp(Fraction(rho), Fraction(delta)) <= epsilon
    assert Fraction(rho) * 2 * Fraction(unit_sigma(epsilon, delta)) ** 2 <= 1
    excess = np.exp(np.arange(-60, 60, 1e-3))
    cost = math.log(delta) + np.log(excess) + (1 + excess) * np.log1p(1 / excess)
    best = float(np.max((epsilon + cost / excess) / (1 + excess)))
    assert rho == pytest.approx(best, rel=1e-5)


def test_impossible_targets_are_refused() -> None:
    for epsilon, delta in [(1.0, 0.0), (1.0, 1.0), (0.0, 0.1), (1.0, -0.1), (math.nan, 0.1)]:
        with pytest.raises(dps.InvalidInput):
            unit_sigma(epsilon, delta)
    with pytest.raises(dps.InvalidInput, match="delta"):
        unit_sigma(5e-324, 5e-324)


def gaussian(**change: object) -> Gaussian:
    return Gaussian(**{"k": 2, "epsilon": 1.0, "delta": 1e-3, "max_items_per_person": 3, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("items", [1, 2, 4, 10**6])
def test_noise_follows_the_root_of_the_number_of_items_and_rounds_up(items: int) -> None:
    for sensitivity in (dps.COUNTS, BOTH_WAYS, dps.Sensitivity(-0.3, 0.1)):
        mechanism = gaussian(max_items_per_person=items, sensitivity=sensitivity)
        reach = max(abs(Fraction(sensitivity.low)), abs(Fraction(sensitivity.high)))
        least = Fraction(unit_sigma(1.0, 1e-3)) ** 2 * items * reach**2
        assert least <= Fraction(mechanism.sigma) ** 2 <= least * (1 + Fraction(1, 10**15))


def test_noise_does_not_grow_with_k() -> None:
    assert gaussian(k=1).sigma == gaussian(k=100).sigma


def test_the_guarantee_is_approximate_and_carries_its_rho() -> None:
    guarantee = gaussian(epsilon=0.5, delta=1e-6).guarantee
    assert (guarantee.epsilon, guarantee.delta) == (0.5, 1e-6)
    assert guarantee.rho == pytest.approx(1 / (2 * unit_sigma(0.5, 1e-6) ** 2), rel=1e-12)


@dataclass(frozen=True)
class FewTouched(Domain):
    """A domain in which one person touches at most `touched` items."""

    touched: int = 1

    def moves(self) -> list[ScoreVector]:
        return [move for move in super().moves() if sum(change != 0 for change in move) <= self.touched]


@pytest.mark.parametrize(
    ("k", "domain", "touched"),
    [
        (1, Domain(2, 2, BOTH_WAYS), 2),
        (2, Domain(3, 2, dps.COUNTS), 3),
        (2, FewTouched(3, 2, dps.COUNTS, touched=1), 1),
        (1, FewTouched(4, 1, dps.COUNTS, touched=2), 2),
        (3, FewTouched(4, 1, dps.COUNTS, touched=2), 2),
        (2, FewTouched(3, 1, BOTH_WAYS, touched=2), 2),
    ],
    ids=["two", "all touched", "one touched", "k=1", "k=3", "both ways"],
)
def test_the_law_keeps_the_claim(k: int, domain: Domain, touched: int) -> None:
    for epsilon, delta in [(0.01, 0.3), (0.5, 0.1), (1.0, 0.01), (10.0, 0.1)]:
        mechanism = Gaussian(
            k=k, epsilon=epsilon, delta=delta, max_items_per_person=touched, sensitivity=domain.sensitivity
        )
        check = check_privacy(mechanism, domain)
        assert check.passed
        assert check.faults == ()


def test_the_claim_is_nearly_reached() -> None:
    """Two items that move against each other from −1 to 1: what is seen is the noise along the move, all of it."""
    mechanism = Gaussian(k=1, epsilon=0.01, delta=0.3, max_items_per_person=2, sensitivity=BOTH_WAYS)
    assert 0.2999 < check_privacy(mechanism, Domain(2, 2, BOTH_WAYS)).divergence <= 0.3


def test_a_person_who_touches_more_items_than_said_breaks_the_claim() -> None:
    mechanism = Gaussian(k=1, epsilon=0.01, delta=0.3, max_items_per_person=1, sensitivity=BOTH_WAYS)
    assert not check_privacy(mechanism, Domain(2, 2, BOTH_WAYS)).passed
    assert check_privacy(mechanism, FewTouched(2, 2, BOTH_WAYS, touched=1)).passed


@pytest.mark.parametrize(
    "broken",
    [
        forgotten_root(k=1, epsilon=0.5, delta=0.1),
        forgotten_root(k=2, epsilon=0.01, delta=0.3),
        classical_sigma(k=1, epsilon=10.0, delta=0.1),
        classical_sigma(k=1, epsilon=20.0, delta=0.1),
    ],
    ids=["one item, k=1", "one item, k=2", "classical, 10", "classical, 20"],
)
def test_broken_twins_are_rejected_and_the_sound_one_is_not(broken: Twin) -> None:
    rejection = reject(broken)
    assert not rejection.of_broken.passed
    assert rejection.of_sound.passed
    assert rejection.of_broken.faults == ()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "scores",
    [pytest.param([2, 1, 0, 1, 1], marks=pytest.mark.long), dps.Scores.from_histogram([2, 1, 0], [1, 3, 2])],
    ids=["list", "ties"],
)
def test_draws_follow_the_law(scores: object) -> None:
    """A sound sampler fails with a probability of at most 1e-6 (verify.sampler)."""
    mechanism = gaussian(epsilon=2.0, delta=0.1)
    assert check_sampler(mechanism, scores, draws=1000).passed


def test_a_wrong_sigma_shows_in_the_draws() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Narrow(Gaussian):
        def law(self, scores: object) -> dict[object, float]:
            return replace(self, max_items_per_person=1).drawn(scores)

        def drawn(self, scores: object) -> dict[object, float]:
            return Gaussian.law(self, scores)

    mechanism = Narrow(k=2, epsilon=2.0, delta=0.1, max_items_per_person=9)
    assert not check_sampler(mechanism, [3, 1, 0, 1, 1], draws=3000).passed


@pytest.mark.slow
def test_draws_from_groups_beyond_memory_follow_the_law() -> None:
    values, sizes = [40, 21, 0], [3, 10**9, 10**18]
    mechanism = gaussian(epsilon=2.0, delta=0.1)
    law = group_law([value / mechanism.sigma for value in values], sizes, mechanism.k, NORMAL)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-9)
    assert check_groups(mechanism, values, sizes, law, draws=1000).passed


BAD_PARAMETERS: list[tuple[dict[str, object], str]] = [
    ({"delta": 0.0}, "delta"),
    ({"delta": 1.0}, "delta"),
    ({"delta": "1"}, "delta"),
    ({"max_items_per_person": None}, "max_items_per_person"),
    ({"max_items_per_person": 0}, "max_items_per_person"),
    ({"max_items_per_person": 1.5}, "max_items_per_person"),
    ({"sensitivity": dps.Sensitivity(-1e248, 1e248), "max_items_per_person": 10**8}, "sensitivity"),
    ({"epsilon": 0.0}, "epsilon"),
]


def test_bad_parameters_are_refused() -> None:
    for change, argument in BAD_PARAMETERS:
        with pytest.raises(dps.InvalidInput) as caught:
            gaussian(**change)
        assert caught.value.argument == argument
