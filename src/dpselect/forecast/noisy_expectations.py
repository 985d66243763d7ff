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
from dpselect.forecast.noisy import NoisyGroups, binomial, log_series, logarithms, panels
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
from dpselect.forecast.tails import HEAVY, HEAVY_EACH, HEAVY_TERMS, LIGHT, LIGHT_EACH, LIGHT_TERMS, Tails

_TAIL = 50.0
_DEPTH = 30.0
_TINY = 40.0
_FAR = 2.0
_NEGLIGIBLE = 1e-15
_UNSEEN = 1e-30
_VISIBLE = 24.0
_FEW_TIED = 8
_STARTS = 16
_WORTH = 64
_SPOTS = 7
_CHUNK = 128
_HIGH_CAP = 24
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
            nodes, weights = self._nodes()
            parts = self._chunks(nodes)
            caps = [self._cap(nodes[part]) for part in parts]
            rare = [self._rare(float(nodes[part].min())) for part in parts]
            work = 0.0
            for part, cap, cuts in zip(parts, caps, rare, strict=True):
                items = self.above + np.minimum(noisy.sizes[self.border + 1 : cuts[0]], cap).sum() + 12 * len(cuts)
                work += 20 * (part.stop - part.start) * cap * items
            if work > _MOST_WORK:
                return None
            tails = {cuts: self._tails(cuts) for cuts in set(rare)}
            found = [
                self._integrands(nodes[part], cap, cuts[0], tails[cuts])
                for part, cap, cuts in zip(parts, caps, rare, strict=True)
            ]
        return Mistakes(*(float(weights @ np.concatenate(values)) for values in zip(*found, strict=True)))

    def _chunks(self, nodes: FloatArray) -> list[slice]:
        """Return neighbouring nodes together, fewer where that may bring their caps down."""
        parts = []
        for start in range(0, len(nodes), _CHUNK):
            end = min(start + _CHUNK, len(nodes))
            step = _CHUNK if self._cap(nodes[start:end]) <= _HIGH_CAP else _CHUNK // 4
            parts += [slice(place, min(place + step, end)) for place in range(start, end, step)]
        return parts

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
        # Far above z nothing is missing.
        seen = np.maximum(noisy.noise.cdf(near), noisy.noise.density(near)) > _UNSEEN
        first = int(np.argmax(np.append(seen, True)))
        groups = np.repeat(np.arange(first, border), noisy.sizes[first:border].astype(np.intp))
        shifted = z - noisy.locations[groups, None]
        law = np.stack([noisy.noise.survival(shifted), noisy.noise.cdf(shifted)], axis=1)
        marked = np.zeros_like(law)
        marked[:, 0] = noisy.noise.density(shifted) * self.costs[groups, None]
        law, marked = marked_product(law, marked, cap)
        return padded(law, cap + 1), padded(marked, cap)

    def _below(self, z: FloatArray, rare: int, tails: list[Tails], last: int) -> Segments:
        """Return the items below rank k as one segment: those before group `rare` one by one, the others as tails."""
        noisy, first = self.noisy, self.border + 1
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

    def _tails(self, cuts: tuple[int, ...]) -> list[Tails]:
        """Return the groups from the first cut on: heavy segments between cuts, and a light one behind the last."""
        noisy, series = self.noisy, log_series(self.noisy.noise.name)
        found = []
        for terms, starts, end in (
            (HEAVY_TERMS, np.array(cuts[:-1], dtype=np.intp), cuts[-1]),
            (LIGHT_TERMS, np.array(cuts[-1:]), len(noisy.sizes)),
        ):
            if series is None or not len(starts) or starts[0] == end:
                continue
            part = slice(starts[0], end)
            groups = noisy.locations[part], noisy.sizes[part], self.costs[part], self._steps[part]
            found.append(Tails.of(series, terms, starts - starts[0], *groups))
        return found

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

    def _expected(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how many of the top k lie below z on average, and how many others above it; ties are split by rank."""
        noisy, border = self.noisy, self.border
        shifted = z - noisy.locations[:, None]
        inside = noisy.sizes[: border + 1].copy()
        inside[border] = self.room
        outside = noisy.sizes[border:].copy()
        outside[0] -= self.room
        return inside @ noisy.noise.cdf(shifted[: border + 1]), outside @ noisy.noise.survival(shifted[border:])

    def _cap(self, z: FloatArray) -> int:
        """Return a number that not both of these counts reach, but for a chance below e^−40 (Chernoff).

        The one grows with z and the other falls, so that both are bounded between some z and the next.
        """
        missing, others = self._expected(z[np.linspace(0, len(z) - 1, _SPOTS).astype(np.intp)])
        means, most = (missing[1:], others[:-1]), self.above + 1
        for cap in (3, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512):
            rates = [np.where(mean < cap, cap * np.log(cap / mean) - cap + mean, 0.0) for mean in means]
            if cap < most and float((rates[0] + rates[1]).min()) > _TINY:
                return cap
        return most

    def _rare(self, lowest: float) -> tuple[int, ...]:
        """Return where tails begin that are good from the lowest z on; the last of them is light."""
        noisy, first, end = self.noisy, self.border + 1, len(self.noisy.sizes)
        if log_series(noisy.noise.name) is None:
            return (end,)
        each = np.exp(np.minimum(noisy.locations[first:] - lowest, 0.0))
        masses = noisy.sizes[first:] * each
        together = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
        light = int(((together[:-1] > LIGHT) | (each > LIGHT_EACH)).sum())
        alone = int(np.flatnonzero(np.append(True, (each > HEAVY_EACH) | (masses > HEAVY / 2)))[-1])
        if self.noisy.sizes[first + alone : first + light].sum() <= _WORTH:
            # Few different tails, so that nodes share them.
            return (min(first + -(-light // _STARTS) * _STARTS, end),)
        blocks = ((together[alone] - together[alone:light]) // (HEAVY / 2)).astype(np.intp)
        starts = alone + np.flatnonzero(np.append(True, np.diff(blocks) > 0))
        return (*(first + starts).tolist(), first + light)

    def _nodes(self) -> tuple[FloatArray, FloatArray]:
        """Return nodes and weights where a mistake can happen.

        With U of the top k expected below z and B others above it, the chance that more of the others are above than
        of the top k are below is at most `exp(−(√U − √B)²) √(B/U)` if B < U, by Chernoff's bound at `e^t = √(U/B)`;
        and the other way round.
        """
        noisy = self.noisy
        base = float(noisy.locations[noisy.group(noisy.k + 1)])
        low = base if noisy.noise.cdf(np.zeros(1))[0] == 0 else base - _TAIL
        high = _TAIL + float(np.log(noisy.ends[-1])) + 1.0
        cells = np.linspace(low, high, int(high - low) + 2)
        z = (cells[1:] + cells[:-1]) / 2
        below, above = self._expected(z)
        density = noisy.noise.density(z - noisy.locations[:, None])
        apart = -((np.sqrt(below) - np.sqrt(above)) ** 2)
        tilt = np.log(above / below) / 2
        kept, kinked = np.zeros(len(z), dtype=bool), np.zeros((2, len(z)), dtype=bool)
        border = self.border
        for weights in (noisy.sizes, noisy.sizes * self.costs):
            inside, outside = weights[:border] @ density[:border], weights[border:] @ density[border:]
            log_missing = np.log(inside) + np.where(above < below, apart + tilt, 0.0)
            log_chosen = np.log(outside) + np.where(below < above, apart - tilt, 0.0)
            bound = np.nan_to_num(np.maximum(log_missing, log_chosen), nan=-np.inf)
            if np.isfinite(bound.max()):
                kept |= bound > bound.max() - _DEPTH
                # An item's kink shows where it may be at z, or where the comparison is undecided.
                shown = bound.max() - _VISIBLE
                kinked |= (np.stack([log_missing, log_chosen]) > shown) | (np.log(inside + outside) + apart > shown)
        # A density may begin behind the middle of its cell.
        kinked[:, :-1] |= kinked[:, 1:]
        place = np.clip(np.searchsorted(cells, noisy.kinks) - 1, 0, len(z) - 1)
        # Both numbers vary by their square roots, which is how finely the comparison has to be cut.
        pieces = int(np.ceil(2 * np.sqrt(1 + float(np.minimum(below, above).max()))))
        undecided = cells[:-1][kept & (apart > -_TINY)]
        cuts = (undecided[:, None] + (cells[1] - cells[0]) * np.arange(pieces) / pieces).ravel()
        return panels(
            cells, kept, np.concatenate([cuts, noisy.kinks[kinked[(noisy.kinks <= 0).astype(np.intp), place]]])
        )
