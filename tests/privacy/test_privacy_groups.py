"""What answers for several groups cost, and the share of each group."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from dpselect.errors import InvalidInput
from dpselect.privacy import COUNTS, Guarantee, compose
from dpselect.privacy.groups import Share, cost_of_groups, share_of_group
from dpselect.request import ReleasePlan, ReleaseRequest


def plan(mechanism: str, groups: int | None, epsilon: float = 1.0, delta: float = 0.0, **more: Any) -> ReleasePlan:
    asked = {"k": 3, "sensitivity": COUNTS, "groups_per_person": groups, **more}
    return ReleaseRequest(mechanism=mechanism, epsilon=epsilon, delta=delta, **asked).plan()


def test_one_group_per_person_costs_what_one_answer_costs() -> None:
    for guarantee in (Guarantee(1.0), Guarantee(1.0, 1e-6), Guarantee.zcdp(0.1, delta=1e-6)):
        assert cost_of_groups(guarantee, 1, 1e-6) is guarantee


def test_without_a_delta_the_parts_add_up() -> None:
    assert cost_of_groups(Guarantee(0.25), 4).epsilon == 1.0
    assert cost_of_groups(Guarantee(0.25, 1e-7), 4).delta == pytest.approx(4e-7)
    assert share_of_group(1.0, 0.0, 3, lambda share: Guarantee(share.epsilon)) == Share(1 / 3, 0.0)


@pytest.mark.parametrize("groups", [2, 3, 7, 10])
def test_the_shares_of_a_pure_total_never_exceed_it(groups: int) -> None:
    for epsilon in (1.0, 0.1, 0.7):
        made = plan("canonical", groups, epsilon)
        assert groups * Fraction(made.mechanism.guarantee.epsilon) <= Fraction(epsilon)
        assert made.guarantee.epsilon == epsilon
        assert made.guarantee.delta == 0


MECHANISMS: dict[str, dict[str, Any]] = {
    "canonical": {},
    "oneshot": {"options": {"noise": "gumbel"}},
    "gaussian": {"max_items_per_person": 2},
    "laplace": {"max_items_per_person": 2},
    "restricted": {},
    "limited": {},
}


@pytest.mark.parametrize("groups", [2, 40])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_whole_is_within_the_total_by_some_route_and_never_worse_than_basic(name: str, groups: int) -> None:
    made = plan(name, groups, delta=1e-6, **MECHANISMS[name])
    part = made.mechanism.guarantee
    assert made.guarantee.epsilon == 1.0
    assert made.guarantee.delta <= 1e-6
    assert part.epsilon >= 1 / groups * (1 - 1e-12)
    routes = [groups * part.epsilon if groups * part.delta <= 1e-6 else math.inf]
    if part.known_rho is not None:
        routes.append(compose([part] * groups, delta=1e-6).epsilon)
    rest = 1e-6 - groups * part.delta
    if part.delta and rest > 0:
        routes.append(compose([Guarantee(part.epsilon)] * groups, delta=rest).epsilon)
    assert min(routes) <= 1 + 1e-9


def test_a_delta_makes_the_answers_of_people_in_several_groups_better() -> None:
    """Gaussian noise grows with the root of the number of groups, not with the number."""
    gains = [
        plan("gaussian", groups, delta=1e-6, max_items_per_person=2).mechanism.epsilon * groups for groups in (2, 8)
    ]
    assert gains[0] == pytest.approx(math.sqrt(2), rel=0.1)
    assert gains[1] == pytest.approx(math.sqrt(8), rel=0.2)
    # Where composition gains nothing, as for few pure answers, the share is the plain one.
    assert plan("canonical", 3, delta=1e-6).mechanism.epsilon == pytest.approx(1 / 3)
    assert plan("canonical", 3, delta=1e-6).guarantee.delta == 0
    # Many pure answers gain.
    assert plan("canonical", 60, delta=1e-6).mechanism.epsilon > 1.5 / 60
    assert plan("restricted", 60, delta=1e-6).mechanism.guarantee.epsilon > 1.5 / 60


def test_parts_whose_delta_exceeds_the_total_are_refused() -> None:
    with pytest.raises(InvalidInput, match="delta"):
        cost_of_groups(Guarantee(0.1, 1e-6), 3, 2e-6)


def test_deltas_are_added_to_that_of_the_composition() -> None:
    """100 parts of (0.1, 1e-9): pure parts compose below their sum, and 1e-7 of delta is added."""
    whole = cost_of_groups(Guarantee(0.1, 1e-9), 100, 1e-6)
    pure = compose([Guarantee(0.1)] * 100, delta=9e-7)
    assert whole.epsilon == pytest.approx(pure.epsilon, rel=1e-6)
    assert whole.epsilon < 7.0 < 10.0
    assert whole.delta <= 1e-6 * (1 + 1e-12)
