"""Figures from seeded draws, with 95% intervals.

Answers are drawn for all draws at once, as groups of equal score. Mechanisms whose law is not known here draw
with their own sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import Array, FloatArray, IntArray
from dpselect._numbers import NORMAL_95
from dpselect.forecast import metrics
from dpselect.forecast.classes import Subsets
from dpselect.forecast.levels import JointLevels
from dpselect.forecast.noisy import REACH, NoisyItems, noisy_items
from dpselect.mechanisms import Canonical, Joint, Mechanism, Peeling
from dpselect.sampling import NOISES, bit_source
from dpselect.sampling.sequences import log_falling
from dpselect.scores import Ranking, Scores

CONFIDENCE = 0.95
PROBABILITIES = ("exact", "great", "good")
"""The figures that are probabilities; the others are means."""

_CERTAIN = 1 - 1e-13
"""Probabilities from here on are shown as 1."""

_RARE = 0.2
"""Items that exceed a threshold with at most this probability are drawn by group, others one by one."""

_POISSON = 1e15
"""Groups of at least this size times draws have Poisson instead of binomial counts."""

_TOGETHER = 2000
"""Draws made together; more would only need more memory."""

_LISTED = 1 << 17
"""Taken items among the first ranks are marked in a table of this many columns; others are searched for."""


@dataclass(frozen=True)
class Figure:
    """A number, exact or simulated.

    Attributes
    ----------
    value : float
        The number.
    exact : bool
        Whether it was computed; otherwise it was simulated.
    low, high : float
        An interval that holds the true number with probability about 0.95; of an exact figure, the number itself.

    Examples
    --------
    >>> import dpselect as dps
    >>> figure = dps.forecast.Figure(0.25, False, 0.125, 0.375)
    >>> print(figure)
    ≈0.25 (0.125 to 0.375)
    """

    value: float
    exact: bool
    low: float
    high: float

    @classmethod
    def known(cls, value: float) -> Figure:
        """Return an exact figure."""
        return cls(float(value), True, float(value), float(value))

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as plain data."""
        return {"value": self.value, "exact": self.exact, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        """Show three digits, and a simulated figure with its interval."""
        text = shown(self.value)
        return text if self.exact else f"≈{text} ({shown(self.low)} to {shown(self.high)})"


def shown(value: float) -> str:
    """Return a number to three digits; a probability as 1 only if it differs from 1 by no more than rounding."""
    if 0.9995 <= value < _CERTAIN:
        return ">0.999"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def simulated(
    table: Scores, mechanism: Mechanism, draws: int, seed: int | None, names: Collection[str], ordered: bool
) -> dict[str, Figure | None]:
    """Return the named figures from seeded draws, of which the order is judged if `ordered`."""
    ranking = Ranking.of(table.distinct)
    k, size = mechanism.k, table.size
    top = ranking.scores(np.arange(k))
    great, good = (
        {"held": held, "lowest": ranking.scores(np.array([last - 1]))[0]}
        for held, last in (metrics.great_ranks(k, size), metrics.good_ranks(k, size))
    )
    judges: dict[str, Callable[[Array, Array], float]] = {
        "exact": metrics.is_exact,
        "great": lambda top, chosen: metrics.is_within(top, chosen, **great),
        "good": lambda top, chosen: metrics.is_within(top, chosen, **good),
        "returned": metrics.items_returned,
        "full": lambda top, chosen: len(chosen) == len(top),
        "correct": metrics.number_correct,
        "f1": metrics.f1_score,
        "score_ratio": metrics.score_ratio,
        "largest_error": _if_complete(metrics.largest_error),
        "total_error": _if_complete(metrics.total_error),
        "relative_error": _if_complete(metrics.relative_error),
    }
    found: dict[str, list[float]] = {name: [] for name in names}
    for chosen in _answers(table, mechanism, draws, seed):
        answer = chosen if ordered else np.sort(chosen)[::-1]
        for name, values in found.items():
            values.append(float(judges[name](top, answer)))
    return {
        name: _proportion(values) if name in (*PROBABILITIES, "full") else _mean(values, signed=name == "score_ratio")
        for name, values in found.items()
    }


def _if_complete(judge: Callable[[Array, Array], float]) -> Callable[[Array, Array], float]:
    """Return a measure that compares rank by rank, undefined for answers shorter than k."""
    return lambda top, chosen: judge(top, chosen) if len(chosen) == len(top) else math.nan


def _proportion(values: list[float]) -> Figure:
    """Return the share of successes with the interval of Clopper and Pearson."""
    from scipy.special import betaincinv

    number, successes = len(values), sum(values)
    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(successes, number - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, number - successes, 1 - tail)) if successes < number else 1.0
    return Figure(successes / number, False, low, high)


def _mean(values: list[float], *, signed: bool) -> Figure | None:
    """Return the mean with the interval of the normal approximation; None if it is not always defined."""
    mean = float(np.mean(values))
    if math.isnan(mean):
        return None
    error = NORMAL_95 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Figure(mean, False, mean - error if signed else max(mean - error, 0.0), mean + error)


def _answers(table: Scores, mechanism: Mechanism, draws: int, seed: int | None) -> Iterator[Array]:
    """Yield the scores of each drawn answer."""
    generator, bits = np.random.default_rng(seed), bit_source(seed)
    for start in range(0, draws, _TOGETHER):
        number = min(_TOGETHER, draws - start)
        with np.errstate(all="ignore"):
            groups = drawn_groups(table, mechanism, number, generator)
        if groups is not None:
            yield from table.values[groups]
        else:
            yield from (mechanism.draw(table, bits).values for _ in range(number))


def drawn_groups(table: Scores, mechanism: Mechanism, draws: int, generator: np.random.Generator) -> IntArray | None:
    """Return the groups of the chosen items as [draw, place]; None if the law is not known here."""
    if isinstance(mechanism, Canonical):
        return _subsets(Subsets.of(mechanism, table, mechanism.epsilon), mechanism, table, draws, generator)
    if isinstance(mechanism, Joint):
        return _sequences(JointLevels.of(mechanism, table, mechanism.epsilon), mechanism, draws, generator)
    items = noisy_items(table, mechanism)
    if items is not None:
        return _largest(items, draws, generator)
    if isinstance(mechanism, Peeling):
        return _peeled(NoisyItems.of(table, mechanism.k, mechanism.rate(), NOISES[mechanism.noise]), draws, generator)
    return None


def distinct_ranks(bounds: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Return uniformly random sequences of distinct ranks as [draw, row]; row r takes one of the ranks below its bound.

    LossBounds [draw, row] must not decrease from row to row. This is a Fisher–Yates shuffle that stores only changed
    places: row r takes the content of a random place in r..bound − 1, and the content of place r moves there.
    """
    draws, rows = bounds.shape
    places, moved = np.empty((2, draws, rows))
    chosen = np.empty((draws, rows))
    everyone = np.arange(draws)

    def content(place: FloatArray, row: int) -> FloatArray:
        touched = places[:, :row] == place[:, None]
        latest = row - 1 - np.argmax(touched[:, ::-1], axis=1) if row else np.zeros(draws, dtype=np.intp)
        return np.where(touched.any(axis=1), moved[everyone, latest], place) if row else place

    for row in range(rows):
        choices = bounds[:, row] - row
        place = row + np.minimum(np.floor(generator.random(draws) * choices), choices - 1)
        chosen[:, row] = content(place, row)
        moved[:, row] = content(np.full(draws, float(row)), row)
        places[:, row] = place
    return chosen


def _sequences(levels: JointLevels, mechanism: Joint, draws: int, generator: np.random.Generator) -> IntArray:
    """Draw from Joint: a bound on the loss, then any sequence within it."""
    bounds = levels.bounds(mechanism.epsilon, mechanism.noise)
    drawn = generator.choice(len(bounds.weights), draws, p=bounds.weights / bounds.weights.sum())
    rows = [bounds.ends[bounds.groups(row)[drawn]] for row in range(mechanism.k)]
    ranks = distinct_ranks(np.array(rows).T, generator)
    return np.searchsorted(bounds.ends, ranks, side="right")


def _subsets(
    subsets: Subsets, mechanism: Canonical, table: Scores, draws: int, generator: np.random.Generator
) -> IntArray:
    """Draw from Canonical: a class, its lowest rank, and any ranks between the head and that one."""
    k, ends = mechanism.k, np.cumsum(table.multiplicities).astype(np.float64)
    probabilities, row, column = subsets.law(mechanism.epsilon, mechanism.noise)
    drawn = generator.choice(len(probabilities), draws, p=probabilities / probabilities.sum())
    ranks = np.tile(np.arange(k, dtype=np.float64), (draws, 1))
    wrong = np.flatnonzero(drawn)
    if len(wrong):
        heads = subsets.heads[row[drawn[wrong] - 1]].astype(np.float64)
        runs = subsets.runs[column[drawn[wrong] - 1]]
        starts, stops = (each[runs].astype(np.float64) for each in (subsets.starts, subsets.ends))
        picks = k - heads
        lowest = _lowest_place(starts - heads - 1, stops - heads - 1, picks, generator)
        places = np.arange(k, dtype=np.float64)
        bounds = np.maximum(lowest[:, None], places + 1)
        others = distinct_ranks(bounds, generator)
        chosen = np.where(places == picks[:, None] - 1, lowest[:, None], others) + heads[:, None] + 1
        # The first k − h places are used; the ranks of the head follow them.
        ranks[wrong] = np.where(places < picks[:, None], chosen, places - picks[:, None])
    return np.searchsorted(ends, ranks, side="right")


def _lowest_place(
    inner: FloatArray, outer: FloatArray, picks: FloatArray, generator: np.random.Generator
) -> FloatArray:
    """Return the last of `picks` random places before `outer`, given that it is not before `inner`.

    All places are before m with probability `C(m, q) / C(outer, q)`, which is inverted by bisection.
    """
    whole = log_falling(outer, picks)
    least = np.exp(log_falling(inner, picks) - whole)
    uniform = np.log(least + (1 - least) * (1 - generator.random(len(picks))))
    low, high = inner, outer
    while True:
        middle = np.floor((low + high) / 2)
        if not ((middle > low) & (middle < high)).any():
            return high - 1
        enough = log_falling(middle, picks) - whole >= uniform
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)


def _largest(items: NoisyItems, draws: int, generator: np.random.Generator) -> IntArray:
    """Draw the k largest noisy scores: only items above a threshold that k items exceed nearly always."""
    k = items.k
    threshold = _threshold(items, k + 7 * math.sqrt(k) + 25)
    draw, group, _, values = exceedances(items, threshold, draws, generator)
    order = np.lexsort((-values, draw))
    group = group[order]
    starts = np.searchsorted(draw[order], np.arange(draws))
    counts = np.diff(np.append(starts, len(group)))
    # Fewer than k exceed the threshold in less than one draw of a billion; such a draw is left out.
    groups: IntArray = group[starts[counts >= k, None] + np.arange(k)]
    return groups


def _peeled(items: NoisyItems, draws: int, generator: np.random.Generator) -> IntArray:
    """Draw k rounds with fresh noise, each without the items taken before."""
    k, everyone = items.k, np.arange(draws)
    starts = items.ends - items.sizes
    chosen = np.zeros((draws, k), dtype=np.intp)
    taken = np.full((draws, k), -1.0)
    listed = np.zeros((draws, int(min(items.ends[-1], _LISTED))), dtype=bool)
    for row in range(k):
        waiting, wanted = everyone, 20.0
        while len(waiting):
            threshold = _threshold(items, row + wanted)
            place, group, member, values = exceedances(items, threshold, len(waiting), generator)
            rank, draw = starts[group] + member, waiting[place]
            near = rank < listed.shape[1]
            free = np.ones(len(rank), dtype=bool)
            free[near] = ~listed[draw[near], rank[near].astype(np.intp)]
            free[~near] = (taken[draw[~near], :row] != rank[~near, None]).all(axis=1)
            order = np.lexsort((values[free], draw[free]))
            last = np.flatnonzero(np.diff(draw[free][order], append=-1))
            best, won = draw[free][order][last], order[last]
            chosen[best, row], taken[best, row] = group[free][won], rank[free][won]
            near = taken[best, row] < listed.shape[1]
            listed[best[near], taken[best[near], row].astype(np.intp)] = True
            waiting, wanted = np.setdiff1d(waiting, best), 2 * wanted
    return chosen


def _threshold(items: NoisyItems, wanted: float) -> float:
    """Return a value that `wanted` items exceed on average; one that all items exceed if there are fewer."""
    low, high = float(items.locations[-1]) - REACH, items.range[1]
    if items.number <= wanted:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        enough = items.sizes @ items.noise.survival(middle - items.locations) >= wanted
        low, high = (middle, high) if enough else (low, middle)
    return low


def exceedances(
    items: NoisyItems, threshold: float, draws: int, generator: np.random.Generator
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return all noisy scores above a threshold: their draws, groups, members of the group, and values."""
    shares = items.noise.survival(threshold - items.locations)
    likely = int((shares > _RARE).sum())
    # Likely items one by one, and rare ones by the number of times that each group exceeds.
    groups = np.repeat(np.arange(likely), items.sizes[:likely].astype(np.intp))
    members = np.arange(len(groups)) - (items.ends - items.sizes)[groups]
    which, draw = np.nonzero(generator.random((len(groups), draws)) < shares[groups, None])
    sizes, rare_shares = items.sizes[likely:], shares[likely:]
    few = sizes * draws < _POISSON
    times = generator.poisson(np.where(few, 0.0, sizes * draws * rare_shares))
    times[few] = generator.binomial((sizes[few] * draws).astype(np.int64), rare_shares[few])
    rare = np.repeat(np.arange(likely, len(items.sizes)), times)
    rare_draw, rare_member = _distinct_pairs(rare, items.sizes, draws, generator)
    group = np.append(groups[which], rare)
    tails = shares[group] * (1 - generator.random(len(group)))
    values = items.locations[group] + items.noise.quantile(-np.log1p(-np.minimum(tails, 1 - 2.0**-53)))
    return np.append(draw, rare_draw), group, np.append(members[which], rare_member), values


def _distinct_pairs(
    groups: IntArray, sizes: FloatArray, draws: int, generator: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return a random draw and member for each entry, distinct for entries of the same group."""
    draw = generator.integers(0, draws, len(groups))
    member = np.floor(generator.random(len(groups)) * sizes[groups])
    while True:
        order = np.lexsort((member, draw, groups))
        same = [each[order][1:] == each[order][:-1] for each in (groups, draw, member)]
        again = order[1:][np.logical_and.reduce(same)]
        if not len(again):
            return draw, member
        draw[again] = generator.integers(0, draws, len(again))
        member[again] = np.floor(generator.random(len(again)) * sizes[groups[again]])
