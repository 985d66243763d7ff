"""What answers about several groups cost a person who is in more than one of them (proof: groups.md)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpselect._numbers import float_below
from dpselect.errors import InvalidInput
from dpselect.privacy.composition import compose
from dpselect.privacy.conversion import float_above
from dpselect.privacy.guarantee import Guarantee

_CLOSE = 0.999
"""The search for the ε of one group ends when the whole costs at least this share of its ε."""

_TRIALS = 8
"""It also ends after this many trials; each that fits is valid, and most searches need three."""


@dataclass(frozen=True)
class Share:
    """The ε and δ with which each group is answered."""

    epsilon: float
    delta: float

    @property
    def resolution(self) -> float:
        """A measure of how fine the answers are: noise and thresholds are in proportion to log(1/δ)/ε."""
        return self.epsilon / -math.log(self.delta) if self.delta else self.epsilon


def cost_of_groups(guarantee: Guarantee, groups: int, delta: float | None = None) -> Guarantee:
    """Return the guarantee of answers about all groups together, for people in at most `groups` of them.

    Each answer has the guarantee given; `delta` is the δ that all together may have, by default their sum. Groups that
    a person is not in cost nothing. The ε is the least of `compose` on the guarantees and of `compose` on their ε
    alone, with their δ added.
    """
    if groups == 1:
        return guarantee
    parts = [guarantee] * groups
    if delta is None:
        return compose(parts)
    found = []
    with contextlib.suppress(InvalidInput):
        found.append(compose(parts, delta=delta))
    rest = float_below(Fraction(delta) - groups * Fraction(guarantee.delta))
    if guarantee.delta and rest > 0:
        pure = Guarantee(guarantee.epsilon, 0.0, guarantee.protects, guarantee.neighbours)
        together = compose([pure] * groups, delta=rest)
        added = float_above(Fraction(together.delta) + groups * Fraction(guarantee.delta))
        found.append(Guarantee(together.epsilon, added, guarantee.protects, guarantee.neighbours))
    if not found:
        return compose(parts, delta=delta)  # raises
    return min(found, key=lambda one: one.epsilon)


def share_of_group(epsilon: float, delta: float, groups: int, cost: Callable[[Share], Guarantee]) -> Share:
    """Return the ε and δ of each group such that people in at most `groups` of them have (ε, δ) in total.

    `cost` is the guarantee of one group's answer for a share. (ε/g, δ/g) always fits. With a δ, larger ε are tried:
    with all of δ in every group, which a guarantee that carries a ρ allows, and with half of δ/g, the other half being
    for the composition. The share of the highest resolution is taken. Public facts decide.
    """
    plainly = Share(float_below(Fraction(epsilon) / groups), float_below(Fraction(delta) / groups))
    if not delta:
        return plainly
    found = [plainly]
    for part in (delta, plainly.delta / 2):
        trial = plainly.epsilon
        for _ in range(_TRIALS):
            try:
                spent = cost_of_groups(cost(Share(trial, part)), groups, delta).epsilon
            except InvalidInput:  # this δ in every group is too much, or too little for what is asked
                break
            if spent <= epsilon:
                found.append(Share(trial, part))
            if _CLOSE * epsilon <= spent <= epsilon:
                break
            # The cost is nearly in proportion.
            trial *= (1 + _CLOSE) / 2 * epsilon / spent
    return max(found, key=lambda share: share.resolution)
