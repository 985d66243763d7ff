"""The κ largest of scale · score + noise, exactly.

Three stages, each handing the next only what it could not decide (mathematics, section 8; proof in exactness.md):

1. *Screen* (single entrants only): a few bits for each entrant bound its noise; whoever cannot reach the κ-th
   largest lower bound is out.
2. *Float*: a word of bits for each entrant that is left, or for the largest order statistics of each tied group as far
   down as they can matter, evaluated in float64 with an error bound.
3. *Balls*: the few whose bounds still overlap get more bits in ball arithmetic until their order is certain.

The result is the law of real-valued noise. No noisy value leaves this module, only who won.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dpselect._arrays import BitArray, BoolArray, FloatArray, IndexArray
from dpselect.sampling.balls import Draw, Entrant, rational, sort_exactly
from dpselect.sampling.bits import BitSource
from dpselect.sampling.exponent import exponential_bounds, known_exponential, within_margin
from dpselect.sampling.field import Field
from dpselect.sampling.noise import Noise

HOPELESS = -64.0
"""Locations that no noise makes up for, whichever it is, if all words are within their margin (exactness.md, 3)."""


@dataclass(frozen=True)
class Widths:
    """How many bits each stage draws at a time; tests make them tiny to force the later stages."""

    screen: int = 8
    word: int = 64
    step: int = 64
    screen_from: int = 2048
    """Number of entrants from which screening pays."""


@dataclass(frozen=True)
class _Words:
    """Bits drawn at one time: row r holds those of consecutive order statistics of group groups[r]."""

    groups: IndexArray
    known: BitArray

    def of(self, group: int) -> BitArray:
        """Return the bits of one group; groups ascend, and a group that went on no further has none."""
        row = int(np.searchsorted(self.groups, group))
        found = row < len(self.groups) and self.groups[row] == group
        return self.known[row] if found else self.known[0, :0]


@dataclass
class _Pool:
    """Noisy values that may still win: the `order`-th largest of its group, between `low` and `high`."""

    groups: IndexArray
    orders: IndexArray
    low: FloatArray
    high: FloatArray
    words: list[_Words]

    def keep(self, selection: Any) -> _Pool:
        return _Pool(
            self.groups[selection],
            self.orders[selection],
            self.low[selection],
            self.high[selection],
            self.words,
        )


def top_k(
    field: Field, noise: Noise, bits: BitSource, *, ordered: bool = False, widths: Widths | None = None
) -> IndexArray:
    """Return the groups of the `field.winners` largest of scale · value + noise, each as often as it has winners.

    With `ordered` they come by descending noisy value; otherwise in an order that must not be shown.
    """
    widths = widths or Widths()
    with np.errstate(divide="ignore", over="ignore"):
        pool = (
            _single_entrants(field, noise, bits, widths)
            if field.multiplicities is None
            else _tied_entrants(field, noise, bits, widths)
        )
    return _settle(pool, field, noise, bits, ordered, widths)


def _single_entrants(field: Field, noise: Noise, bits: BitSource, widths: Widths) -> _Pool:
    if len(field.values) < widths.screen_from or widths.screen >= widths.word:
        known = bits.integers(len(field.values), widths.word)
        locations = field.locations(slice(None))
        if within_margin(known, widths.word):
            return _certain_entrants(field, noise, locations, known)
        groups = np.arange(len(known))
    else:
        groups, coarse = _screen(field, noise, bits, widths.screen)
        further = widths.word - widths.screen
        known = coarse.astype(np.uint64) << np.uint64(further) | bits.integers(len(groups), further).astype(np.uint64)
        locations = field.locations(groups)
    low, high = _noisy_bounds(field, locations, known, widths.word, noise)
    pool = _Pool(groups, np.ones_like(groups), low, high, [_Words(groups, known.reshape(-1, 1))])
    return pool.keep(high >= _kth_largest(low, field.winners))


def _certain_entrants(field: Field, noise: Noise, locations: FloatArray, known: BitArray) -> _Pool:
    """Return the entrants that are not hopeless, whose words say all there is to know in float64."""
    groups = np.flatnonzero(locations >= HOPELESS)
    known = known[groups]
    noises = noise.quantile(known_exponential(known))
    low, high = field.widen(locations[groups], noises, noises)
    pool = _Pool(groups, np.ones_like(groups), low, high, [_Words(groups, known.reshape(-1, 1))])
    return pool if len(groups) <= 2 * field.winners else pool.keep(high >= _kth_largest(low, field.winners))


def _noisy_bounds(
    field: Field, locations: FloatArray, known: BitArray, width: int, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    smallest, largest = exponential_bounds(known, width)
    return field.widen(locations, noise.quantile(largest), noise.quantile(smallest))


_BLOCK = 1 << 16
"""Entrants screened at a time: a block stays in the processor's cache."""


def _screen(field: Field, noise: Noise, bits: BitSource, width: int) -> tuple[IndexArray, BitArray]:
    """Return the entrants whose first `width` bits leave them a chance, and those bits."""
    cells: BitArray = np.arange(1 << width, dtype=np.uint64)
    noise_low, noise_high = _noisy_bounds(field, np.zeros(len(cells)), cells, width, noise)
    best = np.full(field.winners, -np.inf)
    kept: list[tuple[IndexArray, BitArray, FloatArray]] = []
    for start in range(0, len(field.values), _BLOCK):
        locations = field.locations(slice(start, start + _BLOCK))
        cell = bits.integers(len(locations), width)
        low, high = field.widen(locations, noise_low.take(cell), noise_high.take(cell))
        threshold = best.min()
        contenders = low[low > threshold]
        if len(contenders):
            best = np.concatenate([best, contenders])
            best = np.partition(best, -field.winners)[-field.winners :]
        chance = np.flatnonzero(high >= best.min())
        kept.append((chance + start, cell[chance], high[chance]))
    groups = np.concatenate([part[0] for part in kept])
    cell = np.concatenate([part[1] for part in kept])
    chance = np.flatnonzero(np.concatenate([part[2] for part in kept]) >= best.min())
    return groups[chance], cell[chance]


def _tied_entrants(field: Field, noise: Noise, bits: BitSource, widths: Widths) -> _Pool:
    """Draw the order statistics of each tied group downwards for as long as they can still win.

    The exponents of the largest of m noises are E_1 = e_1/m, E_{j+1} = E_j + e_{j+1}/(m − j)
    (mathematics, section 2). The number drawn at a time doubles, so that one huge group costs few rounds.
    """
    assert field.multiplicities is not None
    winners = field.winners
    active = np.arange(len(field.values))
    drawn = np.zeros(len(active), dtype=np.intp)
    locations = field.locations(slice(None))
    limits = np.minimum(field.multiplicities, winners).astype(np.intp)
    base_low = np.zeros(len(active))
    base_high = np.zeros(len(active))
    pool = _Pool(active[:0], drawn[:0], base_low[:0], base_high[:0], [])
    columns = 1
    while len(active):
        columns = min(columns, int((limits[active] - drawn[active]).max()))
        known = bits.integers(len(active) * columns, widths.word).reshape(len(active), columns)
        smallest, largest = exponential_bounds(known, widths.word)
        steps = np.arange(columns)
        divisors = (field.multiplicities[active] - drawn[active]).astype(np.float64)[:, None] - steps
        exists = drawn[active][:, None] + steps < limits[active][:, None]
        divisors[~exists] = 1.0
        exponent_low = base_low[active][:, None] + np.cumsum(smallest / divisors, axis=1)
        exponent_high = base_high[active][:, None] + np.cumsum(largest / divisors, axis=1)
        here = np.broadcast_to(locations[active][:, None], known.shape)[exists]
        low, high = field.widen(here, noise.quantile(exponent_high[exists]), noise.quantile(exponent_low[exists]))
        fresh = _Pool(
            np.broadcast_to(active[:, None], known.shape)[exists],
            (drawn[active][:, None] + steps + 1)[exists],
            low,
            high,
            [*pool.words, _Words(active, known)],
        )
        pool = _merge(pool, fresh)
        threshold = _kth_largest(pool.low, winners)
        pool = pool.keep(pool.high >= threshold)
        base_low[active] = exponent_low[:, -1]
        base_high[active] = exponent_high[:, -1]
        drawn[active] += columns
        last_high = field.widen(locations[active], np.zeros(1), noise.quantile(base_low[active]))[1]
        active = active[(drawn[active] < limits[active]) & (last_high >= threshold)]
        columns *= 2
    return pool


def _merge(left: _Pool, right: _Pool) -> _Pool:
    if not len(left.groups):
        return right
    return _Pool(
        np.concatenate([left.groups, right.groups]),
        np.concatenate([left.orders, right.orders]),
        np.concatenate([left.low, right.low]),
        np.concatenate([left.high, right.high]),
        right.words,
    )


def _kth_largest(values: FloatArray, k: int) -> float:
    """Return the k-th largest of the values, −∞ when there are fewer."""
    if len(values) < k:
        return -np.inf
    return float(np.partition(values, -k)[-k])


def _settle(pool: _Pool, field: Field, noise: Noise, bits: BitSource, ordered: bool, widths: Widths) -> IndexArray:
    """Pick the winners from the pool, sending overlapping ones to ball arithmetic."""
    winners = field.winners
    if not ordered and len(pool.groups) == winners:
        return pool.groups
    ranking = np.argsort(-pool.high, kind="stable")
    cuts = _cuts(pool.low[ranking], pool.high[ranking])
    if (cuts[:winners] if ordered else cuts[winners - 1 : winners]).all():
        return pool.groups[ranking[:winners]]
    drawn = _SharedDraws(pool.words, widths.word)
    result: list[int] = []
    for start, stop in pairwise([0, *(np.flatnonzero(cuts) + 1).tolist(), len(ranking)]):
        if len(result) >= winners:
            break
        members = ranking[start:stop]
        if len(members) > 1 and (ordered or len(result) + len(members) > winners):
            entrants = [
                _entrant(int(member), int(pool.groups[member]), int(pool.orders[member]), field, noise, drawn)
                for member in members
            ]
            members = np.array([entrant.key for entrant in sort_exactly(entrants, bits, widths.step)])
        result.extend(pool.groups[members].tolist())
    return np.array(result[:winners], dtype=np.intp)


def _cuts(low: FloatArray, high: FloatArray) -> BoolArray:
    """Return, of values sorted by descending `high`, behind which ones all before certainly beat all after."""
    certain: BoolArray = np.minimum.accumulate(low)[:-1] > high[1:]
    return certain


class _SharedDraws:
    """The draws of each group as refinable objects, one set a group: its order statistics share them."""

    def __init__(self, words: list[_Words], width: int) -> None:
        self._words = words
        self._width = width
        self._draws: dict[int, list[Draw]] = {}

    def of(self, group: int) -> list[Draw]:
        if group not in self._draws:
            self._draws[group] = [Draw(int(known), self._width) for words in self._words for known in words.of(group)]
        return self._draws[group]


def _entrant(key: int, group: int, order: int, field: Field, noise: Noise, drawn: _SharedDraws) -> Entrant:
    """Rebuild one noisy value from the bits it was drawn from, ready to be refined."""
    size = 1 if field.multiplicities is None else int(field.multiplicities[group])
    divisors = [rational(size - earlier) for earlier in range(order)]
    magnitude = int(field.exact_location(group)).bit_length()
    return Entrant(key, field.location_ball(group), drawn.of(group)[:order], divisors, noise, magnitude)
