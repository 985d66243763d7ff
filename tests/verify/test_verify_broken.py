"""Every broken twin is rejected, and its sound counterpart is accepted by the same check."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dpselect.mechanisms import Canonical
from dpselect.verify import Check, Domain, ExactCheck, SamplerCheck, check_privacy, rejections
from dpselect.verify.broken import TWINS, Altered, Twin
from dpselect.verify.broken.noisy_scores import ORDER_OF_STEPS, SETS_OF_STEPS, min_for_max
from dpselect.verify.broken.subsets import canonical_law, margin_too_far, narrow_joint, overcount, swapped_extremes
from dpselect.verify.registry import reject

KINDS = {"privacy": Check, "sampler": SamplerCheck, "exact": ExactCheck}


@pytest.mark.slow
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: f"{twin.name} {twin.noise}".strip())
def test_the_broken_twin_is_rejected_and_the_sound_one_is_not(twin: Twin) -> None:
    rejection = reject(twin)
    assert not rejection.of_broken.passed
    assert rejection.of_sound.passed
    assert rejection.passed
    assert isinstance(rejection.of_broken, KINDS[twin.rejected_by])
    if isinstance(rejection.of_broken, Check):
        assert rejection.of_broken.faults == (), "privacy must be the only thing wrong with the law"


def test_twins_have_names_of_their_own() -> None:
    assert len({(twin.name, twin.noise) for twin in TWINS}) == len(TWINS) == len(rejections()) == 119


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "loss"), [("exponential", math.inf), ("laplace", 4.0)])
def test_a_shown_value_costs_every_item_its_share(noise: str, loss: float) -> None:
    """Laplace: raising all four scores by 1 costs e^{−1} for the winner's density and for each other's F."""
    [twin] = [twin for twin in TWINS if (twin.name, twin.noise) == ("shown value", noise)]
    check = twin.broken()
    assert isinstance(check, Check)
    assert check.worst_loss == pytest.approx(loss)


def test_the_law_of_minima_is_safe_for_all_but_the_smallest_but_not_for_the_largest() -> None:
    """The d − 1 largest under −Gumbel leave out the smallest, which is the largest under Gumbel."""
    assert not min_for_max(k=1).broken().passed
    assert min_for_max(k=3, epsilon=3.0).broken().passed


def test_a_noise_fit_for_sets_does_not_make_the_order_fit() -> None:
    assert check_privacy(SETS_OF_STEPS, Domain(4, 3)).worst_loss < 0.9
    assert check_privacy(ORDER_OF_STEPS, Domain(4, 3)).worst_loss > 1.2


NOISES = pytest.mark.parametrize("noise", ["exponential", "gumbel"])


@pytest.mark.slow
@NOISES
@pytest.mark.parametrize("gamma", [0, 0.75])
def test_a_margin_to_the_wrong_rank_breaks_the_claim_wherever_the_margin_counts(gamma: float, noise: str) -> None:
    sound = Canonical(k=2, epsilon=1.0, gamma=gamma, noise=noise)
    broken = Altered(sound=sound, wrong_law=canonical_law(sound, margin_too_far))
    assert check_privacy(broken, Domain(4, 3)).worst_loss > 1.1


@pytest.mark.slow
@NOISES
@pytest.mark.parametrize("gamma", [0, 0.5, 1])
def test_swapped_extremes_of_the_loss_are_private_but_prefer_the_wrong_set(gamma: float, noise: str) -> None:
    """Min missing and max included move within the same bounds; which is why the sampler check has to object."""
    sound = Canonical(k=2, epsilon=1.0, gamma=gamma, noise=noise)
    law = canonical_law(sound, swapped_extremes)
    assert check_privacy(Altered(sound=sound, wrong_law=law), Domain(4, 3)).passed
    scores = [30, 20, 10, 0]
    assert max(sound.law(scores), key=sound.law(scores).__getitem__) == frozenset({0, 1})
    assert law(scores)[frozenset({0, 1})] < 0.51


def test_the_law_of_the_twins_without_a_mistake_is_that_of_canonical() -> None:
    for sound in (Canonical(k=2, epsilon=1.0), Canonical(k=2, epsilon=2.0, gamma=0.25, noise="gumbel")):
        assert canonical_law(sound)([3, 1, 1, 0]) == pytest.approx(dict(sound.law([3, 1, 1, 0])), rel=1e-9)


def test_miscounted_classes_are_exact_sizes_times_the_printed_error() -> None:
    """K = 2: head 0 and tail t have t − 2 members, the printed recursion says t − 1; head 1 is right."""
    assert overcount([0, 1], 2) == 1.0
    assert overcount([0, 4], 2) == 1.0
    assert [overcount([1, last], 2) for last in (2, 3, 4)] == pytest.approx([2 / 1, 3 / 2, 4 / 3])


@pytest.mark.slow
def test_joint_needs_twice_the_spread_from_two_items_on() -> None:
    """K = 1: the loss is x_[1] − x_i, a shift that is common to all items, and the exponential mechanism is left."""
    assert reject(narrow_joint(k=3)).passed
    assert narrow_joint(k=1, noise="gumbel").broken().passed
    assert narrow_joint(k=1).broken().passed


def test_an_altered_mechanism_claims_what_the_sound_one_claims() -> None:
    sound = Canonical(k=2, epsilon=1.0)
    broken = Altered(sound=sound, wrong_law=replace(sound, epsilon=2.0).law)
    assert (broken.k, broken.guarantee, broken.sensitivity) == (sound.k, sound.guarantee, sound.sensitivity)
    assert not broken.ordered
    assert broken.select([3, 2, 1], seed=1).tolist() == sound.select([3, 2, 1], seed=1).tolist()
