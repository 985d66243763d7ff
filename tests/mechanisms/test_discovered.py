"""Discovered: a discovery and then a choice among what was listed, at the sum of both costs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.mechanisms import described_mechanism, mechanism_for
from dpselect.mechanisms.auto import automatic_for_unknown
from dpselect.sampling import SeededBits
from dpselect.scores import Scores
from dpselect.verify import check_privacy, check_sampler
from dpselect.verify.subjects import UNKNOWN_UNDER_TEST


def named(**changes: Any) -> Any:
    return mechanism_for("discovered", **{"k": 5, "epsilon": 1.0, "delta": 1e-6, "max_items_per_person": 2, **changes})


@pytest.mark.parametrize(("mechanism", "domain"), UNKNOWN_UNDER_TEST["discovered"])
def test_the_guarantee_is_the_sum_and_holds_over_all_neighbours(mechanism: Any, domain: Any) -> None:
    assert check_privacy(mechanism, domain).passed
    parts = mechanism.inner.guarantee, mechanism.discovery.guarantee
    assert mechanism.guarantee.epsilon == pytest.approx(sum(part.epsilon for part in parts))
    assert mechanism.guarantee.delta == pytest.approx(sum(part.delta for part in parts))


@pytest.mark.parametrize("place", [0, 2])
def test_draws_follow_the_law_with_fewer_listed_items_than_k(place: int) -> None:
    mechanism, _ = UNKNOWN_UNDER_TEST["discovered"][place]
    assert check_sampler(mechanism, [5, 2, 0, 2, 6], draws=1200).passed


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(("k", "most"), [(1, 1), (10, 1), (100, 20), (300, 5)])
def test_the_parts_use_the_whole_budget_and_no_more(k: int, most: int, ordered: bool) -> None:
    mechanism = named(k=k, max_items_per_person=most, ordered=ordered)
    assert mechanism.ordered or not ordered
    assert 1 - 1e-12 <= mechanism.guarantee.epsilon <= 1.0
    assert 1e-6 * (1 - 1e-12) <= mechanism.guarantee.delta <= 1e-6
    assert mechanism.discovery.epsilon == 0.5
    assert Fraction(mechanism.discovery.delta) + Fraction(mechanism.inner.guarantee.delta) <= Fraction(1e-6)
    assert described_mechanism(mechanism.describe()) == mechanism


def test_the_share_of_the_discovery_may_be_stated() -> None:
    assert named(discovery_share=0.25).discovery.epsilon == 0.25
    release = dps.select({"tea": 900, "rum": 800}, k=1, epsilon=1.0, delta=1e-6, mechanism=named(k=1))
    assert release.items == ["tea"] or release.items == ["rum"]


def test_whatever_is_listed_is_the_answer_if_it_is_less_than_k() -> None:
    mechanism = named(k=50)
    assert sorted(mechanism.select([10**5, 10**5, 1, 10**5], seed=1).tolist()) == [0, 1, 3]
    assert mechanism.choose(np.zeros(0, dtype=np.int64), SeededBits(1)).tolist() == []


def test_weights_from_counts_are_those_of_people_with_as_many_items_as_allowed() -> None:
    mechanism = named(max_items_per_person=4)
    weights = mechanism.weights(Scores.of([7, 2.75, 0, -3]))
    assert weights.values.tolist() == [7 * mechanism.discovery.units // 2, 2 * mechanism.discovery.units // 2, 0, 0]


COUNTS_INNER, FOUND = dps.Canonical(k=2, epsilon=1.0), dps.Discovery(epsilon=1.0, delta=1e-6, max_items_per_person=2)
BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: named(max_items_per_person=None), "max_items_per_person"),
    (lambda: named(pool=50), "pool"),
    (lambda: named(delta=0.0), "delta"),
    (lambda: named(discovery_share=1.0), "discovery_share"),
    (lambda: named(discovery_share=-0.5), "discovery_share"),
    (lambda: named(sensitivity=dps.Sensitivity(0, 5)), "sensitivity"),
    (lambda: dps.Discovered(inner=FOUND, discovery=FOUND), "inner"),  # type: ignore[arg-type]
    (lambda: dps.Discovered(inner=COUNTS_INNER, discovery=COUNTS_INNER), "discovery"),  # type: ignore[arg-type]
    (lambda: dps.Discovered(inner=COUNTS_INNER, discovery=FOUND, epsilon=1.0), "epsilon"),
    (lambda: dps.Discovered(inner=COUNTS_INNER, discovery=FOUND, k=3), "k"),
    (
        lambda: dps.Discovered(inner=dps.Laplace(k=2, epsilon=1.0, max_items_per_person=3), discovery=FOUND),
        "max_items_per_person",
    ),
    (lambda: named().law(range(14)), "scores"),
]


def test_bad_arguments_are_refused_by_name() -> None:
    for make, argument in BAD:
        with pytest.raises(dps.InvalidInput) as caught:
            make()
        assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("k", "most", "pool", "counts", "chosen"),
    [
        (1, 1, None, True, "discovered"),
        (20, 20, None, True, "discovered"),
        (19, 20, None, True, "restricted"),
        (300, 20, 3000, True, "restricted"),
        (300, 20, None, False, "restricted"),
        (300, None, None, True, "restricted"),
        ("3", 1, None, True, "restricted"),
    ],
)
def test_auto_looks_at_public_facts_only(k: Any, most: Any, pool: Any, counts: bool, chosen: str) -> None:
    assert automatic_for_unknown(k, most, pool, counts=counts) == chosen
