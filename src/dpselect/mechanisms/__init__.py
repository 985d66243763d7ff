"""The mechanisms, one file each with its proof beside it, and how a name becomes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from dpselect._format import shown_above
from dpselect._numbers import positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.canonical import Canonical
from dpselect.mechanisms.gamma import Gamma
from dpselect.mechanisms.gaussian import Gaussian
from dpselect.mechanisms.joint import Joint
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.oneshot import OneShot
from dpselect.mechanisms.peeling import Peeling
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.restricted_forms import (
    GUMBEL_FOR_EXPONENTIAL,
    RestrictedGumbel,
    RestrictedNormal,
    restricted_for,
)
from dpselect.mechanisms.top_stable import TopStable
from dpselect.mechanisms.unknown import UnknownDomain
from dpselect.privacy.calibration import range_per_round
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.privacy.sensitivity import COUNTS, Sensitivity

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism for mechanism in (Canonical, Gamma, Gaussian, Joint, OneShot, Peeling)
}

FOR_UNKNOWN_DOMAINS: dict[str, type[UnknownDomain]] = {
    mechanism.name: mechanism for mechanism in (Restricted, LimitedDomain, TopStable)
}
"""Mechanisms that are private even about which items exist."""

__all__ = [
    "FOR_UNKNOWN_DOMAINS",
    "MECHANISMS",
    "Canonical",
    "Gamma",
    "Gaussian",
    "Joint",
    "LimitedDomain",
    "Mechanism",
    "OneShot",
    "Peeling",
    "Restricted",
    "RestrictedGumbel",
    "RestrictedNormal",
    "TopStable",
    "UnknownDomain",
    "mechanism_for",
]


def mechanism_for(
    mechanism: str | Mechanism,
    *,
    k: int | None,
    epsilon: float | None,
    delta: float | None = None,
    sensitivity: Sensitivity = COUNTS,
    ordered: bool = False,
    **parameters: Any,
) -> Mechanism:
    """Return the mechanism of that name, or the object itself if it agrees with the other arguments.

    "auto" is decided from public facts alone: the arguments of this function, never the scores. `delta` is what the
    mechanism may use; one that has no use for it stays pure. If left out, it is 0, or what a mechanism object states.
    """
    allowed = 0.0 if delta is None else probability_of_failure(delta)
    if isinstance(mechanism, Mechanism):
        chosen = mechanism
        _agree("k", k, chosen.k)
        _agree("epsilon", epsilon, chosen.epsilon)
        _agree("sensitivity", None if sensitivity == COUNTS else sensitivity, chosen.sensitivity)
    else:
        if k is None or epsilon is None:
            missing = "k" if k is None else "epsilon"
            raise InvalidInput(missing, None, "a number is needed unless mechanism is a mechanism object")
        k, epsilon = positive_integer("k", k), positive_number("epsilon", epsilon)
        make: Callable[..., Mechanism]
        if isinstance(mechanism, str) and mechanism == "auto":
            make, chosen_parameters = _best(k, epsilon, allowed, ordered)
        else:
            kind = _named(mechanism)
            make = restricted_for if kind is Restricted else kind
            chosen_parameters = {"delta": allowed} if kind.may_stop else _with_delta(kind, allowed, parameters)
        chosen = make(k=k, epsilon=epsilon, sensitivity=sensitivity, **{**chosen_parameters, **parameters})
    if delta is not None and chosen.guarantee.delta > allowed:
        needed = shown_above(chosen.guarantee.delta)
        raise InvalidInput("delta", delta, f"the mechanism object needs {needed}; allow that much or leave it out")
    if ordered and not chosen.ordered:
        others = "restricted, limited" if chosen.may_stop else "joint, peeling"
        raise InvalidInput(
            "mechanism", chosen.name, f"its answer is a set; use one with an order ({others}), or leave out ordered"
        )
    return chosen


def _named(name: Any) -> type[Mechanism]:
    every = {**MECHANISMS, **FOR_UNKNOWN_DOMAINS}
    if not isinstance(name, str) or name not in every:
        raise InvalidInput("mechanism", name, "one of auto, " + ", ".join(every) + " is needed")
    return every[name]


def _with_delta(kind: type[Mechanism], delta: float, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return delta as a parameter if the mechanism, with its noise, can use it."""
    defaults = {field.name: field.default for field in fields(kind)}
    if not delta or "delta" not in defaults:
        return {}
    noise = parameters.get("noise", defaults.get("noise"))
    return {"delta": delta} if noise in getattr(kind, "noises_with_delta", (noise,)) else {}


def _best(k: int, epsilon: float, delta: float, ordered: bool) -> tuple[type[Mechanism], dict[str, Any]]:
    """Return what "auto" means: the least noise that public facts can tell (docs/mechanisms.md).

    Sets: Canonical needs the smallest ε for the exact top k of all pure mechanisms; for k = 1 with γ = 1, which is
    permute-and-flip, since one item is better judged by its own score alone. Sequences: Joint divides its budget by 2
    and Peeling by k, so that from k = 3 on Joint is ahead unless counts are small against 2 k log(d) / ε, which only
    the private data could tell. With δ: CDP-PEEL, for sets without its order, if it tells two items apart at a smaller
    gap.
    """
    divided = Fraction(epsilon) / (min(k, 2) if ordered else 1)
    if delta and range_per_round(epsilon, delta, k) > GUMBEL_FOR_EXPONENTIAL * divided:
        return (Peeling if ordered else OneShot), {"noise": "gumbel", "delta": delta}
    if not ordered:
        return Canonical, {"gamma": 1.0} if k == 1 else {}
    return (Joint if k >= 3 else Peeling), {}


def _agree(argument: str, given: Any, of_mechanism: Any) -> None:
    if given is not None and given != of_mechanism:
        raise InvalidInput(
            argument, given, f"the mechanism object says {of_mechanism}; leave it out or make them agree"
        )
