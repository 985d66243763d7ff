"""Every broken mechanism is rejected, and its sound counterpart accepted by the same call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from dpselect.mechanisms import Canonical, Joint
from dpselect.privacy import COUNTS, Guarantee, Sensitivity
from dpselect.verify import Check, Domain, check_privacy, rejections
from dpselect.verify.broken import (
    Broken,
    BrokenSignals,
    LeakedNoisyOrder,
    MarginOneRankTooFar,
    MiscountedClasses,
    NarrowJoint,
    ShownValue,
    SwappedExtremes,
    SwappedLoss,
)
from dpselect.verify.broken.exact import EXACT_TWINS
from dpselect.verify.registry import BROKEN, reject


def describe(mechanism: Broken) -> str:
    return f"{mechanism.name}, {mechanism.noise}"


@pytest.mark.parametrize("mechanism", BROKEN, ids=describe)
def test_the_broken_one_is_rejected_and_the_sound_one_is_not(mechanism: Broken) -> None:
    rejection = reject(mechanism)
    assert not rejection.of_broken.passed
    assert rejection.of_sound.passed
    assert rejection.passed
    assert isinstance(rejection.of_broken, Check) == (mechanism.rejected_by == "privacy")


@pytest.mark.parametrize("mechanism", [broken for broken in BROKEN if broken.rejected_by == "privacy"], ids=describe)
def test_privacy_is_the_only_thing_wrong_with_a_broken_law(mechanism: Broken) -> None:
    domain = mechanism.domain if isinstance(mechanism, BrokenSignals) else Domain(3, 2, mechanism.sensitivity)
    assert check_privacy(mechanism, domain).faults == ()


def test_the_corpus_holds_every_mistake_of_the_list() -> None:
    names = [mechanism.name for mechanism in BROKEN]
    for name in (
        "halved noise",
        "leaked order",
        "leaked noisy order",
        "shown value",
        "forgotten factor 2",
        "forgotten k",
        "min for max",
        "order statistics swapped",
        "members not uniform",
        "noise reused",
        "set not shuffled",
        "scale slightly off",
        "weights not normalised",
        "margin one rank too far",
        "margin from rank k - 1",
        "extremes of the loss swapped",
        "classes miscounted",
        "joint, width w",
    ):
        assert name in names
    assert len(rejections()) == len(BROKEN) + len(EXACT_TWINS)


@pytest.mark.parametrize(("noise", "loss"), [("exponential", math.inf), ("laplace", 4.0)])
def test_a_shown_value_costs_every_item_its_share(noise: str, loss: float) -> None:
    """Laplace: raising all four scores by 1 costs e^{−1} for the winner's density and for each other's F."""
    check = check_privacy(ShownValue(k=1, epsilon=1.0, noise=noise), Domain(4, 2))
    assert check.worst_loss == pytest.approx(loss)


def test_the_law_of_minima_is_safe_for_all_but_the_smallest_but_not_for_the_largest() -> None:
    """The d − 1 largest under −Gumbel leave out the smallest, which is the largest under Gumbel."""
    assert not check_privacy(SwappedExtremes(k=1, epsilon=1.0), Domain(4, 2)).passed
    assert check_privacy(SwappedExtremes(k=3, epsilon=3.0), Domain(4, 2)).passed


def test_a_noise_fit_for_sets_does_not_make_the_order_fit() -> None:
    broken = LeakedNoisyOrder(k=2, epsilon=1.0)
    assert check_privacy(broken.sound, Domain(4, 3)).worst_loss < 0.9
    assert check_privacy(broken, Domain(4, 3)).worst_loss > 1.2


BOTH_NOISES = pytest.mark.parametrize("noise", ["exponential", "gumbel"])


@BOTH_NOISES
@pytest.mark.parametrize("gamma", [0, 0.25, 0.5, 0.75])
def test_a_margin_to_the_wrong_rank_breaks_the_claim_wherever_the_margin_counts(gamma: float, noise: str) -> None:
    broken = MarginOneRankTooFar(k=2, epsilon=1.0, gamma=gamma, noise=noise)
    assert check_privacy(broken.sound, Domain(4, 3)).passed
    assert check_privacy(broken, Domain(4, 3)).worst_loss > 1.1


@dataclass(frozen=True)
class DrawnLaw:
    """What a twin with a wrong sampler draws, as a mechanism of its own."""

    twin: SwappedLoss
    ordered: bool = False
    sensitivity: Sensitivity = COUNTS

    @property
    def k(self) -> int:
        return self.twin.k

    @property
    def guarantee(self) -> Guarantee:
        return self.twin.guarantee

    def law(self, scores: Any) -> dict[Any, float]:
        return self.twin.law_of_losses(scores)

    def select(self, scores: Any, *, seed: int | None = None) -> Any:
        return self.twin.select(scores, seed=seed)


@BOTH_NOISES
@pytest.mark.parametrize("gamma", [0, 0.25, 0.5, 0.75, 1])
def test_swapped_extremes_of_the_loss_are_private_but_prefer_the_wrong_set(gamma: float, noise: str) -> None:
    """Min missing and max included move within the same window; which is why the sampler check has to object."""
    twin = SwappedLoss(k=2, epsilon=1.0, gamma=gamma, noise=noise)
    assert check_privacy(DrawnLaw(twin), Domain(4, 3)).passed
    scores = [30, 20, 10, 0]
    law = twin.law_of_losses(scores)
    assert max(law, key=lambda subset: Canonical(k=2, epsilon=1.0).law(scores)[subset]) == frozenset({0, 1})
    assert law[frozenset({0, 1})] < 0.51


def test_miscounted_classes_are_exact_sizes_times_the_printed_error() -> None:
    """K = 2: head 0 and tail t have t − 2 members, the printed recursion says t − 1; head 1 is right."""
    twin = MiscountedClasses(k=2, epsilon=1.0, noise="gumbel")
    assert twin.overcount([0, 1]) == 1.0
    assert twin.overcount([0, 4]) == 1.0
    assert [twin.overcount([1, last]) for last in (2, 3, 4)] == pytest.approx([2 / 1, 3 / 2, 4 / 3])


@BOTH_NOISES
@pytest.mark.parametrize(("k", "domain"), [(2, Domain(4, 3)), (3, Domain(4, 2)), (2, Domain(5, 1))])
def test_joint_needs_twice_the_spread_from_two_items_on(k: int, domain: Domain, noise: str) -> None:
    broken = NarrowJoint(k=k, epsilon=1.0, noise=noise)
    assert check_privacy(broken, domain).worst_loss > 1.2
    assert check_privacy(Joint(k=k, epsilon=1.0, noise=noise), domain).passed


@BOTH_NOISES
def test_joint_would_do_with_the_spread_for_one_item(noise: str) -> None:
    """K = 1: the loss is x_[1] − x_i, a shift that is common to all items, and the exponential mechanism is left."""
    assert check_privacy(NarrowJoint(k=1, epsilon=1.0, noise=noise), Domain(4, 3)).passed
