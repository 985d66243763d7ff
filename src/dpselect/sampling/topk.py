"""The κ largest of scale · score + noise, exactly.

Three stages; each passes on only what it could not decide (mathematics, section 8; proof in exactness.md):

1. *Screen* (single entrants only): a few bits per entrant bound its noise. Entrants that cannot reach the κ-th
   largest lower bound are dropped.
2. *Float*: a word of bits per remaining entrant, or per order statistic of each tied group as far down as it can
   matter, is evaluated in float64 with an error bound.
3. *Balls*: the few entrants whose bounds still overlap get more bits in ball arithmetic until their order is certain.

The winners have exactly the law of real-valued noise. Only they leave this module, and, where a whole vector of noisy
scores is private, the numbers of steps of a public grid to which their noisy scores are rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import floor, isfinite
from typing import Any

import numpy as np

from dpselect._arrays import Array, BitArray, BoolArray, FloatArray, IndexArray
from dpselect._numbers import exact_fraction
from dpselect.sampling.balls import Draw, Entrant, floor_exactly, rational, sort_exactly
from dpselect.sampling.bits import BitSource
from dpselect.sampling.bounds import Field, exponential_bounds, known_exponential, within_margin
from dpselect.sampling.noise import NOISES, Noise

HOPELESS = -64.0
"""Entrants below this location cannot win if all words are within the margin (exactness.md, section 3)."""


@dataclass(frozen=True)
class Widths:
    """Bits drawn at a time in each stage; tests make them tiny to force the later stages."""

    screen: int = 8
    word: int = 64
    step: int = 64
    screen_from: int = 2048
    """Minimum number of entrants for which screening is faster."""


@dataclass(frozen=True)
class _Words:
    """Bits of one round: row r holds those of consecutive order statistics of group groups[r]."""

    groups: IndexArray
    known: BitArray

    def of(self, group: int) -> BitArray:
        """Return the bits of one group, none if the group was not drawn in this round; `groups` is ascending."""
        row = int(np.searchsorted(self.groups, group))
        found = row < len(self.groups) and self.groups[row] == group
        return self.known[row] if found else self.known[0, :0]


@dataclass
class _Candidates:
    """Noisy values that may still win: the orders[i]-th largest of group groups[i] lies in [low[i], high[i]]."""

    groups: IndexArray
    orders: IndexArray
    low: FloatArray
    high: FloatArray
    words: list[_Words]

    def keep(self, selection: Any) -> _Candidates:
        """Return the selected candidates."""
        return _Candidates(
            self.groups[selection],
            self.orders[selection],
            self.low[selection],
            self.high[selection],
            self.words,
        )


def top_k(
    field: Field, noise: Noise, bits: BitSource, *, ordered: bool = False, widths: Widths | None = None
) -> IndexArray:
    """Return the groups of the `field.winners` largest of scale · value + noise, exactly.

    Parameters
    ----------
    field
        The scores, their scale, and the number of winners.
    noise
        The distribution of the independent noise of every entrant.
    bits
        The source of randomness.
    ordered
        Whether winners come by descending noisy value. Otherwise their order is arbitrary and must not be shown.
    widths
        Bits drawn at a time in each stage.

    Returns
    -------
    numpy.ndarray
        Indexes into `field.values`; a group of tied entrants appears once per winner.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpselect.sampling import SeededBits
    >>> field = Field(np.array([900, 5, 700]), Fraction(1), None, winners=2)
    >>> top_k(field, NOISES["gumbel"], SeededBits(1), ordered=True).tolist()
    [0, 2]
    """
    widths = widths or Widths()
    candidates = _drawn(field, noise, bits, widths)
    drawn = _SharedDraws(candidates.words, widths.word)
    return candidates.groups[_settle(candidates, field, noise, bits, ordered, widths, drawn)]


def rounded_top_k(
    field: Field, noise: Noise, grid: Fraction, bits: BitSource, *, widths: Widths | None = None
) -> tuple[IndexArray, list[int]]:
    """Return the winners of `top_k` in order, and their noisy scores rounded to the nearest multiple of `grid`.

    A noisy score is `v = value + noise/scale`; it is returned in steps of the grid, `⌊v/grid + ½⌋`. Ends of a
    candidate's bounds that round alike decide; otherwise the candidate gets more bits in ball arithmetic.

    Parameters
    ----------
    field, noise, bits, widths
        As in `top_k`.
    grid
        The distance between the numbers to which noisy scores are rounded.

    Returns
    -------
    tuple
        Indexes into `field.values`, and a whole number for each.

    Examples
    --------
    >>> from dpselect.sampling import SeededBits
    >>> field = Field(np.array([900, 5, 700]), Fraction(100), None, winners=2)
    >>> groups, steps = rounded_top_k(field, NOISES["laplace"], Fraction(1), SeededBits(1))
    >>> groups.tolist(), steps
    ([0, 2], [900, 700])
    """
    widths = widths or Widths()
    candidates = _drawn(field, noise, bits, widths)
    drawn = _SharedDraws(candidates.words, widths.word)
    winners = _settle(candidates, field, noise, bits, True, widths, drawn)
    # Locations are relative to the reference and in units of the noise: a step of the grid is `unit` of them.
    unit, offset = field.scale * grid, exact_fraction(field.reference) / grid + Fraction(1, 2)
    steps = []
    for winner in winners.tolist():
        ends = [float(candidates.low[winner]), float(candidates.high[winner])]
        whole = {floor(Fraction(end) / unit + offset) for end in ends if isfinite(end)}
        if len(whole) == 1 and isfinite(sum(ends)):
            steps.append(whole.pop())
            continue
        group, order = int(candidates.groups[winner]), int(candidates.orders[winner])
        entrant = _entrant(winner, group, order, field, noise, drawn)
        location = field.exact_location(group) + offset * unit
        entrant = replace(entrant, location=rational(location), magnitude=int(location / unit).bit_length())
        steps.append(floor_exactly(entrant, unit, bits, widths.step))
    return candidates.groups[winners], steps


def categorical(
    log_weights: Array,
    bits: BitSource,
    *,
    multiplicities: Array | None = None,
    scale: Fraction = Fraction(1),
    widths: Widths | None = None,
) -> int:
    """Return i with probability proportional to `multiplicities[i] · exp(scale · log_weights[i])`, exactly.

    The index of the largest of log-weight plus Gumbel noise has that law. The weights themselves are never computed,
    so nothing overflows.

    Parameters
    ----------
    log_weights
        Logarithms of the weights; with `multiplicities` they must be distinct and descending.
    bits
        The source of randomness.
    multiplicities
        How many alternatives each log-weight stands for; None for one each.
    scale
        An exact factor of the log-weights.
    widths
        Bits drawn at a time, as in `top_k`.

    Examples
    --------
    >>> from dpselect.sampling import SeededBits
    >>> categorical(np.array([0, 900]), SeededBits(1))
    1
    """
    field = Field(np.asarray(log_weights), scale, multiplicities, winners=1)
    return int(top_k(field, NOISES["gumbel"], bits, widths=widths)[0])


def _drawn(field: Field, noise: Noise, bits: BitSource, widths: Widths) -> _Candidates:
    """Return the candidates, after screening and the float stage."""
    with np.errstate(divide="ignore", over="ignore"):
        if field.multiplicities is None:
            return _single_entrants(field, noise, bits, widths)
        return _tied_entrants(field, noise, bits, widths)


def _single_entrants(field: Field, noise: Noise, bits: BitSource, widths: Widths) -> _Candidates:
    """Return the candidates among single entrants, after screening if there are many."""
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
    candidates = _Candidates(groups, np.ones_like(groups), low, high, [_Words(groups, known.reshape(-1, 1))])
    return candidates.keep(high >= _kth_largest(low, field.winners))


def _certain_entrants(field: Field, noise: Noise, locations: FloatArray, known: BitArray) -> _Candidates:
    """Return the candidates above HOPELESS, for words within the margin: one noise serves as both bounds."""
    groups = np.flatnonzero(locations >= HOPELESS)
    known = known[groups]
    noises = noise.quantile(known_exponential(known))
    low, high = field.widen(locations[groups], noises, noises)
    candidates = _Candidates(groups, np.ones_like(groups), low, high, [_Words(groups, known.reshape(-1, 1))])
    return candidates if len(groups) <= 2 * field.winners else candidates.keep(high >= _kth_largest(low, field.winners))


def _noisy_bounds(
    field: Field, locations: FloatArray, known: BitArray, width: int, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on location + noise for noises of which `width` bits are known."""
    smallest, largest = exponential_bounds(known, width)
    return field.widen(locations, noise.quantile(largest), noise.quantile(smallest))


_BLOCK = 1 << 16
"""Entrants screened at a time; a block fits in the processor's cache."""


def _screen(field: Field, noise: Noise, bits: BitSource, width: int) -> tuple[IndexArray, BitArray]:
    """Return the entrants that may win given their first `width` bits, and those bits."""
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
        possible = np.flatnonzero(high >= best.min())
        kept.append((possible + start, cell[possible], high[possible]))
    groups = np.concatenate([part[0] for part in kept])
    cell = np.concatenate([part[1] for part in kept])
    possible = np.flatnonzero(np.concatenate([part[2] for part in kept]) >= best.min())
    return groups[possible], cell[possible]


def _tied_entrants(field: Field, noise: Noise, bits: BitSource, widths: Widths) -> _Candidates:
    """Draw the order statistics of each tied group, largest first, as long as they can win.

    The exponents of the largest of m noises are E_1 = e_1/m, E_{j+1} = E_j + e_{j+1}/(m − j)
    (mathematics, section 2). The number drawn doubles in each round, so a huge group needs few rounds.
    """
    assert field.multiplicities is not None
    winners = field.winners
    active = np.arange(len(field.values))
    drawn = np.zeros(len(active), dtype=np.intp)
    locations = field.locations(slice(None))
    limits = np.minimum(field.multiplicities, winners).astype(np.intp)
    base_low = np.zeros(len(active))
    base_high = np.zeros(len(active))
    candidates = _Candidates(active[:0], drawn[:0], base_low[:0], base_high[:0], [])
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
        fresh = _Candidates(
            np.broadcast_to(active[:, None], known.shape)[exists],
            (drawn[active][:, None] + steps + 1)[exists],
            low,
            high,
            [*candidates.words, _Words(active, known)],
        )
        candidates = _merge(candidates, fresh)
        threshold = _kth_largest(candidates.low, winners)
        candidates = candidates.keep(candidates.high >= threshold)
        base_low[active] = exponent_low[:, -1]
        base_high[active] = exponent_high[:, -1]
        drawn[active] += columns
        last_high = field.widen(locations[active], np.zeros(1), noise.quantile(base_low[active]))[1]
        active = active[(drawn[active] < limits[active]) & (last_high >= threshold)]
        columns *= 2
    return candidates


def _merge(left: _Candidates, right: _Candidates) -> _Candidates:
    """Return both sets of candidates; the words of `right` include those of `left`."""
    if not len(left.groups):
        return right
    return _Candidates(
        np.concatenate([left.groups, right.groups]),
        np.concatenate([left.orders, right.orders]),
        np.concatenate([left.low, right.low]),
        np.concatenate([left.high, right.high]),
        right.words,
    )


def _kth_largest(values: FloatArray, k: int) -> float:
    """Return the k-th largest value, −∞ if there are fewer."""
    if len(values) < k:
        return -np.inf
    return float(np.partition(values, -k)[-k])


def _settle(
    candidates: _Candidates,
    field: Field,
    noise: Noise,
    bits: BitSource,
    ordered: bool,
    widths: Widths,
    drawn: _SharedDraws,
) -> IndexArray:
    """Return which candidates win; overlapping ones are compared in ball arithmetic."""
    winners = field.winners
    if not ordered and len(candidates.groups) == winners:
        return np.arange(winners)
    ranking = np.argsort(-candidates.high, kind="stable")
    cuts = _cuts(candidates.low[ranking], candidates.high[ranking])
    if (cuts[:winners] if ordered else cuts[winners - 1 : winners]).all():
        return ranking[:winners]
    result: list[int] = []
    for start, stop in pairwise([0, *(np.flatnonzero(cuts) + 1).tolist(), len(ranking)]):
        if len(result) >= winners:
            break
        members = ranking[start:stop]
        if len(members) > 1 and (ordered or len(result) + len(members) > winners):
            entrants = [
                _entrant(
                    int(member), int(candidates.groups[member]), int(candidates.orders[member]), field, noise, drawn
                )
                for member in members
            ]
            members = np.array([entrant.key for entrant in sort_exactly(entrants, bits, widths.step)])
        result.extend(members.tolist())
    return np.array(result[:winners], dtype=np.intp)


def _cuts(low: FloatArray, high: FloatArray) -> BoolArray:
    """Return, for values sorted by descending `high`, after which of them all earlier ones beat all later ones."""
    certain: BoolArray = np.minimum.accumulate(low)[:-1] > high[1:]
    return certain


class _SharedDraws:
    """The draws of each group as objects that can take more bits; the order statistics of a group share them."""

    def __init__(self, words: list[_Words], width: int) -> None:
        self._words = words
        self._width = width
        self._draws: dict[int, list[Draw]] = {}

    def of(self, group: int) -> list[Draw]:
        """Return the draws of a group, in the order of its order statistics."""
        if group not in self._draws:
            self._draws[group] = [Draw(int(known), self._width) for words in self._words for known in words.of(group)]
        return self._draws[group]


def _entrant(key: int, group: int, order: int, field: Field, noise: Noise, drawn: _SharedDraws) -> Entrant:
    """Return one noisy value, with the bits it was drawn from, for comparison in balls."""
    size = 1 if field.multiplicities is None else int(field.multiplicities[group])
    divisors = [rational(size - earlier) for earlier in range(order)]
    magnitude = int(field.exact_location(group)).bit_length()
    return Entrant(key, field.location_ball(group), drawn.of(group)[:order], divisors, noise, magnitude)
