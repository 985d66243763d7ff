"""P[the top k in order], up to ties, for mechanisms that choose one item after the other.

*Peeling*: a product over its rounds (mathematics, section 2). In a round N items are left of the best group, and m_i
items stand `b_i` e-folds below it. With `p = e^{−b}` and `W = Σ m p`, Gumbel noise keeps the best group with
probability `N / (N + W)`, and exponential noise with `∫ e^{−v} Π (1 − p u)^m dv`, `u = 1 − e^{−v/N}`.

*Laplace and Gaussian*: nested integrals. With V_0(z) the probability that all items below rank k's score are below z,
and the items of the top k taken one by one, the lowest first, `V_j(z) = ∫_{−∞}^z V_{j−1} f dz` is the probability that
j of them are in order above all others and below z. Of m tied items r belong to the top k. A small tie is processed
item by item, with the number of items that may come next as a factor. A large tie is processed at once: all m are below
z with probability `F^m`; given that, the r-th highest is at w with `F(w) = F(z) (1 − B)`, B ~ Beta(r, m − r + 1), so
that `V_j(z) = F^m E[V_{j−1}(w)]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.forecast.noisy import NoisyItems, log_cdf
from dpselect.mechanisms import NoisyVector, Peeling
from dpselect.sampling import Noise
from dpselect.sampling.bounds import scaled
from dpselect.scores import Scores

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_WIDEST = 2000.0
"""Gaps, in e-folds, are shortened to this; exp(-2000) is 0 in float64."""

_NEAR, _TERMS = 0.1, 16
"""Products p u above 0.1 are taken one by one, the others through 16 power sums: an error of 0.1^17."""

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
        log_exact += rounds.log_kept(group, left, mechanism.noise)
    return math.exp(log_exact), -math.expm1(log_exact)


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


PANEL_WIDTH, _PANEL_NODES = 0.25, 12
"""Largest width of the panels on which V is tabulated, in units of the noise, and Gauss-Legendre nodes in each."""

_REACH, _LONG_REACH = 10.0, 40.0
"""Normal noise is taken to be within plus and minus 10, noise with exponential tails within plus and minus 40."""

_ONE_BY_ONE, _FEW_TIED = 8, 1000
"""Up to 8 items of a tie of at most 1,000 are taken one by one."""
MOST_IN_ORDER, MOST_WITH_KINKS = 100_000, 2_000
"""P[right order] is computed for at most this many distinct scores in the top k; kinks are edges of panels."""


def noisy_in_order(table: Scores, mechanism: NoisyVector) -> float | None:
    """P[the score at every rank up to k is right] for noise on all scores; None for very long lists.

    The relative error is about 1e-8. Probabilities below 1e-13 may be off by any factor.
    """
    rate, noise = mechanism.rate(), mechanism.distribution
    items = NoisyItems.of(table, mechanism.k, rate, noise)
    if items.border >= (MOST_WITH_KINKS if noise.kinks else MOST_IN_ORDER):
        return None
    reach = _REACH if noise.name == "normal" else _LONG_REACH
    sizes, values = items.sizes[items.border :: -1], table.values[items.border :: -1]
    gaps = np.minimum(scaled(values[1:] - values[:-1], rate), 2 * reach)
    locations = np.append(0.0, np.cumsum(gaps))
    edges = np.arange(-reach, locations[-1] + reach + PANEL_WIDTH, PANEL_WIDTH)
    if noise.kinks:
        below = items.kinks[(items.kinks < 0) & (items.kinks > -reach)]
        edges = np.unique(np.concatenate([below, edges, locations]))
    z = edges[:-1, None] + np.diff(edges)[:, None] / 2 * (1 + _panel_rule()[0])
    values, final = np.empty_like(z), 1.0
    filled = int(np.searchsorted(edges[:-1], reach))
    with np.errstate(all="ignore"):
        below_border = items.log_all_below(z[:filled].ravel(), items.border + 1)
    values[:filled] = np.exp(below_border).reshape(-1, _PANEL_NODES)
    for place, (location, size) in enumerate(zip(locations.tolist(), sizes.tolist(), strict=True)):
        taken = items.room if place == 0 else size
        first = max(int(np.searchsorted(edges, location - reach, side="right")) - 1, 0)
        part = slice(first, int(np.searchsorted(edges[:-1], location + reach)))
        if part.stop > filled:
            # Beyond the reach of the items before it, V is constant.
            values[filled : part.stop] = final
            filled = part.stop
        step = _one_by_one if taken <= _ONE_BY_ONE and size <= _FEW_TIED else _all_at_once
        around = _Panels(edges[first : part.stop + 1] - location, z[part] - location)
        values[part], final = step(values[part], around, noise, size, taken)
        if not final:
            return 0.0
    return min(final, 1.0)


@dataclass(frozen=True, repr=False)
class _Panels:
    """The edges of panels, and the nodes in each, relative to a group."""

    edges: FloatArray
    x: FloatArray

    @property
    def halves(self) -> FloatArray:
        """Half of the width of each panel."""
        return np.diff(self.edges) / 2


def _one_by_one(
    before: FloatArray, panels: _Panels, noise: Noise, size: float, taken: float
) -> tuple[FloatArray, float]:
    """Return V behind a group at x relative to it, and its limit, taking the tied items one after the other."""
    weights, from_start = _panel_rule()[1], _cumulative_rule()
    density = panels.halves[:, None] * noise.density(panels.x)
    values = before * np.exp((size - taken) * log_cdf(noise, panels.x)) if size > taken else before
    final = 0.0
    for place in range(int(taken), 0, -1):
        integrand = (size - place + 1) * values * density
        sums = np.append(0.0, np.cumsum(integrand @ weights))
        values, final = sums[:-1, None] + integrand @ from_start.T, float(sums[-1])
    return values, final


def _all_at_once(
    before: FloatArray, panels: _Panels, noise: Noise, size: float, taken: float
) -> tuple[FloatArray, float]:
    """Return the same by the law of the lowest of the tied items that belong to the top k."""
    # V behind the lowest group has kinks where the noise has, which need finer steps.
    shares, weights = _order_statistic(size, taken, 25 if noise.kinks else 5)
    flat = np.append(panels.x.ravel(), math.inf)[:, None]
    with np.errstate(divide="ignore"):
        log_below = log_cdf(noise, flat)
        above = noise.survival(flat) + noise.cdf(flat) * shares
        exponents = np.where(above < 0.5, -np.log1p(-np.minimum(above, 0.5)), -log_below - np.log1p(-shares))
        lowest = noise.quantile(exponents)
    values = np.exp(size * log_below[:, 0]) * (_interpolated(before, panels, lowest) @ weights)
    return values[:-1].reshape(panels.x.shape), float(values[-1])


def _order_statistic(size: float, taken: float, fineness: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for Beta(r, m − r + 1), by even steps of the log-odds t, `fineness` to a width.

    The density by t is a bell `√(1/r + 1/(m − r + 1))` wide with tails like `e^{rt}` and `e^{−(m − r + 1) t}`.
    """
    rest = size - taken + 1
    middle, width = math.log(taken / rest), math.sqrt(1 / taken + 1 / rest)
    low, high = (math.sqrt(120.0) * width + 60.0 / each for each in (taken, rest))
    t = middle + np.linspace(-low, high, int((low + high) / width * fineness) + 1)
    log_share, log_other = -np.logaddexp(0.0, -t), -np.logaddexp(0.0, t)
    log_weights = taken * log_share + rest * log_other
    weights = np.exp(log_weights - log_weights.max())
    return np.exp(log_share), weights / weights.sum()


def _interpolated(values: FloatArray, panels: _Panels, at: FloatArray) -> FloatArray:
    """Return V at other places, from the polynomial through its values in each panel; 0 below all panels."""
    panel = np.searchsorted(panels.edges, at, side="right") - 1
    inside = np.clip(panel, 0, len(values) - 1)
    local = np.clip((at - panels.edges[inside]) / panels.halves[inside] - 1, -1.0, 1.0)
    coefficients = values @ _legendre_rule().T
    # Clenshaw's recurrence, panel by panel.
    ahead, result = np.zeros_like(local), np.zeros_like(local)
    for degree in range(_PANEL_NODES - 1, 0, -1):
        own = coefficients[inside, degree] + (2 * degree + 1) / (degree + 1) * local * result
        ahead, result = result, own - (degree + 1) / (degree + 2) * ahead
    result = coefficients[inside, 0] + local * result - ahead / 2
    return np.where(panel < 0, 0.0, np.clip(result, 0.0, 1.0))


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
