"""Simulated comparisons, and estimates of strengths without noise. Nothing here is private.

The model is that of Bradley, Terry and Luce: i wins against j with probability `ω_i / (ω_i + ω_j)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray, IntArray
from dpselect._numbers import positive_integer, positive_number, seed_or_none
from dpselect.errors import DpSelectError, InvalidInput, plain


@dataclass(frozen=True, repr=False)
class Contests:
    """Results by pair of items 0..items−1: first[p] won `wins[p]` times and second[p] won `losses[p]` times."""

    items: int
    first: IntArray
    second: IntArray
    wins: IntArray
    losses: IntArray

    @property
    def size(self) -> int:
        """The number of comparisons."""
        return int(self.wins.sum() + self.losses.sum())

    def rows(self) -> IntArray:
        """Return a row (winner, loser) for each comparison, pair by pair."""
        winners = np.concatenate([self.first, self.second])
        losers = np.concatenate([self.second, self.first])
        return np.repeat(np.column_stack([winners, losers]), np.concatenate([self.wins, self.losses]), axis=0)

    def __repr__(self) -> str:
        """Show sizes only."""
        return f"<{self.size} comparisons of {self.items} items>"


def ladder(items: int, *, ratio: float, k: int | None = None, gap: float = 1.0) -> FloatArray:
    """Return strengths with evenly falling logarithms; the first item is `ratio` times as strong as the last.

    `ω_i = r^((d−1−i)/(d−1))` for i = 0..d−1, times g for the first k, which leaves a gap behind rank k (d: items,
    r: ratio, g: gap).
    """
    count = positive_integer("items", items)
    logarithms = np.linspace(np.log(positive_number("ratio", ratio)), 0.0, count)
    if k is not None:
        logarithms[: positive_integer("k", k)] += np.log(positive_number("gap", gap))
    return np.exp(logarithms)


def simulate_comparisons(
    strengths: Any, *, comparisons_per_pair: int, share_of_pairs: float = 1.0, seed: int | None = None
) -> Contests:
    """Simulate comparisons of items with given strengths ω.

    Each pair is compared with probability `share_of_pairs`, and then `comparisons_per_pair` times, all independently
    (oneshot, section 3). The generator is NumPy's.

    >>> from dpselect.ranking.simulate import ladder, simulate_comparisons
    >>> simulate_comparisons(ladder(5, ratio=4.0), comparisons_per_pair=3, seed=1)
    <30 comparisons of 5 items>
    """
    weights = _checked_strengths(strengths)
    times = positive_integer("comparisons_per_pair", comparisons_per_pair)
    share = positive_number("share_of_pairs", share_of_pairs)
    if share > 1:
        raise InvalidInput("share_of_pairs", share_of_pairs, "must be above 0 and at most 1")
    generator = np.random.default_rng(seed_or_none(seed))
    first, second = _drawn_pairs(len(weights), share, generator)
    wins = generator.binomial(times, weights[first] / (weights[first] + weights[second])).astype(np.int64)
    return Contests(len(weights), first, second, wins, times - wins)


def strengths_of_greatest_likelihood(contests: Contests, *, prior: float = 0.1) -> FloatArray:
    """Return the maximum likelihood strengths ω. NOT private: never publish them or anything derived from them.

    Maximises `Σ_ij n_ij log(ω_i / (ω_i + ω_j))`, a concave function of log ω; n_ij is how often i won against j. So
    that a maximum always exists, each item also wins and loses `prior` comparisons with an imaginary item of
    strength 1. Model: Bradley and Terry (1952).

    >>> from dpselect.ranking.simulate import ladder, simulate_comparisons
    >>> contests = simulate_comparisons(ladder(4, ratio=8.0), comparisons_per_pair=1000, seed=1)
    >>> strengths_of_greatest_likelihood(contests).argsort()[::-1].tolist()
    [0, 1, 2, 3]
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    pull = positive_number("prior", prior)
    first, second, items = contests.first, contests.second, contests.items
    met = contests.wins + contests.losses
    scale = 1 / (met.sum() / items + pull)

    def loss(logarithms: FloatArray) -> tuple[float, FloatArray]:
        lead = logarithms[first] - logarithms[second]
        value = contests.wins @ np.logaddexp(0.0, -lead) + contests.losses @ np.logaddexp(0.0, lead)
        value += pull * (np.logaddexp(0.0, -logarithms) + np.logaddexp(0.0, logarithms)).sum()
        slope = met * expit(lead) - contests.wins
        gradient = pull * (2 * expit(logarithms) - 1)
        gradient += np.bincount(first, slope, items)  # without any comparison NumPy counts in integers
        gradient -= np.bincount(second, slope, items)
        return scale * float(value), scale * gradient

    options = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(loss, np.zeros(items), jac=True, method="L-BFGS-B", options=options)
    if not found.success and np.abs(found.jac).max() > 1e-6:
        raise DpSelectError("the maximum of the likelihood was not found; simulate fewer comparisons")
    strengths: FloatArray = np.exp(found.x)
    return strengths


def transition_matrix(contests: Contests, max_degree: int) -> FloatArray:
    """Return P with `P_ij = y_ij / D`, y_ij being the share of their comparisons in which j won against i. NOT private.

    The rest of each row is on the diagonal (oneshot, equation 3.2). D, `max_degree`, is at least the largest number of
    others that an item was compared with.

    >>> from dpselect.ranking.simulate import ladder, simulate_comparisons
    >>> contests = simulate_comparisons(ladder(3, ratio=4.0), comparisons_per_pair=8, seed=1)
    >>> transition_matrix(contests, 2).sum(axis=1).tolist()
    [1.0, 1.0, 1.0]
    """
    degree = positive_integer("max_degree", max_degree)
    some = contests.wins + contests.losses > 0
    first, second, wins, losses = (
        column[some] for column in (contests.first, contests.second, contests.wins, contests.losses)
    )
    largest = int(np.bincount(np.concatenate([first, second]), minlength=1).max())
    if degree < largest:
        raise InvalidInput("max_degree", max_degree, f"must be at least {largest}, the largest number of opponents")
    matrix = np.zeros((contests.items, contests.items))
    matrix[first, second] = losses / ((wins + losses) * degree)
    matrix[second, first] = wins / ((wins + losses) * degree)
    matrix[np.diag_indices(contests.items)] = 1 - matrix.sum(axis=1)
    return matrix


def stationary_distribution(matrix: FloatArray) -> FloatArray:
    """Return π with `π = π P`, the scores of the spectral method (oneshot, algorithm 2). NOT private.

    `rank` has the private scores. If several distributions are stationary, this is one of them.

    >>> from dpselect.ranking.simulate import ladder, simulate_comparisons, transition_matrix
    >>> contests = simulate_comparisons(ladder(4, ratio=8.0), comparisons_per_pair=1000, seed=1)
    >>> stationary_distribution(transition_matrix(contests, 3)).argsort()[::-1].tolist()
    [0, 1, 2, 3]
    """
    size = len(matrix)
    equations = np.vstack([matrix.T - np.eye(size), np.ones(size)])
    found: FloatArray = np.linalg.lstsq(equations, np.append(np.zeros(size), 1.0), rcond=None)[0]
    return found


def ergodicity_coefficient(matrix: FloatArray) -> float:
    """Return `τ₁(P) = ½ max_ij Σ_l |P_il − P_jl|` (oneshot, Definition 3.1). NOT private.

    It is between 0 (all rows are equal: rank one) and 1. If it is at most ρ < 1, a change of P moves its stationary
    distribution by at most `‖P − P'‖_∞ / (1 − ρ)` (Lemma 3.3).

    >>> ergodicity_coefficient(np.array([[0.5, 0.5], [0.25, 0.75]]))
    0.25
    """
    return max(float(np.abs(matrix - row).sum(axis=1).max()) for row in matrix) / 2


def _drawn_pairs(items: int, share: float, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the pairs that are compared, smaller item first: each of the d(d−1)/2 with the same probability.

    Their number is drawn first, then their indices among all pairs, so that a sparse graph costs no more than its
    pairs.
    """
    every = items * (items - 1) // 2
    count = every if share == 1 else int(generator.binomial(every, share))
    places = (
        np.sort(generator.choice(every, count, replace=False, shuffle=False)) if count < every else np.arange(every)
    )
    # Pairs (i, j), i < j, in lexicographic order; before[i] is the number of pairs whose smaller item is at most i.
    before = np.cumsum(np.arange(items - 1, 0, -1), dtype=np.int64)
    first = np.searchsorted(before, places, side="right").astype(np.int64)
    second = places - (before[first] - (items - 1 - first)) + first + 1
    return first, second.astype(np.int64)


def _checked_strengths(given: Any) -> FloatArray:
    weights = np.asarray(given, dtype=np.float64)
    if weights.ndim != 1 or len(weights) < 2 or not (np.isfinite(weights) & (weights > 0)).all():
        raise InvalidInput("strengths", plain("something else"), "must be at least two positive numbers")
    return weights
