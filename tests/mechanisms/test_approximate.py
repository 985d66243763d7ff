"""Mechanisms with a delta: larger shares for each round, and the stated (epsilon, delta) holds."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.mechanisms import MECHANISMS, Mechanism, mechanism_for
from dpselect.privacy import compose
from dpselect.verify import Domain, check_privacy, check_sampler

SCORES = [50, 3, 3, 3, -7, 20, 0, 0]

VARIANTS = [
    dps.Peeling(k=3, epsilon=1.5, noise="gumbel", delta=0.05),
    dps.Peeling(k=3, epsilon=0.5, noise="exponential", delta=0.05),
    dps.Peeling(k=3, epsilon=0.5, noise="laplace", delta=0.05),
    dps.OneShot(k=3, epsilon=1.5, noise="gumbel", delta=0.05),
    dps.OneShot(k=3, epsilon=0.1, noise="laplace", delta=0.05),
]
IDS = ["peeling-gumbel", "peeling-exponential", "peeling-laplace", "oneshot-gumbel", "oneshot-laplace"]
every = pytest.mark.parametrize("mechanism", VARIANTS, ids=IDS)


@every
def test_delta_is_a_parameter_like_any_other(mechanism: Mechanism) -> None:
    described = json.loads(json.dumps(mechanism.describe()))
    assert described["delta"] == 0.05
    kind = MECHANISMS[described.pop("name")]
    described["sensitivity"] = dps.Sensitivity(**described["sensitivity"])
    assert kind(**described) == mechanism == pickle.loads(pickle.dumps(mechanism))


@every
def test_the_answer_is_k_distinct_positions(mechanism: Mechanism) -> None:
    for scores in (SCORES, np.arange(1 << 15) // 7, dps.Scores.from_histogram([(5, 4), (3, 10**30)])):
        assert len(set(mechanism.select(scores).tolist())) == 3
    assert mechanism.select(SCORES, seed=3).tolist() == mechanism.select(SCORES, seed=3).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [VARIANTS[0], *(pytest.param(variant, marks=pytest.mark.long) for variant in VARIANTS[1:])],
    ids=IDS,
)
def test_the_sampler_draws_from_the_stated_law(mechanism: Mechanism) -> None:
    """A correct sampler fails with probability at most 1e-6; the seed is fixed."""
    assert check_sampler(mechanism, [2, 1, 0, 1], draws=1500).passed


@pytest.mark.parametrize("kind", [dps.Peeling, dps.OneShot])
def test_a_bad_delta_is_refused(kind: Any) -> None:
    for delta in (-0.1, 1, math.nan, "0.1", None):
        with pytest.raises(dps.InvalidInput, match="delta"):
            kind(k=2, epsilon=1.0, noise="gumbel", delta=delta)


def test_a_noise_without_a_proof_for_delta_refuses_it() -> None:
    for noise in ("exponential", "logistic", "half-logistic"):
        with pytest.raises(dps.InvalidInput, match=f"must be 0 for {noise} noise, got 1e-06; use gumbel or laplace"):
            dps.OneShot(k=2, epsilon=1.0, noise=noise, delta=1e-6)
    with pytest.raises(dps.InvalidInput, match=r"ordered answer with laplace noise.* use gumbel noise"):
        dps.OneShot(k=2, epsilon=0.1, noise="laplace", delta=1e-6, ordered=True)
    with pytest.raises(dps.InvalidInput, match="ordered must be True or False"):
        dps.OneShot(k=2, epsilon=0.1, ordered=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
def test_without_delta_nothing_changes(noise: str) -> None:
    mechanism = dps.Peeling(k=3, epsilon=1.5, noise=noise)
    assert mechanism.rate() == Fraction(1, 2)
    assert mechanism.guarantee == dps.Guarantee(epsilon=1.5)
    assert "delta" not in mechanism.describe()
    assert dps.OneShot(k=3, epsilon=1.5, noise=noise).rate(10**9) == Fraction(1, 2)


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
def test_peeling_states_what_its_rounds_compose_to(noise: str) -> None:
    for epsilon, k in product((0.1, 1.0, 5.0), (2, 10, 100)):
        mechanism = dps.Peeling(k=k, epsilon=epsilon, noise=noise, delta=1e-6)
        share, guarantee = mechanism.per_round(), mechanism.guarantee
        assert share >= Fraction(epsilon) / k
        assert guarantee.delta == (1e-6 if share > Fraction(epsilon) / k else 0.0)
        part = dps.Guarantee.bounded_range(float(share)) if noise == "gumbel" else dps.Guarantee(float(share))
        if guarantee.delta:
            assert compose([part] * k, delta=1e-6).epsilon <= guarantee.epsilon == epsilon
        assert guarantee.rho == pytest.approx(k * float(share) ** 2 / (8 if noise == "gumbel" else 2))


def test_many_rounds_get_several_times_the_plain_share() -> None:
    mechanism = dps.Peeling(k=200, epsilon=1.0, noise="gumbel", delta=1e-6)
    assert float(mechanism.per_round()) == pytest.approx(0.0333703, abs=1e-7)
    assert float(mechanism.per_round()) > 6 / 200


def test_one_shot_gumbel_is_peeling_with_or_without_its_order() -> None:
    sets = dps.OneShot(k=2, epsilon=0.5, noise="gumbel", delta=0.05)
    sequences = dps.Peeling(k=2, epsilon=0.5, noise="gumbel", delta=0.05)
    assert sets.guarantee == sequences.guarantee
    law = sets.law([3, 1, 0, 2])
    merged: dict[frozenset[int], float] = {}
    for sequence, probability in sequences.law([3, 1, 0, 2]).items():
        merged[frozenset(sequence)] = merged.get(frozenset(sequence), 0.0) + probability
    assert merged == pytest.approx(law, rel=1e-9)
    listed = replace(sets, ordered=True)
    assert listed.guarantee == sequences.guarantee
    assert listed.law([3, 1, 0, 2]) == pytest.approx(sequences.law([3, 1, 0, 2]), rel=1e-9)


def test_laplace_takes_the_scale_of_the_theorem_where_it_is_smaller() -> None:
    k, epsilon, delta, size = 1000, 0.2, 1e-6, 5000
    mechanism = dps.OneShot(k=k, epsilon=epsilon, noise="laplace", delta=delta, sensitivity=dps.Sensitivity(-3, 3))
    scale = 8 * 3 * math.sqrt(k * math.log(size / delta)) / epsilon
    assert 1 / float(mechanism.rate(size)) == pytest.approx(scale, rel=1e-12)
    assert scale < k * 6 / epsilon
    assert mechanism.guarantee == dps.Guarantee(epsilon, delta)


def test_laplace_grows_with_the_public_domain_up_to_the_pure_scale() -> None:
    mechanism = dps.OneShot(k=400, epsilon=0.1, noise="laplace", delta=1e-6)
    rates = [mechanism.rate(size) for size in (400, 10**4, 10**6, 10**30)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1] == Fraction(0.1) / 400


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"),
    [(0.2001, 1e-6, 5000), (0.1, 0.0501, 5000), (0.1, 1e-6, 10)],
    ids=["large epsilon", "large delta", "small k"],
)
def test_outside_the_range_of_the_theorem_laplace_is_pure(epsilon: float, delta: float, k: int) -> None:
    mechanism = dps.OneShot(k=k, epsilon=epsilon, noise="laplace", delta=delta)
    assert mechanism.rate(5000) == Fraction(epsilon) / k
    assert mechanism.guarantee == dps.Guarantee(epsilon)


def test_the_border_of_the_theorem_is_inside() -> None:
    assert dps.OneShot(k=5000, epsilon=0.2, noise="laplace", delta=0.05).guarantee.delta == 0.05


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
@pytest.mark.parametrize("delta", [pytest.param(1e-3, marks=pytest.mark.long), 0.05])
def test_the_stated_epsilon_and_delta_hold_on_all_neighbours(noise: str, delta: float) -> None:
    for epsilon, k in product((0.1, 0.5, 2.0), (2, 3)):
        mechanism = dps.Peeling(k=k, epsilon=epsilon, noise=noise, delta=delta)
        check = check_privacy(mechanism, Domain(4, 2))
        assert check.passed, check
        assert check.divergence <= mechanism.guarantee.delta + 1e-15


def test_delta_is_used_and_not_only_claimed() -> None:
    check = check_privacy(dps.Peeling(k=2, epsilon=0.5, noise="gumbel", delta=0.05), Domain(4, 2))
    assert check.worst_loss > 0.5
    assert 0.01 < check.divergence < 0.05


def test_a_name_gets_the_delta_it_can_use() -> None:
    assert mechanism_for("peeling", k=50, epsilon=1.0, delta=1e-6, noise="gumbel").guarantee.delta == 1e-6
    assert mechanism_for("peeling", k=50, epsilon=1.0, delta=1e-6) == dps.Peeling(k=50, epsilon=1.0, delta=1e-6)
    assert mechanism_for("oneshot", k=50, epsilon=1.0, delta=1e-6) == dps.OneShot(k=50, epsilon=1.0)
    assert mechanism_for("joint", k=50, epsilon=1.0, delta=1e-6) == dps.Joint(k=50, epsilon=1.0)


def test_an_object_must_not_need_more_delta_than_allowed() -> None:
    mechanism = dps.Peeling(k=50, epsilon=1.0, noise="gumbel", delta=1e-6)
    assert dps.select(range(60), mechanism=mechanism).guarantee.delta == 1e-6
    assert dps.select(range(60), mechanism=mechanism, delta=1e-5).guarantee.delta == 1e-6
    with pytest.raises(
        dps.InvalidInput, match="delta must be at least 1e-06, as the mechanism object states, got 1e-07"
    ):
        dps.select(range(60), mechanism=mechanism, delta=1e-7)


@pytest.mark.parametrize("delta", [1e-3, 0.05])
def test_what_auto_takes_tells_two_items_apart_at_least_as_well(delta: float) -> None:
    """At the gap where the other has 0.99, so that 99 answers of 100 are right."""
    for epsilon in (0.05, 0.2, 0.5, 2.0):
        gap = math.log(50) / epsilon
        chosen = mechanism_for("auto", k=1, epsilon=epsilon, delta=delta)
        assert chosen.law([gap, 0])[frozenset({0})] >= 0.99 - 1e-9


def test_report_noisy_max_is_not_of_bounded_range() -> None:
    """Two of four tied items gain 1: the losses spread over more than ε₀, so the bounds of gumbel noise do not hold."""
    one = dps.Peeling(k=1, epsilon=0.1, noise="laplace")
    here, there = one.law([0, 0, 0, 0]), one.law([1, 1, 0, 0])
    losses = [math.log(there[outcome] / here[outcome]) for outcome in here]
    assert max(losses) - min(losses) == pytest.approx(0.1 * 1.1658, rel=1e-4)
    assert max(map(abs, losses)) < 0.1


def test_rounds_of_report_noisy_max_cost_as_much_as_rounds_of_permute_and_flip() -> None:
    for k in (2, 10, 300):
        laplace, flip = (dps.Peeling(k=k, epsilon=1.0, noise=noise, delta=1e-6) for noise in ("laplace", "exponential"))
        assert laplace.guarantee == flip.guarantee
        assert laplace.rate() == flip.rate()
