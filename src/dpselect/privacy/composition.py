"""What several releases about the same people promise together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.privacy.conversion import epsilon_of_ranges, epsilon_of_zcdp, float_above, mean_of_range
from dpselect.privacy.guarantee import Guarantee, Ranges, probability_of_failure, sum_of_ranges

ROUTES = ("least", "basic", "zcdp", "ranges")


def compose(guarantees: Iterable[Guarantee], *, delta: float | None = None, route: str = "least") -> Guarantee:
    """Return what releases with these guarantees promise together, whatever order and answers they came in.

    delta: how much δ the whole may have; if left out, the sum of the parts' δ.
    route: "basic" adds every ε and every δ. "zcdp" adds ρ and converts the sum, `ε(Σ ρ_i, δ)`. "ranges" bounds the
        total loss of rounds of bounded range r_i, `Σ mean(r_i) + √(½ Σ r_i² log(1/δ))`. "least" takes whichever ε is
        smallest, where parts that gain nothing by the second and third way, or do not carry what it needs, are added
        plainly.

    The parts' guarantees are fixed before the first release; see docs/privacy.md. Mathematics, section 6.

    >>> print(compose([Guarantee(epsilon=0.5), Guarantee(epsilon=0.25)]).epsilon)
    0.75
    """
    if route not in ROUTES:
        raise InvalidInput("route", route, "one of " + ", ".join(ROUTES) + " is needed")
    kinds = [_Kind.of(guarantee, count) for guarantee, count in _counted(guarantees).items()]
    total = sum((kind.delta for kind in kinds), Fraction())
    allowed = total if delta is None else Fraction(probability_of_failure(delta))
    if total >= 1 and (delta is None or route == "basic"):
        raise InvalidInput(
            "guarantees", plain(f"a delta of {float(total):g} in all"), "the sum of delta must be below 1"
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
    """`ε(Σ ρ_i, δ − Σ' δ_i) + Σ' ε_i`, where ' marks the parts that are added plainly."""
    eligible = [kind for kind in kinds if kind.rho is not None]

    def epsilon(taken: list[_Kind], delta: Fraction) -> float:
        return epsilon_of_zcdp(sum((kind.rho or Fraction() for kind in taken), Fraction()), delta)

    return _splits(kinds, eligible, allowed, mixed, epsilon)


def _by_ranges(kinds: list[_Kind], allowed: Fraction, mixed: bool) -> list[_Total]:
    """`Σ mean(r_i) + √(½ Σ r_i² log(1/(δ − Σ' δ_i))) + Σ' ε_i`."""
    eligible = [kind for kind in kinds if kind.guarantee.known_ranges]

    def epsilon(taken: list[_Kind], delta: Fraction) -> float:
        return epsilon_of_rounds([(pair, kind.count) for kind in taken for pair in kind.guarantee.known_ranges], delta)

    return _splits(kinds, eligible, allowed, mixed, epsilon)


def epsilon_of_rounds(rounds: Iterable[tuple[tuple[float, int], int]], delta: Fraction) -> float:
    """Return `Σ mean(r_i) + √(½ Σ r_i² log(1/δ))` over pairs (r, n), each taken so many times."""
    mean, squares = Fraction(), Fraction()
    for (width, number), count in rounds:
        mean += count * number * mean_of_range(Fraction(width))
        squares += count * number * Fraction(width) ** 2
    return epsilon_of_ranges(mean, squares, delta)


def least_epsilon(ranges: Ranges, delta: Fraction) -> float:
    """Return the least ε that any route gives for rounds of bounded range."""
    guarantee = Guarantee(float_above(sum_of_ranges(ranges)), ranges=ranges)
    return min(
        guarantee.epsilon,
        epsilon_of_rounds([(pair, 1) for pair in ranges], delta),
        epsilon_of_zcdp(guarantee.known_rho or Fraction(), delta),
    )


def _splits(
    kinds: list[_Kind],
    eligible: list[_Kind],
    allowed: Fraction,
    mixed: bool,
    epsilon_of: Callable[[list[_Kind], Fraction], float],
) -> list[_Total]:
    """Return the totals when the smallest eligible parts go one way and the rest are added plainly.

    One large part among many small ones is better added: the ways that concentrate pay for the square of ε.
    """
    if not mixed:
        return [_Total(epsilon_of(kinds, allowed), allowed)] if len(eligible) == len(kinds) and allowed else []
    totals = []
    ascending = sorted(eligible, key=lambda kind: kind.guarantee.epsilon)
    chosen = set(ascending)
    rest_epsilon, rest_delta = _sums([kind for kind in kinds if kind not in chosen])
    while ascending:
        if rest_delta < allowed:
            epsilon = epsilon_of(ascending, allowed - rest_delta)
            if math.isfinite(epsilon):
                totals.append(_Total(float_above(Fraction(epsilon) + rest_epsilon), allowed))
        largest = ascending.pop()
        rest_epsilon += largest.epsilon
        rest_delta += largest.delta
    return totals


def _sums(kinds: Iterable[_Kind]) -> tuple[Fraction, Fraction]:
    epsilon, delta = Fraction(), Fraction()
    for kind in kinds:
        epsilon += kind.epsilon
        delta += kind.delta
    return epsilon, delta


def _known(kinds: list[_Kind]) -> tuple[float | None, Ranges]:
    """Return the ρ and the rounds of the whole, each only if all parts have it and not all are merely pure."""
    rhos = [kind.rho for kind in kinds if kind.rho is not None]
    rho = float_above(sum(rhos, Fraction())) if len(rhos) == len(kinds) else None
    every = all(kind.guarantee.known_ranges for kind in kinds)
    ranges = [(width, n * kind.count) for kind in kinds for width, n in kind.guarantee.known_ranges] if every else []
    return rho if rho is None or (math.isfinite(rho) and rho > 0) else None, tuple(ranges)


def _counted(guarantees: Iterable[Any]) -> Counter[Guarantee]:
    """Return how often each guarantee occurs, if they can be added at all."""
    parts = Counter[Guarantee]()
    first: Guarantee | None = None
    for number, part in enumerate(guarantees, start=1):
        if not isinstance(part, Guarantee):
            raise InvalidInput("guarantees", part, f"part {number} is a {type(part).__name__}, a Guarantee is needed")
        first = first or part
        for what in ("protects", "neighbours"):
            if getattr(part, what) != getattr(first, what):
                raise InvalidInput(
                    "guarantees",
                    plain(f"{what} {getattr(first, what)!r} and {getattr(part, what)!r} (part {number})"),
                    f"only guarantees with the same {what} add up; account for them apart",
                )
        parts[part] += 1
    if not parts:
        raise InvalidInput("guarantees", plain("an empty list"), "at least one guarantee is needed")
    return parts


def _out_of_reach(kinds: list[_Kind], total: Fraction, allowed: Fraction, route: str) -> InvalidInput:
    if route in ("zcdp", "ranges"):
        for kind in kinds:
            if kind.rho is None if route == "zcdp" else not kind.guarantee.known_ranges:
                return InvalidInput(
                    "guarantees",
                    plain(f"epsilon {kind.guarantee.epsilon:g}, delta {kind.guarantee.delta:g}"),
                    f"it carries nothing that the route {route!r} could add; use 'basic' or 'least'",
                )
    if total > allowed or (allowed == 0 and route in ("zcdp", "ranges")):
        need = "a delta above 0" if route in ("zcdp", "ranges") else f"at least {float_above(total):g}, the parts' sum,"
        return InvalidInput("delta", float(allowed), f"{need} is needed")
    return InvalidInput("guarantees", plain("more than any number can state"), "a smaller total is needed")
