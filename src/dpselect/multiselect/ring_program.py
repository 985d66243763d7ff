"""The best noise on a ring by linear program, and the search for the best answers (proof in ring.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray, IntArray
from dpselect.errors import DpSelectError

Answers = tuple[int, ...]

COARSE = 12
"""The search tries all answers on a ring of at least so many places, and then moves them on finer ones."""

KEPT = 6
"""How many sets of answers it takes along from one ring to the next finer one."""

LOST = 1e-6
"""Probabilities below this share of the largest are within the solver's tolerance and say nothing."""

STEEPEST = 12.0
"""Rates beyond this are solved as if they were this: one step already makes a place e^12 times less likely."""


def steps_between(places: int, answers: Sequence[int]) -> IntArray:
    """Return for each place how many steps it is along the ring to the nearest answer."""
    apart = np.abs(np.arange(places)[:, None] - np.asarray(answers, dtype=np.int64)[None, :])
    return np.asarray(np.minimum(apart, places - apart).min(axis=1), dtype=np.int64)


def best_noise(costs: FloatArray, rate: float) -> tuple[IntArray, float]:
    """Return the heights of the noise p that costs least under the privacy constraints, and that least cost.

    Minimise `Σ c(y) p(y)` subject to `p(y) <= e^ρ p(y ± 1)` around the ring and `Σ p = 1`, where c are the costs of
    each place and ρ = ε r is the rate a step. At a vertex all ratios of neighbours are e^±ρ, or one of them is 1, so
    that `p ∝ e^{−ρ h}` with whole h (ring.md). What the solver returns is only a hint for h: `lipschitz` makes
    it private, whatever the solver's errors.
    """
    from scipy.optimize import linprog

    rate = min(rate, STEEPEST)
    # The solver's tolerances are absolute, so costs are given to it as shares of the largest.
    largest = float(costs.max()) or 1.0
    matrix = _constraints(len(costs), rate)
    total = np.ones((1, len(costs)))
    solved = linprog(
        costs / largest,
        A_ub=matrix,
        b_ub=np.zeros(matrix.shape[0]),
        A_eq=total,
        b_eq=[1.0],
        bounds=(0, None),
        method="highs-ds",
    )
    if solved.status != 0:
        raise DpSelectError(f"the linear program of the ring was not solved: {solved.message}")
    return heights_of(solved.x, rate), float(solved.fun) * largest


@lru_cache(maxsize=16)
def _constraints(places: int, rate: float) -> Any:
    """Return the sparse matrix of `p(y) − e^ρ p(y+1) <= 0` and `p(y+1) − e^ρ p(y) <= 0`."""
    from scipy import sparse

    same = sparse.identity(places, format="csr")
    following = sparse.csr_matrix(np.roll(np.arange(places), -1)[:, None] == np.arange(places)[None, :], dtype=float)
    ratio = np.exp(rate)
    return sparse.vstack([same - ratio * following, following - ratio * same], format="csr")


def heights_of(probabilities: FloatArray, rate: float) -> IntArray:
    """Return whole heights h, the least being 0, with `p` near to `e^{−ρ h}` and neighbours at most 1 apart."""
    top = probabilities.max()
    known = probabilities > LOST * top
    hints = np.full(len(probabilities), len(probabilities), dtype=np.int64)
    with np.errstate(over="ignore"):
        steps = np.log(top / probabilities[known]) / rate
    hints[known] = np.round(np.minimum(steps, len(probabilities))).astype(np.int64)
    return lipschitz(hints)


def lipschitz(heights: IntArray) -> IntArray:
    """Return `min_z (h(z) + steps between y and z)`, the largest heights below h that change by at most 1 a step."""
    places = len(heights)
    apart = np.abs(np.arange(places)[:, None] - np.arange(places)[None, :])
    lowered = (heights[None, :] + np.minimum(apart, places - apart)).min(axis=1)
    return np.asarray(lowered - lowered.min(), dtype=np.int64)


def weights_of(heights: IntArray, rate: float) -> FloatArray:
    """Return the probabilities `e^{−ρ h} / Σ e^{−ρ h}`."""
    weights = np.exp(-rate * heights)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def search(k: int, places: int, cost_of: Callable[[int, Answers], float]) -> Answers:
    """Return k answers, the first at place 0, of the least cost that was found.

    `cost_of(places, answers)` must not depend on where the ring begins nor on its direction. All answers are tried on a
    ring of a few places; the best of them are carried over to rings of twice as many, where single answers move by one
    place as long as that helps.
    """
    rings = [places]
    while rings[0] // 2 >= max(COARSE, 2 * k):
        rings.insert(0, rings[0] // 2)
    kept: Iterable[Answers] = _all_answers(k, rings[0])
    for before, now in zip([rings[0], *rings], rings, strict=False):
        known: dict[Answers, float] = {}

        def known_cost(answers: Answers, known: dict[Answers, float] = known, now: int = now) -> float:
            if answers not in known:
                known[answers] = cost_of(now, answers)
            return known[answers]

        if now == rings[0]:
            found = set(kept)
        else:
            carried = ({round(answer * now / before) for answer in answers} for answers in kept)
            found = {_settled(_first_spelling(answers, now), now, known_cost) for answers in carried}
        kept = sorted(found, key=lambda answers: (known_cost(answers), answers))[:KEPT]
    return next(iter(kept))


def _settled(answers: Answers, places: int, cost_of: Callable[[Answers], float]) -> Answers:
    """Move one answer by one place as long as that lowers the cost."""
    while True:
        moved = [
            _first_spelling(changed, places)
            for index in range(len(answers))
            for by in (-1, 1)
            for changed in [{*answers[:index], (answers[index] + by) % places, *answers[index + 1 :]}]
            if len(changed) == len(answers)
        ]
        best = min(moved, key=cost_of, default=answers)
        if cost_of(best) >= cost_of(answers) - 1e-12:
            return answers
        answers = best


def _all_answers(k: int, places: int) -> set[Answers]:
    """Return every set of k places, up to turning and mirroring the ring."""
    from itertools import combinations

    return {_first_spelling((0, *others), places) for others in combinations(range(1, places), k - 1)}


def _first_spelling(answers: Iterable[int], places: int) -> Answers:
    """Return the same answers, turned and mirrored into one spelling with the first at place 0."""
    ordered = sorted(answer % places for answer in answers)
    gaps = [
        (after - before) % places or places for before, after in zip(ordered, [*ordered[1:], ordered[0]], strict=True)
    ]
    turns = [way[start:] + way[:start] for way in (gaps, gaps[::-1]) for start in range(len(gaps))]
    return tuple(int(place) for place in np.cumsum([0, *min(turns)[:-1]]))
