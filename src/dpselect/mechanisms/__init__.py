"""The mechanisms, one file each with its proof beside it, and how a name becomes one."""

from __future__ import annotations

from typing import Any

from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.canonical import Canonical
from dpselect.mechanisms.gamma import Gamma
from dpselect.mechanisms.joint import Joint
from dpselect.mechanisms.oneshot import OneShot
from dpselect.mechanisms.peeling import Peeling
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.validation import positive_integer

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism for mechanism in (Canonical, Gamma, Joint, OneShot, Peeling)
}

__all__ = ["MECHANISMS", "Canonical", "Gamma", "Joint", "Mechanism", "OneShot", "Peeling", "mechanism_for"]


def mechanism_for(
    mechanism: str | Mechanism,
    *,
    k: int | None,
    epsilon: float | None,
    delta: float = 0.0,
    sensitivity: Sensitivity = COUNTS,
    ordered: bool = False,
    **parameters: Any,
) -> Mechanism:
    """Return the mechanism of that name, or the object itself if it agrees with the other arguments.

    "auto" is decided from public facts alone: the arguments of this function, never the scores.
    """
    if isinstance(mechanism, Mechanism):
        chosen = mechanism
        _agree("k", k, chosen.k)
        _agree("epsilon", epsilon, chosen.epsilon)
        _agree("sensitivity", None if sensitivity == COUNTS else sensitivity, chosen.sensitivity)
    else:
        if k is None or epsilon is None:
            missing = "k" if k is None else "epsilon"
            raise InvalidInput(missing, None, "a number is needed unless mechanism is a mechanism object")
        kind, chosen_parameters = _kind(mechanism, positive_integer("k", k), ordered)
        chosen = kind(k=k, epsilon=epsilon, sensitivity=sensitivity, **{**chosen_parameters, **parameters})
    Guarantee(epsilon=chosen.epsilon, delta=delta)
    if ordered and not chosen.ordered:
        raise InvalidInput(
            "mechanism",
            chosen.name,
            "its answer is a set; use one with an order (joint, peeling), or leave out ordered",
        )
    return chosen


def _kind(name: Any, k: int, ordered: bool) -> tuple[type[Mechanism], dict[str, Any]]:
    """Return the mechanism of a name, and the parameters that go with the choice."""
    if isinstance(name, str) and name == "auto":
        return _best(k, ordered)
    if not isinstance(name, str) or name not in MECHANISMS:
        raise InvalidInput("mechanism", name, "one of auto, " + ", ".join(MECHANISMS) + " is needed")
    return MECHANISMS[name], {}


def _best(k: int, ordered: bool) -> tuple[type[Mechanism], dict[str, Any]]:
    """Return what "auto" means: the least noise that public facts can tell (docs/mechanisms.md).

    Sets: Canonical needs the smallest ε for the exact top k of all pure mechanisms; for k = 1 with γ = 1, which is
    permute-and-flip, since one item is better judged by its own score alone. Sequences: Joint divides its budget by 2
    and Peeling by k, so that from k = 3 on Joint is ahead unless counts are small against 2 k log(d) / ε, which only
    the private data could tell.
    """
    if not ordered:
        return Canonical, {"gamma": 1.0} if k == 1 else {}
    return (Joint if k >= 3 else Peeling), {}


def _agree(argument: str, given: Any, of_mechanism: Any) -> None:
    if given is not None and given != of_mechanism:
        raise InvalidInput(
            argument, given, f"the mechanism object says {of_mechanism}; leave it out or make them agree"
        )
