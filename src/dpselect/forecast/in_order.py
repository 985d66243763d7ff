"""How likely every rank is right among the k largest of `a_i + Z_i` with normal noise, as k integrals one in the other.

Notation: F and f are the distribution and the density of the noise at `z − a` of an item. With V_0(z) the chance that
all items below rank k's score are below z, and the items of the top k taken one by one, the lowest first,

`V_j(z) = ∫_{−∞}^z V_{j−1} f dz`

is the chance that j of them stand in their order above all others, and below z; the chance wanted is the last V at ∞.
Of m tied items r belong to the top k, any of them. If r is small they are taken one by one, each with the number of
items that may come next as a factor, and with `F^{m−r}` before the first. Otherwise they are taken at once: all m are
below z with chance `F^m`, and then the r-th highest of them is at w with `F(w) = F(z) (1 − B)`, B of the law
Beta(r, m − r + 1), so that

`V_j(z) = F^m E[V_{j−1}(w)]`.

f vanishes some deviations from a, and behind that V_j stays what it is. So it is known on a grid around a, and the next
one on the same grid, moved up to the next item.

Error: the polynomial through the 20 nearest values of the grid is integrated over each step of it, which is 1/20, or
less where many items are close. B is integrated over its log-odds, in even steps, and V between the grid's values is a
spline of degree 9. Tests find less than 1e-9 left out. A chance below 1e-13 is given as 0: no V_j is larger than the
ones before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.forecast.noise_values import log_normal
from dpselect.sampling.noise import NORMAL

if TYPE_CHECKING:
    from dpselect.forecast.noisy import NoisyGroups

MOST = 100_000
"""How many distinct scores the top k may have, for seconds of work."""
_STEP, _REACH = 0.05, 9.5
_CLOSE, _FEW = 1.5, 4
_POINTS, _DEGREE = 20, 9
_ONE_BY_ONE = 8
_RARE, _NEVER, _PER_WIDTH = 60.0, 30.0, 4.5
_TOGETHER, _MOST_WORK = 16_000, 50_000_000
_LEAST = 1e-13


def chance_in_order(noisy: NoisyGroups) -> float | None:
    """P[the score at every rank up to k is right], for normal noise; None if that is too much work."""
    border = noisy.group(noisy.k)
    if border >= MOST:
        return None
    if _log_most(noisy.locations[: border + 1]) < math.log(_LEAST):
        return 0.0
    chain = Chain.of(noisy, border)
    # Where items are close, their own order is often next to impossible: a few of them tell.
    if chain.step < _STEP:
        rough = replace(chain, step=_STEP)
        if not rough.last(np.ones(len(rough.grid))):
            return 0.0
    if len(chain.gaps) * len(chain.grid) > _MOST_WORK:
        return None
    with np.errstate(under="ignore"):
        return chain.last(np.exp(noisy.log_below(chain.grid, border + 1)))


def _log_most(locations: FloatArray) -> float:
    """Return a bound on the logarithm of the chance that items at falling locations stand in their order.

    That of the n lowest is 1/n! if they are tied. If their locations differ by `a` from the mean of them, the chance
    is, by Hölder's inequality with the exponent p, at most `e^{(p − 1) |a|²/2} (1/n!)^{1 − 1/p}`. With the best p that
    is `exp(−(√(ln n!) − |a|/√2)²)`, if the difference is positive.
    """
    rising, number = locations[::-1], np.arange(1.0, len(locations) + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.maximum(np.cumsum(rising**2) - np.cumsum(rising) ** 2 / number, 0.0)
        apart = np.sqrt(np.cumsum(np.log(number))) - np.sqrt(squares / 2)
    return -(float(np.fmax.reduce(apart, initial=0.0)) ** 2)


@dataclass(frozen=True, repr=False)
class Chain:
    """The groups of the top k from the lowest up: how far each is above the last one, m and r; how far apart z are."""

    gaps: FloatArray
    sizes: FloatArray
    taken: FloatArray
    step: float

    @classmethod
    def of(cls, noisy: NoisyGroups, border: int) -> Chain:
        """Return the groups up to rank k's."""
        sizes, locations = noisy.sizes[border::-1], noisy.locations[border::-1]
        taken = sizes.copy()
        taken[0] -= noisy.ends[border] - noisy.k
        close = np.searchsorted(locations, locations + _CLOSE, side="right") - np.arange(len(locations))
        # Where an item stands among many close ones varies less than each of them does; splines need finer grids.
        tied = np.where(taken <= _ONE_BY_ONE, taken, _FEW).max()
        step = float(_STEP / np.sqrt(max(close.max() / _FEW, tied)))
        return cls(np.diff(locations, prepend=locations[0]), sizes, taken, step)

    @cached_property
    def grid(self) -> FloatArray:
        """Values z about the location of a group."""
        near = round(_REACH / self.step)
        return self.step * np.arange(-near, near + 1.0)

    def last(self, values: FloatArray) -> float:
        """Return the last V at ∞ for V_0 on the grid about the first group, 0 if it is next to nothing."""
        moves, offsets = self._moves()
        together = max(_TOGETHER // len(self.grid), 1)
        for start in range(0, len(moves), together):
            part = slice(start, start + together)
            places = self.grid + offsets[part, None]
            densities = NORMAL.density(places)
            for own, move in enumerate(moves[part]):
                if move:
                    values = np.concatenate([values[move:], np.full(min(move, len(values)), values[-1])])
                size, taken = float(self.sizes[start + own]), float(self.taken[start + own])
                if taken > _ONE_BY_ONE:
                    values = _at_once(values, places[own], size, taken)
                else:
                    values = self._one_by_one(values, places[own], densities[own], size, taken)
                if values[-1] < _LEAST:
                    return 0.0
        return float(min(values[-1], 1.0))

    def _one_by_one(
        self, values: FloatArray, z: FloatArray, density: FloatArray, size: float, taken: float
    ) -> FloatArray:
        """Return V behind a group from V before it, at z relative to the group."""
        if size > taken:
            values = values * np.exp((size - taken) * log_normal(z))
        for place in range(int(taken), 0, -1):
            stepwise = np.convolve(values * density, (size - place + 1) * self.step * _weights(), mode="same")[1:]
            values = np.append(0.0, np.cumsum(stepwise))
        return values

    def _moves(self) -> tuple[list[int], FloatArray]:
        """Return by how many steps the grid is moved up to each group, and how far its middle then is above it."""
        moves, offsets, most = [0], [0.0], len(self.grid)
        for gap in self.gaps[1:].tolist():
            move = round((gap - offsets[-1]) / self.step) if gap < most * self.step else most
            moves.append(move)
            offsets.append(offsets[-1] + move * self.step - gap if move < most else 0.0)
        return moves, np.array(offsets)


def _at_once(values: FloatArray, z: FloatArray, size: float, taken: float) -> FloatArray:
    """Return the same for many tied items."""
    from scipy.interpolate import make_interp_spline
    from scipy.special import ndtri

    shares, weights = _order_statistic(size, taken)
    cdf, survival = NORMAL.cdf(z), NORMAL.survival(z)
    above = survival[:, None] + cdf[:, None] * shares
    w = np.where(above < 0.5, -ndtri(above), ndtri(cdf[:, None] * (1 - shares)))
    spline = make_interp_spline(z, values, k=_DEGREE)
    # Below the grid V is next to nothing.
    before = np.where(w < z[0], 0.0, np.clip(spline(np.clip(w, z[0], z[-1])), 0.0, values[-1]))
    result: FloatArray = np.exp(size * log_normal(z)) * (before @ weights)
    return result


def _order_statistic(size: float, taken: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for the law Beta(r, m − r + 1), by even steps of the log-odds t.

    The density by t is `b^r (1 − b)^{m − r + 1}` up to a factor, with `b = 1 / (1 + e^{−t})`. It is a bell, about
    `√(1/r + 1/(m − r + 1))` wide, with tails like `e^{rt}` and `e^{−(m − r + 1) t}`. Where b is small, and w large,
    e^−60 of it is left out, for what matters there may be as rare as a chance that is not given as 0.
    """
    rest = size - taken + 1
    middle, width = np.log(taken / rest), np.sqrt(1 / taken + 1 / rest)
    low, high = (np.sqrt(2 * depth) * width + depth / each for depth, each in ((_RARE, taken), (_NEVER, rest)))
    t = middle + np.linspace(-low, high, int((low + high) / width * _PER_WIDTH) + 1)
    log_share, log_other = -np.logaddexp(0.0, -t), -np.logaddexp(0.0, t)
    log_weights = taken * log_share + rest * log_other
    weights = np.exp(log_weights - log_weights.max())
    return np.exp(log_share), weights / weights.sum()


@cache
def _weights() -> FloatArray:
    """Return the weights of neighbouring values for the integral from one to the next, in the order of `convolve`.

    They are those of the polynomial through these values, and computed exactly.
    """
    nodes, weights = range(1 - _POINTS // 2, _POINTS // 2 + 1), []
    for node in nodes:
        # The coefficients of Π (x − other) / (node − other), from x^0 on.
        basis = [Fraction(1)]
        for other in (other for other in nodes if other != node):
            shifted, scaled = [Fraction(0), *basis], [*(-other * each for each in basis), Fraction(0)]
            basis = [(each + less) / (node - other) for each, less in zip(shifted, scaled, strict=True)]
        weights.append(float(sum(each / (power + 1) for power, each in enumerate(basis))))
    return np.array(weights[::-1])
