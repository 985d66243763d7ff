"""Probabilities of outcomes on small domains: the k largest of `a_i + Z_i`, and tests against a noisy threshold.

Notation: `a_i` are the locations, `Z_i` i.i.d. noise with distribution function `F`, survival function
`S = 1 − F` and density `f`; `F_i(z) = F(z − a_i)`, and likewise `S_i`, `f_i`.

Accuracy: for log-concave noise (all of `NOISES`) every probability above 1e-280 has a relative error of at most 1e-10.
Each integrand is a sum of positive products, so nothing cancels. Log-concavity makes it unimodal with tails at least as
light as exp(−|z|), so truncating it 50 beyond the outermost locations costs a relative 1e-20. Between kinks it is
analytic, and panels of width at most 1 keep the Gauss–Legendre error near rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product
from typing import Protocol

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._numbers import finite_number, positive_integer
from dpselect.errors import InvalidInput
from dpselect.sampling.noise import LAPLACE

NODES = 20
"""Gauss–Legendre nodes per panel."""

TAIL = 50.0
"""Distance beyond the outermost locations at which integrals are truncated."""

WIDEST_GAP = 800.0
"""Gaps between consecutive locations are cut to this."""

FARTHEST = 700.0
"""Margins of tests are cut to ±FARTHEST: e^{−700} is negligible and still above the smallest float."""

MOST_OUTCOMES = 100_000
"""Maximum number of outcomes of a law."""

_CHUNK = 64
"""Outcomes whose integrands are evaluated at a time."""


class Distribution(Protocol):
    """The properties of a noise that laws use; every `Noise` has them."""

    @property
    def name(self) -> str:
        """The name; "gumbel" and "exponential" have closed forms."""

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where the density is not smooth."""

    @property
    def cdf(self) -> Callable[[FloatArray], FloatArray]:
        """F."""

    @property
    def survival(self) -> Callable[[FloatArray], FloatArray]:
        """1 − F, accurate where it is small."""

    @property
    def density(self) -> Callable[[FloatArray], FloatArray]:
        """The derivative of F."""

    def __hash__(self) -> int:
        """Return a hash: laws are cached by noise."""


def set_law(locations: Sequence[float], k: int, noise: Distribution) -> dict[frozenset[int], float]:
    """Return the law of the set of the k largest of `a_i + Z_i`.

    `P(Y) = ∫ Π_{l ∉ Y} F_l(z) d(−Π_{j ∈ Y} S_j(z))`, where z is the smallest noisy value inside Y.
    """
    ranked, order = _ranked(locations, k, math.comb)
    law = _ranked_set_law(ranked, k, noise)
    return {frozenset(order[rank] for rank in ranks): probability for ranks, probability in law}


def sequence_law(locations: Sequence[float], k: int, noise: Distribution) -> dict[tuple[int, ...], float]:
    """Return the law of the k largest of `a_i + Z_i` in descending order.

    `P(y) = ∫ H_{k−1}(z) f_{y_k}(z) Π_{l ∉ y} F_l(z) dz` with `H_1 = S_{y_1}` and
    `H_j(z) = ∫_z^∞ H_{j−1} f_{y_j}`, the probability that the first j come in order and above z.
    For Gumbel noise there is a closed form: draws from the softmax without replacement.
    """
    ranked, order = _ranked(locations, k, math.perm)
    law = _plackett_luce(ranked, k) if noise.name == "gumbel" else _ranked_sequence_law(ranked, k, noise)
    return {tuple(order[rank] for rank in ranks): probability for ranks, probability in law}


def rounded_sequence_law(
    locations: Sequence[float], k: int, noise: Distribution, edges: Sequence[float]
) -> dict[tuple[tuple[int, int], ...], float]:
    """Return the law of the k largest of `a_i + Z_i` in descending order, each as (item, cell of its value).

    Cell c lies between the edges c − 1 and c, which are ascending. As in `sequence_law`, with f_{y_j} cut to the cell
    of the j-th value, and `H_0 = 1`.
    """
    order = sorted(range(len(locations)), key=lambda item: -locations[item])
    ranked = tuple(locations[item] for item in order)
    grid, panels = _Grid.of(ranked, noise, breaks=edges), _edges(ranked, noise, TAIL, edges)
    cells = np.searchsorted(np.asarray(edges), (panels[1:] + panels[:-1]) / 2)
    ranks, number = range(len(ranked)), len(edges) + 1
    tails: dict[tuple[tuple[int, int], ...], FloatArray] = {(): np.ones_like(grid.weights)}
    for _ in range(k - 1):
        tails = {
            (*prefix, (rank, cell)): _tail_integral(
                np.where(cells[:, None] == cell, tail * grid.density[rank], 0), grid
            )
            for prefix, tail in tails.items()
            for rank in ranks
            for cell in range(prefix[-1][1] + 1 if prefix else number)
            if all(rank != taken for taken, _ in prefix)
        }
    law: dict[tuple[tuple[int, int], ...], float] = {}
    for prefix, tail in tails.items():
        left = [rank for rank in ranks if all(rank != taken for taken, _ in prefix)]
        for rank in left:
            others = grid.cdf[[other for other in left if other != rank]].prod(axis=0)
            integrals = (tail * grid.density[rank] * others * grid.weights).sum(axis=1)
            masses = np.bincount(cells, integrals, minlength=number).tolist()
            for cell in range(prefix[-1][1] + 1 if prefix else number):
                law[tuple((order[each], where) for each, where in (*prefix, (rank, cell)))] = masses[cell]
    return law


def single_law(locations: Sequence[float], noise: Distribution) -> FloatArray:
    """Return the probability that each item is the largest of `a_i + Z_i`.

    Gumbel: the softmax. Exponential: `P(i) = p_i ∫_0^1 Π_{l ≠ i} (1 − p_l t) dt`, `p_i = exp(a_i − max a)`
    (permute-and-flip), a polynomial that Gauss–Legendre integrates exactly. Others: numerical integration.
    """
    ranked, order = _ranked(locations, 1, math.comb)
    probabilities = np.empty(len(ranked))
    probabilities[list(order)] = _ranked_single_law(ranked, noise)
    return probabilities


def group_law(
    locations: Sequence[float], multiplicities: Sequence[int], k: int, noise: Distribution
) -> dict[tuple[int, ...], float]:
    """Return the law of how many of the k largest come from each group of tied items; groups may have any size.

    For `c_g` chosen of the `m_g` items at location `a_g`, with the hazard `h = f / S`:
    `P(c) = ∫ Π_g C(m_g, c_g) F_g^{m_g − c_g} S_g^{c_g} · Σ_g c_g h_g dz`.
    """
    sizes = [positive_integer("multiplicities", size) for size in multiplicities]
    if not sum(sizes) > positive_integer("k", k):
        raise InvalidInput("k", k, f"must be below {sum(sizes)} (the number of items)")
    ranked, order = _ranked(locations, 1, math.comb)
    sizes = [sizes[group] for group in order]
    # The largest of m noises is about log m larger than one noise.
    grid = _Grid.of(ranked, noise, tail=TAIL + math.log(max(sizes)))
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard = np.where(grid.survival > 0.0, grid.density / grid.survival, 0.0)
        log_survival = np.log(grid.survival)
        # Where S is small, log1p(−S) keeps the digits of log F that matter when it is multiplied by 10^18.
        log_cdf = np.where(grid.survival < 0.5, np.log1p(-grid.survival), np.log(grid.cdf))
    law = {}
    for counts in product(*(range(min(size, k) + 1) for size in sizes)):
        if sum(counts) != k:
            continue
        exponent = np.zeros_like(grid.weights)
        for rank, (size, count) in enumerate(zip(sizes, counts, strict=True)):
            exponent += math.log(math.comb(size, count))
            # Powers of 0 are skipped to avoid 0 · log 0.
            exponent += (size - count) * log_cdf[rank] if size > count else 0.0
            exponent += count * log_survival[rank] if count else 0.0
        rate = np.tensordot(np.array(counts, dtype=np.float64), hazard, axes=1)
        by_group = dict(zip(order, counts, strict=True))
        outcome = tuple(by_group[group] for group in range(len(sizes)))
        law[outcome] = float((np.exp(exponent) * rate * grid.weights).sum())
    return law


def _ranked(
    locations: Sequence[float], k: int, outcomes: Callable[[int, int], int]
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return the locations in descending order, relative to the largest, and the item of each rank.

    Gaps are cut to 800. An outcome that has to overcome such a gap has a probability near exp(−800) < 1e-340, which is
    zero in float64; every other probability changes by a relative exp(−800).
    """
    values = [float(finite_number("locations", location)) for location in locations]
    if positive_integer("k", k) > len(values):
        raise InvalidInput("k", k, f"must be at most {len(values)} (the number of locations)")
    if outcomes(len(values), k) > MOST_OUTCOMES:
        raise InvalidInput("k", k, f"must allow at most {MOST_OUTCOMES} outcomes; use a smaller k or fewer items")
    order = sorted(range(len(values)), key=lambda item: -values[item])
    ranked: list[float] = []
    anchor, base = values[order[0]], 0.0
    for item in order:
        location = base + (values[item] - anchor)
        if ranked and ranked[-1] - location > WIDEST_GAP:
            # Locations are relative to this item from here on, so small gaps after a huge one keep their digits.
            anchor, base = values[item], ranked[-1] - WIDEST_GAP
            location = base
        ranked.append(location)
    return tuple(ranked), tuple(order)


def _plackett_luce(ranked: tuple[float, ...], k: int) -> list[tuple[tuple[int, ...], float]]:
    """Return the law of drawing k ranks without replacement, each from the softmax of those left."""
    law = []
    for ranks in permutations(range(len(ranked)), k):
        left = list(range(len(ranked)))
        probability = 1.0
        for rank in ranks:
            # Weights are relative to the largest one left, which may be far below those already drawn.
            probability *= math.exp(ranked[rank] - ranked[left[0]])
            probability /= math.fsum(math.exp(ranked[other] - ranked[left[0]]) for other in left)
            left.remove(rank)
        law.append((ranks, probability))
    return law


@dataclass(frozen=True)
class _Grid:
    """F, S and f of every item at the quadrature nodes: arrays of shape (items, panels, NODES)."""

    cdf: FloatArray
    survival: FloatArray
    density: FloatArray
    half_widths: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls, ranked: tuple[float, ...], noise: Distribution, tail: float = TAIL, breaks: Sequence[float] = ()
    ) -> _Grid:
        """Return the values for locations in descending order, with panels that end at every one of the breaks."""
        edges = _edges(ranked, noise, tail, breaks)
        z, weights = gauss_legendre(edges)
        shifted = z[None, :, :] - np.asarray(ranked)[:, None, None]
        # For very negative z, exp(−z) overflows and the probability is zero, as it should be.
        with np.errstate(over="ignore", under="ignore"):
            cdf, survival, density = noise.cdf(shifted), noise.survival(shifted), noise.density(shifted)
        return cls(cdf, survival, density, (edges[1:] - edges[:-1]) / 2.0, weights)


def _edges(ranked: tuple[float, ...], noise: Distribution, tail: float, breaks: Sequence[float] = ()) -> FloatArray:
    """Return the edges of the panels: every kink of every item, further breaks, and steps of at most 1 in between."""
    low, high = ranked[-1] - tail, ranked[0] + tail
    edges = _stepped(sorted({low, high, *breaks, *(location + kink for location in ranked for kink in noise.kinks)}))
    # Where the lowest item's distribution function is zero, every integrand is zero.
    with np.errstate(over="ignore", under="ignore"):
        reached = int(np.argmax(noise.cdf(edges - ranked[-1]) > 0.0))
    return edges[max(reached - 1, 0) :]


def _stepped(breaks: list[float]) -> FloatArray:
    """Return the breaks, ascending, with steps of at most 1 in between."""
    pieces = [np.linspace(left, right, math.ceil(right - left), endpoint=False) for left, right in pairwise(breaks)]
    return np.append(np.concatenate(pieces), breaks[-1])


def gauss_legendre(edges: FloatArray, count: int = NODES) -> tuple[FloatArray, FloatArray]:
    """Return the Gauss–Legendre nodes and weights of the panels between edges, in arrays of shape (panels, count)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    half_widths = (edges[1:] - edges[:-1])[:, None] / 2.0
    return (edges[1:] + edges[:-1])[:, None] / 2.0 + half_widths * nodes, half_widths * weights


@lru_cache(maxsize=4096)
def _ranked_single_law(ranked: tuple[float, ...], noise: Distribution) -> list[float]:
    """Return the probability that each rank is the largest, for locations in descending order."""
    weights = np.exp(np.asarray(ranked))
    if noise.name == "gumbel":
        return list(weights / weights.sum())
    if noise.name == "exponential":
        nodes, node_weights = np.polynomial.legendre.leggauss(len(ranked) // 2 + 1)
        factors = 1.0 - np.outer(weights, (nodes + 1.0) / 2.0)
        others = [np.delete(factors, item, axis=0).prod(axis=0) for item in range(len(ranked))]
        return list(weights * (np.array(others) @ node_weights) / 2.0)
    return [probability for _, probability in _ranked_set_law(ranked, 1, noise)]


@lru_cache(maxsize=4096)
def _ranked_set_law(ranked: tuple[float, ...], k: int, noise: Distribution) -> list[tuple[tuple[int, ...], float]]:
    """Return the law of the set for locations in descending order, as (ranks, probability) pairs."""
    if k == len(ranked):
        return [(tuple(range(k)), 1.0)]
    grid = _Grid.of(ranked, noise)
    outcomes = list(combinations(range(len(ranked)), k))
    probabilities: list[float] = []
    for start in range(0, len(outcomes), _CHUNK):
        inside = np.array(outcomes[start : start + _CHUNK])
        outside = np.array([np.setdiff1d(np.arange(len(ranked)), ranks) for ranks in inside])
        # By the product rule, factor by factor: `slope` is minus the derivative of `above`, a positive sum.
        above = grid.survival[inside[:, 0]]
        slope = grid.density[inside[:, 0]]
        for column in inside.T[1:]:
            slope = slope * grid.survival[column] + above * grid.density[column]
            above = above * grid.survival[column]
        for column in outside.T:
            slope = slope * grid.cdf[column]
        probabilities.extend(np.einsum("cpn,pn->c", slope, grid.weights).tolist())
    return list(zip(outcomes, probabilities, strict=True))


@lru_cache(maxsize=4096)
def _ranked_sequence_law(ranked: tuple[float, ...], k: int, noise: Distribution) -> list[tuple[tuple[int, ...], float]]:
    """Return the law of the sequence for locations in descending order, as (ranks, probability) pairs."""
    if k == 1:
        return _ranked_set_law(ranked, 1, noise)
    grid = _Grid.of(ranked, noise)
    items = range(len(ranked))
    tails: dict[tuple[int, ...], FloatArray] = {(item,): grid.survival[item] for item in items}
    for _ in range(k - 2):
        tails = {
            (*prefix, item): _tail_integral(tail * grid.density[item], grid)
            for prefix, tail in tails.items()
            for item in items
            if item not in prefix
        }
    law: list[tuple[tuple[int, ...], float]] = []
    for prefix, tail in tails.items():
        for item in items:
            if item not in prefix:
                integrand = tail * grid.density[item] * grid.weights
                for other in items:
                    if other != item and other not in prefix:
                        integrand = integrand * grid.cdf[other]
                law.append(((*prefix, item), float(integrand.sum())))
    return law


def _tail_integral(values: FloatArray, grid: _Grid) -> FloatArray:
    """Return `∫_z^∞ values` at the nodes z: the rest of the panel by interpolation, plus the later panels."""
    panels = (values * grid.weights).sum(axis=1)
    beyond = np.append(np.cumsum(panels[:0:-1])[::-1], 0.0)
    integral: FloatArray = beyond[:, None] + grid.half_widths[:, None] * (values @ _integration_matrix().T)
    return integral


@lru_cache(maxsize=1)
def _integration_matrix() -> FloatArray:
    """Return the matrix that maps values at the Gauss–Legendre nodes `x_b` to the integrals from `x_a` to 1.

    With `P_m` the Legendre polynomials and `w_b` the weights, the interpolating polynomial is
    `Σ_m (m + ½) P_m(x) Σ_b w_b P_m(x_b) v_b`, and `∫_x^1 P_m = (P_{m−1}(x) − P_{m+1}(x)) / (2m + 1)`.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    values = np.polynomial.legendre.legvander(nodes, NODES)
    integrals = np.empty((NODES, NODES))
    integrals[:, 0] = 1.0 - nodes
    degrees = np.arange(1, NODES)
    integrals[:, 1:] = (values[:, :-2] - values[:, 2:]) / (2 * degrees + 1)
    matrix: FloatArray = (integrals * (np.arange(NODES) + 0.5)) @ (values[:, :-1].T * weights)
    return matrix


def threshold_probability(passed: Iterable[float], failed: Iterable[float]) -> float:
    """Return the probability that tests with the given margins pass and fail, for one shared noisy threshold.

    A test with margin a passes if `a + ν > ρ`, with ν and ρ independent standard Laplace variables and ρ shared; −∞
    never passes. It is `∫ f(z) Π_{i passed} S(z − a_i) Π_{j failed} F(z − a_j) dz`, with a relative error of about
    1e-11: every term is positive, and the integrand is smooth between its kinks, 0 and the a_i.
    """
    kept = tuple(sorted(max(-FARTHEST, min(margin, FARTHEST)) if margin > -np.inf else -np.inf for margin in passed))
    if kept and kept[0] == -np.inf:
        return 0.0
    stopped = tuple(sorted(max(-FARTHEST, min(margin, FARTHEST)) for margin in failed if margin > -np.inf))
    return _ranked_threshold_probability(kept, stopped)


@lru_cache(maxsize=1 << 16)
def _ranked_threshold_probability(passed: tuple[float, ...], failed: tuple[float, ...]) -> float:
    """Return the probability for margins in ascending order."""
    kinks = sorted({0.0, *passed, *failed})
    z, weights = gauss_legendre(_stepped([kinks[0] - TAIL, *kinks, kinks[-1] + TAIL]))
    heights = weights * LAPLACE.density(z)
    for margin in passed:
        heights = heights * LAPLACE.survival(z - margin)
    for margin in failed:
        heights = heights * LAPLACE.cdf(z - margin)
    return float(heights.sum())
