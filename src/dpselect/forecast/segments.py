"""How many of the items below rank k lie above a value z, for items in order of their scores.

Notation: an item is above z with chance S, below it with chance F, and at z with density f. A *segment* is a range of
neighbouring groups, highest first; powers of x count its items above z.

* `law`: `Π (F + S x)`;
* `marked`, `costly`: the sum over items i of `f_i Π_{others} (F + S x)`, plain and times the cost of i;
* `none = Π F` and `one = Σ f_i Π_{others} F`: no item above z, and one of them at z;
* `reached = Σ_g step_g Π_{up to g} (F + S x) Π_{behind g} F`: g runs over groups, step_g is what the next group costs
  more than g;
* `passed`: the same with one of those behind g at z. Joined with `k − x` others above z, it is the density of an answer
  whose lowest item costs more than g, times the step.

Segments are joined to longer ones in pairs, all pairs at once. Everything is a sum of positive terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.noise_values import values_at
from dpselect.forecast.noisy import binomial, logarithms
from dpselect.sampling.laws import Distribution

Array = npt.NDArray[Any]

MARKED, COSTLY, REACHED, PASSED = range(4)


@dataclass(frozen=True, repr=False)
class Segments:
    """Segments side by side: law[segment, power, node], parts[segment, kind, power, node], none and one[segment, node].

    A law whose last power is the `last` of all holds there the chance of so many or more; parts mean nothing there.
    """

    law: FloatArray
    parts: FloatArray
    none: FloatArray
    one: FloatArray

    @classmethod
    def empty(cls, nodes: int, step: float = 0.0) -> Segments:
        """Return one segment without items, behind which the first group costs `step`."""
        parts = np.zeros((1, 4, 1, nodes))
        parts[:, REACHED] = step
        return cls(np.ones((1, 1, nodes)), parts, np.ones((1, nodes)), np.zeros((1, nodes)))

    @classmethod
    def items(cls, noise: Distribution, shifted: FloatArray, costs: FloatArray, steps: FloatArray) -> Segments:
        """Return a segment for each single item."""
        none, survival, one = values_at(noise, shifted)
        law = np.stack([none, survival], axis=1)
        parts = np.zeros((len(law), 4, *law.shape[1:]))
        parts[:, MARKED, 0] = one
        parts[:, COSTLY, 0] = one * costs[:, None]
        parts[:, REACHED] = law * steps[:, None, None]
        return cls(law, parts, none, one)

    @classmethod
    def group(
        cls, noise: Distribution, shifted: FloatArray, size: float, cost: float, step: float, last: int
    ) -> Segments:
        """Return the segment of tied items."""
        law, others = group_law(noise, shifted, size, last), group_law(noise, shifted, size - 1, last)
        cdf, at_z = noise.cdf(shifted), size * noise.density(shifted)
        parts = np.zeros((1, 4, *law.shape))
        parts[0, MARKED, : len(others)] = at_z * others[: len(law)]
        parts[0, COSTLY] = cost * parts[0, MARKED]
        parts[0, REACHED] = step * law
        return cls(law[None], parts, (cdf**size)[None], (at_z * cdf ** (size - 1))[None])

    def joined(self, other: Segments, last: int) -> Segments:
        """Join each segment with the one of `other` at its place, which lies behind it."""
        law = law_product(self.law, other.law, last)
        parts = power_product(self.law[:, None], other.parts, last)
        parts[:, :REACHED] += power_product(other.law[:, None], self.parts[:, :REACHED], last)
        own = self.parts[:, REACHED:] * other.none[:, None, None]
        own[:, 1] += self.parts[:, REACHED] * other.one[:, None]
        parts[:, REACHED:, : own.shape[2]] += own
        return Segments(law, parts, self.none * other.none, self.one * other.none + self.none * other.one)

    def together(self, last: int) -> Segments:
        """Join all segments to one."""
        result = self
        while len(result.law) > 1:
            if len(result.law) % 2:
                result = result._and_an_empty_one()
            result = result._every_second(0).joined(result._every_second(1), last)
        return result

    def _every_second(self, first: int) -> Segments:
        return Segments(self.law[first::2], self.parts[first::2], self.none[first::2], self.one[first::2])

    def _and_an_empty_one(self) -> Segments:
        law = np.zeros((1, *self.law.shape[1:]))
        law[:, 0] = 1.0
        parts, none, one = (
            np.zeros((1, *self.parts.shape[1:])),
            np.ones_like(self.none[:1]),
            np.zeros_like(self.one[:1]),
        )
        pairs = ((self.law, law), (self.parts, parts), (self.none, none), (self.one, one))
        return Segments(*(np.concatenate(pair) for pair in pairs))


def power_product(first: FloatArray, second: FloatArray, last: int) -> FloatArray:
    """Return the products of polynomials, powers along the last axis but one, up to the power `last`."""
    if first.shape[-2] > second.shape[-2]:
        first, second = second, first
    powers, others = first.shape[-2], second.shape[-2]
    count = min(powers + others - 1, last + 1)
    shape = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    result = np.zeros((*shape, count, first.shape[-1]))
    for power in range(min(powers, count)):
        width = min(others, count - power)
        result[..., power : power + width, :] += first[..., power : power + 1, :] * second[..., :width, :]
    return result


def law_product(first: FloatArray, second: FloatArray, last: int) -> FloatArray:
    """Return the law of the sum of two numbers, all from `last` on together."""
    result = power_product(first, second, last)
    if first.shape[-2] + second.shape[-2] - 1 > last + 1:
        at_least = np.cumsum(second[..., ::-1, :], axis=-2)[..., ::-1, :]
        lowest = max(0, last - second.shape[-2] + 1)
        places = last - np.arange(lowest, first.shape[-2])
        result[..., last, :] = (first[..., lowest:, :] * at_least[..., places, :]).sum(axis=-2)
    return result


def group_law(noise: Distribution, shifted: FloatArray, size: float, last: int) -> FloatArray:
    """Return the chance that 0, 1, … of tied items are above z, all from `last` on together."""
    from scipy.special import betainc

    cdf, survival = noise.cdf(shifted), noise.survival(shifted)
    if size == 1 and last:
        return np.stack([cdf, survival])
    law = binomial(size, *logarithms(cdf, survival), 0, last)
    if size > last:
        law[last] = betainc(float(last), size - last + 1.0, survival) if last else 1.0
    return law


def marked_product(law: FloatArray, marked: FloatArray, last: int) -> tuple[FloatArray, FloatArray]:
    """Return the law of the sum of many numbers, and the sum of laws in which one of them is replaced by its mark."""
    nodes = law.shape[-1]
    while len(law) > 1:
        if len(law) % 2:
            nothing = np.zeros((1, *law.shape[1:]))
            nothing[:, 0] = 1.0
            law, marked = np.concatenate([law, nothing]), np.concatenate([marked, np.zeros_like(nothing)])
        both = power_product(law[::2], marked[1::2], last) + power_product(law[1::2], marked[::2], last)
        law, marked = law_product(law[::2], law[1::2], last), both
    return (law[0], marked[0]) if len(law) else (np.ones((1, nodes)), np.zeros((1, nodes)))


def padded(part: FloatArray, powers: int) -> FloatArray:
    """Return so many powers, zero where there were none, along the last axis but one."""
    present = part.shape[-2]
    if present >= powers:
        return part[..., :powers, :]
    result = np.zeros((*part.shape[:-2], powers, part.shape[-1]))
    result[..., :present, :] = part
    return result
