"""Domains known by their number: what it costs that only the rows can name an item."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import dpselect as dps
from dpselect.ledger import Ledger
from dpselect.privacy.guarantee import WHERE_OTHERS_HAVE_THE_SAME
from dpselect.privacy.naming import delta_of_naming
from dpselect.privacy.sensitivity import COUNTS
from dpselect.request import ReleaseRequest
from dpselect.values import ValueNoise

ITEMS, K, EPSILON = 4, 2, 1.0
MECHANISMS: dict[str, Callable[[], Any]] = {
    "canonical": lambda: dps.Canonical(k=K, epsilon=EPSILON),
    "joint": lambda: dps.Joint(k=K, epsilon=EPSILON),
    "laplace": lambda: dps.Laplace(k=K, epsilon=EPSILON, max_items_per_person=ITEMS),
    "oneshot": lambda: dps.OneShot(k=K, epsilon=EPSILON),
    "peeling": lambda: dps.Peeling(k=K, epsilon=EPSILON),
}


def named_law(mechanism: Any, counts: tuple[int, ...]) -> dict[Any, float]:
    """Return the law of the answer as it is read: an item that nobody has shows as None."""
    law: dict[Any, float] = defaultdict(float)
    for outcome, probability in mechanism.law(list(counts)).items():
        names = [position if counts[position] else None for position in outcome]
        law[tuple(names if mechanism.ordered else sorted(names, key=str))] += float(probability)
    return law


def excess(one: dict[Any, float], other: dict[Any, float]) -> float:
    """Return the smallest δ for which one law is within (ε, δ) of the other, both ways."""
    return max(
        sum(max(0.0, law[answer] - math.exp(EPSILON) * against.get(answer, 0.0)) for answer in law)
        for law, against in ((one, other), (other, one))
    )


def neighbours(items_of_one_person: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for without in itertools.product(range(3), repeat=ITEMS):
        for added in itertools.product((0, 1), repeat=ITEMS):
            if 0 < sum(added) <= items_of_one_person:
                yield without, tuple(count + more for count, more in zip(without, added, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_stated_delta_covers_all_neighbours_and_none_is_needed_where_others_have_the_same(mechanism: str) -> None:
    chosen = MECHANISMS[mechanism]()
    law = {counts: named_law(chosen, counts) for counts in itertools.product(range(4), repeat=ITEMS)}
    worst = dict.fromkeys(range(1, ITEMS + 1), 0.0)
    for bound in worst:
        for without, with_person in neighbours(bound):
            delta = excess(law[without], law[with_person])
            worst[bound] = max(worst[bound], delta)
            if all(count for count, more in zip(without, with_person, strict=True) if more > count):
                assert delta < 1e-9
    for bound, found in worst.items():
        stated = delta_of_naming(Fraction(EPSILON), k=K, size=ITEMS, max_items_per_person=bound)
        assert found <= stated
        # Pure privacy, which was claimed once, does not hold; nor does a delta that forgets the items of one person.
        assert found > 0.1
    assert worst[ITEMS] == pytest.approx(1.0)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_higher_scores_are_favoured(mechanism: str) -> None:
    chosen = MECHANISMS[mechanism]()
    for counts in itertools.product(range(3), repeat=ITEMS):
        share = [0.0] * ITEMS
        for outcome, probability in chosen.law(list(counts)).items():
            for position in outcome:
                share[position] += float(probability)
        assert all(
            share[low] <= share[high] + 1e-9
            for low, high in itertools.permutations(range(ITEMS), 2)
            if counts[low] <= counts[high]
        )


def test_the_delta_is_rounded_up() -> None:
    delta = delta_of_naming(Fraction(1), k=10, size=10**9, max_items_per_person=3)
    assert delta == pytest.approx(3e-8 * math.e, rel=1e-12)
    assert Fraction(delta) > Fraction(3, 10**8) * Fraction("2.718281828459045235")


def plan(**changes: Any) -> dps.Guarantee:
    options = {"k": 2, "epsilon": 1.0, "sensitivity": COUNTS, "ordered": False, "values": None}
    return ReleaseRequest(**{"mechanism": "auto", "number_of_items": 10**6, **options, **changes}).plan().guarantee


def test_without_a_bound_or_a_delta_the_guarantee_says_whom_it_leaves_out() -> None:
    for guarantee in (
        plan(),
        plan(max_items_per_person=3),
        plan(delta=1e-3),
        plan(mechanism=dps.OneShot(k=2, epsilon=1.0), k=None, epsilon=None),
        plan(delta=0.1, max_items_per_person=3, sensitivity=dps.Sensitivity(-1, 1)),
    ):
        assert guarantee.neighbours == WHERE_OTHERS_HAVE_THE_SAME
        assert "as long as others have the same items" in str(guarantee)
    assert plan(number_of_items=None).neighbours == "add or remove"


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [("auto", None), ("auto", 0.5), ("gaussian", None), ("gaussian", True), ("laplace", True)],
)
def test_with_both_it_covers_everybody_within_the_delta_that_was_allowed(mechanism: str, values: float | None) -> None:
    guarantee = plan(mechanism=mechanism, delta=1e-3, max_items_per_person=3, values=values)
    choice = 0.5 if values == 0.5 else 1.0
    naming = delta_of_naming(Fraction(choice), k=2, size=10**6, max_items_per_person=3)
    assert (guarantee.neighbours, guarantee.rho, guarantee.ranges) == ("add or remove", None, ())
    assert naming <= guarantee.delta <= 1e-3
    assert guarantee.epsilon <= 1.0


@pytest.mark.parametrize(("mechanism", "values"), [("gaussian", None), ("gaussian", True), ("peeling", 0.5)])
def test_the_delta_of_the_choice_is_stated_twice_beside_that_of_naming(mechanism: str, values: float | None) -> None:
    """The proof uses it once for the choice and once for the event that a person's own item is named (naming.md)."""
    release = ReleaseRequest(
        mechanism=mechanism,
        k=100,
        epsilon=0.1,
        delta=1e-3,
        sensitivity=COUNTS,
        ordered=False,
        values=values,
        max_items_per_person=3,
        number_of_items=10**6,
    ).plan()
    choice = Fraction(release.mechanism.guarantee.delta)
    of_values = Fraction(release.noise.guarantee.delta) if isinstance(release.noise, ValueNoise) else Fraction(0)
    naming = delta_of_naming(Fraction(release.mechanism.epsilon), k=100, size=10**6, max_items_per_person=3)
    assert choice > 0
    assert 0 <= Fraction(release.guarantee.delta) - (2 * choice + of_values + Fraction(naming)) < Fraction(1, 10**18)


def test_a_delta_that_is_too_small_is_refused_with_what_is_needed() -> None:
    with pytest.raises(dps.InvalidInput, match=r"must be at least 1\.63097e-05 .*or list the items"):
        plan(delta=1e-6, max_items_per_person=3)


def test_a_ledger_refuses_what_does_not_cover_everybody(tmp_path: Any) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.create("views", epsilon=1.0, delta=1e-3)
    rows = pd.DataFrame({"film": ["Up", "Heat"], "viewer": ["ann", "bob"]})
    options: dict[str, Any] = {"item": "film", "person": "viewer", "k": 2, "epsilon": 0.5, "domain": 10**6}
    with pytest.raises(dps.InvalidInput, match="list the items, or give max_items_per_person and delta"):
        dps.top(rows, **options, ledger=ledger, dataset="views")
    release = dps.top(rows, **options, delta=1e-4, max_items_per_person=2, ledger=ledger, dataset="views")
    assert release.guarantee.delta <= 1e-4
    assert ledger.remaining("views").epsilon == 0.5
