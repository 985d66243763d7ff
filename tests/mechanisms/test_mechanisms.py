"""Behaviour that all mechanisms share; laws and samplers are checked by tests/verify."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from math import comb, perm
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.mechanisms import MECHANISMS, Mechanism, mechanism_for

VARIANTS: dict[str, list[dict[str, object]]] = {
    "canonical": [{}, {"noise": "gumbel"}, {"gamma": 1.0}, {"gamma": 0.25, "margin": False}, {"rounded": True}],
    "gamma": [{}],
    "gaussian": [{"delta": 1e-3, "max_items_per_person": 4}],
    "joint": [{}, {"noise": "gumbel"}],
    "laplace": [{"max_items_per_person": 4}],
    "oneshot": [
        {"noise": noise, "ordered": ordered}
        for ordered in (False, True)
        for noise in ("exponential", "gumbel", "laplace", "logistic", "half-logistic")
    ],
    "peeling": [{}, {"noise": "gumbel"}],
}
SCORES = [50, 3, 3, 3, -7, 20, 0, 0]


def variants(most: int | None = None) -> Iterator[Any]:
    """Yield up to `most` variants of every mechanism, with short ids."""
    for name, changes in VARIANTS.items():
        for change in changes[:most]:
            mechanism = MECHANISMS[name](k=3, epsilon=1.5, **change)  # type: ignore[arg-type]
            yield pytest.param(mechanism, id="-".join([name, *map(str, change.values())]))


every_variant = pytest.mark.parametrize("mechanism", list(variants()))
every_mechanism = pytest.mark.parametrize("mechanism", list(variants(most=1)))


def test_no_mechanism_is_left_out_here() -> None:
    assert set(VARIANTS) == set(MECHANISMS)


@every_mechanism
def test_a_mechanism_states_its_guarantee_before_it_sees_data(mechanism: Mechanism) -> None:
    assert mechanism.guarantee.epsilon == 1.5
    assert mechanism.guarantee.delta == getattr(mechanism, "delta", 0.0)


@every_mechanism
def test_a_mechanism_is_a_frozen_value(mechanism: Mechanism) -> None:
    with pytest.raises(FrozenInstanceError):
        mechanism.epsilon = 9.0  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert hash(replace(mechanism)) == hash(mechanism)
    assert replace(mechanism, epsilon=1.0) != mechanism


@every_variant
def test_the_description_is_plain_data_from_which_the_mechanism_can_be_rebuilt(mechanism: Mechanism) -> None:
    described = json.loads(json.dumps(mechanism.describe()))
    kind = MECHANISMS[described.pop("name")]
    described["sensitivity"] = dps.Sensitivity(**described["sensitivity"])
    assert kind(**described) == mechanism


TABLES: list[Any] = [
    SCORES,
    np.array(SCORES),
    np.array(SCORES, dtype=float) / 7,
    [10**400, *SCORES],
    dps.Scores.of(SCORES),
    dps.Scores.from_histogram([(5, 4), (3, 10**18)]),
    dps.Scores.from_histogram([(5, 4), (3, 10**30)]),
    np.arange(1 << 15) // 7,
    np.arange(1 << 15) / 7,
]


@every_variant
def test_the_answer_is_k_distinct_positions(mechanism: Mechanism) -> None:
    for scores in TABLES:
        size = dps.Scores.of(scores).size
        if isinstance(mechanism, dps.Gamma) and size > 10**15:
            with pytest.raises(dps.InvalidInput, match="scores"):
                mechanism.select(scores)
            continue
        positions = mechanism.select(scores)
        assert isinstance(positions, np.ndarray)
        assert positions.shape == (3,)
        assert len(set(positions.tolist())) == 3
        assert all(0 <= position < size for position in positions.tolist())


@every_variant
def test_all_items_are_returned_when_k_is_the_size_of_the_domain(mechanism: Mechanism) -> None:
    for scores in (SCORES, [0.0] * 8, dps.Scores.from_histogram([(5, 3), (2, 5)])):
        positions = replace(mechanism, k=8).select(scores)
        assert sorted(positions.tolist()) == list(range(8))


@every_mechanism
def test_a_single_item_is_always_chosen(mechanism: Mechanism) -> None:
    assert replace(mechanism, k=1).select([4.5]).tolist() == [0]


@every_variant
def test_a_seed_reproduces_the_answer(mechanism: Mechanism) -> None:
    answers = [mechanism.select(SCORES, seed=seed).tolist() for seed in range(20)]
    assert answers == [mechanism.select(SCORES, seed=seed).tolist() for seed in range(20)]
    assert len({tuple(answer) for answer in answers}) > 1


@every_mechanism
def test_select_of_the_package_and_of_the_mechanism_agree(mechanism: Mechanism) -> None:
    for seed in range(5):
        release = dps.select(SCORES, mechanism=mechanism, seed=seed)
        assert release.items == mechanism.select(SCORES, seed=seed).tolist()
        assert release.ordered is mechanism.ordered
        assert release.guarantee == mechanism.guarantee


@every_variant
def test_items_that_lead_by_far_are_chosen_and_a_sequence_shows_them_in_order(mechanism: Mechanism) -> None:
    """Each lead of 10^4 is lost with probability below e^-4000."""
    scores = [0, 30_000, 0, 10_000, 20_000, 0]
    positions = mechanism.select(scores).tolist()
    assert set(positions) == {1, 4, 3}
    if mechanism.ordered:
        assert positions == [1, 4, 3]


@every_variant
def test_the_law_lists_every_outcome_once(mechanism: Mechanism) -> None:
    scores = [2, 1, 1, 0]
    law = mechanism.law(scores)
    assert len(law) == (perm(4, 3) if mechanism.ordered else comb(4, 3))
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-9)
    kind = tuple if mechanism.ordered else frozenset
    assert all(type(outcome) is kind and set(outcome) <= set(range(4)) and len(set(outcome)) == 3 for outcome in law)


@every_mechanism
def test_the_law_of_a_domain_too_large_to_list_is_refused(mechanism: Mechanism) -> None:
    with pytest.raises(dps.InvalidInput, match="at most"):
        mechanism.law(range(1000))
    with pytest.raises(dps.InvalidInput, match="must be at most 2"):
        mechanism.law([1, 2])


BAD_PARAMETERS: list[dict[str, Any]] = [
    {"k": 0},
    {"k": True},
    {"k": 1.0},
    {"k": "1"},
    {"epsilon": 0.0},
    {"epsilon": float("nan")},
    {"epsilon": float("inf")},
    {"epsilon": "1"},
    {"epsilon": 1e-260},
    {"epsilon": 1e260},
    {"sensitivity": 1},
    {"sensitivity": None},
    {"noise": "uniform"},
    {"noise": ""},
    {"noise": None},
    {"noise": 3},
]


@every_mechanism
def test_bad_parameters_are_refused_when_the_mechanism_is_made(mechanism: Mechanism) -> None:
    for change in BAD_PARAMETERS:
        if hasattr(mechanism, *change):
            with pytest.raises(dps.InvalidInput) as caught:
                replace(mechanism, **change)
            assert caught.value.argument in change


@pytest.mark.parametrize(
    ("kind", "accepted"),
    [
        (dps.Canonical, "exponential, gumbel"),
        (dps.Joint, "exponential, gumbel"),
        (dps.Peeling, "exponential, gumbel, laplace"),
    ],
)
def test_noises_without_a_proof_are_refused(kind: Any, accepted: str) -> None:
    for noise in {"laplace", "logistic", "half-logistic", "", None, 3} - {*accepted.split(", ")}:
        with pytest.raises(dps.InvalidInput, match=f"noise must be one of {accepted}, got"):
            kind(k=1, epsilon=1.0, noise=noise)


@every_mechanism
def test_bad_scores_are_refused(mechanism: Mechanism) -> None:
    infinity = float("inf")
    for bad in ([1, float("nan")], {"a": infinity, "b": 1, "c": 2}, ["a", "b", "c", "d"], [], None, [[1, 2, 3, 4]]):
        with pytest.raises(dps.InvalidInput, match="scores"):
            mechanism.select(bad)


@every_variant
def test_the_scale_of_scores_and_sensitivity_cancels(mechanism: Mechanism) -> None:
    """Scores in another unit, with the sensitivity in that unit, give the same draw from the same bits."""
    doubled = replace(mechanism, sensitivity=dps.Sensitivity(0, 1024))
    for seed in range(8):
        scores = [1024 * score for score in SCORES]
        assert doubled.select(scores, seed=seed).tolist() == mechanism.select(SCORES, seed=seed).tolist()


@every_variant
def test_a_shift_of_all_scores_changes_nothing(mechanism: Mechanism) -> None:
    for seed in range(8):
        shifted = [10**400 + score for score in SCORES]
        assert mechanism.select(shifted, seed=seed).tolist() == mechanism.select(SCORES, seed=seed).tolist()


def test_a_name_whose_mechanism_needs_more_says_what() -> None:
    with pytest.raises(dps.InvalidInput, match="max_items_per_person"):
        mechanism_for("gaussian", k=2, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("name", sorted(MECHANISMS.keys() - {"gaussian", "laplace"}))
def test_a_name_stands_for_the_mechanism_with_its_defaults(name: str) -> None:
    sensitivity = dps.Sensitivity(-1, 1)
    chosen = mechanism_for(name, k=2, epsilon=1.0, sensitivity=sensitivity)
    assert chosen == MECHANISMS[name](k=2, epsilon=1.0, sensitivity=sensitivity)
    assert chosen.name == name
