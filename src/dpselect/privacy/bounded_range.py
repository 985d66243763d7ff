"""Optimal composition of rounds with one bounded range r: the least δ of k adaptively chosen rounds, and the least ε.

`V_0(L) = max(0, 1 − e^{ε−L})`, `V_j(L) = sup over t in [0, r] of p V_{j−1}(L + t) + (1 − p) V_{j−1}(L + t − r)` with
`p = (1 − e^{t−r})/(1 − e^{−r})`. k rounds are (ε, V_k(0))-DP, and no smaller δ holds for all of them. Dong, Durfee and
Rogers; mathematics, section 6. V is bounded from above on a grid of losses; the proof is in bounded_range.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dpselect._arrays import FloatArray
from dpselect.privacy.conversion import SMALLEST_EPSILON

STEPS, STEPS_IN_ALL = 12, 512
"""Grid steps at least per range r, and over the ranges of all rounds: r is then within 0.5 % of the best."""

MOST_WORK = 1 << 25
"""Grid points times steps times rounds that are worth the wait: 0.2 s for each of a calibration's five trials.

k = 1,000 needs most of it.
"""

WIDTHS = 2.0**-64, 2.0**6
"""The smallest and largest r for which the bound on rounding errors holds."""

ROUNDING = 2.0**-40
"""A bound on the relative error of one round in floating point."""

LEAST_GAIN = 0.1
"""If the bound would make an ε of 1 smaller by less than this, δ is better left unspent."""

FLOOR = 2.0**-990
"""Smaller values of V are raised to this, so that none underflows."""


@lru_cache(maxsize=1024)
def epsilon_of_equal_rounds(width: float, rounds: int, delta: float, known: float) -> float:
    """Return an ε for which k adaptively chosen rounds of bounded range r are (ε, δ)-DP, rounded up.

    `known` is an ε for which they are proven to be. It is returned if this bound is hardly better or would take too
    long. Few rounds exceed `ε = k r (1 − g)` only if all of them lose most: near ε = 1, `δ = g^{k+1} / (e (k+1))`.
    """
    if not (WIDTHS[0] <= width <= WIDTHS[1] and delta > FLOOR and rounds <= MOST_WORK):
        return known
    if math.e * (rounds + 1) * delta < LEAST_GAIN ** (rounds + 1):
        return known
    grid = Grid.of(width, rounds, known)
    if grid.work > MOST_WORK:
        return known
    deltas = grid.deltas(known)
    beyond = int(np.argmax(deltas > delta)) if deltas[-1] > delta else len(deltas)
    if not beyond:
        return known
    epsilon = known - (beyond - 1) * grid.step
    if beyond < len(deltas):
        # δ is convex in e^ε, so between two grid points it lies below the chord.
        low, high = deltas[beyond - 1 : beyond + 1]
        epsilon += math.log1p(math.expm1(-grid.step) * (delta - low) / (high - low))
    return min(max(epsilon + ROUNDING * known, SMALLEST_EPSILON), known)


@dataclass(frozen=True)
class Grid:
    """Losses L in steps of r/n, from `low` steps below 0 to `high` steps above it."""

    width: float
    rounds: int
    steps: int
    low: int
    high: int

    @classmethod
    def of(cls, width: float, rounds: int, epsilon: float) -> Grid:
        """Return a grid for ε; any grid gives a valid bound.

        It ends four standard deviations of the total loss, at most `√k r/2` each, above ε and two below 0.
        """
        steps = max(STEPS, 2 * math.ceil(STEPS_IN_ALL / 2 / rounds))
        high = math.ceil(epsilon / width + 2 * math.sqrt(rounds))
        return cls(width, rounds, steps, min(math.isqrt(rounds) + 1, rounds) * steps, min(high, 2 * rounds) * steps)

    @property
    def step(self) -> float:
        return self.width / self.steps

    @property
    def work(self) -> int:
        return (self.low + 1 + self.high) * self.steps * self.rounds

    def deltas(self, epsilon: float) -> FloatArray:
        """Return upper bounds on the δ of all rounds at ε, and at ε less 1, 2, … `high` steps.

        A loss that starts at L instead of 0 is a start at 0 with ε − L.
        """
        # No loss exceeds the upper end of the grid by more than k r in the end.
        places = np.append(np.arange(-self.low, self.high + 1), self.high + self.rounds * self.steps)
        losses = places * (self.step * (1 + ROUNDING))
        at_first: FloatArray = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0)), FLOOR)
        values, above = at_first[:-1], at_first[-1]
        padded = np.empty(len(values) + 2 * self.steps)
        later = sliding_window_view(padded, len(values))
        for _ in range(self.rounds):
            # V increases with L: below the grid it is at most its value at the low end.
            padded[self.steps : -self.steps] = np.maximum.accumulate(np.minimum(values, above))
            padded[: self.steps], padded[-self.steps :] = padded[self.steps], above
            values = self.worst(later[self.steps :], later[: self.steps + 1])
        return values[self.low :] * (1 + 2 * ROUNDING * (self.rounds + 2))

    def worst(self, up: FloatArray, down: FloatArray) -> FloatArray:
        """Return an upper bound on the supremum over t for each L, given V at L + t_i and at L + t_i − r in rows i.

        At `t_i = i r/n` a round has the value `G_i = p up_i + (1 − p) down_i`. Between t_i and t_{i+1} it is at most
        `G_i + x (G_{i+1} − G_i) + x (1 − x) C_i` for some x in [0, 1], by the chord of the convex `ρ V(ln ρ)`.
        """
        rise, fall, curvature = self._weights
        at_steps, apart, bend, share = self._memory
        np.add(np.multiply(rise, up, out=at_steps), np.multiply(fall, down, out=apart), out=at_steps)
        np.subtract(up, down, out=apart)
        bend, share = bend[1:], share[1:]
        np.subtract(np.multiply(apart[1:], math.exp(self.step), out=bend), apart[:-1], out=bend)
        np.maximum(np.multiply(bend, curvature, out=bend), FLOOR, out=bend)
        # The bound is G_i + x (gain − x C_i) with gain = G_{i+1} − G_i + C_i, and largest at x = gain / (2 C_i).
        gain = np.subtract(at_steps[1:], at_steps[:-1], out=apart[1:])
        gain += bend
        np.divide(gain, bend, out=share)
        share *= 0.5
        np.clip(share, 0, 1, out=share)
        bend *= share
        gain -= bend
        gain *= share
        gain += at_steps[:-1]
        worst: FloatArray = gain.max(axis=0)
        return worst

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Probabilities p and 1 − p at each t_i, and the differences of the latter."""
        losses, whole = np.arange(self.steps + 1)[:, None] * self.step, math.expm1(self.width)
        rise, fall = np.expm1(-losses[::-1]) / math.expm1(-self.width), np.expm1(losses) / whole
        return rise, fall, np.exp(losses[:-1]) * (math.expm1(self.step) / whole)

    @cached_property
    def _memory(self) -> FloatArray:
        """Memory that all rounds share; new memory in each would take most of the time."""
        return np.empty((4, self.steps + 1, self.low + 1 + self.high))
