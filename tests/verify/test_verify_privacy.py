"""The exact check: what it measures, that real mechanisms pass, and that faulty laws do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from dpselect.mechanisms import Joint, Mechanism, OneShot, Peeling
from dpselect.privacy import COUNTS, Guarantee, Sensitivity
from dpselect.sampling.noise import NOISES
from dpselect.verify import Check, Domain, check_privacy, privacy_checks
from dpselect.verify.broken import Altered
from dpselect.verify.broken.noisy_scores import noisy_order
from dpselect.verify.registry import NAMES
from dpselect.verify.subjects import SETTINGS, UNDER_TEST, UNKNOWN_UNDER_TEST


@dataclass(frozen=True)
class Tabulated:
    """A mechanism for one or two items that is given by its law."""

    table: Callable[[list[float]], dict[Any, float]]
    epsilon: float = 1.0
    delta: float = 0.0
    ordered: bool = False
    k: int = 1
    sensitivity: Sensitivity = COUNTS

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(epsilon=self.epsilon, delta=self.delta)

    def law(self, scores: Any) -> dict[Any, float]:
        return self.table(list(scores))

    def select(self, scores: Any, *, seed: int | None = None) -> Any:
        raise AssertionError("a privacy check must not draw")


ONE, TWO = frozenset({0}), frozenset({1})


def leaning(scores: list[float], probability: float) -> dict[Any, float]:
    """Answer evenly when the scores are tied, and else the higher one with the given probability."""
    if scores[0] == scores[1]:
        return {ONE: 0.5, TWO: 0.5}
    first = scores[0] > scores[1]
    return {ONE: probability if first else 1 - probability, TWO: 1 - probability if first else probability}


def checked(table: Callable[[list[float]], dict[Any, float]], **claim: Any) -> Check:
    return check_privacy(Tabulated(table, **claim), Domain(2, 1))


def failures(checks: list[Callable[[], Check]]) -> list[Check]:
    return [result for result in (check() for check in checks) if result.faults or not result.passed]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_keeps_its_guarantee(name: str) -> None:
    assert failures(privacy_checks(name, quick=True)) == []


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_keeps_its_guarantee_in_every_setting(name: str) -> None:
    assert failures(privacy_checks(name)) == []


def test_every_mechanism_is_under_test() -> None:
    from dpselect.mechanisms import FOR_UNKNOWN_DOMAINS, MECHANISMS

    assert set(UNDER_TEST) == {*MECHANISMS, "lipschitz"}, "lipschitz needs a noise object, so that it has no name"
    assert set(UNKNOWN_UNDER_TEST) == set(FOR_UNKNOWN_DOMAINS)


def test_every_gamma_noise_and_margin_of_canonical_is_under_test_for_both_kinds_of_sensitivity() -> None:
    checked = {
        (check.args[0].gamma, check.args[0].noise, check.args[0].margin, check.args[0].sensitivity)
        for check in privacy_checks("canonical")
    }
    assert checked == set(
        product((0, 0.25, 0.5, 0.75, 1), ("exponential", "gumbel"), (True, False), (COUNTS, Sensitivity(-1, 1)))
    )


@pytest.mark.long
@pytest.mark.parametrize("name", ["canonical", "joint"])
def test_every_variant_keeps_its_guarantee_in_every_setting(name: str) -> None:
    for setting in SETTINGS:
        for variant in UNDER_TEST[name].variants:
            result = check_privacy(*setting.applied_to(variant))
            assert result.passed, result


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_the_margin_of_joint_is_private_for_every_k_up_to_all_items(noise: str) -> None:
    """With k = d there is no rank k + 1. Half steps make gaps that a person only halves."""
    for size, highest, step in ((1, 3, 1), (2, 5, 1), (3, 2, 0.5), (4, 2, 1)):
        for k in range(1, size + 1):
            result = check_privacy(Joint(k=k, epsilon=1.0, noise=noise), Domain(size, highest, step=step))
            assert result.passed, result


def test_the_worst_loss_of_joint_with_its_margin_is_the_known_one() -> None:
    """Mathematics, section 4, prints three digits of it: counts 0..4."""
    check = check_privacy(Joint(k=2, epsilon=1.0), Domain(4, 4))
    assert check.worst_loss == pytest.approx(0.945, abs=5e-4)


def test_the_settings_cover_both_kinds_of_sensitivity_and_several_k_and_epsilon() -> None:
    assert {setting.domain.sensitivity for setting in SETTINGS} == {COUNTS, Sensitivity(-1, 1)}
    assert {setting.k for setting in SETTINGS} == {1, 2, 3}
    assert {setting.epsilon for setting in SETTINGS} == {0.5, 1.0, 2.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "worst"),
    [
        ("exponential", 1.0),
        ("half-logistic", 0.9200874551),
        ("gumbel", 0.8852222239),
        ("laplace", 0.8374810705),
        ("logistic", 0.6018299144),
    ],
)
def test_worst_losses_of_the_one_shot_mechanism_are_the_known_ones(noise: str, worst: float) -> None:
    """Mathematics, section 2, prints three digits of these: d = 4, k = 2, ε = 1, counts, for scores in {0..3}.

    It has 0.838 for laplace; the law itself is held against ball arithmetic in the tests of sampling.
    """
    check = check_privacy(OneShot(k=2, epsilon=1.0, noise=noise), Domain(4, 3))
    assert check.worst_loss == pytest.approx(worst, abs=1e-9)
    assert check.neighbours == 4**4 * 2**4


@pytest.mark.parametrize("mechanism", [OneShot(k=2, epsilon=1.0), Peeling(k=2, epsilon=1.0)], ids=["set", "sequence"])
def test_the_witness_shows_the_worst_loss(mechanism: Mechanism) -> None:
    check = check_privacy(mechanism, Domain(3, 2))
    here, there = mechanism.law(list(check.witness.scores)), mechanism.law(list(check.witness.neighbour))
    outcome: Any = check.witness.outcome
    assert abs(math.log(here[outcome] / there[outcome])) == pytest.approx(check.worst_loss, abs=1e-12)


def test_a_smaller_claim_is_rejected() -> None:
    sound = OneShot(k=2, epsilon=1.0)
    assert check_privacy(sound, Domain(3, 2)).passed
    overclaimed = Tabulated(lambda scores: dict(sound.law(scores)), epsilon=1.0 - 1e-6, k=2)
    result = check_privacy(overclaimed, Domain(3, 2))
    assert not result.passed
    assert result.headroom == pytest.approx(-1e-6, rel=1e-3)


def test_the_loss_is_measured_in_both_directions() -> None:
    check = checked(lambda scores: leaning(scores, 0.9))
    assert check.worst_loss == pytest.approx(math.log(0.5 / 0.1))
    assert not check.passed
    assert checked(lambda scores: leaning(scores, 0.8)).passed


def test_an_outcome_possible_on_one_side_only_is_an_infinite_loss() -> None:
    check = checked(lambda scores: leaning(scores, 1.0))
    assert check.worst_loss == math.inf
    assert not check.passed


def test_outcomes_that_never_happen_cost_nothing() -> None:
    check = checked(lambda scores: {(0, 1): 1.0, (1, 0): 0.0}, ordered=True, k=2)
    assert check.worst_loss == 0.0


def test_delta_is_the_mass_beyond_epsilon() -> None:
    needed = 0.5 - math.e * 0.1
    check = checked(lambda scores: leaning(scores, 0.9), delta=needed + 1e-6)
    assert check.divergence == pytest.approx(needed)
    assert check.headroom == pytest.approx(1e-6)
    assert check.passed
    assert not checked(lambda scores: leaning(scores, 0.9), delta=needed - 1e-6).passed


def test_a_tiny_delta_is_not_lost_in_the_tolerance() -> None:
    assert not checked(lambda scores: leaning(scores, 1.0), delta=1e-12).passed


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (lambda scores: {ONE: 0.5, TWO: 0.4}, "sum to 1"),
        (lambda scores: {ONE: 1.5, TWO: -0.5}, "not a probability"),
        (lambda scores: {ONE: math.nan, TWO: 0.5}, "not a probability"),
        (lambda scores: {ONE: 0.6, TWO: 0.4}, "permuting"),
        (lambda scores: {ONE: 1.0}, "permuting"),
        (lambda scores: {(0,): 0.5, (1,): 0.5}, "not a tuple"),
        (lambda scores: {frozenset({0, 1}): 1.0}, "with k items"),
    ],
    ids=["sum", "negative", "nan", "asymmetric", "missing", "kind", "size"],
)
def test_a_faulty_law_is_rejected_whatever_its_loss(table: Any, fault: str) -> None:
    check = checked(table)
    assert any(fault in found for found in check.faults)
    assert not check.passed


@pytest.mark.slow
@pytest.mark.parametrize("noise", list(NOISES))
def test_the_noisy_order_of_the_five_noises_stays_within_the_claim(noise: str) -> None:
    """Their densities, not only their survival functions, fall by at most e^{−s} over any length s (docs/verify.md)."""
    sound = OneShot(k=2, epsilon=1.0, noise=noise)
    order = Altered(sound=sound, wrong_law=noisy_order(sound, NOISES[noise]), lists=True)
    assert check_privacy(order, Domain(4, 3)).passed
