"""How likely Peeling is to return the top k in order, up to ties: a product over its rounds (mathematics, section 2).

Notation: in a round N items are left of the best group, and group i stands `b_i` e-folds below it. With `p = e^{−b}`
Gumbel noise keeps the best group with chance `1 / (1 + Σ m p / N)`, exponential noise with
`∫ e^{−v} Π (1 − p u)^m dv`, `u = 1 − e^{−v/N}` (chances.py). All rounds are integrated at once: near groups one by one,
those with a small p u by power sums, `−Σ m log(1 − p u) = Σ_j u^j / j Σ m p^j`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.forecast.chances import NEAR, TERMS, quadrature
from dpselect.sampling.bounds import scaled
from dpselect.scores import Scores

_TOGETHER = 16
_WIDEST = 2000.0


def _depths(scores: Scores, rate: Fraction) -> FloatArray:
    """Return how many e-folds each group is below the best one.

    Behind a very wide gap the differences of others would lose their digits, so that it is cut to where p is 0.
    """
    gaps = scaled(scores.values[:-1] - scores.values[1:], rate)
    if (gaps > _WIDEST).any():
        return np.append(0.0, np.cumsum(np.minimum(gaps, _WIDEST)))
    return scaled(scores.values[0] - scores.values, rate)


@dataclass(frozen=True, repr=False)
class Rounds:
    """Groups of some sizes, `depths` e-folds below the best one; rounds by their group and how many are left of it."""

    sizes: FloatArray
    depths: FloatArray
    groups: Array
    left: FloatArray

    @classmethod
    def of(cls, k: int, rate: float, scores: Scores) -> Rounds:
        """Return k rounds at a rate ε₀/w each."""
        sizes = scores.multiplicities.astype(np.float64)
        ranks = np.arange(min(k, int(sizes.sum())))
        groups = np.searchsorted(np.cumsum(sizes), ranks, side="right")
        left = np.cumsum(sizes)[groups] - ranks
        return cls(sizes, _depths(scores, Fraction(rate)), groups, left)

    def chance(self, noise: str) -> float:
        """Return the chance that every round takes one of its best group."""
        if noise == "gumbel":
            return float(np.exp(-np.log1p(self.weights / self.left).sum()))
        rivals = self.weights > 0
        return float(np.prod(self._only(rivals)._exponential())) if rivals.any() else 1.0

    def _only(self, rounds: Array) -> Rounds:
        return Rounds(self.sizes, self.depths, self.groups[rounds], self.left[rounds])

    @cached_property
    def weights(self) -> FloatArray:
        """`Σ m p` over the groups below each round's."""
        result: FloatArray = self._power_sums(self.groups + 1, 1)[0] * self._apart(self.groups + 1)
        return result

    def _apart(self, starts: Array) -> FloatArray:
        """Return p of the groups at which sums start in each round, 0 where there is none."""
        inside = np.minimum(starts, len(self.sizes) - 1)
        return np.where(starts < len(self.sizes), np.exp(self.depths[self.groups] - self.depths[inside]), 0.0)

    def _power_sums(self, starts: Array, terms: int) -> FloatArray:
        """Return `Σ m p^j` from each start on as [j, round], with p relative to the start; starts ascend."""
        blocks, places = np.unique(starts[starts < len(self.sizes)], return_inverse=True)
        result = np.zeros((terms, len(starts)))
        if not len(blocks):
            return result
        bases = self.depths[blocks]
        reach = np.exp(np.repeat(bases, np.diff(np.append(blocks, len(self.sizes)))) - self.depths[blocks[0] :])
        powers = np.empty((terms, len(reach)))
        powers[0] = self.sizes[blocks[0] :] * reach
        for j in range(1, terms):
            np.multiply(powers[j - 1], reach, out=powers[j])
        sums = np.add.reduceat(powers, blocks - blocks[0], axis=1)
        # From the bottom up, so that nothing underflows; plain numbers are faster here than short arrays.
        shifts = np.exp(np.multiply.outer(np.arange(1, terms + 1), bases[:-1] - bases[1:])).tolist()
        for row, falls in zip(sums, shifts, strict=True):
            behind = row.tolist()
            for block in reversed(range(len(falls))):
                behind[block] += falls[block] * behind[block + 1]
            row[:] = behind
        result[:, : len(places)] = sums[:, places]
        return result

    def _exponential(self) -> FloatArray:
        """Return the chance of each round for exponential noise."""
        nodes, masses = quadrature(np.log(self.weights / self.left), np.log(self.left))
        chances = -np.expm1(-nodes / self.left[:, None])
        most = chances[:, -1]
        starts = np.searchsorted(self.depths, self.depths[self.groups] + np.log(most / NEAR))
        starts = np.maximum.accumulate(np.maximum(starts, self.groups + 1))
        sums, far = self._power_sums(starts, TERMS), chances * self._apart(starts)[:, None]
        beaten = np.zeros_like(far)
        for j in range(TERMS, 0, -1):
            beaten += sums[j - 1][:, None] / j
            beaten *= far
        for place, (group, start) in enumerate(zip(self.groups.tolist(), starts.tolist(), strict=True)):
            if start > group + 1:
                beaten[place] += self._near(slice(group + 1, start), self.depths[group], chances[place])
        result: FloatArray = (masses * np.exp(-nodes - beaten)).sum(axis=1)
        return result

    def _near(self, part: slice, depth: float, chances: FloatArray) -> FloatArray:
        """Return `−Σ m log(1 − p u)` over some groups."""
        sizes, falls = self.sizes[part], 1.0 - np.multiply.outer(np.exp(depth - self.depths[part]), chances)
        tied = sizes != 1
        with np.errstate(divide="ignore"):
            found: FloatArray = -(sizes[tied] @ np.log(falls[tied]))
            # Logarithms take longer than products, which do not vanish as long as few factors are taken together.
            alone = falls[~tied]
            if len(alone):
                found -= np.log(np.multiply.reduceat(alone, np.arange(0, len(alone), _TOGETHER))).sum(axis=0)
        return found


def peeling_chance(k: int, rate: float, scores: Scores, noise: str) -> float:
    """P[the top k in order], up to ties."""
    return Rounds.of(k, rate, scores).chance(noise)
