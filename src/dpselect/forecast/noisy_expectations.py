"""How many items the k largest of `a_i + Z_i` get wrong, and how much score that costs, as integrals over one value z.

Notation: F, S and f of an item are the noise's distribution, survival and density at `z − a_i`. `above` are the items
whose score exceeds that of rank k, `tied` those that equal it, of which `room` belong to the top k, and `below` the
rest. With N the number of items above z, the one at z left out, an item i of

* `above` is missing if k others lie above its value: `∫ f_i P[N >= k] dz`;
* `below` is chosen if fewer than k do: `∫ f_i P[N < k] dz`;
* `tied` is one too many if it is chosen with `room` or more of the tied ones above it.

The lowest chosen item costs more than group g if the largest value behind g is above z where fewer than k of the items
up to g are. Every such chance is a sum of coefficients of a product over items, taken round a circle (contour.py), and
the sums over items are taken inside; an item is a factor `1 + p y`. Items far below z are taken together (tails.py),
and those far above are certain.

Error: that of contour.py and tails.py; nodes (mistake_reach.py) leave out about 1e-9, far up, where they end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.forecast.mistake_chunks import Chunk
from dpselect.forecast.mistake_looks import surely_chosen
from dpselect.forecast.mistake_nodes import Groups, Nodes, densest
from dpselect.forecast.mistake_reach import Reach
from dpselect.forecast.mistake_smooth import Smooth
from dpselect.forecast.noisy import NoisyGroups, log_series
from dpselect.forecast.normal_tails import AnyTail, NormalItems
from dpselect.forecast.radii import FARTHEST
from dpselect.forecast.tails import RareItems

_FAR, _LOWEST = 2.0, -7.0
_NEGLIGIBLE, _FAINT = 1e-15, 1e-9
_CHUNK, _LEAST, _MOST = 8_000, 3, 128
_MOST_WORK = 2e7


@dataclass(frozen=True)
class Mistakes:
    """Expected number of wrong items, expected loss of score, and how far the lowest item lies below rank k.

    What is missing of `above` is part of what is lost.
    """

    wrong: float
    lost: float
    depth: float
    missing: float


@dataclass(frozen=True, repr=False)
class Split:
    """The groups around rank k, and what a mistake with an item of each group costs: its distance from rank k."""

    noisy: NoisyGroups
    costs: FloatArray

    @classmethod
    def of(cls, noisy: NoisyGroups, costs: FloatArray) -> Split:
        """Return the groups without the last ones, whose chances and costs are next to nothing beside the others'."""
        # Far out, exponential tails keep their ratios; others do so only from the lowest z on that may matter.
        kept = _lasting(noisy, costs, _LOWEST if log_series(noisy.noise.name) is None else _FAR)
        if kept == len(costs):
            return cls(noisy, costs)
        return cls(noisy.upto(kept), costs[:kept])

    @cached_property
    def groups(self) -> Groups:
        """What chunks need to know."""
        return Groups(self.noisy, self.costs, self.steps, self.border, self.room)

    @cached_property
    def border(self) -> int:
        """The group of rank k."""
        return self.noisy.group(self.noisy.k)

    @cached_property
    def room(self) -> int:
        """How many items tied with rank k belong to the top k."""
        border = self.border
        return self.noisy.k - int(self.noisy.ends[border] - self.noisy.sizes[border])

    @cached_property
    def steps(self) -> FloatArray:
        """How much more the next group costs."""
        return np.append(np.diff(self.costs), 0.0)

    def mistakes(self) -> Mistakes | None:
        """Return what to expect, or None if that is too much work."""
        noisy, border = self.noisy, self.border
        if noisy.ends[-1] == noisy.k:
            return Mistakes(0.0, 0.0, 0.0, 0.0)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            reach = Reach(noisy, self.costs, border, self.room)
            nodes = reach.nodes()
            smooth = Smooth.of(reach, nodes)
            found = None if smooth is None else self._integrated(reach, nodes.only(~smooth.where), smooth)
            return found or self._integrated(reach, nodes, None)

    def _integrated(self, reach: Reach, nodes: Nodes, smooth: Smooth | None) -> Mistakes | None:
        """Return what to expect from nodes one by one, and others by looks; None if that is too much or in doubt."""
        border = self.border
        sure = nodes.only(nodes.chosen & nodes.empty)
        chosen, missing = nodes.chosen & ~nodes.empty, nodes.missing & ~nodes.settled & bool(border)
        both = chosen & missing
        if both.any():
            # Where only one of them may be, the other is next to nothing, unless it is sure.
            both = (chosen | missing) & ~(nodes.chosen & nodes.empty) & ~(nodes.missing & nodes.settled)
            both[both] = reach.varied(nodes.z[both])
            if (chosen & missing & ~both).any():
                # A third kind of circle is not worth it.
                both[:] = False
        where = {"both": both, "chosen": chosen & ~both, "missing": missing & ~both}
        plans = [Plan.of(self, reach, kind, nodes.only(some)) for kind, some in where.items()]
        if smooth is None:
            plans.append(Plan.of(self, reach, "surely_chosen", sure))
        if border and self.noisy.sizes[border] > self.room:
            every = nodes if smooth is None else nodes.joined(smooth.nodes)
            plans.append(Plan.of(self, reach, "crowded", every))
        starts, dense = {start for plan in plans for start in plan.starts}, [plan.densest for plan in plans]
        work = sum(plan.work(border) for plan in plans)
        if smooth is not None:
            first = self.first_rare(smooth.nodes.z, smooth.log_radius)
            starts.add(first)
            dense.append(smooth.densest)
            work += (first - border) * sum(smooth.looks)
        if work > _MOST_WORK:
            return None
        lowest = min(plan.nodes.z.min(initial=np.inf) for plan in plans)
        tails = self._tails(starts, lowest if smooth is None else min(lowest, smooth.nodes.z.min()), min(dense))
        by_looks = (0.0, np.zeros(3)) if smooth is None else smooth.integrals(self.groups, first, tails[first], sure)
        if by_looks is None:
            return None
        found = {"crowded": np.zeros(1), "surely_chosen": np.zeros(3)}
        found |= {plan.kind: plan.integral(self, tails) for plan in plans}
        lost_above = float(found["both"][0] + found["missing"][0] + by_looks[0])
        lost_above += self._surely_missing(nodes.only(nodes.missing & nodes.settled))
        wrong, lost, depth = map(float, found["both"][1:] + found["chosen"] + found["surely_chosen"] + by_looks[1])
        return Mistakes(wrong + float(found["crowded"][0]), lost + lost_above, depth, lost_above)

    def _surely_missing(self, nodes: Nodes) -> float:
        """Return the cost of what stands at each z of `above`, where more than enough others are above."""
        noisy, border = self.noisy, self.border
        at_z = noisy.noise.density(nodes.z - noisy.locations[:border, None])
        return float((noisy.sizes[:border] * self.costs[:border]) @ at_z @ nodes.weights)

    def first_rare(self, z: FloatArray, log_radius: FloatArray) -> int:
        """Return the first group from which on all are rare, on all circles."""
        return self.border + 1 + self._rare.start(z, log_radius)

    def _tails(self, starts: set[int], lowest: float, densest: float) -> dict[int, AnyTail]:
        """Return the rare items from each start on."""
        if not starts:
            return {}
        ascending = sorted(starts)
        places = np.array(ascending) - self.border - 1
        if isinstance(self._rare, RareItems):
            tails: Sequence[AnyTail] = self._rare.tails(places, densest)
        else:
            # At larger z the last ones count still less.
            tails = self._rare.tails(places, _lasting(self.noisy, self.costs, lowest, _FAINT) - self.border - 1)
        return dict(zip(ascending, tails, strict=True))

    @cached_property
    def _rare(self) -> RareItems | NormalItems:
        """The items below rank k."""
        noisy, first, series = self.noisy, self.border + 1, log_series(self.noisy.noise.name)
        if series is None:
            end = len(noisy.items.sizes)
            return NormalItems(noisy.items.since(first), self.costs[first:end], self.steps[first:end])
        return RareItems(series, noisy.locations[first:], noisy.sizes[first:], self.costs[first:], self.steps[first:])


def _lasting(noisy: NoisyGroups, costs: FloatArray, spot: float, least: float = _NEGLIGIBLE) -> int:
    """Return the first group that is left out: it and all behind it are next to nothing beside others below rank k.

    That is by how many of them are above a value on average, and by their costs; none is kept if that is 0.
    """
    first = noisy.group(noisy.k) + 1
    with np.errstate(over="ignore", under="ignore"):
        weights = noisy.sizes[first:] * noisy.noise.survival(spot - noisy.locations[first:])
    lasting = np.zeros(len(weights), dtype=bool)
    for each in (weights, weights * costs[first:]):
        behind = np.cumsum(each[::-1])[::-1]
        lasting |= behind > least * behind[:1]
    return first + int(lasting.sum())


@dataclass(frozen=True, repr=False)
class Plan:
    """Where one kind of mistake is integrated: chunks of nodes, and the first group that is rare for each."""

    kind: str
    nodes: Nodes
    log_radius: FloatArray
    densest: float
    parts: list[slice]
    starts: list[int]

    @classmethod
    def of(cls, split: Split, reach: Reach, kind: str, nodes: Nodes) -> Plan:
        """Return chunks of nodes on circles for one of Chunk's methods."""
        z, wanted = nodes.z, split.noisy.k + {"missing": 0.5, "both": 0.0}.get(kind, -0.5)
        if not len(z):
            return cls(kind, nodes, z, np.inf, [], [])
        # What is sure needs no circle.
        sure, deep = kind == "surely_chosen", kind in ("both", "chosen", "surely_chosen")
        log_radius = np.zeros(len(z)) if sure else reach.log_radius(z, wanted, crowded=kind == "crowded")
        # Where no radius brings the number wanted about, what it stands for does not happen.
        possible = np.abs(log_radius) < FARTHEST - 2
        nodes, z, log_radius = nodes.only(possible), z[possible], log_radius[possible]
        parts: list[slice] = []
        starts: list[int] = []
        place = 0
        while place < len(z):
            near = slice(place, place + _MOST)
            start = split.first_rare(z[near], log_radius[near])
            step = max(_LEAST, min(_CHUNK // max(start - split.border, 1), _MOST))
            parts.append(slice(place, place + step))
            starts.append(start)
            place += step
        return cls(kind, nodes, log_radius, densest(z, log_radius) if deep else np.inf, parts, starts)

    def work(self, border: int) -> float:
        """Return how many groups have to be looked at, at each z."""
        pairs = zip(self.parts, self.starts, strict=True)
        return float(sum((part.stop - part.start) * (start - border) for part, start in pairs))

    def integral(self, split: Split, tails: dict[int, AnyTail]) -> FloatArray:
        """Return the integrals of this kind."""
        result = np.zeros({"both": 4, "missing": 1, "crowded": 1}.get(self.kind, 3))
        if self.kind == "surely_chosen" and self.parts:
            first = max(self.starts)
            return surely_chosen(split.groups, first, tails[first], self.nodes.z, self.nodes.weights)
        for part, start in zip(self.parts, self.starts, strict=True):
            chunk = Chunk.of(split.groups, self.nodes.z[part], self.log_radius[part], start, tails[start])
            result = result + getattr(chunk, self.kind)() @ self.nodes.weights[part]
        return result
