"""What "auto" chooses: from public facts alone, and as the table of the manual says."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from scipy.special import ndtr

import dpselect as dps
from dpselect.mechanisms import mechanism_for
from dpselect.mechanisms.auto import RESOLUTIONS, resolution


def auto(k: int, epsilon: float = 1.0, **asked: Any) -> dps.Mechanism:
    return mechanism_for("auto", k=k, epsilon=epsilon, **asked)


@pytest.mark.parametrize(
    ("noise", "reverse"),
    [
        ("exponential", lambda x: math.exp(-x) / 2),
        ("gumbel", lambda x: 1 / (1 + math.exp(x))),
        ("laplace", lambda x: (2 + x) * math.exp(-x) / 4),
        ("normal", lambda x: ndtr(-x / math.sqrt(2))),
    ],
)
def test_resolutions_are_those_of_99_right_pairs_in_100(noise: str, reverse: Any) -> None:
    assert reverse(float(RESOLUTIONS[noise])) == pytest.approx(0.01, rel=1e-5)


def test_the_resolution_of_a_mechanism_tells_two_items_apart_with_probability_99_in_100() -> None:
    for mechanism in (
        dps.OneShot(k=1, epsilon=0.7),
        dps.OneShot(k=1, epsilon=0.7, noise="gumbel", delta=1e-3),
        dps.Peeling(k=1, epsilon=0.7),
        dps.Laplace(k=1, epsilon=0.7, max_items_per_person=3),
        dps.Gaussian(k=1, epsilon=0.7, delta=1e-3, max_items_per_person=3),
    ):
        law = mechanism.law([float(resolution(mechanism)), 0.0])  # type: ignore[arg-type]
        assert max(law.values()) == pytest.approx(0.99, abs=1e-6)


@pytest.mark.parametrize("k", [2, 3, 10, 200])
def test_without_delta_and_limit_sets_are_canonical_and_sequences_one_shot_or_joint(k: int) -> None:
    for epsilon in (0.03, 1.0, 10.0):
        assert auto(k, epsilon) == dps.Canonical(k=k, epsilon=epsilon)
        assert auto(k, epsilon, aim="exact") == dps.Canonical(k=k, epsilon=epsilon)
        assert auto(k, epsilon, ordered=True) == dps.OneShot(k=k, epsilon=epsilon, ordered=True)
        assert auto(k, epsilon, ordered=True, aim="exact") == dps.Joint(k=k, epsilon=epsilon)


def test_for_one_item_every_aim_and_order_is_permute_and_flip() -> None:
    expected = sorted(dps.OneShot(k=1, epsilon=1.0).law([5, 4, 1, 1]).values())
    for aim, ordered in product(("most", "exact"), (False, True)):
        law = auto(1, aim=aim, ordered=ordered).law([5, 4, 1, 1])
        assert sorted(law.values()) == pytest.approx(expected, rel=1e-12)


def test_a_delta_is_used_where_gumbel_noise_has_the_smaller_resolution() -> None:
    for ordered in (False, True):
        kind = dps.Peeling if ordered else dps.OneShot
        for k in (10, 100):
            assert auto(k, delta=1e-6, ordered=ordered) == kind(k=k, epsilon=1.0, noise="gumbel", delta=1e-6)
        # Three rounds gain less by a small δ than gumbel noise loses against exponential noise.
        few = auto(3, delta=1e-6, ordered=ordered)
        assert few == auto(3, ordered=ordered)
        assert few.guarantee.delta == 0
        assert auto(10, delta=1e-6, ordered=ordered, aim="exact") == auto(10, ordered=ordered, aim="exact")


def test_a_small_limit_of_items_per_person_makes_it_laplace_or_gaussian() -> None:
    for ordered, aim in product((False, True), ("most", "exact")):
        asked: Any = {"ordered": ordered, "aim": aim, "max_items_per_person": 1}
        assert auto(10, **asked) == dps.Laplace(k=10, epsilon=1.0, max_items_per_person=1)
        assert auto(10, delta=1e-6, **asked) == dps.Laplace(k=10, epsilon=1.0, max_items_per_person=1)
    for ordered in (False, True):
        many = auto(100, delta=1e-6, ordered=ordered, max_items_per_person=20)
        assert many == dps.Gaussian(k=100, epsilon=1.0, delta=1e-6, max_items_per_person=20)
        assert auto(10, ordered=ordered, max_items_per_person=20) == auto(10, ordered=ordered)
        assert auto(10, ordered=ordered, max_items_per_person=5, aim="exact") == auto(10, ordered=ordered, aim="exact")


def test_the_limit_counts_what_one_person_moves_and_not_the_spread() -> None:
    far = dps.Sensitivity(9, 10)
    assert auto(5, sensitivity=far, max_items_per_person=1) == dps.Canonical(k=5, epsilon=1.0, sensitivity=far)
    assert auto(5, sensitivity=far, max_items_per_person=1, aim="exact").name == "canonical"


def test_extreme_budgets_have_an_answer() -> None:
    for epsilon, delta in ((1e-200, 1e-300), (1e-6, 0.5), (50.0, 1e-300)):
        assert auto(10, epsilon, delta=delta, max_items_per_person=3).k == 10


def test_an_unknown_aim_is_refused_whatever_the_mechanism() -> None:
    for mechanism in ("auto", "joint", dps.Joint(k=2, epsilon=1.0)):
        with pytest.raises(dps.InvalidInput, match=r"aim must be 'most'.* or 'exact'.*, got 'best'"):
            dps.select([3, 2, 1], k=2, epsilon=1.0, mechanism=mechanism, aim="best")


def test_the_aim_reaches_the_mechanism_of_a_release() -> None:
    votes = {"tea": 90, "coffee": 80, "milk": 3}
    assert dps.select(votes, k=2, epsilon=1.0, ordered=True).mechanism.name == "oneshot"
    assert dps.select(votes, k=2, epsilon=1.0, ordered=True, aim="exact").mechanism.name == "joint"
    assert resolution(dps.OneShot(k=2, epsilon=1.0)) == 2 * RESOLUTIONS["exponential"]
