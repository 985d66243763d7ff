"""Limits: the bounds as written, against linear programs over all mechanisms and against our own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

import dpselect as dps
from dpselect.forecast import compare, gap_limit, proven_limit, smallest_epsilon, swap_yardstick

Vector = tuple[int, ...]


def after(p: float, persons: int, epsilon: float) -> float:
    for _ in range(persons):
        p = min(math.exp(epsilon) * p, 1 - math.exp(-epsilon) * (1 - p))
    return p


def bounds(x: list[int], k: int, ordered: bool, epsilon: float) -> Iterator[float]:
    """Yield every tie and chain bound, counted answer by answer: x descends, ranks start at 0."""
    d = len(x)

    def exact(answer: tuple[int, ...]) -> bool:
        held = [x[item] for item in answer]
        return held == x[:k] if ordered else sorted(held, reverse=True) == x[:k]

    top = tuple(range(k))
    for h, t in itertools.combinations(range(d + 1), 2):
        alike = {
            tuple(renamed[item] for item in top) if ordered else tuple(sorted(renamed[item] for item in top))
            for order in itertools.permutations(range(h, t))
            for renamed in [[*range(h), *order, *range(t, d)]]
        }
        at_borders = (h == 0 or x[h - 1] > x[h]) and (t == d or x[t - 1] > x[t])
        if at_borders:
            yield after(sum(map(exact, alike)) / len(alike), x[h] - x[t - 1], epsilon)
    for r in range(1, min(k, d - k) + 1 if k < d and x[k - 1] > x[k] else 1):
        for h, t in itertools.product(range(k - r + 1), range(k + r, d + 1)):
            share = 1 / (math.comb(k - h, r) * math.comb(t - k, r))
            more = max(x[h] - x[k - r], x[k + r - 1] - x[t - 1])
            p = min(after(share, more, epsilon), 1 / math.comb(2 * r, r))
            yield after(p, x[k - r] - x[k + r - 1], epsilon)


@pytest.mark.parametrize("ordered", [False, True])
def test_the_limit_is_the_largest_epsilon_that_a_bound_forbids(ordered: bool) -> None:
    generator = np.random.default_rng(3)
    for _ in range(12):
        x = sorted(generator.integers(0, 12, 6).tolist(), reverse=True)
        for k, accuracy in itertools.product((1, 2, 3, 6), (0.3, 0.9, 1 - 1e-9)):
            limit = proven_limit(x, k, accuracy, ordered=ordered)
            assert min(bounds(x, k, ordered, limit * (1 + 1e-6) + 1e-12)) >= accuracy
            assert not limit or min(bounds(x, k, ordered, limit * (1 - 1e-6))) < accuracy


class Program:
    """The linear program over all mechanisms on counts 0..most that treat items alike: P[outcome | scores] by orbit."""

    def __init__(self, epsilon: float, k: int, ordered: bool, most_items: int, most: int = 4, d: int = 4) -> None:
        self.ordered = ordered
        self.outcomes = list((itertools.permutations if ordered else itertools.combinations)(range(d), k))
        vectors = list(itertools.combinations_with_replacement(range(most, -1, -1), d))
        steps = [step for step in itertools.product((0, 1), repeat=d) if 0 < sum(step) <= most_items]
        self.places: dict[Any, int] = {}
        rows: list[tuple[int, int]] = []
        for x, step in itertools.product(vectors, steps):
            other = tuple(np.add(x, step).tolist())
            if max(other) <= most:
                rows += [(self.place(x, outcome), self.place(other, outcome)) for outcome in self.outcomes]
        rows = sorted({pair for first, second in rows for pair in ((first, second), (second, first))})
        number = np.arange(len(rows))
        factors = np.repeat([1.0, -math.exp(epsilon)], len(rows))
        columns = np.array(rows).T.ravel()
        totals = [[self.place(x, outcome) for outcome in self.outcomes] for x in vectors]
        whole = (np.repeat(np.arange(len(totals)), len(self.outcomes)), np.ravel(totals))
        size = len(self.places)
        self.within = coo_array((factors, (np.tile(number, 2), columns)), shape=(len(rows), size)).tocsr()
        self.total = coo_array((np.ones(len(whole[0])), whole), shape=(len(totals), size)).tocsr()

    def place(self, x: Vector, outcome: Vector) -> int:
        """Return the variable of an outcome; renaming items does not change it."""
        marks = [(outcome.index(item) + 1 if self.ordered else 1) if item in outcome else 0 for item in range(len(x))]
        return self.places.setdefault(tuple(sorted(zip(x, marks, strict=True))), len(self.places))

    def best(self, x: Vector) -> float:
        """Return the highest possible probability of an exact answer for one vector of scores."""
        top = sorted(x, reverse=True)[: len(self.outcomes[0])]
        gain = np.zeros(len(self.places))
        for outcome in self.outcomes:
            held = [x[item] for item in outcome]
            gain[self.place(x, outcome)] -= (held if self.ordered else sorted(held, reverse=True)) == top
        found = linprog(
            gain, self.within, np.zeros(self.within.shape[0]), self.total, np.ones(self.total.shape[0]), (0, 1)
        )
        assert found.status == 0
        return float(-found.fun)


@pytest.mark.slow
@pytest.mark.parametrize(("ordered", "most_items"), [(False, 4), (True, 4), (False, 1), (True, 1), (False, 2)])
def test_no_linear_program_over_all_mechanisms_beats_the_limit(ordered: bool, most_items: int) -> None:
    reached = []
    for epsilon in (0.4, 1.2):
        program = Program(epsilon, 2, ordered, most_items)
        for x in ((4, 3, 1, 0), (4, 4, 0, 0), (3, 2, 2, 0), (2, 1, 0, 0), (4, 2, 1, 1), (4, 2, 2, 2)):
            best = program.best(x)
            known = None if most_items == 4 else most_items
            # The solver is exact to 1e-7.
            limit = proven_limit(x, 2, best - 1e-6, ordered=ordered, max_items_per_person=known)
            assert limit <= epsilon
            reached.append(limit / epsilon)
    assert max(reached) > 0.99, "on some data the bound is attained"


def test_no_pure_mechanism_of_ours_needs_less() -> None:
    for x in itertools.combinations_with_replacement((3, 1, 0), 4):
        for ordered in (False, True):
            found = compare(x, 2, accuracy=0.95, ordered=ordered, draws=0)
            assert found.limit <= found.needs[0].epsilon * (1 + 1e-9), x


def test_the_worst_case_of_a_plan_is_close_to_its_limit() -> None:
    """50 persons are all that separates a set from nobody: no mechanism can do with less, whatever it is."""
    planned: Any = dps.forecast.plan(10, gap=50, accuracy=0.99, items=10_000)
    limit = planned.comparison.limit
    share = 1 / math.comb(10_000, 10)
    assert after(share, 50, limit * (1 - 1e-6)) < 0.99 < after(share, 50, limit * (1 + 1e-6))
    packing = math.log((math.comb(10_000, 10) - 1) * 99) / 100
    assert packing < limit < planned.comparison.needs[0].epsilon < 1.02 * limit


def test_differences_are_counted_in_whole_persons() -> None:
    one = dps.Canonical(k=1, epsilon=1.0)
    assert gap_limit([2.5, 0.0], one, 0.99) == pytest.approx(math.log(50) / 3)
    assert proven_limit([2.5, 0.0], 1, 0.99) == pytest.approx(math.log(50) / 3)
    wide = dps.Sensitivity(-1, 1)
    assert proven_limit([10, 0], 1, 0.99, sensitivity=wide) == pytest.approx(math.log(50) / 5)
    assert proven_limit([10, 0], 1, 0.99, sensitivity=wide, max_items_per_person=1) == 0


def test_the_limit_grows_with_the_items_and_is_0_where_nothing_is_decided() -> None:
    limits = [proven_limit(dps.Scores.from_histogram([9, 0], [2, size]), 2, 0.9) for size in (2, 50, 10**18)]
    assert limits == sorted(limits)
    assert proven_limit([3, 3, 3], 2, 0.9) == proven_limit([3, 2, 1], 3, 0.9) == 0
    with pytest.raises(dps.InvalidInput, match="number of items"):
        proven_limit([3, 2], 3, 0.9)


@pytest.mark.parametrize("ordered", [False, True])
def test_the_yardstick_solves_its_sum(ordered: bool) -> None:
    x, k = [9, 7, 7, 4, 4, 1, 0, 0], 4
    mechanism: Any = dps.Joint(k=k, epsilon=1.0) if ordered else dps.Canonical(k=k, epsilon=1.0)
    epsilon = swap_yardstick(x, mechanism, 0.97)
    pairs = [(a, b) for a in range(k) for b in range(a + 1 if ordered else k, len(x)) if x[a] > x[b]]
    assert sum(math.exp(-epsilon * (x[a] - x[b])) for a, b in pairs) / 2 == pytest.approx(0.03, rel=1e-8)
    assert swap_yardstick([5, 5], dps.Joint(k=2, epsilon=1.0), 0.9) == 0


def test_a_far_leader_and_many_ties_do_not_make_the_limit_of_few_items_per_person_too_large() -> None:
    """Sums of moves beyond 2^53 would be rounded."""
    table = dps.Scores.from_histogram([10**15, 50, 0], [1, 9, 10**7])
    needed = smallest_epsilon(table, dps.Laplace(k=10, epsilon=1.0, max_items_per_person=1), 0.99, ordered=False)
    assert proven_limit(table, 10, 0.99, max_items_per_person=1) <= needed
