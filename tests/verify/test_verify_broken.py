"""Every broken mechanism is rejected, and its sound counterpart accepted by the same call."""

from __future__ import annotations

import math

import pytest

from dpselect.verify import Check, Domain, check_privacy, rejections
from dpselect.verify.broken import Broken, LeakedNoisyOrder, ShownValue, SwappedExtremes
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
    assert check_privacy(mechanism, Domain(3, 2, mechanism.sensitivity)).faults == ()


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
    ):
        assert name in names
    assert len(rejections()) == len(BROKEN)


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
