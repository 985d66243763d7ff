"""P[the top k in order], up to ties, for mechanisms that choose one item after the other.

*Peeling*: a product over its rounds (mathematics, section 2). In a round N items are left of the best group, and m_i
items stand `b_i` e-folds below it. With `p = e^{−b}` and `W = Σ m p`, Gumbel noise keeps the best group with
probability `N / (N + W)`, and exponential noise with `∫ e^{−v} Π (1 − p u)^m dv`, `u = 1 − e^{−v/N}`. A round with
Laplace noise is one-shot with k = 1.

*Noisy scores* (one-shot, Gaussian): nested integrals. With V_0(z) the probability that all items below rank k's score
are below z, and the items of the top k taken one by one, the lowest first, `V_j(z) = ∫_{−∞}^z V_{j−1} f dz` is the
probability that j of them are in order above all others and below z. The complement is computed beside it, as
`1 − V_j(z) = ∫_{−∞}^z (1 − V_{j−1}) f dz + S(z)`: all terms are positive, so that neither loses digits. Of m tied items
r belong to the top k. A small tie is processed item by item, with the number of items that may come next as a factor. A
large tie is processed at once: all m are below z with probability `F^m`; given that, the r-th highest is at w with
`F(w) = F(z) (1 − B)`, B ~ Beta(r, m − r + 1), so that `V_j(z) = F^m E[V_{j−1}(w)]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.forecast.noisy import REACH, NoisyItems, added_noise, log_cdf
from dpselect.mechanisms import Mechanism, Peeling
from dpselect.sampling.bounds import scaled
from dpselect.sampling.noise import NOISES, Noise
from dpselect.scores import Scores

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_WIDEST = 2000.0
"""Gaps, in e-folds, are shortened to this; exp(-2000) is 0 in float64."""

_NEAR, _TERMS = 0.1, 16
"""Products p u above 0.1 are taken one by one, the others through 16 power sums: an error of 0.1^17."""

_TOLERANCE = 1e-10
"""Relative error of the integral of a round with Laplace noise."""

_DEPTH = 50.0
"""Integrals end where exp(-v) is e^-50."""


def peeling_in_order(table: Scores, mechanism: Peeling) -> tuple[float, float]:
    """P[the top k in order] and its complement."""
    sizes = table.multiplicities.astype(np.float64)
    # A gap beyond _WIDEST, where p is 0, is shortened, so that differences behind it keep their precision.
    gaps = np.minimum(scaled(table.values[:-1] - table.values[1:], mechanism.rate()), _WIDEST)
    ranks, ends = np.arange(mechanism.k), np.cumsum(sizes)
    groups = np.searchsorted(ends, ranks, side="right")
    rounds = _Rounds(sizes, np.append(0.0, np.cumsum(gaps)), _power_sums(sizes, gaps))
    log_exact = 0.0
    for group, left in zip(groups.tolist(), (ends[groups] - ranks).tolist(), strict=True):
        if mechanism.noise == "laplace":
            log_exact += _log_kept_by_laplace(table, mechanism, group, int(left))
        else:
            log_exact += rounds.log_kept(group, left, mechanism.noise)
    return math.exp(log_exact), -math.expm1(log_exact)


def _log_kept_by_laplace(table: Scores, mechanism: Peeling, group: int, left: int) -> float:
    """Return the log-probability that a round of report noisy max takes one of the `left` items of its best group."""
    rest = Scores.from_histogram(table.values[group:], [left, *table.multiplicities[group + 1 :].tolist()])
    right, wrong = NoisyItems.of(rest, 1, mechanism.rate(), NOISES["laplace"]).exact(_TOLERANCE)
    return math.log(max(right, 5e-324)) if right < 0.5 else math.log1p(-wrong)


def _power_sums(sizes: FloatArray, gaps: FloatArray) -> FloatArray:
    """Return `Σ m p^j` over each group and all below it as [group, j], with p relative to that group."""
    falls = np.exp(-np.multiply.outer(gaps, np.arange(1, _TERMS + 1)))
    sums = np.repeat(sizes[:, None], _TERMS, axis=1)
    for group in range(len(gaps) - 1, -1, -1):
        sums[group] += falls[group] * sums[group + 1]
    return sums


@dataclass(frozen=True, repr=False)
class _Rounds:
    """Groups of some sizes, `depths` e-folds below the best one, with their power sums."""

    sizes: FloatArray
    depths: FloatArray
    sums: FloatArray

    def log_kept(self, group: int, left: float, noise: str) -> float:
        """Return the log-probability that a round takes one of the `left` items of its best group."""
        if group + 1 == len(self.sizes):
            return 0.0
        weight = float(self.sums[group + 1, 0]) * math.exp(self.depths[group] - self.depths[group + 1])
        ratio = weight / left
        if noise == "gumbel" or not ratio or ratio > 1e250:
            return -math.log1p(ratio)
        exponents, masses = _decaying(ratio, left)
        shares = -np.expm1(-exponents / left)
        start = int(np.searchsorted(self.depths, self.depths[group] + math.log(float(shares[-1]) / _NEAR)))
        start = max(start, group + 1)
        near = np.exp(self.depths[group] - self.depths[group + 1 : start])
        with np.errstate(divide="ignore"):
            beaten = -(self.sizes[group + 1 : start] @ np.log1p(-np.multiply.outer(near, shares)))
        if start < len(self.sizes):
            far = shares * math.exp(self.depths[group] - self.depths[start])
            terms = np.append(0.0, self.sums[start] / np.arange(1, _TERMS + 1))
            beaten = beaten + np.polynomial.polynomial.polyval(far, terms)
        kept = float(masses @ np.exp(-exponents - beaten))
        lost = float(masses @ (np.exp(-exponents) * -np.expm1(-beaten)))
        return math.log(kept) if kept < 0.5 else math.log1p(-lost)


def _decaying(ratio: float, left: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights from 0 to where `exp(−v)` is e^-50; panels double in length from 1/(2 + 2W/N) on."""
    doublings = math.ceil(math.log2(_DEPTH * (2 + 2 * ratio)))
    edges = _DEPTH * np.append(0.0, np.exp2(np.arange(-doublings, 1.0)))
    # The integrand is at most exp(−v − ratio N u): panels where that vanishes are left out.
    bound = edges[:-1] - ratio * left * np.expm1(-edges[:-1] / left)
    edges = edges[: int((bound < _DEPTH).sum()) + 1]
    halves = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + halves * (1 + _NODES)).ravel(), (halves * _WEIGHTS).ravel()


PANELS, _PANEL_NODES = 400, 12
"""Number of panels on which V is tabulated in the range of one noise, and Gauss-Legendre nodes in each."""

_PANELS_TOGETHER, _MOST_RIVALS = 16, 100
"""Panels in which V_0 is computed together, and number of groups below rank k that can decide."""

_STEEPEST = 10.0
"""Items of a tie are taken one by one if that changes log V by no more than this within a panel."""
_SMALLEST = 1e-20
"""A smaller P[right order] of noisy scores counts as 0."""
MOST_IN_ORDER = 100_000
"""P[right order] of noisy scores is computed for at most this many distinct scores in the top k."""


def noisy_in_order(table: Scores, mechanism: Mechanism) -> tuple[float, float] | None:
    """P[the score at every rank up to k is right] and its complement, for noise on all scores; None for long lists.

    The relative error is about 1e-7, with laplace noise and more than 30 tied items in the top k about 1e-4. P below
    1e-20 counts as 0, and a complement below 1e-20 may be off by any factor.
    """
    added = added_noise(mechanism, table.size)
    assert added is not None
    rate, noise = added
    items = NoisyItems.of(table, mechanism.k, rate, noise)
    if items.border >= MOST_IN_ORDER:
        return None
    sizes, values = items.sizes[items.border :: -1], table.values[items.border :: -1]
    # All noises lie between these, up to a probability of e^-60; items further apart do not meet.
    low, high = noise.quantile(np.array([REACH, max(math.exp(-REACH) / items.number, 5e-324)])).tolist()
    gaps = np.minimum(scaled(values[1:] - values[:-1], rate), high - low)
    locations = np.append(0.0, np.cumsum(gaps))
    width = (high - low) / PANELS
    edges = np.arange(low, locations[-1] + high + width, width)
    if noise.kinks:
        edges = np.unique(np.concatenate([edges, locations, np.maximum(_rivals(items), low)]))
    before, both, final = 0, np.empty((2, 0, _PANEL_NODES)), np.array([1.0, 0.0])
    for place, (location, size) in enumerate(zip(locations.tolist(), sizes.tolist(), strict=True)):
        first, last = np.searchsorted(edges, [location + low, location + high], side="right").tolist()
        panels = _Panels.of(edges[first - 1 : last + 1] - location)
        # Beyond the reach of the items before it, V is constant.
        both = both[:, first - 1 - before :]
        constant = np.tile(final[:, None, None], (len(panels.nodes) - both.shape[1], _PANEL_NODES))
        both = np.concatenate([both, constant], axis=1) if place else _all_below(items, panels.nodes)
        before, taken = first - 1, size if place else items.room
        with np.errstate(all="ignore"):
            # f/S at the highest of the tied items is the slope of log V for each item taken.
            slope = size * float(noise.density(noise.quantile(np.array([1 / size])))[0])
            step = _one_by_one if taken * width * slope <= _STEEPEST else _all_at_once
            both, final = step(both, panels, noise, size, taken)
        if final[0] < _SMALLEST:
            return 0.0, 1.0
    right, wrong = np.minimum(final, 1.0).tolist()
    return right, wrong


class _Panels(NamedTuple):
    """Panels between edges [panel + 1] relative to the location of a group: half widths and nodes."""

    edges: FloatArray
    halves: FloatArray
    nodes: FloatArray

    @classmethod
    def of(cls, edges: FloatArray) -> _Panels:
        halves = np.diff(edges)[:, None] / 2
        return cls(edges, halves, edges[:-1, None] + halves * (1 + _panel_rule()[0]))


def _rivals(items: NoisyItems) -> FloatArray:
    """Return the locations of the groups below rank k that can decide: V_0 is 2^-100 where 100 of them are above z."""
    return items.locations[items.border + 1 :][:_MOST_RIVALS]


def _all_below(items: NoisyItems, z: FloatArray) -> FloatArray:
    """Return V_0 and its complement as [2, panel, node] at nodes z [panel, node]."""
    rivals = _rivals(items)
    first = int(np.searchsorted(z[:, 0], rivals[-1])) if len(rivals) == _MOST_RIVALS else 0
    logs = np.full_like(z, -np.inf)
    with np.errstate(all="ignore"):
        for start in range(first, len(z), _PANELS_TOGETHER):
            part = slice(start, start + _PANELS_TOGETHER)
            logs[part] = items.log_all_below(z[part].ravel(), items.border + 1).reshape(-1, _PANEL_NODES)
    return np.stack([np.exp(logs), -np.expm1(logs)])


def _one_by_one(
    both: FloatArray, panels: _Panels, noise: Noise, size: float, taken: float
) -> tuple[FloatArray, FloatArray]:
    """Return V and 1 − V behind a group, and their limits, taking the tied items one after the other."""
    log_below = log_cdf(noise, panels.nodes)
    both = both * np.exp((size - taken) * log_below) if size > taken else both
    density, final = panels.halves * noise.density(panels.nodes), np.zeros(2)
    for place in range(int(taken), 0, -1):
        integrand = (size - place + 1) * both * density
        sums = np.cumsum(integrand @ _panel_rule()[1], axis=1)
        both, final = integrand @ _cumulative_rule().T, sums[:, -1]
        both[:, 1:] += sums[:, :-1, None]
    both[1] -= np.expm1(size * log_below)
    return both, final


def _all_at_once(
    both: FloatArray, panels: _Panels, noise: Noise, size: float, taken: float
) -> tuple[FloatArray, FloatArray]:
    """Return the same by the law of the lowest of the tied items that belong to the top k."""
    log_others, weights = _order_statistic(size, taken)
    log_below = log_cdf(noise, np.append(panels.nodes.ravel(), math.inf))
    after = np.zeros((2, len(log_below)))
    possible = size * log_below > -REACH
    lowest = noise.quantile(-log_below[possible, None] - log_others)
    after[:, possible] = np.exp(size * log_below[possible]) * (_interpolated(both, panels, lowest) @ weights)
    after[1, :-1] -= np.expm1(size * log_below[:-1])
    return after[:, :-1].reshape(both.shape), after[:, -1]


def _order_statistic(size: float, taken: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes of log(1 − B) and weights, B ~ Beta(r, m − r + 1), by even steps of the log-odds t.

    The density by t is a bell `√(1/r + 1/(m − r + 1))` wide with tails like `e^{rt}` and `e^{−(m − r + 1) t}`.
    """
    rest = size - taken + 1
    middle, width = math.log(taken / rest), math.sqrt(1 / taken + 1 / rest)
    low, high = (math.sqrt(120.0) * width + 60.0 / each for each in (taken, rest))
    t = middle + np.linspace(-low, high, int((low + high) / width * 5) + 1)
    log_share, log_other = -np.logaddexp(0.0, -t), -np.logaddexp(0.0, t)
    log_weights = taken * log_share + rest * log_other
    weights = np.exp(log_weights - log_weights.max())
    return log_other, weights / weights.sum()


def _interpolated(both: FloatArray, panels: _Panels, at: FloatArray) -> FloatArray:
    """Return V and 1 − V at other places, from the polynomial through their values in each panel."""
    panel = np.clip(np.searchsorted(panels.edges, at) - 1, 0, len(panels.nodes) - 1)
    local = np.clip((at - panels.edges[panel]) / panels.halves[panel, 0] - 1, -1.0, 1.0)
    coefficients = both @ _legendre_rule().T
    # Clenshaw's recurrence, panel by panel.
    ahead = result = np.zeros((2, *local.shape))
    for degree in range(_PANEL_NODES - 1, 0, -1):
        own = coefficients[:, panel, degree] + (2 * degree + 1) / (degree + 1) * local * result
        ahead, result = result, own - (degree + 1) / (degree + 2) * ahead
    found: FloatArray = np.clip(coefficients[:, panel, 0] + local * result - ahead / 2, 0.0, 1.0)
    return found


@cache
def _panel_rule() -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of a panel on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_PANEL_NODES)
    return nodes, weights


@cache
def _legendre_rule() -> FloatArray:
    """Return the matrix from values at the nodes to Legendre coefficients."""
    nodes, weights = _panel_rule()
    degrees = np.arange(_PANEL_NODES)
    matrix: FloatArray = ((degrees + 0.5) * np.polynomial.legendre.legvander(nodes, _PANEL_NODES - 1)).T * weights
    return matrix


@cache
def _cumulative_rule() -> FloatArray:
    """Return the matrix from values at the nodes to the integrals from −1 to each node."""
    nodes, _ = _panel_rule()
    integrals = [np.polynomial.legendre.legint(row, lbnd=-1) for row in np.eye(_PANEL_NODES)]
    matrix: FloatArray = np.polynomial.legendre.legval(nodes, np.array(integrals).T).T @ _legendre_rule()
    return matrix
