"""Nodes and weights: Gauss–Legendre rules on panels, or evenly spaced; Chebyshev points; and which to take together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev

from dpselect._arrays import Array, BoolArray, FloatArray

SMALL = 60
"""Up to how many groups finer nodes cost little."""

_MOST_KINKS, _MOST_JUMPS = 600, 20_000
_SAME = (1e-11, 1e-10, 1e-9, 1e-8)
_RULES = ((2, 0.008), (3, 0.05), (4, 0.12), (5, 0.2), (6, 0.32), (8, 0.55), (12, np.inf))
"""How many points a panel gets, up to which share of the pace; what each leaves out is alike."""
_LONGEST = 0.9
_SMOOTHED = 1.5
_FEW_TIED, _MOST_CELLS = 4, 2_000
_POINTS = {count: np.polynomial.legendre.leggauss(count) for count, _ in _RULES}


@cache
def chebyshev_points(number: int) -> tuple[FloatArray, FloatArray]:
    """Return so many Chebyshev points, and the matrix from values there to the coefficients of their polynomial."""
    points = chebyshev.chebpts1(number).astype(np.float64)
    transform = chebyshev.chebvander(points, number - 1).T.astype(np.float64) * (2 / number)
    transform[0] /= 2
    return points, transform


def chebyshev_terms(places: FloatArray, number: int) -> FloatArray:
    """Return the first Chebyshev polynomials at places in [−1, 1], as [term, place].

    From those up to T_m the next m follow at once, by `T_{m+j} = 2 T_m T_j − T_{m−j}`.
    """
    result = np.ones((number, len(places)))
    result[1:2] = places
    last = 1
    while last < number - 1:
        more = min(last, number - 1 - last)
        following = result[last + 1 : last + 1 + more]
        np.multiply(2 * result[last], result[1 : more + 1], out=following)
        following -= result[last - more : last][::-1]
        last += more
    return result


def paced(
    cells: FloatArray,
    kept: BoolArray,
    paces: FloatArray,
    kinks: FloatArray,
    *,
    smooth: bool = False,
    step: float = 0.115,
) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for the cells kept: panels are about as long as the pace there, and end at kinks.

    A function that is smooth everywhere and vanishes at both ends of cells kept needs fewer nodes there, a `step` of
    the pace apart (`_graded`).
    """
    work = np.append(0.0, np.cumsum(np.where(kept, np.diff(cells) / paces, 0.0)))
    nodes, weights = [np.empty(0)], [np.empty(0)]
    for start, end in np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]))).reshape(-1, 2):
        own, pace = slice(start, end + 1), paces[start:end]
        if smooth:
            found = _graded(cells[own], pace * step)
            nodes.append(found[0])
            weights.append(found[1])
            continue
        low, high = cells[start], cells[end]
        edges = ascending(np.array([low, high]), kinks[(kinks > low) & (kinks < high)])
        found = _panels(*_cut(edges, cells[own], work[own]))
        nodes.append(found[0])
        weights.append(found[1])
    return np.concatenate(nodes), np.concatenate(weights)


def _graded(cells: FloatArray, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes about so far apart in each cell: evenly spaced values of a variable u in which z is analytic.

    `dz/du` is the step of each cell, smoothed by a logistic function some nodes wide. Its poles are as many times π
    away from all u, so that what evenly spaced nodes leave out because of them is `e^{−2π² · width}`, 1e-13. What they
    leave out of a function that is as smooth as the steps say is 1e-9 or less; tests look at steps that change too.
    """
    changes = np.diff(steps)
    changing = changes != 0
    if not changing.any():
        low, high = float(cells[0]), float(cells[-1])
        # Far out cells may have no width.
        count = max(math.ceil((high - low) / float(steps[0])), 1)
        return low + (high - low) / count * np.arange(count + 1.0), np.full(count + 1, (high - low) / count)
    borders = np.append(0.0, np.cumsum(np.diff(cells) / steps))
    u = np.linspace(0.0, borders[-1], max(int(np.ceil(borders[-1])), 1) + 1)
    before = (borders[1:-1][changing, None] - u) / _SMOOTHED
    fallen = np.exp(-np.abs(before))
    nodes = cells[0] + steps[0] * u + _SMOOTHED * (changes[changing] @ (np.log1p(fallen) + np.maximum(-before, 0.0)))
    paces = steps[0] + changes[changing] @ (np.where(before > 0, fallen, 1.0) / (1.0 + fallen))
    return nodes, paces * (borders[-1] / (len(u) - 1))


def _cut(edges: FloatArray, cells: FloatArray, work: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return edges with others between them, so that no panel is longer than most of a pace, and how long each is.

    `work` says how many paces there are up to each cell's border.
    """
    places = np.interp(edges, cells, work)
    lengths = np.diff(places)
    counts = np.maximum(np.ceil(lengths / _LONGEST - 1e-9), 1.0).astype(np.intp)
    if (counts == 1).all():
        return edges, lengths
    starts, last = np.cumsum(counts) - counts, int(counts.sum())
    inner = np.arange(last) - np.repeat(starts, counts)
    shares = np.repeat(lengths / counts, counts)
    found = np.append(np.interp(np.repeat(places[:-1], counts) + inner * shares, work, cells), edges[-1])
    found[starts] = edges[:-1]
    return found, shares


def _panels(edges: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of neighbouring panels, more for those with a larger share of a pace."""
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    nodes, weights, least = [], [], -1.0
    for count, most in _RULES:
        chosen = (shares > least) & (shares <= most)
        least = most
        if not chosen.any():
            continue
        points, masses = _POINTS[count]
        nodes.append((middles[chosen, None] + widths[chosen, None] / 2 * points).ravel())
        weights.append((widths[chosen, None] / 2 * masses).ravel())
    together, masses = np.concatenate(nodes), np.concatenate(weights)
    order = np.argsort(together)
    return together[order], masses[order]


def batches(work: Array, most: float, fewest: int) -> Iterator[Array]:
    """Yield the places of nodes to take together, of like work.

    Their number times the most work among them is at most so much, unless they are the fewest.
    """
    left = np.argsort(work, kind="stable")
    while len(left):
        count = max(fewest, int((work[left] * np.arange(1, len(left) + 1) <= most).sum()))
        yield left[:count]
        left = left[count:]


def nearest(kinks: FloatArray, middle: float, *, jumps: bool) -> FloatArray:
    """Return the kinks to heed: those nearest to where it matters most, or nearly all where functions jump."""
    most = _MOST_JUMPS if jumps else _MOST_KINKS
    for same in _SAME:
        # Of kinks that are next to each other one will do.
        _, places = np.unique(np.round(kinks / same), return_index=True)
        if len(places) <= most:
            return kinks[places]
    apart = kinks[places]
    return apart[np.argsort(np.abs(apart - middle), kind="stable")[:most]]


def behind_jumps(locations: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return borders of cells behind the jumps of large groups, with noise that is never negative.

    There the first of m tied items falls below z within about 1/m, and twice as many within each next cell.
    """
    found, left = [np.empty(0)], _MOST_CELLS
    for place in np.argsort(-sizes, kind="stable").tolist():
        steps = np.arange(float(np.log2(sizes[place])) + 2)
        left -= len(steps)
        if sizes[place] <= _FEW_TIED or left < 0:
            break
        found.append(np.append(locations[place], locations[place] + 2.0**-steps))
    return np.concatenate(found)


def paces_behind_jumps(z: FloatArray, locations: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return how finely z has to be cut there, in deviations of how many have fallen below z; infinite elsewhere."""
    result = np.full(len(z), np.inf)
    for location, size in zip(locations.tolist(), sizes.tolist(), strict=True):
        if size > _FEW_TIED:
            near = (z > location) & (z < location + 1)
            fallen = np.maximum(size * (z[near] - location), 1.0)
            result[near] = np.minimum(result[near], np.sqrt(fallen) / size)
    return result


def ascending(values: FloatArray, others: FloatArray) -> FloatArray:
    """Return both in ascending order, each once; NumPy's own takes several times as long."""
    together = np.sort(np.concatenate([values, others]))
    result: FloatArray = together[np.append(True, together[1:] > together[:-1])]
    return result


def least_near(values: FloatArray) -> FloatArray:
    """Return the least of each cell's value and its neighbours'."""
    result = values.copy()
    np.minimum(result[:-1], values[1:], out=result[:-1])
    np.minimum(result[1:], values[:-1], out=result[1:])
    return result


def and_neighbours(kept: BoolArray) -> BoolArray:
    """Return which cells are kept or beside one that is."""
    result = kept.copy()
    result[:-1] |= kept[1:]
    result[1:] |= kept[:-1]
    return result


def highest_at(nodes: FloatArray, z: FloatArray, values: FloatArray) -> FloatArray:
    """Return about the largest that functions can be at the nodes, from their values [kind, z].

    If one is concave, it is above a chord no more than neighbouring chords reach.
    """
    widths = np.diff(z)
    slopes = np.diff(values) / widths
    bends = np.zeros((len(values), len(z)))
    np.abs(np.diff(slopes), out=bends[:, 1:-1])
    reach = (bends[:, :-1] + bends[:, 1:]) * widths / 4
    place = np.clip(np.searchsorted(z, nodes) - 1, 0, len(widths) - 1)
    ahead = np.clip(nodes, z[0], z[-1]) - z[place]
    result: FloatArray = values[:, place] + slopes[:, place] * ahead + reach[:, place]
    return result
