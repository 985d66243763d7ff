"""Where mistakes among the k largest of `a_i + Z_i` happen: which values z to integrate over, and how far to count.

Notation as in noisy_expectations.py: U of the top k are expected below z, and B others above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.noise_values import merged
from dpselect.forecast.noisy import NoisyGroups, log_series, panels

_TAIL = 50.0
_DEPTH = 30.0
_TINY = 40.0
_VISIBLE = 24.0
_SPOTS = 7
_CHUNK = 256
_HIGH_CAP = 24


@dataclass(frozen=True, repr=False)
class Reach:
    """The groups around rank k, whose group is `border`; of those tied with it, `room` belong to the top k."""

    noisy: NoisyGroups
    costs: FloatArray
    border: int
    room: int

    def chunks(self, nodes: FloatArray) -> list[slice]:
        """Return neighbouring nodes together, fewer where that may bring their caps down."""
        parts = []
        for start in range(0, len(nodes), _CHUNK):
            end = min(start + _CHUNK, len(nodes))
            step = _CHUNK if self.cap_of(nodes[start:end]) <= _HIGH_CAP else _CHUNK // 8
            parts += [slice(place, min(place + step, end)) for place in range(start, end, step)]
        return parts

    @cached_property
    def _outline(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Locations, sizes and costs of the groups, those below rank k merged for rough sums."""
        noisy, first = self.noisy, self.border + 1
        all_of_them = noisy.locations, noisy.sizes, self.costs
        if log_series(noisy.noise.name) is None:
            return all_of_them
        rough = merged(*(part[first:] for part in all_of_them))
        locations, sizes, costs = (np.append(part[:first], low) for part, low in zip(all_of_them, rough, strict=True))
        return locations, sizes, costs

    def _expected(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how many of the top k lie below z on average, and how many others above it; ties are split by rank."""
        border, noise, (locations, sizes, _) = self.border, self.noisy.noise, self._outline
        shifted = z - locations[:, None]
        inside, outside = sizes[: border + 1].copy(), sizes[border:].copy()
        inside[border] = self.room
        outside[0] -= self.room
        return inside @ noise.cdf(shifted[: border + 1]), outside @ noise.survival(shifted[border:])

    def cap_of(self, z: FloatArray) -> int:
        """Return a number that not both of these counts reach, but for a chance below e^−40 (Chernoff).

        The one grows with z and the other falls, so that both are bounded between some z and the next.
        """
        missing, others = self._expected(z[np.linspace(0, len(z) - 1, _SPOTS).astype(np.intp)])
        means, most = (missing[1:], others[:-1]), self.noisy.k - self.room + 1
        for cap in (3, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512):
            rates = [np.where(mean < cap, cap * np.log(cap / mean) - cap + mean, 0.0) for mean in means]
            if cap < most and float((rates[0] + rates[1]).min()) > _TINY:
                return cap
        return most

    def nodes(self) -> tuple[FloatArray, FloatArray, float]:
        """Return nodes and weights where a mistake can happen, and below which z all that matters is surely missing.

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
        locations, sizes, costs = self._outline
        density = noisy.noise.density(z - locations[:, None])
        apart = -((np.sqrt(below) - np.sqrt(above)) ** 2)
        tilt = np.log(above / below) / 2
        settled = (below < above) & (apart - tilt < -_DEPTH)
        kept, kinked = np.zeros(len(z), dtype=bool), np.zeros((2, len(z)), dtype=bool)
        border = self.border
        for weights in (sizes, sizes * costs):
            inside, outside = weights[:border] @ density[:border], weights[border:] @ density[border:]
            log_missing = np.log(inside) + np.where(above < below, apart + tilt, 0.0)
            log_chosen = np.log(outside) + np.where(below < above, apart - tilt, 0.0)
            bound = np.nan_to_num(np.maximum(log_missing, log_chosen), nan=-np.inf)
            if np.isfinite(bound.max()):
                kept |= bound > bound.max() - _DEPTH
                settled &= log_chosen < bound.max() - _DEPTH
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
        kinks = noisy.kinks[kinked[(noisy.kinks <= 0).astype(np.intp), place]]
        # Bounds are those of the middles of cells, so that the last settled one may not be so altogether.
        unsettled = int(np.argmin(np.append(settled, False)))
        return *panels(cells, kept, np.concatenate([cuts, kinks])), float(cells[max(unsettled - 1, 0)])
