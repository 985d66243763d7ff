"""Which of the items below rank k are rare enough above a value z to be taken together (tails.py).

Notation: an item at a is above z with a chance of about `t = c_1 e^{a − z}`; the *mass* of a group is `Σ t`. From some
group on (`heavy`) each t is small, and segments of some mass are taken together; from a later one on (`light`) all the
rest is one segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.tails import HEAVY, HEAVY_EACH, HEAVY_TERMS, LIGHT, LIGHT_EACH, LIGHT_TERMS, Tails

_PIECE = 2 * HEAVY_EACH
_BLOCK = HEAVY - _PIECE
_MOST_MASS = 4.0
_STARTS = 16
_WORTH = 64
_MOST_LIGHT = 8


@dataclass(frozen=True)
class Borders:
    """Where heavy and light segments begin, for z from the lowest on."""

    heavy: int
    light: int
    lowest: float
    segments: float


@dataclass(frozen=True, repr=False)
class RareItems:
    """Groups below rank k, highest first: what each costs, and how much more the next one does."""

    series: FloatArray
    locations: FloatArray
    sizes: FloatArray
    costs: FloatArray
    steps: FloatArray

    def borders(self, lowest: float) -> Borders:
        """Return where segments begin that are good from the lowest z on."""
        each = self.series[0] * np.exp(np.minimum(self.locations - lowest, 0.0))
        masses = self.sizes * each
        together = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
        light = int(((together[:-1] > LIGHT) | (each > LIGHT_EACH)).sum())
        common = (each > HEAVY_EACH) | (masses > _MOST_MASS)
        heavy = int(np.flatnonzero(np.append(True, common))[-1])
        # Few different places, so that nodes share them.
        light = min(-(-max(light, heavy) // _STARTS) * _STARTS, len(self.sizes))
        heavy = light if self.sizes[heavy:light].sum() <= _WORTH else heavy
        return Borders(heavy, light, lowest, 1 + float(together[heavy] - together[light]) / _BLOCK)

    def tails(self, borders: Sequence[Borders]) -> list[list[Tails]]:
        """Return the segments from `heavy` on for each of several lowest z; the light ones are made once for all."""
        starts = sorted({border.light for border in borders})
        while len(starts) > _MOST_LIGHT:
            starts = starts[::-1][::2][::-1]
        first, places = starts[0], np.array(starts, dtype=np.intp)
        groups = self.locations[first:], self.sizes[first:], self.costs[first:], self.steps[first:]
        filled = places[places < len(self.sizes)]
        shared = Tails.of(self.series, LIGHT_TERMS, filled - first, *groups) if len(filled) else None
        found = []
        for border in borders:
            place = int(np.searchsorted(places, border.light))
            parts = [] if border.heavy == starts[place] else [self._heavy(border, starts[place])]
            found.append(parts if shared is None or place >= len(filled) else [*parts, shared.behind(place)])
        return found

    def _heavy(self, border: Borders, end: int) -> Tails:
        """Return heavy segments up to a group; one of great mass is cut into pieces, the last of which has its step."""
        part = slice(border.heavy, end)
        sizes, each = self.sizes[part], self.series[0] * np.exp(self.locations[part] - border.lowest)
        # Whole items: a piece may have one more than its share.
        pieces = np.maximum(np.ceil(sizes * each / (_PIECE - HEAVY_EACH)), 1.0)
        counts = pieces.astype(np.intp)
        number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        least, left = np.floor(sizes / pieces), np.fmod(sizes, pieces)
        piece_sizes = np.repeat(least, counts) + (number < np.repeat(left, counts))
        piece_masses = piece_sizes * np.repeat(each, counts)
        steps = np.where(number == np.repeat(counts, counts) - 1, np.repeat(self.steps[part], counts), 0.0)
        blocks = ((np.cumsum(piece_masses) - piece_masses) // _BLOCK).astype(np.intp)
        starts = np.flatnonzero(np.append(True, np.diff(blocks) > 0))
        locations, costs = np.repeat(self.locations[part], counts), np.repeat(self.costs[part], counts)
        return Tails.of(self.series, HEAVY_TERMS, starts, locations, piece_sizes, costs, steps)
