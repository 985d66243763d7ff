"""How many items the k largest of `a_i + Z_i` get wrong, and how much score that costs, as integrals over one value z.

Notation: F, S and f of an item are the noise's distribution, survival and density at `z − a_i`. `above` are the items
whose score exceeds that of rank k, `tied` those that equal it, of which `room` belong to the top k, and `below` the
rest. At a value z let A items of `above` lie below z, and Y of the others above it. The item i of

* `above` is missing if k others lie above its value: `∫ f_i P[Y > room + A without i] dz`;
* `below` is chosen if fewer than k do: `∫ f_i P[Y without i < room + A] dz`.

Both are sums over i that a polynomial carries along: powers of x count A or Y, and a *marked* polynomial is the sum in
which one item stands at z, times its cost. Rare items of `below` are multiplied in together, by
`log Π (F + S x)^m = Σ m log F + Σ_j (−1)^{j+1} x^j Σ m (S/F)^j / j`.

Error: all else is a sum of positive terms. Counts beyond a cap are kept together, where both A and Y − room exceed it
with a chance below e^−40 only; Gauss–Legendre panels end at kinks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.noisy import NoisyGroups, binomial, logarithms, panels, product

Array = npt.NDArray[Any]

_TAIL = 50.0
_DEPTH = 30.0
_TINY = 40.0
_FAR = 2.0
_NEGLIGIBLE = 1e-15
_UNSEEN = 1e-30
_VISIBLE = 24.0
_RARE = 0.1
_SQUARES = 4.0
_TERMS = 16
_CHUNK = 64
_MOST_WORK = 3e9


@dataclass(frozen=True)
class Mistakes:
    """Expected number of wrong items, and expected loss of score."""

    wrong: float
    lost: float


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

    @property
    def border(self) -> int:
        """The group of rank k."""
        return self.noisy.group(self.noisy.k)

    @property
    def above(self) -> int:
        """How many items exceed rank k's score."""
        return int(self.noisy.ends[self.border] - self.noisy.sizes[self.border])

    @property
    def room(self) -> int:
        """How many items tied with rank k belong to the top k."""
        return self.noisy.k - self.above

    def mistakes(self) -> Mistakes | None:
        """Return what to expect, or None if that is too much work."""
        noisy = self.noisy
        if noisy.ends[-1] == noisy.k:
            return Mistakes(0.0, 0.0)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            nodes, weights = self._nodes()
            parts = [slice(start, start + _CHUNK) for start in range(0, len(nodes), _CHUNK)]
            caps = [self._cap(nodes[part]) for part in parts]
            rare = [self._rare(float(nodes[part].min())) for part in parts]
            steps = [place - self.border + self.above for place in rare]
            if sum(cap * step * _CHUNK for cap, step in zip(caps, steps, strict=True)) * 10 > _MOST_WORK:
                return None
            found = [
                self._integrands(nodes[part], cap, place) for part, cap, place in zip(parts, caps, rare, strict=True)
            ]
        wrong, lost = (weights @ np.concatenate(values) for values in zip(*found, strict=True))
        return Mistakes(float(wrong), float(lost))

    def _integrands(self, z: FloatArray, cap: int, rare: int) -> tuple[FloatArray, FloatArray]:
        """Return the integrands of both expectations."""
        missing, missing_cost = self._missing(z, cap)
        below, marked, marked_cost = self._below(z, cap, rare)
        wrong = self._crowded(z, missing, below)
        tied = self._tied(z, len(below) - 1)
        others = _times(below, tied, self.noisy.sizes[self.border], self.noisy.noise.survival(z))
        more = np.cumsum(others[::-1], axis=0)[::-1][self.room + 1 :]
        lost = (missing_cost * more).sum(axis=0)
        for total, part in ((wrong, marked), (lost, marked_cost)):
            fewer = np.cumsum(product(part[:-1], tied, len(part) - 2), axis=0)[self.room - 1 :]
            total += (missing * fewer).sum(axis=0)
        return wrong, lost

    def _missing(self, z: FloatArray, cap: int) -> tuple[FloatArray, FloatArray]:
        """Return the chances of A = 0 … cap or more, and the marked ones below the cap."""
        noisy = self.noisy
        shifted = z - noisy.locations[: self.border, None]
        cdf, survival, density = noisy.noise.cdf(shifted), noisy.noise.survival(shifted), noisy.noise.density(shifted)
        plain, marked = np.zeros((cap + 1, len(z))), np.zeros((cap, len(z)))
        plain[0] = 1.0
        reached = 0
        # Far above z nothing is missing.
        first = int(np.argmax(np.append(np.maximum(cdf, density).max(axis=1) > _UNSEEN, True)))
        for group in range(first, self.border):
            for _ in range(int(noisy.sizes[group])):
                reached = min(reached + 1, cap)
                fresh = plain[:reached] * (density[group] * self.costs[group])
                marked[:reached] = _raised(marked[:reached], survival[group], cdf[group])
                marked[:reached] += fresh
                kept = plain[cap].copy()
                plain[: reached + 1] = _raised(plain[: reached + 1], survival[group], cdf[group])
                # Whatever has come to the cap stays there.
                plain[cap] += kept * cdf[group] if reached == cap else 0.0
        return plain, marked

    def _below(self, z: FloatArray, cap: int, rare: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the chances that 0 … room + cap or more of the items below rank k lie above z, plain and marked."""
        noisy, length = self.noisy, self.room + cap
        groups = slice(self.border + 1, rare)
        shifted = z - noisy.locations[groups, None]
        cdf, survival, density = noisy.noise.cdf(shifted), noisy.noise.survival(shifted), noisy.noise.density(shifted)
        plain, marked, marked_cost = self._together(z, rare, length)
        for place, (size, cost) in enumerate(zip(noisy.sizes[groups], self.costs[groups], strict=True)):
            at_z = density[place]
            if size == 1:
                fresh = plain[:-1] * at_z
                marked = _raised(marked, cdf[place], survival[place])
                marked[:-1] += fresh
                marked_cost = _raised(marked_cost, cdf[place], survival[place])
                marked_cost[:-1] += cost * fresh
                plain = _absorbed(plain, cdf[place], survival[place])
                continue
            logs = logarithms(cdf[place], survival[place])
            others = binomial(size - 1, *logs, 0, length) * (size * at_z)
            factor = binomial(size, *logs, 0, length)
            fresh = product(plain, others, length)
            marked = product(marked, factor, length) + fresh
            marked_cost = product(marked_cost, factor, length) + cost * fresh
            plain = _times(plain, factor, size, survival[place])
        return plain, marked, marked_cost

    def _together(self, z: FloatArray, first: int, length: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the same for the groups from `first` on, which are rare, by their power sums."""
        noisy = self.noisy
        extended = length + 40 + int(8 * np.sqrt(length))
        plain = np.zeros((extended + 1, len(z)))
        shifted = z - noisy.locations[first:, None]
        survival = noisy.noise.survival(shifted)
        sizes, costs = noisy.sizes[first:], self.costs[first:]
        plain[0] = np.exp(sizes @ np.log1p(-survival))
        odds = survival / (1 - survival)
        rate, power = noisy.noise.density(shifted) / (1 - survival), np.ones_like(odds)
        sums, marks, cost_marks = [], [], []
        for term in range(_TERMS):
            weighted = rate * power
            marks.append((-1) ** term * (sizes @ weighted))
            cost_marks.append((-1) ** term * ((sizes * costs) @ weighted))
            power = power * odds
            sums.append((-1) ** term * (sizes @ power))
            # Highest items first: what is left of the others no longer shows.
            kept = int((power.max(axis=1, initial=0.0) * sizes > 1e-22).sum())
            sizes, costs, odds, rate, power = (part[:kept] for part in (sizes, costs, odds, rate, power))
        for number in range(1, extended + 1):
            plain[number] = sum(sums[j] * plain[number - 1 - j] for j in range(min(_TERMS, number))) / number
        plain = np.maximum(plain, 0.0)
        marked, marked_cost = (
            np.maximum(product(plain[: length + 1], np.array(part), length), 0.0) for part in (marks, cost_marks)
        )
        within = plain[:length].sum(axis=0)
        result = plain[: length + 1]
        result[length] = np.where(within < 0.9, 1 - within, plain[length:].sum(axis=0))
        return result, marked, marked_cost

    def _tied(self, z: FloatArray, last: int) -> FloatArray:
        """Return the chances that 0 … last of the items tied with rank k lie above z."""
        noise = self.noisy.noise
        return binomial(self.noisy.sizes[self.border], *logarithms(noise.cdf(z), noise.survival(z)), 0, last)

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
        together = product(below[:cap], excess[:cap], cap - 1)
        result: FloatArray = size * noise.density(z) * (together * at_least).sum(axis=0)
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
        """Return a number that not both of these counts reach, but for a chance below e^−40 (Chernoff)."""
        expected, most = self._expected(z), self.above + 1
        for cap in (3, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512):
            rates = [np.where(mean < cap, cap * np.log(cap / mean) - cap + mean, 0.0) for mean in expected]
            if cap < most and float((rates[0] + rates[1]).min()) > _TINY:
                return cap
        return most

    def _rare(self, lowest: float) -> int:
        """Return the first group below rank k of those that are rare from the lowest z on, alone and together."""
        first = self.border + 1
        survival = self.noisy.noise.survival(lowest - self.noisy.locations[first:])
        squares = np.cumsum((self.noisy.sizes[first:] * survival**2)[::-1])[::-1]
        return first + int(((survival > _RARE) | (squares > _SQUARES)).sum())

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


def _raised(part: FloatArray, constant: FloatArray, linear: FloatArray) -> FloatArray:
    """Multiply by `constant + linear x` up to the same power."""
    result: FloatArray = part * constant
    result[1:] += part[:-1] * linear
    return result


def _absorbed(part: FloatArray, constant: FloatArray, linear: FloatArray) -> FloatArray:
    """Multiply by `constant + linear x`, where `constant + linear = 1`; the last power holds all beyond it."""
    result = _raised(part, constant, linear)
    result[-1] += part[-1] * linear
    return result


def _times(part: FloatArray, factor: FloatArray, size: float, survival: FloatArray) -> FloatArray:
    """Multiply by the law of how many of `size` items are above z; the last power holds all beyond it."""
    if size == 1:
        return _absorbed(part, *factor)
    from scipy.special import betainc

    last = len(part) - 1
    result = product(part, factor, last)
    # P[at least n of the items] for every n that brings a power to the last one or beyond.
    result[last] = part[last]
    for power in range(last):
        least = last - power
        if least <= size:
            result[last] += part[power] * betainc(least, size - least + 1.0, survival)
    return result
