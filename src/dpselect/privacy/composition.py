"""What several releases about the same people cost together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect._format import shown_above
from dpselect._numbers import float_below
from dpselect.errors import InvalidInput, plain
from dpselect.privacy.bounded_range import epsilon_of_equal_rounds
from dpselect.privacy.conversion import (
    epsilon_of_ranges,
    epsilon_of_zcdp,
    float_above,
    mean_of_range,
    rho_of_range,
)
from dpselect.privacy.guarantee import Guarantee, Ranges, probability_of_failure, sum_of_ranges

ROUTES = ("least", "basic", "zcdp", "ranges")

_PATIENCE = 16
"""The search for parts to add by basic composition ends after this many trials without gain; each trial is valid."""


def compose(guarantees: Iterable[Guarantee], *, delta: float | None = None, route: str = "least") -> Guarantee:
    """Return the guarantee of several releases together, in whatever order and with whatever answers they came.

    The parts' guarantees must be fixed before the first release; see docs/privacy.md. Mathematics, section 6.

    Parameters
    ----------
    guarantees
        The parts; all must have the same unit of protection.
    delta
        How much δ the whole may have; by default the sum of the parts' δ.
    route
        "basic" adds every ε and every δ. "zcdp" adds ρ and converts the sum, `ε(Σ ρ_i, δ)`. "ranges" bounds the total
        loss of rounds of bounded range r_i, `Σ mean(r_i) + √(½ Σ r_i² log(1/δ))`, or by optimal composition where all
        r_i are equal. "least" takes the smallest ε of the three; in the second and third, parts that gain nothing or do
        not carry what is needed are added plainly.

    Returns
    -------
    The guarantee of the whole, with its ρ and ranges if they follow from every part.

    Raises
    ------
    InvalidInput
        If the parts cannot be added, or not by that route or within that δ.

    Examples
    --------
    >>> compose([Guarantee(epsilon=0.5), Guarantee(epsilon=0.25)]).epsilon
    0.75
    """
    if route not in ROUTES:
        raise InvalidInput("route", route, f"must be one of {', '.join(ROUTES)}")
    kinds = [_Kind.of(guarantee, count) for guarantee, count in _counted(guarantees).items()]
    total = sum((kind.delta for kind in kinds), Fraction())
    allowed = total if delta is None else Fraction(probability_of_failure(delta))
    if total >= 1 and (delta is None or route == "basic"):
        raise InvalidInput(
            "guarantees",
            plain(f"a delta of {shown_above(float_above(total))} in all"),
            "must have deltas that sum to less than 1",
        )
    found = [
        candidate
        for name, take in (("basic", _basic), ("zcdp", _by_rho), ("ranges", _by_ranges))
        if route in (name, "least")
        for candidate in take(kinds, allowed, route == "least")
        if candidate.delta <= allowed
    ]
    best = min(found, key=lambda candidate: candidate.epsilon, default=_Total(math.inf, allowed))
    if math.isinf(best.epsilon):
        raise _out_of_reach(kinds, total, allowed, route)
    rho, ranges = _known(kinds)
    one = kinds[0].guarantee
    return Guarantee(best.epsilon, float_above(best.delta), one.protects, one.neighbours, rho, ranges)


@dataclass(frozen=True)
class _Kind:
    """Several parts with one guarantee, and what they add to each sum."""

    guarantee: Guarantee
    count: int
    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None

    @classmethod
    def of(cls, guarantee: Guarantee, count: int) -> _Kind:
        rho = guarantee.known_rho
        return cls(
            guarantee,
            count,
            count * Fraction(guarantee.epsilon),
            count * Fraction(guarantee.delta),
            None if rho is None else count * rho,
        )


@dataclass(frozen=True)
class _Total:
    epsilon: float
    delta: Fraction


def _basic(kinds: list[_Kind], allowed: Fraction, mixed: bool) -> list[_Total]:
    """`Σ ε_i` and `Σ δ_i`."""
    epsilon, delta = _sums(kinds)
    return [_Total(float_above(epsilon), delta)]


def _by_rho(kinds: list[_Kind], allowed: Fraction, mixed: bool) -> list[_Total]:
    """`ε(Σ ρ_i, δ − Σ' δ_i) + Σ' ε_i`, where Σ' is over the parts that are added plainly."""
    added = {kind: (kind.rho, Fraction()) for kind in kinds if kind.rho is not None}
    return _splits(kinds, added, allowed, mixed, lambda rho, _, delta: epsilon_of_zcdp(rho, delta))


def _by_ranges(kinds: list[_Kind], allowed: Fraction, mixed: bool) -> list[_Total]:
    """`Σ mean(r_i) + √(½ Σ r_i² log(1/(δ − Σ' δ_i))) + Σ' ε_i`."""
    added = {}
    for kind in kinds:
        if ranges := kind.guarantee.known_ranges:
            mean, squares = _moments(ranges)
            added[kind] = (kind.count * mean, kind.count * squares)
    return _splits(kinds, added, allowed, mixed, epsilon_of_ranges) + _by_equal_ranges(kinds, allowed, mixed)


def _by_equal_ranges(kinds: list[_Kind], allowed: Fraction, mixed: bool) -> list[_Total]:
    """Optimal composition of all rounds of the most frequent range; everything else is added plainly."""
    rounds = Counter[float]()
    for kind in kinds:
        rounds.update({width: number * kind.count for width, number in kind.guarantee.known_ranges})
    if not rounds:
        return []
    [(width, number)] = rounds.most_common(1)
    epsilon, delta = Fraction(), Fraction()
    for kind in kinds:
        others = tuple(pair for pair in kind.guarantee.known_ranges if pair[0] != width)
        if others == kind.guarantee.known_ranges:
            epsilon, delta = epsilon + kind.epsilon, delta + kind.delta
        else:
            epsilon += kind.count * sum_of_ranges(others)
    if delta >= allowed or (epsilon and not mixed):
        return []
    together = epsilon_of_rounds(((width, number),), allowed - delta)
    return [_Total(float_above(Fraction(together) + epsilon), allowed)] if math.isfinite(together) else []


def _moments(ranges: Ranges) -> tuple[Fraction, Fraction]:
    """Return `Σ n mean(r)` and `Σ n r²` over pairs (r, n)."""
    mean = sum((rounds * mean_of_range(Fraction(width)) for width, rounds in ranges), Fraction())
    return mean, sum((rounds * Fraction(width) ** 2 for width, rounds in ranges), Fraction())


def epsilon_of_rounds(ranges: Ranges, delta: Fraction) -> float:
    """Return the least ε that any route gives for rounds of bounded range."""
    known = simple_epsilon_of_rounds(ranges, delta)
    if len(ranges) != 1 or delta <= 0:
        return known
    [(width, rounds)] = ranges
    return epsilon_of_equal_rounds(width, rounds, float_below(delta), known)


def simple_epsilon_of_rounds(ranges: Ranges, delta: Fraction) -> float:
    """Return the least ε that a formula gives: plain addition, ranges of any widths, or zCDP."""
    rho = sum((rounds * rho_of_range(Fraction(width)) for width, rounds in ranges), Fraction())
    return min(
        float_above(sum_of_ranges(ranges)), epsilon_of_ranges(*_moments(ranges), delta), epsilon_of_zcdp(rho, delta)
    )


def _splits(
    kinds: list[_Kind],
    added: dict[_Kind, tuple[Fraction, Fraction]],
    allowed: Fraction,
    mixed: bool,
    epsilon_of: Callable[[Fraction, Fraction, Fraction], float],
) -> list[_Total]:
    """Return the totals with 0, 1, 2, … of the largest parts in `added` added plainly, and two sums over the others.

    A large part among many small ones is better added plainly: the other routes pay for the square of its ε.
    """
    first, second = (sum((sums[place] for sums in added.values()), Fraction()) for place in (0, 1))
    if not mixed:
        return [_Total(epsilon_of(first, second, allowed), allowed)] if len(added) == len(kinds) and allowed else []
    plain_epsilon, plain_delta = _sums(kind for kind in kinds if kind not in added)
    totals: list[_Total] = []
    best, since = math.inf, 0
    for kind in sorted(added, key=lambda kind: -kind.guarantee.epsilon):
        epsilon = epsilon_of(first, second, allowed - plain_delta)
        total = float_above(Fraction(epsilon) + plain_epsilon) if math.isfinite(epsilon) else math.inf
        totals.append(_Total(total, allowed))
        best, since = (total, 0) if total < best else (best, since + 1)
        if since == _PATIENCE:
            break
        first, second = first - added[kind][0], second - added[kind][1]
        plain_epsilon, plain_delta = plain_epsilon + kind.epsilon, plain_delta + kind.delta
    return totals


def _sums(kinds: Iterable[_Kind]) -> tuple[Fraction, Fraction]:
    epsilon, delta = Fraction(), Fraction()
    for kind in kinds:
        epsilon += kind.epsilon
        delta += kind.delta
    return epsilon, delta


def _known(kinds: list[_Kind]) -> tuple[float | None, Ranges]:
    """Return the ρ and the rounds of the whole, each only if it follows from every part.

    Pure parts have both: ρ of the whole is then `Σ ε_i²/2`, less than the square of their sum gives.
    """
    rhos = [kind.rho for kind in kinds if kind.rho is not None]
    rho = float_above(sum(rhos, Fraction())) if len(rhos) == len(kinds) else None
    every = all(kind.guarantee.known_ranges for kind in kinds)
    ranges = [(width, n * kind.count) for kind in kinds for width, n in kind.guarantee.known_ranges] if every else []
    return rho if rho is None or (math.isfinite(rho) and rho > 0) else None, tuple(ranges)


def _counted(guarantees: Iterable[Any]) -> Counter[Guarantee]:
    """Return how often each guarantee occurs; refuse parts that cannot be added."""
    parts = Counter[Guarantee]()
    first: Guarantee | None = None
    for number, part in enumerate(guarantees, start=1):
        if not isinstance(part, Guarantee):
            raise InvalidInput("guarantees", part, f"must be Guarantees; part {number} is not")
        first = first or part
        for what in ("protects", "neighbours"):
            if getattr(part, what) != getattr(first, what):
                raise InvalidInput(
                    "guarantees",
                    plain(f"{what} {getattr(first, what)!r} and {getattr(part, what)!r} (part {number})"),
                    f"must have the same {what} to add up; account for them separately",
                )
        parts[part] += 1
    if not parts:
        raise InvalidInput("guarantees", plain("an empty list"), "must be at least one")
    return parts


def _out_of_reach(kinds: list[_Kind], total: Fraction, allowed: Fraction, route: str) -> InvalidInput:
    if route in ("zcdp", "ranges"):
        for kind in kinds:
            if kind.rho is None if route == "zcdp" else not kind.guarantee.known_ranges:
                return InvalidInput(
                    "guarantees",
                    plain(f"epsilon {shown_above(kind.guarantee.epsilon)}, delta {shown_above(kind.guarantee.delta)}"),
                    f"must carry what the route {route!r} adds; use 'basic' or 'least'",
                )
    if total > allowed or (allowed == 0 and route in ("zcdp", "ranges")):
        least = f"at least {shown_above(float_above(total))}, the parts' sum"
        need = "above 0" if route in ("zcdp", "ranges") else least
        return InvalidInput("delta", float(allowed), f"must be {need}")
    return InvalidInput("guarantees", plain("more than any float"), "must have a smaller total epsilon")
