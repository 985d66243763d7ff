"""Groups of items on circles of some radius; notation as in contour.py."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import BoolArray, ComplexArray, FloatArray
from dpselect.forecast import blocks
from dpselect.forecast.contour import LIGHT, Circle, factors, log_light, log_scales
from dpselect.forecast.marks import Damped, light_marked, marked
from dpselect.forecast.radii import tilted

_FEW = 8
"""Up to which size groups are taken as single items."""
_NEAR = 0.8
"""How far the tilted number of items may be off the one wanted."""


@dataclass(frozen=True, repr=False)
class Tilted:
    """Some groups, highest first, with F, S and f as [group, z] and log r for each z."""

    sizes: FloatArray
    log_radius: FloatArray
    cdf: FloatArray
    survival: FloatArray
    density: FloatArray

    @classmethod
    def plain(cls, sizes: FloatArray, cdf: FloatArray, survival: FloatArray, density: FloatArray) -> Tilted:
        """Return groups for r = 1, of which p is S."""
        result = cls(sizes, np.zeros(cdf.shape[1]), cdf, survival, density)
        vars(result).update(shares=survival, others=cdf)
        return result

    def part(self, groups: slice | BoolArray) -> Tilted:
        """Return some of these groups."""
        values = (each[groups] for each in (self.cdf, self.survival, self.density))
        return self._known_of(Tilted(self.sizes[groups], self.log_radius, *values), groups)

    def at(self, places: slice) -> Tilted:
        """Return all groups at some z."""
        values = (each[:, places] for each in (self.cdf, self.survival, self.density))
        return self._known_of(Tilted(self.sizes, self.log_radius[places], *values), (slice(None), places))

    def _known_of(self, part: Tilted, where: Any) -> Tilted:
        """Return a part of these, of which all is known that is known of these."""
        for name in ("_raised", "scale", "shares", "others"):
            if name in vars(self):
                vars(part)[name] = vars(self)[name][where]
        return part

    def corrected(self, wanted: float) -> Tilted:
        """Return the same with log r found anew where it does not bring about the number wanted."""
        # Where the number is not defined, it is not near.
        off = ~(np.abs(self.mean - wanted) < _NEAR)
        if not off.any():
            return self
        log_radius = self.log_radius.copy()
        log_radius[off] = tilted(self.cdf[:, off], self.survival[:, off], self.sizes, wanted)
        return replace(self, log_radius=log_radius)

    @cached_property
    def _raised(self) -> FloatArray:
        result: FloatArray = self.survival * np.exp(self.log_radius)
        return result

    @cached_property
    def scale(self) -> FloatArray:
        """`F + S r`."""
        return self.cdf + self._raised

    @cached_property
    def shares(self) -> FloatArray:
        """The tilted chances p."""
        return self._raised / self.scale

    @cached_property
    def others(self) -> FloatArray:
        """1 − p."""
        return self.cdf / self.scale

    @cached_property
    def log_scale(self) -> FloatArray:
        """The logarithm of `Π (F + S r)`."""
        largest = float(self.sizes.max(initial=0.0))
        result: FloatArray = self.sizes @ log_scales(self.cdf, self.survival, self.log_radius, largest)
        return result

    @cached_property
    def mean(self) -> FloatArray:
        """How many are above z on average, tilted."""
        result: FloatArray = self.sizes @ self.shares
        return result

    @cached_property
    def variances(self) -> FloatArray:
        """The tilted variances of each group."""
        result: FloatArray = self.sizes[:, None] * (self.shares * self.others)
        return result

    @cached_property
    def _most_others(self) -> FloatArray:
        """The largest 1 − p of each group."""
        result: FloatArray = self.others.max(axis=1, initial=0.0)
        return result

    @cached_property
    def _parts(self) -> tuple[slice, slice, slice]:
        """Which groups have a small 1 − p at all z, neither, or a small p: p falls from group to group."""
        sure = int((self._most_others <= LIGHT).sum())
        common = sure + int((self.shares[sure:].max(axis=1, initial=0.0) > LIGHT).sum())
        return slice(sure), slice(sure, common), slice(common, None)

    def law(self, circle: Circle) -> ComplexArray:
        """Return `Π (1 + p y)` as [z, angle]."""
        # One-sided noise puts some items above every z.
        certain = int((self._most_others == 0).sum())
        if certain:
            return self.part(slice(certain, None)).law(circle) * circle.turns ** float(self.sizes[:certain].sum())
        if (self.sizes == 1).all():
            return blocks.law(self.shares, self.others, circle)
        crowded = self.sizes > _FEW
        items = np.repeat(np.arange(len(self.sizes)), np.where(crowded, 0, self.sizes).astype(np.intp))
        result = blocks.law(self.shares[items], self.others[items], circle)
        return result * self.part(crowded)._law_by_groups(circle) if crowded.any() else result

    def _law_by_groups(self, circle: Circle) -> ComplexArray:
        """Return the same for groups of many items.

        With y' the conjugate of y, `1 + p y = e^{iθ} (1 + (1 − p) y')`, of use where 1 − p is small.
        """
        (sure, common, small), sizes = self._parts, self.sizes
        logs = log_light(self.shares[small], sizes[small], circle)
        logs += (
            np.conj(log_light(self.others[sure], sizes[sure], circle)) + 1j * float(sizes[sure].sum()) * circle.angles
        )
        near = np.multiply.reduce(factors(self.shares[common], sizes[common], circle.turns), axis=0)
        result: ComplexArray = near * np.exp(logs)
        return result

    def marked(self, weights: list[FloatArray], circle: Circle) -> list[ComplexArray]:
        """Return `Σ w f / (F + S x)` as [z, angle] for each list of weights, to be used beside the law."""
        at_z, damped = self.density / self.scale, Damped.of(circle)
        if damped is None:
            return self._marked_each(at_z, weights, circle)
        found = damped.marked(self.shares, self.others, at_z, weights, circle)
        if damped.enough.all():
            return found
        rest = self._marked_each(at_z, weights, circle.only(~damped.enough))
        order = np.argsort(np.argsort(~damped.enough, kind="stable"))
        return [np.concatenate(parts, axis=1)[:, order] for parts in zip(found, rest, strict=True)]

    def _marked_each(self, at_z: FloatArray, weights: list[FloatArray], circle: Circle) -> list[ComplexArray]:
        """Return the same by a term for each group and angle."""
        sure, common, small = self._parts
        heavy = [weight[common, None] * at_z[common] for weight in weights]
        near = marked(self.shares[common], self.others[common], heavy, circle)
        far = light_marked(self.shares[small], at_z[small], [weight[small] for weight in weights], circle)
        high = light_marked(self.others[sure], at_z[sure], [weight[sure] for weight in weights], circle)
        return [
            first + second + np.conj(third * circle.turns) for first, second, third in zip(near, far, high, strict=True)
        ]
