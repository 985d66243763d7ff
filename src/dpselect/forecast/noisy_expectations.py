"""How many items the k largest of `a_i + Z_i` get wrong, and how much score that costs, as integrals over one value z.

Notation: F, S and f of an item are the noise's distribution, survival and density at `z − a_i`. `above` are the items
whose score exceeds that of rank k, `tied` those that equal it, of which `room` belong to the top k, and `below` the
rest. At a value z let A items of `above` lie below z, and Y of the others above it. The item i of

* `above` is missing if k others lie above its value: `∫ f_i P[Y > room + A without i] dz`;
* `below` is chosen if fewer than k do: `∫ f_i P[Y without i < room + A] dz`.

The lowest chosen item costs more than group g if the largest value behind g is above z where fewer than k of the items
up to g are. All are sums over items that polynomials carry along: powers of x count A or Y, and *marked* ones are sums
in which one item stands at z (segments.py, tails.py).

Error: sums of positive terms. Counts beyond a cap are kept together, where both A and Y − room exceed it with a chance
below e^−40 only; Gauss–Legendre panels end at kinks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.mistake_reach import Reach
from dpselect.forecast.noise_values import values_at
from dpselect.forecast.noisy import NoisyGroups, binomial, log_series, logarithms
from dpselect.forecast.rare_items import Borders, RareItems
from dpselect.forecast.segments import (
    COSTLY,
    MARKED,
    PASSED,
    Segments,
    group_law,
    law_product,
    marked_product,
    padded,
    power_product,
)
from dpselect.forecast.tails import Tails

_FAR = 2.0
_NEGLIGIBLE = 1e-15
_UNSEEN = 1e-15
_FEW_TIED = 8
_MOST_WORK = 1e10


@dataclass(frozen=True)
class Mistakes:
    """Expected number of wrong items, expected loss of score, and how far the lowest item lies below rank k."""

    wrong: float
    lost: float
    depth: float


@dataclass(frozen=True, repr=False)
class Split:
    """The groups around rank k, and what a mistake with an item of each group costs: its distance from rank k."""

    noisy: NoisyGroups
    costs: FloatArray

    @classmethod
    def of(cls, noisy: NoisyGroups, costs: FloatArray) -> Split:
        """Return the groups without the last ones, whose chances and costs are next to nothing beside the others'."""
        first = noisy.group(noisy.k) + 1
        with np.errstate(over="ignore", under="ignore"):
            survival = noisy.noise.survival(_FAR - noisy.locations[first:])
        lasting = np.zeros(len(survival), dtype=bool)
        for weights in (noisy.sizes[first:] * survival, noisy.sizes[first:] * survival * costs[first:]):
            behind = np.cumsum(weights[::-1])[::-1]
            lasting |= behind > _NEGLIGIBLE * behind[:1]
        kept = first + int(lasting.sum())
        return cls(NoisyGroups(noisy.locations[:kept], noisy.sizes[:kept], noisy.k, noisy.noise), costs[:kept])

    @cached_property
    def border(self) -> int:
        """The group of rank k."""
        return self.noisy.group(self.noisy.k)

    @cached_property
    def above(self) -> int:
        """How many items exceed rank k's score."""
        return int(self.noisy.ends[self.border] - self.noisy.sizes[self.border])

    @cached_property
    def room(self) -> int:
        """How many items tied with rank k belong to the top k."""
        return self.noisy.k - self.above

    def mistakes(self) -> Mistakes | None:
        """Return what to expect, or None if that is too much work."""
        noisy = self.noisy
        if noisy.ends[-1] == noisy.k:
            return Mistakes(0.0, 0.0, 0.0)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            reach = Reach(noisy, self.costs, self.border, self.room)
            nodes, weights, settled = reach.nodes()
            low = int(np.searchsorted(nodes[:-1], settled))
            lost = float(weights[:low] @ self._surely_missing(nodes[:low]))
            nodes, weights = nodes[low:], weights[low:]
            parts = reach.chunks(nodes)
            caps = [reach.cap_of(nodes[part]) for part in parts]
            rare = self._rare_items
            end = len(noisy.sizes) - self.border - 1
            borders = [
                Borders(end, end, 0.0, 0.0) if rare is None else rare.borders(float(nodes[part][0])) for part in parts
            ]
            if self._work(parts, caps, borders) > _MOST_WORK:
                return None
            tails = [[]] * len(parts) if rare is None else rare.tails(borders)
            found = [
                self._integrands(nodes[part], cap, border.heavy, own)
                for part, cap, border, own in zip(parts, caps, borders, tails, strict=True)
            ]
        wrong, more_lost, depth = (float(weights @ np.concatenate(values)) for values in zip(*found, strict=True))
        return Mistakes(wrong, lost + more_lost, depth)

    def _work(self, parts: list[slice], caps: list[int], borders: list[Borders]) -> float:
        """Return about how many multiplications the integrands take."""
        work = 0.0
        for part, cap, border in zip(parts, caps, borders, strict=True):
            sizes = self.noisy.sizes[self.border + 1 : self.border + 1 + border.heavy]
            items = self.above + np.minimum(sizes, cap).sum() + 12 * border.segments
            work += 20 * (part.stop - part.start) * cap * items
        return work

    @cached_property
    def _rare_items(self) -> RareItems | None:
        """The items below rank k, if their noise has a series."""
        series, first = log_series(self.noisy.noise.name), self.border + 1
        if series is None:
            return None
        return RareItems(
            series, self.noisy.locations[first:], self.noisy.sizes[first:], self.costs[first:], self._steps[first:]
        )

    def _integrands(self, z: FloatArray, cap: int, rare: int, tails: list[Tails]) -> tuple[FloatArray, ...]:
        """Return the integrands of the three expectations."""
        last = self.room + cap
        missing, missing_cost = self._missing(z, cap)
        below = self._below(z, rare, tails, last)
        law, parts = padded(below.law[0], last + 1), padded(below.parts[0], last)
        tied = group_law(self.noisy.noise, z, self.noisy.sizes[self.border], last)
        others = padded(law_product(law, tied, last), last + 1)
        more = np.cumsum(others[::-1], axis=0)[::-1][self.room + 1 :]
        fewer = np.cumsum(power_product(tied[None, :last], parts, last - 1), axis=1)[:, self.room - 1 :]
        chosen = (missing * fewer).sum(axis=1)
        wrong = self._crowded(z, missing, law) + chosen[MARKED]
        lost = (missing_cost[: len(more)] * more).sum(axis=0) + chosen[COSTLY]
        return wrong, lost, chosen[PASSED]

    def _missing(self, z: FloatArray, cap: int) -> tuple[FloatArray, FloatArray]:
        """Return the chances of A = 0 … cap or more, and the marked ones below the cap."""
        noisy, border = self.noisy, self.border
        near = z.max() - noisy.locations[:border]
        seen = noisy.sizes[:border] * np.maximum(noisy.noise.cdf(near), noisy.noise.density(near))
        # Far above z next to nothing is missing; below the largest z its share is smaller still (log-concavity).
        first = min((_first_seen(part) for part in (seen, seen * self.costs[:border])), default=0)
        groups = np.repeat(np.arange(first, border), noisy.sizes[first:border].astype(np.intp))
        shifted = z - noisy.locations[groups, None]
        cdf, survival, density = values_at(noisy.noise, shifted)
        law = np.stack([survival, cdf], axis=1)
        marked = np.zeros_like(law)
        marked[:, 0] = density * self.costs[groups, None]
        law, marked = marked_product(law, marked, cap)
        return padded(law, cap + 1), padded(marked, cap)

    def _surely_missing(self, z: FloatArray) -> FloatArray:
        """Return the cost of what stands at z of `above`, which is the loss where more than enough others are above."""
        border, noisy = self.border, self.noisy
        result: FloatArray = (noisy.sizes[:border] * self.costs[:border]) @ noisy.noise.density(
            z - noisy.locations[:border, None]
        )
        return result

    def _below(self, z: FloatArray, rare: int, tails: list[Tails], last: int) -> Segments:
        """Return the items below rank k as one segment: the first `rare` groups one by one, the others as tails."""
        noisy, first = self.noisy, self.border + 1
        rare += first
        costs = self.costs[first - 1 :]
        found = Segments.empty(len(z), float(costs[1]) if len(costs) > 1 else 0.0)
        steps = self._steps
        large = np.flatnonzero(noisy.sizes[first:rare] > _FEW_TIED) + first
        for start, end in zip([first, *(large + 1)], [*large, rare], strict=True):
            sizes = noisy.sizes[start:end].astype(np.intp)
            if len(sizes):
                groups = np.repeat(np.arange(start, end), sizes)
                item_steps = np.zeros(len(groups))
                item_steps[np.cumsum(sizes) - 1] = steps[start:end]
                shifted = z - noisy.locations[groups, None]
                singles = Segments.items(noisy.noise, shifted, self.costs[groups], item_steps)
                found = found.joined(singles.together(last), last)
            if end < rare:
                shifted, size = z - noisy.locations[end], float(noisy.sizes[end])
                tied = Segments.group(noisy.noise, shifted, size, float(self.costs[end]), float(steps[end]), last)
                found = found.joined(tied, last)
        for tail in tails:
            found = found.joined(tail.segments(z, last).together(last), last)
        return found

    @cached_property
    def _steps(self) -> FloatArray:
        """How much more the next group costs."""
        return np.append(np.diff(self.costs), 0.0)

    def _crowded(self, z: FloatArray, missing: FloatArray, below: FloatArray) -> FloatArray:
        """Return the integrand of the expected number of chosen tied items beyond `room`.

        Such an item has at least `room` of the tied ones above it; it is chosen if their excess over `room` and what
        is above it of `below` are fewer than A.
        """
        size, noise, cap = self.noisy.sizes[self.border], self.noisy.noise, len(missing) - 1
        if size == self.room:
            return np.zeros_like(z)
        logs = logarithms(noise.cdf(z), noise.survival(z))
        excess = binomial(size - 1, *logs, 0, self.room + cap - 1)[self.room :]
        at_least = np.cumsum(missing[::-1], axis=0)[::-1][1:]
        together = power_product(below[:cap], excess[:cap], cap - 1)
        result: FloatArray = size * noise.density(z) * (together * at_least[: len(together)]).sum(axis=0)
        return result


def _first_seen(weights: FloatArray) -> int:
    """Return the first place before which weights add up to next to nothing of the whole."""
    return int((np.cumsum(weights) <= _UNSEEN * weights.sum()).sum())
