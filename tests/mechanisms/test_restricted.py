"""Restricted mechanisms by name: they are composed objects, and a total (ε, δ) is never exceeded."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import dpselect as dps
from dpselect.mechanisms import mechanism_for
from dpselect.privacy.calibration import range_per_round

TOTALS = pytest.mark.parametrize(
    ("k", "epsilon", "delta"), [(1, 1.0, 1e-6), (2, 0.3, 1e-5), (10, 1.0, 1e-6), (100, 1.0, 1.25e-5)]
)
SCORES = [9, 7, 7, 4, 2, 1, 1, 1]


def test_restricted_gumbel_is_the_framework_around_gumbel_peeling_with_the_published_split() -> None:
    named = dps.RestrictedGumbel(k=50, epsilon=1.0, delta=1e-5, pool=500)
    for_tests = 4 * range_per_round(1.0, 0.5e-5, 50)
    composed = dps.Restricted(
        inner=dps.Peeling(k=50, epsilon=1.0 - float(for_tests), noise="gumbel", delta=0.5e-5),
        pool=500,
        test_epsilon=float(for_tests),
        test_delta=0.5e-5,
    )
    assert isinstance(named, dps.Restricted)
    assert named.test_epsilon == pytest.approx(composed.test_epsilon, rel=1e-12)
    assert named.test_delta == composed.test_delta
    assert named.inner.epsilon == pytest.approx(composed.inner.epsilon, rel=1e-12)
    same = dps.Restricted(inner=named.inner, pool=500, test_epsilon=named.test_epsilon, test_delta=named.test_delta)
    assert named == same


def test_restricted_normal_is_the_framework_around_gaussian_noise() -> None:
    named = dps.RestrictedNormal(k=3, epsilon=1.0, delta=0.5, max_items_per_person=16, pool=4)
    composed = dps.Restricted(
        inner=dps.Gaussian(k=3, epsilon=0.75, delta=0.25, max_items_per_person=16),
        pool=4,
        test_epsilon=0.25,
        test_delta=0.25,
    )
    assert named == composed
    assert named.law(SCORES) == composed.law(SCORES)
    assert [named.select(SCORES, seed=seed).tolist() for seed in range(20)] == [
        composed.select(SCORES, seed=seed).tolist() for seed in range(20)
    ]


def test_a_named_form_draws_what_the_composed_object_draws() -> None:
    named = dps.RestrictedGumbel(k=3, epsilon=4.0, delta=0.2, pool=4)
    inner = dps.Peeling(k=3, epsilon=2.0, noise="gumbel", delta=0.1)
    composed = dps.Restricted(inner=inner, pool=4, test_epsilon=2.0, test_delta=0.2 - inner.guarantee.delta)
    assert named == composed
    assert named.law(SCORES) == composed.law(SCORES)
    assert [named.select(SCORES, seed=seed).tolist() for seed in range(20)] == [
        composed.select(SCORES, seed=seed).tolist() for seed in range(20)
    ]


@TOTALS
def test_a_name_keeps_to_the_total(k: int, epsilon: float, delta: float) -> None:
    for name in ("restricted", "limited", "top-stable"):
        chosen = mechanism_for(name, k=k, epsilon=epsilon, delta=delta)
        assert chosen.name == name
        assert chosen.k == k
        assert epsilon * (1 - 1e-12) <= chosen.guarantee.epsilon <= epsilon
        assert delta * (1 - 1e-12) <= chosen.guarantee.delta <= delta
        assert chosen.describe()["pool"] == 10 * k


@TOTALS
def test_half_of_epsilon_at_most_goes_to_the_tests_and_all_of_delta_where_the_rounds_do_not_need_it(
    k: int, epsilon: float, delta: float
) -> None:
    chosen: Any = mechanism_for("restricted", k=k, epsilon=epsilon, delta=delta)
    assert Fraction(chosen.test_epsilon) <= Fraction(epsilon) / 2
    if k <= 2:
        assert chosen.inner == dps.Peeling(k=k, epsilon=chosen.inner.epsilon)
        assert chosen.test_delta == delta
    if k >= 10:
        assert chosen.inner.noise == "gumbel"
        assert chosen.test_delta == pytest.approx(delta / 2)


def test_a_known_bound_on_items_per_person_is_used_where_it_helps() -> None:
    few: Any = mechanism_for("restricted", k=100, epsilon=1.0, delta=1e-6, max_items_per_person=3)
    many: Any = mechanism_for("restricted", k=10, epsilon=1.0, delta=1e-6, max_items_per_person=1000)
    assert few.inner.name == "gaussian"
    assert few.inner.max_items_per_person == 3
    assert many.inner.name == "peeling"


def test_the_split_can_be_set() -> None:
    chosen = dps.RestrictedGumbel(k=10, epsilon=1.0, delta=1e-6, test_epsilon=0.25, test_delta=9e-7, pool=40)
    assert (chosen.test_epsilon, chosen.test_delta, chosen.pool) == (0.25, 9e-7, 40)
    assert chosen.inner.epsilon == 0.75
    assert chosen.guarantee.delta <= 1e-6


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"delta": 0.0}, "delta"),
        ({"delta": None}, "delta"),
        ({"test_epsilon": 1.0}, "test_epsilon"),
        ({"test_delta": 1e-6}, "test_delta"),
        ({"pool": 3}, "pool"),
        ({"k": 0}, "k"),
        ({"epsilon": -1}, "epsilon"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_totals_are_refused_by_name(change: dict[str, Any], argument: str) -> None:
    with pytest.raises(dps.InvalidInput) as caught:
        dps.RestrictedGumbel(**{"k": 10, "epsilon": 1.0, "delta": 1e-6, **change})
    assert caught.value.argument == argument


@pytest.mark.parametrize("name", ["restricted", "limited", "top-stable"])
def test_a_name_without_a_delta_says_that_one_is_needed(name: str) -> None:
    with pytest.raises(dps.InvalidInput, match="delta") as caught:
        dps.select({"a": 5}, k=1, epsilon=1.0, mechanism=name)
    assert caught.value.argument == "delta"


def test_select_by_name_answers_at_most_k_and_says_whether_it_stopped() -> None:
    queries = {"weather": 9100, "news": 8300, "football": 7700, "rare": 2}
    release = dps.select(queries, k=3, epsilon=1.0, delta=1e-6, mechanism="restricted")
    assert release.items == ["weather", "news", "football"]
    assert not release.stopped
    assert release.to_dict()["stopped"] is False
    assert dps.select({}, k=3, epsilon=1.0, delta=1e-6, mechanism="restricted").stopped


SEQUENCES = ("gamma", "gaussian", "joint", "laplace", "oneshot", "peeling")


@pytest.mark.parametrize("share", [None, 0.3])
@pytest.mark.parametrize("inner", ["canonical", *SEQUENCES])
def test_a_named_inner_mechanism_and_a_share_for_the_tests_keep_to_the_total(inner: str, share: float | None) -> None:
    totals: dict[str, Any] = {"k": 3, "epsilon": 1.0, "delta": 1e-6, "pool": 12, "max_items_per_person": 2}
    for ordered in (False, True) if inner in SEQUENCES else (False,):
        chosen: Any = mechanism_for("restricted", **totals, ordered=ordered, inner=inner, test_share=share)
        assert chosen.inner.name == inner
        assert chosen.pool == 12
        assert chosen.test_epsilon == (0.5 if share is None else 0.3)
        assert chosen.ordered == (ordered if inner == "oneshot" else inner in SEQUENCES)
        assert 1 - 1e-12 <= chosen.guarantee.epsilon <= 1
        assert 1e-6 * (1 - 1e-12) <= chosen.guarantee.delta <= 1e-6
        half = inner == "gaussian"
        assert chosen.test_delta == pytest.approx(5e-7 if half else 1e-6)
        assert chosen.inner.guarantee.delta == pytest.approx(5e-7 if half else 0.0)


def test_a_named_inner_mechanism_draws_what_the_composed_object_draws() -> None:
    totals: dict[str, Any] = {"k": 2, "epsilon": 4.0, "delta": 0.2, "pool": 4}
    named = mechanism_for("restricted", **totals, inner="oneshot", noise="laplace", test_share=0.25, ordered=True)
    inner = dps.OneShot(k=2, epsilon=3.0, noise="laplace", ordered=True)
    assert named == dps.Restricted(inner=inner, pool=4, test_epsilon=1.0, test_delta=0.2)
    without = mechanism_for("restricted", **totals, test_share=0.25)
    assert without == mechanism_for("restricted", **totals, test_epsilon=1.0)
    rounds: Any = mechanism_for("restricted", **{**totals, "k": 4}, inner="peeling", noise="gumbel", test_delta=0.05)
    assert rounds.inner.delta == pytest.approx(0.15)
    assert rounds.test_delta == 0.05
    subsets = mechanism_for("restricted", **totals, inner="canonical", gamma=0.25, margin=False, test_share=0.25)
    inside = dps.Canonical(k=2, epsilon=3.0, gamma=0.25, margin=False)
    assert subsets == dps.Restricted(inner=inside, pool=4, test_epsilon=1.0, test_delta=0.2)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"inner": "limited"}, "inner"),
        ({"inner": dps.Joint(k=3, epsilon=0.5)}, "inner"),
        ({"inner": "canonical", "ordered": True}, "inner"),
        ({"inner": "gaussian"}, "max_items_per_person"),
        ({"inner": "joint", "noise": "laplace"}, "noise"),
        ({"inner": "gamma", "noise": "gumbel"}, "noise"),
        ({"noise": "gumbel"}, "noise"),
        ({"gamma": 0.25}, "gamma"),
        ({"margin": False}, "margin"),
        ({"inner": "joint", "gamma": 0.25}, "gamma"),
        ({"inner": "peeling", "margin": False}, "margin"),
        ({"inner": "canonical", "gamma": 2.0}, "gamma"),
        ({"test_share": 0}, "test_share"),
        ({"test_share": 1.0}, "test_share"),
        ({"test_share": "half"}, "test_share"),
        ({"test_share": 0.3, "test_epsilon": 0.3}, "test_share"),
        ({"delta": 0.0, "inner": "joint"}, "delta"),
    ],
    ids=str,
)
def test_a_bad_inner_mechanism_or_share_is_refused_by_name(change: dict[str, Any], argument: str) -> None:
    with pytest.raises(dps.InvalidInput) as caught:
        mechanism_for("restricted", **{"k": 3, "epsilon": 1.0, "delta": 1e-6, **change})
    assert caught.value.argument == argument
