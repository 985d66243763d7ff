"""The Lipschitz mechanism with a noise of one's own: what the grid refuses, what is promised, and what is drawn."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import dpselect as dps
from dpselect.sampling.noise import NOISES, NORMAL, UNIFORM, Noise
from dpselect.verify import Domain, check_groups, check_privacy, check_sampler
from dpselect.verify.own_noises import SECANT, STEPS
from dpselect.verify.sampler import vector_groups

VOTES = {"tea": 900, "coffee": 700, "milk": 1, "mate": 3}
SCIPY = scipy.stats.hypsecant()


def lipschitz(noise: Any, *, k: int = 2, epsilon: float = 1.0) -> dps.Lipschitz:
    return dps.Lipschitz(k=k, epsilon=epsilon, noise=noise)


@pytest.mark.parametrize("noise", list(NOISES))
def test_with_one_of_our_noises_it_is_one_shot_and_promises_nothing(noise: str) -> None:
    mechanism = lipschitz(NOISES[noise])
    scores = [3, 1, 0, 2]
    assert mechanism.law(scores) == dps.OneShot(k=2, epsilon=1.0, noise=noise).law(scores)
    assert mechanism.exact
    assert mechanism.promise == ""


def test_the_law_of_a_scipy_noise_is_that_of_the_same_noise_written_by_hand() -> None:
    ours, theirs = lipschitz(SECANT).law([3, 1, 0, 2]), lipschitz(SCIPY).law([3, 1, 0, 2])
    assert ours == {outcome: pytest.approx(theirs[outcome], rel=1e-10) for outcome in theirs}


@pytest.mark.parametrize(
    ("noise", "place"),
    [
        (scipy.stats.norm(), 0.303),
        (NORMAL, 0.303),
        (scipy.stats.norm(scale=30), 899),
        (scipy.stats.laplace(scale=0.999), 0.0),
        (scipy.stats.t(3), 0.635),
        (scipy.stats.uniform(), 0.0),
        (UNIFORM, 0.0),
        (scipy.stats.dweibull(1.1), 0.386),
    ],
    ids=lambda value: getattr(getattr(value, "dist", value), "name", ""),
)
def test_a_noise_that_is_not_lipschitz_is_refused_with_the_place_where_it_fails(noise: Any, place: float) -> None:
    with pytest.raises(dps.InvalidInput, match="1-Lipschitz") as caught:
        lipschitz(noise)
    near = float(str(caught.value).split(" near ")[1].split(" and ")[0])
    assert near == pytest.approx(place, rel=0.01, abs=0.01)


@pytest.mark.parametrize(
    "noise",
    [
        scipy.stats.laplace(),
        scipy.stats.laplace(loc=5, scale=3),
        scipy.stats.cauchy(),
        scipy.stats.gamma(2),
        scipy.stats.genlogistic(0.5),
        scipy.stats.moyal(),
        SCIPY,
        SECANT,
        STEPS,
    ],
    ids=lambda noise: getattr(getattr(noise, "dist", noise), "name", ""),
)
def test_a_noise_that_is_lipschitz_is_accepted_and_draws_k_items(noise: Any) -> None:
    """The sf of genlogistic and moyal is 1 − cdf, without digits in the tail: the check stops where they end."""
    mechanism = lipschitz(noise, epsilon=1e9)
    assert sorted(mechanism.select([9, 5, 1, 7], seed=1).tolist()) == [0, 3]


class Changed:
    """The hyperbolic secant with one function replaced."""

    def __init__(self, **changes: Any) -> None:
        for name in ("cdf", "sf", "ppf", "isf", "pdf"):
            setattr(self, name, getattr(SCIPY, name))
        for name, change in changes.items():
            setattr(self, name, change)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ("gumbel", "methods cdf, sf, ppf, isf, pdf"),
        (None, "methods"),
        (scipy.stats.poisson(3), "methods"),
        (Changed(isf=None), "methods"),
        (Changed(isf=lambda tail: SCIPY.isf(tail) / 2), "inverse of sf"),
        (Changed(isf=lambda tail: np.full(np.shape(tail), np.nan)), "inverse of sf"),
        (Changed(pdf=lambda z: 3 * SCIPY.pdf(z)), "1-Lipschitz"),
        (Changed(pdf=lambda z: z * np.nan), "1-Lipschitz"),
        (Changed(ball_quantile=lambda exponent: -exponent.log()), "ball_quantile"),
        (Changed(ball_quantile=lambda exponent: exponent / 0), "ball_quantile"),
    ],
)
def test_functions_that_are_missing_or_contradict_each_other_are_refused(noise: Any, message: str) -> None:
    with pytest.raises(dps.InvalidInput, match=message) as caught:
        lipschitz(noise)
    assert caught.value.argument == "noise"


def test_a_steep_place_between_the_points_of_the_grid_is_not_seen() -> None:
    """Why the condition is a promise: between 1 and 1 + 1e-9 this noise loses 2e-9 of its survival."""
    bump = 1e-9

    def total(z: Any) -> Any:
        return np.maximum(z, 0.0) + np.clip(z - 1, 0.0, bump)

    def at(hazard: Any) -> Any:
        return np.where(hazard < 1, hazard, np.maximum((hazard + 1) / 2, hazard - bump))

    noise = Changed(
        cdf=lambda z: -np.expm1(-total(z)),
        sf=lambda z: np.exp(-total(z)),
        pdf=lambda z: np.where(z < 0, 0.0, np.exp(-total(z))),
        isf=lambda tail: at(-np.log(tail)),
        ppf=lambda p: at(-np.log1p(-p)),
    )
    assert lipschitz(noise).promise


def test_a_law_that_quadrature_cannot_integrate_is_refused() -> None:
    for noise in (scipy.stats.cauchy(), scipy.stats.laplace(loc=1000), scipy.stats.laplace()):
        with pytest.raises(dps.InvalidInput, match="kinks"):
            lipschitz(noise).law([3, 1, 0])
    laplace = scipy.stats.laplace()
    laplace.kinks = (0.0,)
    expected = dps.OneShot(k=2, epsilon=1.0, noise="laplace").law([3, 1, 0])
    assert lipschitz(laplace).law([3, 1, 0]) == {each: pytest.approx(expected[each], rel=1e-9) for each in expected}


@pytest.mark.parametrize("noise", [SECANT, STEPS], ids=["balls", "floats"])
def test_the_guarantee_holds_over_all_neighbours(noise: Any) -> None:
    assert check_privacy(lipschitz(noise), Domain(4, 2)).passed
    assert check_privacy(
        replace(lipschitz(noise), sensitivity=dps.Sensitivity(-1, 1)), Domain(3, 1, dps.Sensitivity(-1, 1))
    ).passed


@pytest.mark.slow
@pytest.mark.parametrize("noise", [SECANT, STEPS, SCIPY, NOISES["gumbel"]], ids=["balls", "floats", "scipy", "ours"])
def test_draws_follow_the_law_with_ties_and_with_groups_larger_than_memory(noise: Any) -> None:
    """A correct sampler fails each check with probability at most 1e-6."""
    mechanism = lipschitz(noise, epsilon=2.0)
    assert check_sampler(mechanism, [3, 1, 0, 2, 1], draws=1000).passed
    assert check_sampler(mechanism, dps.Scores.from_histogram([2, 1, 0], [1, 3, 2]), draws=1000).passed
    values, sizes = [40, 21, 0], [3, 10**9, 10**18]
    assert check_groups(mechanism, values, sizes, vector_groups(mechanism, values, sizes), draws=1000).passed
    wrong = vector_groups(replace(mechanism, epsilon=3.0), values, sizes)
    assert not check_groups(mechanism, values, sizes, wrong, draws=1000).passed


def test_a_heavy_tail_lets_items_win_that_are_far_behind() -> None:
    """The difference of two cauchy noises exceeds 100 with probability 0.0064: 2,500 draws miss it with 1.1e-7."""
    mechanism, scores = lipschitz(scipy.stats.cauchy(), k=1, epsilon=1.0), dps.Scores.of([100, 0])
    winners = {int(mechanism.select(scores, seed=seed)[0]) for seed in range(2500)}
    assert winners == {0, 1}


def test_a_release_says_what_it_takes_on_trust_and_no_ledger_takes_it(tmp_path: Path) -> None:
    mechanism = lipschitz(SCIPY)
    release = dps.select(VOTES, mechanism=mechanism)
    assert not release.secure
    promise = "log(1 - F) of the noise hypsecant is 1-Lipschitz"
    assert release.guarantee.neighbours == f"add or remove, if the promise holds that {promise}"
    described = json.loads(json.dumps(release.to_dict()))["mechanism"]
    assert (described["noise"], described["promise"]) == ("hypsecant", promise)
    with pytest.raises(dps.InvalidInput, match="must draw exactly"):
        dps.select(VOTES, mechanism=mechanism, ledger=ledger(tmp_path), dataset="votes")


def test_with_an_inverse_in_balls_a_release_is_secure_and_charged_by_promise(tmp_path: Path) -> None:
    place = ledger(tmp_path)
    release = dps.select(VOTES, mechanism=lipschitz(SECANT), ledger=place, dataset="votes")
    assert release.secure
    assert release.guarantee.neighbours.endswith("1-Lipschitz, and its ball_quantile contains the inverse of F")
    with dps.ledger.Ledger(place) as opened:
        assert opened.spent("votes").epsilon == 1.0
    in_balls = Changed(ball_quantile=SECANT.ball_quantile)
    assert dps.select(VOTES, mechanism=lipschitz(in_balls)).secure


def ledger(folder: Path) -> str:
    place = f"{folder / 'books'}.db"
    with dps.ledger.Ledger(place) as opened:
        opened.create("votes", epsilon=5.0)
    return place


def test_it_is_a_value_that_can_be_pickled_inside_restricted_too() -> None:
    for noise in (SCIPY, STEPS):
        mechanism = lipschitz(noise)
        mechanism.law([3, 1, 0])
        again = pickle.loads(pickle.dumps(mechanism))
        assert again.law([3, 1, 0]) == mechanism.law([3, 1, 0])
        assert hash(again) == hash(mechanism)
    inner = lipschitz(STEPS)
    restricted = dps.Restricted(inner=inner, pool=3, test_epsilon=2.0, test_delta=0.1)
    assert check_privacy(restricted, Domain(4, 2)).passed
    assert not restricted.exact
    assert restricted.promise == inner.promise


def test_names_show_the_arguments_of_a_scipy_distribution() -> None:
    assert lipschitz(scipy.stats.laplace(loc=1, scale=2)).describe()["noise"] == "laplace(loc=1, scale=2)"
    assert lipschitz(Changed()).describe()["noise"] == "Changed"
    assert lipschitz(SECANT).describe()["noise"] == "hyperbolic secant"


def test_there_is_no_forecast_but_draws() -> None:
    mechanism = lipschitz(SCIPY)
    assert dps.forecast.reach(mechanism, 100) is None
    with pytest.raises(dps.InvalidInput, match="exact curve"):
        dps.forecast.success([9, 5, 1], mechanism)
    outlook = dps.forecast.forecast([90, 50, 1], mechanism, draws=400, seed=1)
    assert outlook.exact is not None
    assert math.isclose(outlook.exact.value, mechanism.law([90, 50, 1])[frozenset({0, 1})], abs_tol=0.1)


def test_a_noise_object_is_taken_as_it_is() -> None:
    assert isinstance(SECANT, Noise)
    assert lipschitz(SECANT).distribution is SECANT
