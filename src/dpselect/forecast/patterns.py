"""Answers within two ranks, and the items that may be part of them or not; notation and formula as in noisy.py."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dpselect._arrays import ComplexArray, FloatArray
from dpselect.forecast.binomials import binomial, coefficient, log_of_first, logarithms
from dpselect.forecast.contour import Circle
from dpselect.forecast.tilted import Tilted

if TYPE_CHECKING:
    from dpselect.forecast.noisy import NoisyGroups

_FEW = 256


@dataclass(frozen=True)
class Pattern:
    """An answer within two ranks: groups before `edge` are musts, `least` of it are in, `lowest` is the last free one.

    Of the free items `included` are in and `excluded` are not.
    """

    edge: int
    lowest: int
    included: int
    excluded: float
    least: int
    certain: bool

    @classmethod
    def of(cls, groups: NoisyGroups, held: int, last: int) -> Pattern:
        """Return the pattern of two ranks."""
        edge, lowest = groups.group(held), groups.group(last)
        musts = int(groups.ends[edge] - groups.sizes[edge])
        included = groups.k - musts
        excluded = float(groups.ends[lowest]) - musts - included
        certain = lowest + 1 == len(groups.sizes) and (not excluded or edge == lowest == 0)
        return cls(edge, lowest, included, excluded, held - musts, certain)


@dataclass(frozen=True, repr=False)
class Free:
    """The groups of a pattern that may be above z or not."""

    groups: Tilted
    pattern: Pattern

    def chance(self, hazard: FloatArray, log_sure: FloatArray) -> FloatArray:
        """Return `e^log_sure (P_K' + hazard P_K)`, K = included, with at least so many of the first group."""
        groups, included = self.groups, self.pattern.included
        if len(groups.sizes) == 1 and not self.pattern.excluded:
            cdf, survival = groups.cdf[0], groups.survival[0]
            log_others = log_of_first(survival, cdf) * (included - 1) if included > 1 else 0.0
            each: FloatArray = included * groups.density[0] + hazard * survival
            return np.exp(log_sure + log_others) * each
        if len(groups.sizes) == 1:
            logs = logarithms(groups.cdf[0], groups.survival[0])
            size = float(groups.sizes[0])
            at_z = size * groups.density[0] * coefficient(size - 1, *logs, included - 1)
            result: FloatArray = np.exp(log_sure) * (at_z + hazard * coefficient(size, *logs, included))
            return result
        groups = groups.corrected(included - 0.5)
        # Some z at a time: a thousand groups at a thousand z on all angles would take gigabytes.
        parts = [slice(start, start + _FEW) for start in range(0, len(hazard), _FEW)]
        return np.concatenate(
            [replace(self, groups=groups.at(part))._on_circles(hazard[part], log_sure[part]) for part in parts]
        )

    def _on_circles(self, hazard: FloatArray, log_sure: FloatArray) -> FloatArray:
        groups, log_radius = self.groups, self.groups.log_radius
        # Of the first group's law only a part counts.
        variances = groups.variances
        circle = Circle.of(log_radius, variances.sum(axis=0), shrinking=variances[1:].sum(axis=0), all_but_one=True)
        rest, first_at_z = groups.part(slice(1, None)), groups.sizes[0] * groups.density[0] / groups.scale[0]
        law, log_scale = rest.law(circle), log_sure + groups.log_scale
        # How much each z adds at most, beside the one that adds most.
        log_most = log_scale - self.pattern.included * log_radius + np.log(rest.sizes @ (rest.density / rest.scale))
        share = np.nan_to_num(np.exp(log_most - np.fmax.reduce(log_most)), nan=1.0)
        (later,) = rest.marked([rest.sizes], circle.beside(law * share[:, None]))
        first, first_marked = self._first(circle)
        at = np.exp(log_radius)[:, None] * circle.turns * (later * first + first_marked * first_at_z[:, None])
        terms = law * (at + hazard[:, None] * first)
        return circle.exactly(self.pattern.included, terms, log_scale)

    def _first(self, circle: Circle) -> tuple[ComplexArray, ComplexArray]:
        """Return the factor of the first group, of which at least so many are above z, and that with one at z."""
        included, least, share, other = (
            self.pattern.included,
            self.pattern.least,
            self.groups.shares[0],
            self.groups.others[0],
        )
        size, logs = float(self.groups.sizes[0]), (np.log(other), np.log(share))
        if size == 1:
            none = other[:, None] if least == 0 else 0.0
            return none + share[:, None] * circle.turns, np.ones((1, 1), dtype=np.complex128)
        found = []
        for number, low, high in ((size, least, included), (size - 1, max(least - 1, 0), included - 1)):
            counts = binomial(number, *logs, low, high)
            turns: ComplexArray = np.exp(1j * np.multiply.outer(np.arange(len(counts)), circle.angles))
            found.append(counts.T.astype(np.complex128) @ turns)
        return found[0], found[1]
