"""Mechanisms by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from dpselect._format import shown_above
from dpselect._numbers import positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms.auto import automatic, check_aim
from dpselect.mechanisms.base import Mechanism, check_agreement
from dpselect.mechanisms.canonical import Canonical
from dpselect.mechanisms.discovered import Discovered, discovered_for
from dpselect.mechanisms.discovery import Discovery
from dpselect.mechanisms.gamma import Gamma
from dpselect.mechanisms.gaussian import Gaussian
from dpselect.mechanisms.joint import Joint
from dpselect.mechanisms.laplace import Laplace
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.oneshot import OneShot
from dpselect.mechanisms.peeling import Peeling
from dpselect.mechanisms.restricted import Restricted, restricted_for
from dpselect.mechanisms.top_stable import TopStable
from dpselect.mechanisms.unknown import UnknownDomain
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.privacy.sensitivity import COUNTS, Sensitivity

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism for mechanism in (Canonical, Gamma, Gaussian, Joint, Laplace, OneShot, Peeling)
}
"""Mechanisms for known domains."""

FOR_UNKNOWN_DOMAINS: dict[str, type[UnknownDomain]] = {
    mechanism.name: mechanism for mechanism in (Restricted, LimitedDomain, TopStable, Discovered)
}
"""Mechanisms that also hide which items exist."""


OWN_ARGUMENTS = ("k", "epsilon", "delta", "sensitivity", "ordered", "pool", "max_items_per_person")
"""Parameters of mechanisms that `select`, `top` and `rank` take as arguments of their own, not as options."""


def mechanism_for(
    mechanism: str | Mechanism,
    *,
    k: int | None,
    epsilon: float | None,
    delta: float | None = None,
    sensitivity: Sensitivity = COUNTS,
    ordered: bool = False,
    aim: str = "most",
    **parameters: Any,
) -> Mechanism:
    """Return the mechanism with a name, or a mechanism object if it agrees with the other arguments.

    Parameters
    ----------
    mechanism
        "auto", a name, or a mechanism object. "auto" is decided from the other arguments, never from the scores.
    k, epsilon
        As in `Mechanism`; may be None if `mechanism` is an object.
    delta
        The δ that the mechanism may use; one that cannot use it has δ = 0. If None, it is 0, or that of the object.
    sensitivity
        How far one person can move each score.
    ordered
        Whether the order of the answer must be meaningful.
    aim
        What "auto" aims at: "most" right items, or "exact", exactly the right answer.
    **parameters
        Further arguments of the mechanism.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or does not agree with the mechanism object.

    Examples
    --------
    >>> mechanism_for("auto", k=10, epsilon=1.0).name
    'canonical'
    >>> mechanism_for("auto", k=10, epsilon=1.0, ordered=True).name
    'oneshot'
    >>> mechanism_for("auto", k=10, epsilon=1.0, ordered=True, aim="exact").name
    'joint'
    """
    check_aim(aim)
    allowed = 0.0 if delta is None else probability_of_failure(delta)
    if isinstance(mechanism, Mechanism):
        chosen = mechanism
        given_sensitivity = None if sensitivity == COUNTS else sensitivity
        check_agreement("k", k, chosen.k, "mechanism object")
        check_agreement("epsilon", epsilon, chosen.epsilon, "mechanism object")
        check_agreement("sensitivity", given_sensitivity, chosen.sensitivity, "mechanism object")
    else:
        if k is None or epsilon is None:
            missing = "k" if k is None else "epsilon"
            raise InvalidInput(missing, None, "must be a number unless mechanism is a mechanism object")
        k, epsilon = positive_integer("k", k), positive_number("epsilon", epsilon)
        shared: dict[str, Any] = {"k": k, "epsilon": epsilon, "sensitivity": sensitivity}
        if isinstance(mechanism, str) and mechanism == "auto":
            chosen = automatic(**shared, delta=allowed, ordered=ordered, aim=aim, **parameters)
        else:
            kind = _named(mechanism)
            chosen_parameters = {"delta": allowed} if kind.may_stop else _with_delta(kind, allowed, parameters)
            if kind in (OneShot, Restricted, Discovered):
                chosen_parameters["ordered"] = ordered
            chosen = _maker(kind)(**shared, **{**chosen_parameters, **parameters})
    if delta is not None and chosen.guarantee.delta > allowed:
        needed = shown_above(chosen.guarantee.delta)
        raise InvalidInput(
            "delta", delta, f"must be at least {needed}, as the mechanism object states; or leave it out"
        )
    if ordered and not chosen.ordered:
        others = "restricted or limited" if chosen.may_stop else "joint or OneShot(ordered=True)"
        raise InvalidInput(
            "mechanism", chosen.name, f"must have an ordered answer, such as {others}; or leave out ordered"
        )
    return chosen


def described_mechanism(described: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism that `describe` described.

    Raises
    ------
    InvalidInput
        If it cannot be made from plain data: a `BlackBox` has a function of the user's.

    Examples
    --------
    >>> mechanism = mechanism_for("joint", k=10, epsilon=1.0)
    >>> described_mechanism(mechanism.describe()) == mechanism
    True
    """
    parameters = {name: value for name, value in described.items() if name not in ("name", "promise")}
    parameters["sensitivity"] = Sensitivity(**described["sensitivity"])
    if "inner" in described:
        parameters["inner"] = described_mechanism(described["inner"])
    if "discovery" in described:
        parameters["discovery"] = Discovery.described(described["discovery"])
    return _named(described["name"])(**parameters)


def check_options(mechanism: str | Mechanism, options: Any) -> None:
    """Refuse options that the mechanism does not have, or that are not options but arguments of their own."""
    if not isinstance(options, Mapping):
        raise InvalidInput("options", options, 'must map names to values, such as {"noise": "laplace"}')
    if not options:
        return
    options_of = {name: _options(kind) for name, kind in {**MECHANISMS, **FOR_UNKNOWN_DOMAINS}.items()}
    for option, given in options.items():
        if option in OWN_ARGUMENTS:
            raise InvalidInput("options", option, f"must not contain {option}, which is an argument of its own")
        accepting = [name for name, accepted in options_of.items() if option in accepted]
        if not accepting:
            known = sorted(set().union(*options_of.values()))
            raise InvalidInput("options", option, "must have names among " + ", ".join(known))
        if isinstance(mechanism, Mechanism):
            raise InvalidInput(option, given, "must be stated in the mechanism object; leave it out here")
        if mechanism not in accepting:
            listed = " or ".join(filter(None, [", ".join(accepting[:-1]), accepting[-1]]))
            raise InvalidInput(option, given, f"must be left out unless the mechanism is {listed}")


def _options(kind: type[Mechanism]) -> list[str]:
    """Return the parameters of a mechanism that are options."""
    parameters = inspect.signature(_maker(kind)).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.name not in OWN_ARGUMENTS]


def _maker(kind: type[Mechanism]) -> Callable[..., Mechanism]:
    """Return the function that makes a mechanism from k, ε and its further parameters."""
    makers: dict[type[Mechanism], Callable[..., Mechanism]] = {
        Restricted: restricted_for,
        Discovered: discovered_for,
    }
    return makers.get(kind, kind)


def _named(name: Any) -> type[Mechanism]:
    """Return the mechanism class with a name."""
    every = {**MECHANISMS, **FOR_UNKNOWN_DOMAINS}
    if not isinstance(name, str) or name not in every:
        raise InvalidInput("mechanism", name, "must be one of auto, " + ", ".join(every))
    return every[name]


def _with_delta(kind: type[Mechanism], delta: float, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return delta as a parameter if the mechanism can use it with its noise."""
    defaults = {field.name: field.default for field in fields(kind)}
    if not delta or "delta" not in defaults:
        return {}
    noise = parameters.get("noise", defaults.get("noise"))
    return {"delta": delta} if noise in getattr(kind, "noises_with_delta", (noise,)) else {}
