"""Further arguments of a named mechanism, and values beside a mechanism object that states what the choice costs."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from dpselect.ledger import Ledger
from dpselect.request import ReleaseRequest
from dpselect.values import GAUSSIAN, LAPLACE, ValueNoise, epsilon_beside
from dpselect.verify import Domain, check_privacy
from values_law import WithValues

VOTES = {"tea": 4120, "coffee": 3980, "water": 190, "juice": 87}
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("oneshot", {"noise": "laplace"}),
    ("peeling", {"noise": "laplace"}),
    ("canonical", {"gamma": 0.75, "noise": "gumbel", "margin": False}),
    ("joint", {"margin": False}),
]


@pytest.mark.parametrize(("mechanism", "options"), OPTIONS, ids=[name for name, _ in OPTIONS])
def test_options_reach_the_mechanism(mechanism: str, options: dict[str, Any]) -> None:
    release = dps.select(VOTES, k=2, epsilon=1.0, mechanism=mechanism, options=options)
    shared = dps.select(VOTES, k=2, epsilon=1.0, mechanism=mechanism, options=options, values=0.25)
    for chosen in (release.mechanism, shared.mechanism):
        assert chosen.describe().items() >= options.items()
    assert release.mechanism.epsilon == shared.guarantee.epsilon == 1.0
    assert shared.mechanism.epsilon == 0.75


def test_the_same_options_in_top_and_rank() -> None:
    rows = pd.DataFrame({"film": ["Heat", "Heat", "Up"], "viewer": ["ann", "bob", "ann"]})
    asked: dict[str, Any] = {"k": 1, "epsilon": 1.0, "options": {"noise": "laplace"}}
    release = dps.top(rows, item="film", person="viewer", domain=["Heat", "Up"], mechanism="oneshot", **asked)
    assert release.mechanism == dps.OneShot(k=1, epsilon=1.0, noise="laplace")
    ranked = dps.rank([("a", "b"), ("b", "c")], comparisons_per_pair=1, max_degree=2, mechanism="oneshot", **asked)
    assert ranked.mechanism.describe()["noise"] == "laplace"


def test_a_delta_goes_to_mechanisms_that_can_use_it_with_their_noise() -> None:
    for noise, delta in (("laplace", 0.01), ("gumbel", 0.01), ("logistic", 0.0)):
        options = {"noise": noise}
        plan = ReleaseRequest(
            mechanism="oneshot", k=500, epsilon=0.1, delta=0.01, sensitivity=dps.COUNTS, options=options
        ).plan()
        assert plan.guarantee.delta == delta


REFUSED: list[tuple[Any, Any, str]] = [
    (
        "auto",
        {"noise": "laplace"},
        r"noise must be left out unless the mechanism is canonical, .*, restricted or limited, got 'laplace'",
    ),
    ("oneshot", {"gamma": 0.5}, "gamma must be left out unless the mechanism is canonical or restricted, got 0.5"),
    ("oneshot", {"noise": "white"}, "noise must be one of"),
    (dps.OneShot(k=1, epsilon=1.0), {"noise": "laplace"}, "noise must be stated in the mechanism object"),
    ("oneshot", {"epsilon": 9.0}, "options must not contain epsilon, which is an argument of its own"),
    ("oneshot", {"ordered": True}, "options must not contain ordered"),
    ("laplace", {"max_items_per_person": 1}, "options must not contain max_items_per_person"),
    ("oneshot", {"colour": "red"}, "options must have names among discovery_share, gamma,.* noise.*, got 'colour'"),
    ("oneshot", "laplace", "options must map names to values"),
]


@pytest.mark.parametrize(("mechanism", "options", "message"), REFUSED)
def test_other_options_are_refused(mechanism: Any, options: Any, message: str) -> None:
    with pytest.raises(dps.InvalidInput, match=message):
        dps.select(VOTES, k=1, epsilon=1.0, mechanism=mechanism, options=options)


def test_the_tenth_release_with_options_uses_the_rest_of_the_budget(tmp_path: Path) -> None:
    """Ten times the float 0.1 is slightly more than 1."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("votes", epsilon=1.0)
        spent = {"epsilon": 0.1, "ledger": ledger, "dataset": "votes"}
        for _ in range(10):
            dps.select(VOTES, k=1, mechanism="oneshot", options={"noise": "laplace"}, values=0.5, **spent)
        assert all(entry.parameters["noise"] == "laplace" for entry in ledger.entries("votes"))
        with pytest.raises(dps.BudgetExceeded):
            dps.select(VOTES, k=1, mechanism="oneshot", options={"noise": "laplace"}, **spent)


@given(epsilon=st.floats(min_value=1e-100, max_value=1e100), share=st.floats(min_value=1e-6, max_value=1 - 1e-6))
def test_values_take_at_most_their_share_of_the_total(epsilon: float, share: float) -> None:
    for_values = Fraction(epsilon_beside(epsilon, share))
    total = for_values + Fraction(epsilon)
    assert for_values <= Fraction(share) * total
    assert float(for_values / total) == pytest.approx(share, rel=1e-12)


def test_values_beside_an_object_are_charged_on_top() -> None:
    mechanism = dps.OneShot(k=2, epsilon=0.7, noise="laplace")
    release = dps.select(VOTES, mechanism=mechanism, values=0.3, seed=1)
    assert release.mechanism == mechanism
    assert release.guarantee.epsilon == pytest.approx(1.0, rel=1e-12)
    assert release.guarantee.delta == 0.0
    assert release.values is not None
    dps.select(VOTES, mechanism=mechanism, values=0.3, epsilon=1.0, k=2)
    with pytest.raises(dps.InvalidInput, match=r"epsilon must be (1|0\.9999999999999).*, got 0.7; leave it out"):
        dps.select(VOTES, mechanism=mechanism, values=0.3, epsilon=0.7)
    for share in (0, 1, 1.5, "half"):
        with pytest.raises(dps.InvalidInput, match="share of epsilon"):
            dps.select(VOTES, mechanism=mechanism, values=share)  # type: ignore[arg-type]
    with pytest.raises(dps.InvalidInput, match="positive part"):
        dps.select(VOTES, mechanism=mechanism, values=5e-324)


def noise_beside(mechanism: dps.Mechanism, delta: float | None) -> tuple[ValueNoise, dps.Guarantee]:
    """Return the noise on the values of a plan, and what the whole costs."""
    plan = ReleaseRequest(
        mechanism=mechanism, k=None, epsilon=None, delta=delta, sensitivity=dps.COUNTS, values=0.5
    ).plan()
    assert isinstance(plan.noise, ValueNoise)
    return plan.noise, plan.guarantee


def test_values_use_the_delta_that_the_object_leaves() -> None:
    mechanism = dps.Peeling(k=100, epsilon=0.05, noise="gumbel", delta=1e-7)
    noise, guarantee = noise_beside(mechanism, None)
    assert (noise.noise, guarantee.delta) == (LAPLACE, 1e-7)
    noise, guarantee = noise_beside(mechanism, 1e-6)
    assert noise.noise == GAUSSIAN
    assert 0.99e-6 < guarantee.delta <= 1e-6
    with pytest.raises(dps.InvalidInput, match="delta must be at least 1e-07, as the mechanism object states"):
        noise_beside(mechanism, 1e-8)


def test_choice_and_values_beside_an_object_keep_the_stated_sum() -> None:
    mechanism = dps.OneShot(k=1, epsilon=0.5, noise="laplace")
    noise, guarantee = noise_beside(mechanism, None)
    check = check_privacy(WithValues(mechanism, noise), Domain(3, 2))
    assert check.passed
    assert check.epsilon == guarantee.epsilon == 1.0
    whole, _ = noise_beside(dps.OneShot(k=1, epsilon=1.0), None)
    assert not check_privacy(
        WithValues(mechanism, ValueNoise(**{**vars(whole), "guarantee": noise.guarantee})), Domain(3, 2)
    ).passed


def test_values_need_an_object_that_states_both_bounds_of_a_score() -> None:
    """[−½, ½] has the spread of counts, which is enough to choose, but noise on a count must cover a whole one."""
    rows = pd.DataFrame({"film": ["Heat", "Heat", "Up"], "viewer": ["ann", "bob", "ann"]})
    asked: dict[str, Any] = {"item": "film", "person": "viewer", "domain": ["Heat", "Up"]}
    narrow = dps.OneShot(k=1, epsilon=0.5, sensitivity=dps.Sensitivity(-0.5, 0.5))
    assert dps.top(rows, **asked, mechanism=narrow).k == 1
    with pytest.raises(dps.InvalidInput, match=r"mechanism must have sensitivity=Sensitivity\(low=0, high=1\)"):
        dps.top(rows, **asked, mechanism=narrow, values=0.5)
    counts = dps.OneShot(k=1, epsilon=0.5)
    assert dps.top(rows, **asked, mechanism=counts, values=0.5, epsilon=1.0).guarantee.epsilon == 1.0
    games = [("a", "b"), ("b", "c")]
    for sensitivity, passes in ((dps.Sensitivity(-1, 1), True), (dps.Sensitivity(3, 5), False)):
        mechanism = dps.OneShot(k=1, epsilon=0.5, sensitivity=sensitivity)
        asked = {"comparisons_per_pair": 1, "max_degree": 2, "mechanism": mechanism}
        assert dps.rank(games, **asked).guarantee.epsilon == 0.5
        if passes:
            assert dps.rank(games, **asked, values=0.5).guarantee.epsilon == 1.0
        else:
            with pytest.raises(dps.InvalidInput, match="mechanism must have sensitivity"):
                dps.rank(games, **asked, values=0.5)


def test_restricted_passes_on_its_inner_mechanism_and_the_share_of_its_tests() -> None:
    options = {"inner": "joint", "test_share": 0.25}
    release = dps.select(VOTES, k=2, epsilon=1.0, delta=1e-6, mechanism="restricted", options=options)
    assert isinstance(release.mechanism, dps.Restricted)
    assert release.mechanism.inner.name == "joint"
    assert release.mechanism.test_epsilon == 0.25
    assert release.guarantee.epsilon <= 1.0
