"""select() from scores to a release: what it accepts, refuses and returns."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps

VOTES = {"tea": 9000, "coffee": 8000, "milk": 3, "water": 1, "juice": 0}

TASTES = {9000: "tea", 8000: "coffee", 0: "nothing"}


@pytest.mark.parametrize(
    "scores",
    [
        VOTES,
        pd.Series(VOTES),
        dps.Scores.of(VOTES),
        dps.Scores.from_histogram([(0, 3), (9000, 1), (8000, 1)], item=lambda value, index: TASTES[value]),
    ],
    ids=["mapping", "pandas", "Scores", "histogram"],
)
def test_far_higher_scores_win(scores: object) -> None:
    """At ε/k = 1 a lead of 8000 fails with probability below e^-7000."""
    release = dps.select(scores, k=2, epsilon=2.0)
    assert set(release.items) == {"tea", "coffee"}
    assert release.secure


@pytest.mark.parametrize(
    "scores",
    [[0, 5000, 10**4], np.array([0, 5000, 10**4]), pl.Series([0, 5000, 10**4])],
    ids=["list", "array", "polars"],
)
def test_items_of_a_sequence_are_plain_positions(scores: object) -> None:
    release = dps.select(scores, k=2, epsilon=2.0)
    assert set(release.items) == {1, 2}
    assert all(type(item) is int for item in release.items)


@pytest.mark.parametrize(
    "scores",
    [
        [10**400, 10**400 - 10**5, 0, -(10**400)],
        [1e308, 0.5e308, -1.0, -1e308],
        [Fraction(10**6, 3), Fraction(10**5, 3), Fraction(1, 3), -1],
        [Decimal("900000.1"), Decimal("500000.1"), Decimal("0.1"), Decimal("-1")],
        [10**400, 10**9, 0.5, Fraction(-1, 3)],
        np.array([2**64 - 1, 2**63, 5, 0], dtype=np.uint64),
        np.array([-1000, -50000, -(10**9), -(10**12)], dtype=np.int64),
        np.array([60000, 30000, 5, 0], dtype=np.float16),
        np.array([10**9, 10**8, 5, 0], dtype=np.longdouble),
        np.array([2**63 - 1, 0, -(2**62), -(2**63)], dtype=np.int64),
    ],
    ids=["huge", "float", "fraction", "decimal", "mixture", "uint64", "negative", "float16", "longdouble", "int64"],
)
def test_the_highest_of_widely_spaced_scores_wins_whatever_their_type(scores: object) -> None:
    """Every lead is at least 10^4, so that at ε = 10 the first item fails with probability below e^-9000."""
    for mechanism in ("oneshot", "peeling"):
        assert dps.select(scores, k=1, epsilon=10.0, mechanism=mechanism).items == [0]


def test_bool_scores_count_as_zero_and_one() -> None:
    release = dps.select(np.array([False, True, False]), k=1, epsilon=1000.0)
    assert release.items == [1]


def refused(argument: str, **options: object) -> str:
    """Return the message of select(), which must name the argument."""
    with pytest.raises(dps.InvalidInput) as caught:
        dps.select(VOTES, **{"k": 2, "epsilon": 1.0, **options})
    assert isinstance(caught.value, ValueError)
    assert caught.value.argument == argument, options
    return str(caught.value)


def test_k_must_be_a_whole_number_from_1_to_d() -> None:
    for k in (0, -1, 6, True, 2.0, "2", None, [1], 10**100, float("nan")):
        for mechanism in ("auto", "peeling"):
            refused("k", k=k, mechanism=mechanism)


def test_the_refusal_of_k_says_how_many_items_there_are() -> None:
    with pytest.raises(dps.InvalidInput, match=r"k must be at most 5 \(the number of items\), got 6"):
        dps.select(VOTES, k=6, epsilon=1.0)


def test_k_may_be_the_whole_domain() -> None:
    for k in (5, np.int64(5), np.uint8(5)):
        for mechanism in ("oneshot", "peeling"):
            assert sorted(dps.select(VOTES, k=k, epsilon=1.0, mechanism=mechanism).items) == sorted(VOTES)


def test_epsilon_must_be_positive_finite_and_usable() -> None:
    numbers = (0, -1, 0.0, -0.0, float("inf"), float("nan"), 10**400, 10**5000, 1e-300, 1e300)
    for epsilon in (*numbers, "1", True, None, 1j, [1], np.array([1.0]), Decimal("NaN"), Decimal("sNaN")):
        refused("epsilon", epsilon=epsilon)


def test_any_usable_epsilon_gives_k_items_and_plain_data() -> None:
    for epsilon in (1e-200, 1e-6, 1, 1e3, 1e200, np.float64(0.5)):
        for mechanism in ("oneshot", "peeling"):
            release = dps.select(VOTES, k=3, epsilon=epsilon, mechanism=mechanism)
            assert len(set(release.items)) == 3
            assert release.guarantee.epsilon == pytest.approx(float(epsilon), rel=1e-15)
            data = json.loads(json.dumps(release.to_dict()))
            assert data["guarantee"]["epsilon"] == data["mechanism"]["epsilon"] == release.guarantee.epsilon


def test_sensitivity_is_never_a_bare_number() -> None:
    for sensitivity in (1, 1.0, None, "counts", (0, 1)):
        assert "Sensitivity(low, high)" in refused("sensitivity", sensitivity=sensitivity)


def test_delta_must_be_a_probability_below_one() -> None:
    for delta in (-1e-9, 1, 1.5, float("nan"), "0", True):
        refused("delta", delta=delta)


def test_a_pure_mechanism_claims_no_delta_even_when_one_is_allowed() -> None:
    assert dps.select(VOTES, k=2, epsilon=1.0, delta=1e-6).guarantee == dps.Guarantee(epsilon=1.0, delta=0.0)


def test_an_unknown_mechanism_is_refused_with_the_known_names() -> None:
    for mechanism in ("", "best", None, 3, dps.OneShot):
        said = refused("mechanism", mechanism=mechanism)
        assert "auto, canonical, gamma, gaussian, joint, laplace, oneshot, peeling" in said


def test_auto_follows_public_facts_only() -> None:
    assert dps.select([0] * 5, k=2, epsilon=1.0).mechanism == dps.select(VOTES, k=2, epsilon=1.0).mechanism


def test_an_order_is_refused_where_only_the_set_is_private() -> None:
    for mechanism in ("canonical", dps.OneShot(k=2, epsilon=1.0)):
        with pytest.raises(dps.InvalidInput, match="ordered answer"):
            dps.select(VOTES, k=2, epsilon=1.0, mechanism=mechanism, ordered=True)


def test_oneshot_returns_a_set_or_a_sequence() -> None:
    release = dps.select(VOTES, k=2, epsilon=1.0, mechanism="oneshot", ordered=True)
    assert release.ordered
    assert release.mechanism == dps.OneShot(k=2, epsilon=1.0, ordered=True)
    assert release.mechanism.describe()["ordered"]
    assert not dps.select(VOTES, k=2, epsilon=1.0, mechanism="oneshot").ordered


def test_a_mechanism_object_brings_its_own_numbers() -> None:
    mechanism = dps.OneShot(k=2, epsilon=3.0, noise="gumbel", sensitivity=dps.Sensitivity(-1, 1))
    release = dps.select(VOTES, mechanism=mechanism)
    assert release.mechanism is mechanism
    assert release.k == 2
    assert dps.select(VOTES, k=2, epsilon=3.0, mechanism=mechanism).mechanism is mechanism


def test_a_mechanism_object_and_the_arguments_must_agree() -> None:
    conflicts: list[dict[str, object]] = [{"k": 3}, {"epsilon": 1.0}, {"sensitivity": dps.Sensitivity(0, 5)}]
    for conflict in conflicts:
        options = {"k": None, "epsilon": None, "mechanism": dps.OneShot(k=2, epsilon=3.0), **conflict}
        refused(next(iter(conflict)), **options)


def test_a_seed_is_a_whole_number() -> None:
    for seed in (-1, 1.5, "1", True, [1], b"1"):
        refused("seed", seed=seed)


def test_a_seed_reproduces_the_release_and_makes_it_insecure() -> None:
    scores = list(range(50))
    for seed in (0, 1, 2**200, np.int64(7)):
        for mechanism in ("oneshot", "peeling"):
            first = dps.select(scores, k=5, epsilon=0.1, mechanism=mechanism, seed=seed)
            assert first == dps.select(scores, k=5, epsilon=0.1, mechanism=mechanism, seed=seed)
            assert first.secure is first.to_dict()["secure"] is False


def test_different_seeds_and_no_seed_give_different_releases() -> None:
    """Of 100 equal items 20 are chosen in random order: equal answers have probability below 10^-39."""
    answers = [dps.select([0] * 100, k=20, epsilon=1.0, seed=seed).items for seed in (1, 2, None, None)]
    assert len({tuple(answer) for answer in answers}) == 4


@given(st.dictionaries(st.integers(), st.integers(-5, 5) | st.floats(-5, 5), min_size=1, max_size=20), st.data())
def test_the_answer_is_always_k_distinct_items_of_the_domain(scores: dict[int, float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(scores)))
    mechanism = data.draw(st.sampled_from(["oneshot", "peeling"]))
    release = dps.select(scores, k=k, epsilon=0.5, mechanism=mechanism, seed=3)
    assert len(release.items) == len(set(release.items)) == k
    assert set(release.items) <= set(scores)


def test_the_input_is_left_as_it_was() -> None:
    scores = np.array([5, 3, 9, 9])
    before = scores.copy()
    dps.select(scores, k=2, epsilon=1.0)
    assert (scores == before).all()
    read_only = before.copy()
    read_only.flags.writeable = False
    assert len(dps.select(read_only, k=2, epsilon=1.0).items) == 2


def test_a_promise_of_few_items_per_person_lets_auto_choose_laplace_or_gaussian() -> None:
    asked = {"k": 2, "epsilon": 0.5, "ordered": True}
    assert dps.select(VOTES, **asked, max_items_per_person=1).mechanism.name == "laplace"
    release = dps.select(VOTES, **asked, max_items_per_person=50, delta=1e-6, values=True)
    assert release.mechanism.name == "gaussian"
    for wrong in (0, 1.5, "2", True):
        refused("max_items_per_person", max_items_per_person=wrong)
    stated = dps.Laplace(k=2, epsilon=1.0, max_items_per_person=2)
    assert dps.select(VOTES, mechanism=stated, max_items_per_person=2).mechanism == stated
    with pytest.raises(dps.InvalidInput, match="max_items_per_person must be 2, as the mechanism object states"):
        dps.select(VOTES, mechanism=stated, max_items_per_person=1)


def test_a_pool_belongs_to_mechanisms_for_unknown_domains() -> None:
    release = dps.select(VOTES, k=2, epsilon=2.0, delta=1e-3, mechanism="limited", pool=4)
    assert release.mechanism.describe()["pool"] == 4
    refused("pool", pool=4)
    refused("pool", pool=0, mechanism="limited", delta=1e-3)
    with pytest.raises(dps.InvalidInput, match="pool must be 4, as the mechanism object states"):
        dps.select(VOTES, mechanism=release.mechanism, pool=5)
