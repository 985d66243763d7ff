"""Behaviour of the mechanisms for unknown domains; laws and samplers are checked by tests/verify."""

from __future__ import annotations

import json
import math
import pickle
import tracemalloc
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.errors import InvalidInput
from dpselect.mechanisms import FOR_UNKNOWN_DOMAINS, PooledDomain, UnknownDomain, described_mechanism, mechanism_for
from dpselect.mechanisms.limited import with_dummy
from dpselect.mechanisms.unknown import FEW, Pool
from dpselect.sampling import BitSource, bit_source
from dpselect.sampling.laws import threshold_probability
from dpselect.sampling.threshold import MeasuredField
from dpselect.scores import Members
from dpselect.verify import Domain, check_privacy, check_sampler
from dpselect.verify.broken.unknown import LowestDummy
from dpselect.verify.subjects import UNKNOWN_UNDER_TEST

EVERY: list[UnknownDomain] = [
    dps.Restricted(inner=dps.Canonical(k=3, epsilon=1.0), pool=6, test_epsilon=2.0, test_delta=1e-3),
    dps.Restricted(inner=dps.Joint(k=3, epsilon=1.0), pool=6, test_epsilon=2.0, test_delta=1e-3),
    dps.Restricted(
        inner=dps.Peeling(k=3, epsilon=1.0, noise="gumbel", delta=1e-3), pool=6, test_epsilon=2.0, test_delta=1e-3
    ),
    dps.Restricted(
        inner=dps.Gaussian(k=3, epsilon=1.0, delta=1e-3, max_items_per_person=4),
        pool=6,
        test_epsilon=2.0,
        test_delta=1e-3,
    ),
    dps.LimitedDomain(k=3, epsilon=3.0, delta=1e-3, pool=6),
    dps.LimitedDomain(k=3, epsilon=3.0, delta=1e-3, pool=6, max_items_per_person=2, noise="laplace"),
    dps.LimitedDomain(k=3, epsilon=3.0, delta=1e-3, pool=6, pool_epsilon=1.0),
    dps.TopStable(k=3, epsilon=3.0, delta=1e-3, pool=6),
    dps.TopStable(k=3, epsilon=3.0, delta=1e-3, pool=3),
    dps.Discovered(
        inner=dps.Canonical(k=3, epsilon=1.0), discovery=dps.Discovery(epsilon=2.0, delta=1e-3, max_items_per_person=4)
    ),
]
IDS = [
    "canonical",
    "joint",
    "peeling",
    "gaussian",
    "limited",
    "limited-laplace",
    "limited-chosen",
    "top-stable",
    "top-stable-k",
    "discovered",
]
every = pytest.mark.parametrize("mechanism", EVERY, ids=IDS)
pooled = pytest.mark.parametrize("mechanism", EVERY[:-1], ids=IDS[:-1])
"""All mechanisms, and those that see a pool, which a discovery does not."""
LEADING = [0, 90_000, 1, 30_000, 60_000, 1, 2, 0]


def test_no_mechanism_is_left_out() -> None:
    assert {mechanism.name for mechanism in EVERY} == set(FOR_UNKNOWN_DOMAINS) == set(UNKNOWN_UNDER_TEST)


@every
def test_a_mechanism_is_a_frozen_value_that_states_its_guarantee(mechanism: UnknownDomain) -> None:
    with pytest.raises(FrozenInstanceError):
        mechanism.k = 9  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert hash(pickle.loads(pickle.dumps(mechanism))) == hash(mechanism)
    assert mechanism.guarantee.epsilon == mechanism.epsilon == 3.0
    assert 0 < mechanism.guarantee.delta <= math.nextafter(2e-3, 1)
    described = json.loads(json.dumps(mechanism.describe()))
    assert {key: described[key] for key in ("name", "k", "epsilon")} == {"name": mechanism.name, "k": 3, "epsilon": 3.0}
    assert described_mechanism(described) == mechanism
    if isinstance(mechanism, PooledDomain):
        assert replace(mechanism, pool=7) != mechanism
        assert described["pool"] == mechanism.pool


@every
def test_items_that_lead_by_far_are_chosen(mechanism: UnknownDomain) -> None:
    """Each lead of 30,000 is lost with probability below e^-4000."""
    positions = mechanism.select(LEADING).tolist()
    assert sorted(positions) == [1, 3, 4]
    if mechanism.ordered:
        assert positions == [1, 4, 3]


@every
def test_no_item_gives_no_answer_and_no_error(mechanism: UnknownDomain) -> None:
    nothings: list[Any] = [[], {}, np.zeros(0), [0, 0, 0], {"a": 0}, [-5]]
    for nothing in nothings:
        assert mechanism.select(nothing).tolist() == []
        assert mechanism.law(nothing) == {(() if mechanism.ordered else frozenset()): pytest.approx(1.0)}


@every
def test_fewer_items_than_the_pool_or_than_k_are_answered_as_far_as_there_are_any(mechanism: UnknownDomain) -> None:
    release = dps.select({"only": 10**6, "other": 10**6}, mechanism=mechanism)
    # Top-stable finds the gap right after rank 2; for others a nameless third item ends the answer, if there is a pool.
    assert set(release.items) <= {"only", "other"}
    assert release.k == 3
    assert release.stopped
    if isinstance(mechanism, PooledDomain):
        mechanism = replace(mechanism, pool=6)
    assert dps.select({"only": 10**6}, mechanism=mechanism).items in ([], ["only"])


@pytest.mark.slow
@every
def test_items_that_one_person_has_are_hardly_ever_released(mechanism: UnknownDomain) -> None:
    """All counts 1: any answer has probability at most δ <= 2e-3; more than 12 of 300 would have probability 1e-11."""
    shown = sum(bool(mechanism.select([1] * 8, seed=seed).tolist()) for seed in range(300))
    assert shown <= 12


@every
def test_a_seed_reproduces_the_answer(mechanism: UnknownDomain) -> None:
    scores = [54, 52, 44, 22, 9, 3, 3, 3, 1]
    answers = [mechanism.select(scores, seed=seed).tolist() for seed in range(60)]
    assert answers == [mechanism.select(scores, seed=seed).tolist() for seed in range(60)]
    assert len({tuple(answer) for answer in answers}) > 1
    assert all(len(set(answer)) == len(answer) <= 3 for answer in answers)


@every
def test_scores_of_every_type_of_number_are_accepted(mechanism: UnknownDomain) -> None:
    for factor in (1, 1.0, 10**30, Fraction(1, 3)):
        positions = mechanism.select([score * factor for score in (5 * 10**6, 4 * 10**6, 3 * 10**6, 1, 1, 1, 1)])
        assert sorted(positions.tolist()) == [0, 1, 2]


def test_the_rows_of_an_engine_give_the_same_pool_as_all_scores() -> None:
    """The pool from the top rows and the next score is the pool of all scores, including nameless items."""
    mechanism = EVERY[0]
    tables: list[Any] = [[9, 8, 8, 7, 5, 5, 5, 5, 2], [3, 2], [], [4] * 9, [6.5, 2.25, 2.25]]
    for scores, size in product(tables, (3, 6)):
        ranked = sorted(scores, reverse=True)
        rows = Pool.of_rows(ranked[:size], size, ranked[size] if len(ranked) > size else 0)
        whole = Pool.of(mechanism.table(scores), size)
        assert rows.scores.exact() == whole.scores.exact()
        assert rows.following == whole.following
        assert rows.named == whole.named
        assert rows.scores.size == size


def test_positions_of_rows_count_down_the_scores() -> None:
    mechanism = dps.LimitedDomain(k=3, epsilon=3.0, delta=1e-3, pool=6)
    pool = Pool.of_rows([90_000, 60_000, 30_000, 3, 2, 1], 6, 1)
    assert mechanism.draw_from(pool, bit_source()).positions().tolist() == [0, 1, 2]


def test_of_items_tied_at_the_edge_each_is_inside_the_pool_equally_often() -> None:
    """Ten tied items for a pool of two; χ² with 9 degrees of freedom exceeds 50 with probability 1e-7."""
    mechanism = dps.Restricted(inner=dps.Canonical(k=2, epsilon=1.0), pool=2, test_epsilon=1.0, test_delta=0.9)
    kept = np.zeros(10)
    for seed in range(1500):
        kept[mechanism.select([1000] * 10, seed=seed)] += 1
    assert kept.sum() > 500
    assert ((kept - kept.mean()) ** 2).sum() / kept.mean() < 50
    law = mechanism.law([1000] * 10)
    assert law[frozenset({3})] == pytest.approx(law[frozenset({7})], rel=1e-12)


def test_ties_may_be_broken_by_any_order_that_does_not_depend_on_the_data() -> None:
    """Ties at the edge by position, a fixed order of labels, keep the guarantee as well as uniform ones."""

    class ByPosition(dps.Restricted):
        def law(self, scores: Any) -> Any:
            ranked = sorted(
                (place for place, score in enumerate(scores) if score > 0), key=lambda place: -scores[place]
            )
            size = self.pool_size
            held = [Fraction(scores[place]) for place in ranked[:size]]
            following = Fraction(scores[ranked[size]]) if len(ranked) > size else Fraction(0)
            law = self.ranked_law((*held, *[Fraction(0)] * (size - len(held))), len(held), following)
            return {frozenset(ranked[rank] for rank in kept): value for kept, value in law.items()}

    mechanism = ByPosition(inner=dps.Canonical(k=2, epsilon=1.0), pool=3, test_epsilon=2.0, test_delta=0.1)
    check = check_privacy(mechanism, Domain(4, 3))
    assert check.divergence <= check.delta * (1 + 1e-9)
    assert check.faults == ("permuting the items does not permute the law",)


def test_the_guarantee_is_the_sum_of_both_parts() -> None:
    inner = dps.Peeling(k=10, epsilon=0.5, noise="gumbel", delta=1e-7)
    mechanism = dps.Restricted(inner=inner, test_epsilon=0.25, test_delta=3e-7)
    assert mechanism.guarantee.epsilon == 0.75
    assert mechanism.guarantee.delta == pytest.approx(4e-7)
    assert Fraction(mechanism.guarantee.delta) >= Fraction(1e-7) + Fraction(3e-7)
    assert mechanism.pool == 100
    assert mechanism == dps.Restricted(k=10, epsilon=0.75, inner=inner, test_epsilon=0.25, test_delta=3e-7)


def test_the_default_pool_is_ten_items_for_each_that_is_asked_for() -> None:
    assert dps.LimitedDomain(k=7, epsilon=1.0, delta=1e-6).pool == 70
    assert dps.TopStable(k=7, epsilon=1.0, delta=1e-6).pool == 70


INNER = dps.Canonical(k=3, epsilon=1.0)


BAD_PARAMETERS: list[tuple[Any, str]] = [
    (lambda: dps.Restricted(inner=INNER, pool=2, test_epsilon=1.0, test_delta=0.1), "pool"),
    (lambda: dps.Restricted(inner=INNER, pool=2.5, test_epsilon=1.0, test_delta=0.1), "pool"),  # type: ignore[arg-type]
    (lambda: dps.Restricted(inner=INNER, test_epsilon=0, test_delta=0.1), "test_epsilon"),
    (lambda: dps.Restricted(inner=INNER, test_epsilon=1e300, test_delta=0.1), "test_epsilon"),
    (lambda: dps.Restricted(inner=INNER, test_epsilon=1.0, test_delta=0), "test_delta"),
    (lambda: dps.Restricted(inner=INNER, test_epsilon=1.0, test_delta=1), "test_delta"),
    (lambda: dps.Restricted(inner=INNER, test_epsilon=1.0, test_delta="x"), "test_delta"),  # type: ignore[arg-type]
    (lambda: dps.Restricted(inner="canonical", test_epsilon=1.0, test_delta=0.1), "inner"),  # type: ignore[arg-type]
    (lambda: dps.Restricted(inner=EVERY[0], test_epsilon=1.0, test_delta=0.1), "inner"),
    (lambda: dps.Restricted(k=4, inner=INNER, test_epsilon=1.0, test_delta=0.1), "k"),
    (lambda: dps.Restricted(epsilon=1.0, inner=INNER, test_epsilon=1.0, test_delta=0.1), "epsilon"),
    (
        lambda: dps.Restricted(
            inner=replace(INNER, sensitivity=dps.Sensitivity(1, 2)), test_epsilon=1.0, test_delta=0.1
        ),
        "sensitivity",
    ),
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0), "delta"),
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0, delta=0.1, pool=1), "pool"),
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0, delta=0.1, pool=10**12), "pool"),
    (lambda: dps.TopStable(k=3, epsilon=1.0, delta=0.1, pool=2**70), "pool"),
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0, delta=0.1, noise="laplace"), "max_items_per_person"),
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0, delta=0.1, max_items_per_person=0), "max_items_per_person"),
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0, delta=0.1, noise="exponential"), "noise"),
    (
        lambda: dps.LimitedDomain(
            k=3,
            epsilon=1.0,
            delta=0.1,
            noise="laplace",
            max_items_per_person=2,
            sensitivity=dps.Sensitivity(-1, 1),
        ),
        "sensitivity",
    ),
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0, delta=0.1, pool_epsilon=1.0), "pool_epsilon"),
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0, delta=0.1, pool_epsilon=-1.0), "pool_epsilon"),
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0, delta=0.1, pool_epsilon="x"), "pool_epsilon"),  # type: ignore[arg-type]
    (lambda: dps.LimitedDomain(k=3, epsilon=1.0, delta=0.1, pool=3, pool_epsilon=0.5), "pool"),
    (lambda: dps.TopStable(k=3, epsilon=1.0), "delta"),
    (lambda: dps.TopStable(k=0, epsilon=1.0, delta=0.1), "k"),
]


def test_bad_parameters_are_refused_by_name() -> None:
    for make, argument in BAD_PARAMETERS:
        with pytest.raises(dps.InvalidInput) as caught:
            make()
        assert caught.value.argument == argument


@pytest.mark.parametrize("mechanism", [EVERY[0], EVERY[1]], ids=["set", "sequence"])
def test_the_law_of_a_pool_too_large_to_list_is_refused(mechanism: UnknownDomain) -> None:
    with pytest.raises(dps.InvalidInput, match="smaller pool"):
        replace(mechanism, pool=1000).law([1, 2, 3])


@pytest.mark.parametrize("mechanism", [EVERY[0], EVERY[4], EVERY[7]], ids=["restricted", "limited", "top-stable"])
def test_bad_scores_are_refused(mechanism: UnknownDomain) -> None:
    for bad in ([1, float("nan")], ["a", "b"], None, [[1, 2, 3, 4]]):
        with pytest.raises(dps.InvalidInput, match="scores"):
            mechanism.select(bad)


def test_top_stable_answers_the_same_on_neighbours_where_its_published_program_does_not() -> None:
    """The gap behind rank 1 is 0 and 1, so that any answer has probability at most δ."""
    mechanism = dps.TopStable(k=1, epsilon=1.0, delta=1e-6, pool=1)
    for scores in ([1000, 1000], [1000, 1001]):
        assert mechanism.law(scores)[frozenset()] >= 1 - 1.000001e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    "inner",
    [dps.Canonical(k=2, epsilon=2.0), pytest.param(dps.Joint(k=2, epsilon=2.0), marks=pytest.mark.long)],
    ids=["set", "sequence"],
)
def test_draws_follow_the_law_and_not_that_of_a_fresh_threshold_for_each_test(inner: dps.Mechanism) -> None:
    """Scores near the threshold make the shared noise visible; a correct sampler fails with probability 1e-6."""

    class Fresh(dps.Restricted):
        def law(self, scores: Any) -> Any:
            sound = super().law(scores)
            rate, height = self.rate(), self.height()
            first, second = (threshold_probability([float(rate * score - height)], []) for score in scores)
            kind, law = type(next(iter(sound))), dict.fromkeys(sound, 0.0)
            for chosen, probability in self.inner.law(scores).items():
                walks = [tuple(chosen)] if self.ordered else [tuple(chosen), tuple(chosen)[::-1]]
                for walk in walks:
                    passes = [(first, second)[place] for place in walk]
                    share = probability / len(walks)
                    law[kind(walk)] += share * passes[0] * passes[1]
                    law[kind(walk[:1])] += share * passes[0] * (1 - passes[1])
                    law[kind()] += share * (1 - passes[0])
            return law

    scores = [4, 3]
    parameters: dict[str, Any] = {"inner": inner, "pool": 2, "test_epsilon": 2.0, "test_delta": 0.1}
    assert sum(Fresh(**parameters).law(scores).values()) == pytest.approx(1.0)
    assert check_sampler(dps.Restricted(**parameters), scores, draws=3000).passed
    assert not check_sampler(Fresh(**parameters), scores, draws=3000).passed


CHOSEN: dict[str, Any] = {"k": 1, "epsilon": 2.25, "delta": 0.2, "pool": 3, "pool_epsilon": 0.25}


@pytest.mark.slow
@pytest.mark.parametrize("scores", [[6, 5, 5, 1], [7, 4], [5, 5, 5, 5]], ids=str)
def test_draws_with_a_chosen_pool_follow_the_law_and_not_that_of_the_lowest_dummy(scores: list[int]) -> None:
    """Tables with ties inside and at the edge of the pool; a correct sampler fails with probability 1e-6."""
    sound, broken = dps.LimitedDomain(**CHOSEN), LowestDummy(**CHOSEN)
    assert check_sampler(sound, scores, draws=3000).passed
    if scores == [6, 5, 5, 1]:
        assert not check_sampler(broken, scores, draws=3000).passed


def test_a_pool_is_chosen_by_permute_and_flip_among_the_dummies() -> None:
    """The dummies of pools 1, 2 and 3 behind [9, 8, 1, 0] are 8, 1 and 0, and what hides 1, 2 and 3 items."""
    mechanism = dps.LimitedDomain(**CHOSEN)
    dummies = [following + mechanism.with_pool(size).lead() for size, following in ((1, 8), (2, 1), (3, 0))]
    chosen = dps.OneShot(k=1, epsilon=0.25).law([-dummy for dummy in dummies])
    expected: dict[Any, float] = {}
    for size in (1, 2, 3):
        for answer, probability in mechanism.with_pool(size).law([9, 8, 1]).items():
            expected[answer] = expected.get(answer, 0.0) + chosen[frozenset({size - 1})] * probability
    assert mechanism.with_pool(2).guarantee == dps.Guarantee(2.0, 0.2)
    assert mechanism.law([9, 8, 1]) == {answer: pytest.approx(value, rel=1e-9) for answer, value in expected.items()}


class FromRows(dps.Restricted):
    """Draws from rows as an engine returns them, as top() does."""

    def draw(self, scores: dps.Scores, bits: BitSource) -> Members:
        ranked = sorted(scores.exact(), reverse=True)
        following = ranked[self.pool_size] if len(ranked) > self.pool_size else 0
        return self.draw_from(Pool.of_rows(ranked[: self.pool_size], self.pool_size, following), bits)


@pytest.mark.parametrize(
    ("inner", "scores"),
    [
        pytest.param(dps.Peeling(k=2, epsilon=2.0, noise="gumbel"), [9, 5, 5, 2], marks=pytest.mark.slow),
        *(
            pytest.param(inner, scores, marks=pytest.mark.long)
            for inner in (
                dps.Peeling(k=2, epsilon=2.0),
                dps.Canonical(k=2, epsilon=2.0),
                dps.Joint(k=2, epsilon=2.0),
                dps.OneShot(k=2, epsilon=2.0, noise="laplace"),
                dps.Gaussian(k=2, epsilon=2.0, delta=0.1, max_items_per_person=2),
            )
            for scores in ([9, 5, 5, 2], [6, 2], [7, 7, 7])
        ),
    ],
    ids=lambda value: value.name if isinstance(value, dps.Mechanism) else str(value),
)
def test_draws_from_the_rows_of_an_engine_follow_the_law(inner: dps.Mechanism, scores: list[int]) -> None:
    """A correct sampler fails each check with probability at most 1e-6."""
    mechanism = FromRows(inner=inner, pool=3, test_epsilon=2.0, test_delta=0.1)
    assert check_sampler(mechanism, scores, draws=1500).passed


@pytest.mark.slow
def test_draws_from_rows_are_told_from_those_of_a_pool_that_forgets_its_next_score() -> None:
    class Forgetful(FromRows):
        def draw_from(self, pool: Pool, bits: BitSource) -> Members:
            return super().draw_from(replace(pool, following=0), bits)

    inner = dps.Peeling(k=2, epsilon=2.0, noise="gumbel")
    mechanism = Forgetful(inner=inner, pool=3, test_epsilon=2.0, test_delta=0.1)
    assert not check_sampler(mechanism, [9, 5, 5, 2], draws=1500).passed


@pytest.mark.parametrize("pool", [3, FEW + 20])
@pytest.mark.parametrize("epsilon", [0.3])
def test_a_person_moves_the_dummy_exactly_as_the_next_score(epsilon: float, pool: int) -> None:
    """If it were rounded to a float, one person could move it by 1 + 2.8e-14, at ε = 0.3 and a next score of 105."""
    mechanism = dps.LimitedDomain(k=3, epsilon=epsilon, delta=1e-6, pool=pool)
    for following in (*range(400), 10**6, 2**52 - 1, 0.1, 2.0**-40):
        moved = Fraction(following) + 1
        assert mechanism.dummy(moved) - mechanism.dummy(following) == 1
    scores = np.array([2**53 - 1, 3])
    assert [Fraction(score) for score in with_dummy(scores, mechanism.dummy(1)).tolist()][-1] == mechanism.dummy(1)


@pytest.mark.slow
@pooled
def test_a_pool_that_is_mostly_nameless_is_drawn_as_groups(mechanism: PooledDomain) -> None:
    """The gaps are lost with probability below e^-1000."""
    wide = replace(mechanism, pool=FEW + 100)
    for scores in ([10**6, 10**6 - 40_000, 10**6 - 80_000], []):
        members = wide.draw_from(Pool.of_rows(scores, wide.pool_size, 0), bit_source(1))
        assert sorted(members.positions().tolist()) == list(range(len(scores)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "scores",
    [[9, 5, 5, 2], *(pytest.param(scores, marks=pytest.mark.long) for scores in ([6, 2], [7, 7, 7]))],
    ids=str,
)
@pytest.mark.parametrize(
    "mechanism",
    [
        dps.LimitedDomain(k=2, epsilon=2.0, delta=0.2, pool=5),
        dps.LimitedDomain(k=2, epsilon=3.0, delta=0.2, pool=5, max_items_per_person=2, noise="laplace"),
        dps.TopStable(k=2, epsilon=4.0, delta=0.4, pool=5),
    ],
    ids=["limited", "limited-laplace", "top-stable"],
)
def test_draws_with_nameless_items_in_one_group_follow_the_law(
    mechanism: UnknownDomain, scores: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A correct sampler fails each check with probability at most 1e-6."""
    monkeypatch.setattr("dpselect.mechanisms.unknown.FEW", 0)
    assert check_sampler(mechanism, scores, draws=1500).passed


def test_a_pool_of_millions_without_items_takes_little_memory() -> None:
    """One byte for each of ten million nameless items would already be more."""
    for name in ("restricted", "limited", "top-stable"):
        mechanism = mechanism_for(name, k=5, epsilon=1.0, delta=1e-6, pool=10**7)
        tracemalloc.start()
        try:
            assert mechanism.select({"a": 1, "b": 1}, seed=1).tolist() == []
            assert tracemalloc.get_traced_memory()[1] < 10**7
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("epsilon", [1.5e-249, 1e260])
def test_an_epsilon_out_of_range_is_refused_as_it_was_given(epsilon: float) -> None:
    for name in ("restricted", "top-stable"):
        with pytest.raises(InvalidInput) as caught:
            mechanism_for(name, k=10, epsilon=epsilon, delta=1e-6)
        assert (caught.value.argument, caught.value.given) == ("epsilon", epsilon)
    with pytest.raises(InvalidInput) as caught:
        dps.RestrictedGumbel(k=3, epsilon=1.0, delta=1e-6, test_epsilon=1e-300)
    assert (caught.value.argument, caught.value.given) == ("test_epsilon", 1e-300)


def test_the_next_score_is_subtracted_without_error_whatever_kind_of_number_it_is() -> None:
    """Of the float 2^60 and the fraction 2^60 − 1/3 Python makes the float 0."""
    near = Fraction(2**60) - Fraction(1, 3)
    pool = Pool.of_rows([Fraction(2**60 + 256), Fraction(2**60)], 2, near)
    entrants = MeasuredField(pool.scores.entries.values, Fraction(1), None, 1, origin=pool.following)
    assert entrants.locations(slice(None)).tolist() == [256 + 1 / 3, 1 / 3]
    gaps = dps.TopStable(k=1, epsilon=1.0, delta=0.1, pool=2, sensitivity=dps.Sensitivity(0, 0.125))._gaps(pool)
    assert gaps.tolist() == [256, Fraction(1, 3)]
