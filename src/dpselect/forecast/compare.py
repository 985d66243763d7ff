"""All mechanisms side by side on given scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from dpselect._format import shown_above, shown_below
from dpselect._numbers import positive_integer, positive_number
from dpselect._show import table_html
from dpselect.forecast.curves import Success, smallest_epsilon, success, wanted_accuracy
from dpselect.forecast.limits import proven_limit, swap_yardstick
from dpselect.forecast.outcome import TITLES, WARNING, Forecast, checked_draws, forecast
from dpselect.mechanisms import Canonical, Gaussian, Joint, Laplace, Mechanism, OneShot, Peeling, mechanism_for
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.scores import Scores


@dataclass(frozen=True)
class Need:
    """The ε that one mechanism needs for the accuracy wanted.

    Attributes
    ----------
    label, words : str
        The name of the mechanism's row, and what it does.
    mechanism : Mechanism
        The mechanism; its own ε is ignored.
    epsilon : float
        The ε needed: 0 if every ε is enough, ∞ if none is.
    default : bool
        Whether mechanism="auto" takes this one: at the stated ε, or if none is stated at the ε needed; at most one is.

    Examples
    --------
    >>> import dpselect as dps
    >>> best = dps.forecast.compare([90, 70, 40, 10], 2).needs[0]
    >>> print(best.label, f"{best.epsilon:.3f}", best.default)
    canonical 0.142 True
    """

    label: str
    words: str
    mechanism: Mechanism
    epsilon: float
    default: bool

    @property
    def shown(self) -> str:
        """The ε to three digits, rounded up so that it is still enough."""
        if self.epsilon == 0:
            return "any"
        return "none is enough" if math.isinf(self.epsilon) else shown_above(self.epsilon, 3)

    @property
    def title(self) -> str:
        """The label, and whether this is the default."""
        return titled(self.label, self.default)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; an ε that does not exist is None."""
        described = {key: value for key, value in self.mechanism.describe().items() if key != "epsilon"}
        return {
            "label": self.label,
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "default": self.default,
            "mechanism": described,
        }


def titled(label: str, default: bool) -> str:
    """Return the label of a mechanism, and whether it is the default."""
    return f"{label} (the default)" if default else label


@dataclass(frozen=True, repr=False)
class Comparison:
    """The mechanisms for one question, the ε that each needs, and how each does at a chosen ε; **not private**.

    Attributes
    ----------
    needs : list of Need
        What each mechanism needs, the least first.
    ordered : bool
        Whether the order has to be right; sequences that answer a question for a set are judged as sets.
    limit, yardstick : float
        The ε of `proven_limit`, below which no pure mechanism that treats items alike reaches the accuracy, and of
        `swap_yardstick`, which is no limit.
    forecasts : list of Forecast
        A forecast of each mechanism at the chosen ε, in the order of `needs`.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.forecast.compare([90, 70, 40, 10], 2)
    <Comparison of 6 mechanisms, k = 2 of 4 items>
    """

    scores: Scores
    k: int
    accuracy: float
    needs: list[Need]
    limit: float
    yardstick: float
    ordered: bool = False
    epsilon: float | None = None
    draws: int = 200
    warning: str = WARNING

    @cached_property
    def forecasts(self) -> list[Forecast]:
        """A forecast of each mechanism at the chosen ε, in the order of `needs`; empty if none was chosen."""
        if self.epsilon is None:
            return []
        return [
            forecast(self.scores, replace(need.mechanism, epsilon=self.epsilon), draws=self.draws, ordered=self.ordered)
            for need in self.needs
        ]

    @property
    def finding(self) -> str:
        """Which mechanism needs the least ε for the accuracy and which the most, for the title of a plot."""
        best, most = self.needs[0], self.needs[-1]
        if math.isinf(best.epsilon):
            return f"no epsilon is enough for probability {self.accuracy:g}"
        return (
            f"for probability {self.accuracy:g}, {best.label} needs the least epsilon ({best.shown}) "
            f"and {most.label} the most ({most.shown})"
        )

    def curves(self) -> list[tuple[str, Success]]:
        """Return the label and the curve of each mechanism."""
        return [(need.label, success(self.scores, need.mechanism, ordered=self.ordered)) for need in self.needs]

    def plot(self, axes: Any = None) -> Any:
        """Draw P[exact top k] against ε for all mechanisms, the chosen ε marked, and return the Matplotlib axes."""
        from dpselect.forecast.render import draw_curves

        return draw_curves(
            self.curves(),
            epsilon=self.epsilon,
            accuracy=self.accuracy,
            limit=self.limit or None,
            default=next((need.label for need in self.needs if need.default), ""),
            axes=axes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data that json.dumps accepts."""
        rows: list[dict[str, Any]] = [need.to_dict() for need in self.needs]
        for row, outlook in zip(rows, self.forecasts, strict=False):
            row["forecast"] = {key: value for key, value in outlook.to_dict().items() if key in TITLES}
        return {
            "k": self.k,
            "size": self.scores.size,
            "accuracy": self.accuracy,
            "epsilon": self.epsilon,
            "private": False,
            "mechanisms": rows,
            "limit": self.limit,
            "yardstick": self.yardstick,
        }

    def _repr_html_(self) -> str:
        title = f"Epsilon needed for the exact top {self.k} with probability {self.accuracy:g}"
        rows = [[need.title, need.shown, need.words] for need in self.needs]
        headings = ["mechanism", "epsilon", ""]
        if self.forecasts:
            headings += [f"{TITLES[name]} at epsilon = {self.epsilon:g}" for name in ("exact", "correct")]
            for row, outlook in zip(rows, self.forecasts, strict=True):
                row += [str(figure or "") for figure in (outlook.exact, outlook.correct)]
        if self.limit:
            limit = ["limit", shown_below(self.limit, 3), LIMIT_WORDS]
            rows.append(limit + [""] * (len(headings) - len(limit)))
        return table_html(title, headings, rows, note=self.warning)

    def __repr__(self) -> str:
        """Show what was compared."""
        return f"<Comparison of {len(self.needs)} mechanisms, k = {self.k} of {self.scores.size} items>"


LIMIT_WORDS = "no pure mechanism that treats items alike needs less"
"""What the last line of a comparison of epsilons means."""


def compare(
    scores: Any,
    k: int,
    *,
    epsilon: float | None = None,
    accuracy: float = 0.99,
    delta: float = 0.0,
    ordered: bool = False,
    sensitivity: Sensitivity = COUNTS,
    max_items_per_person: int | None = None,
    aim: str = "most",
    draws: int = 200,
) -> Comparison:
    """Return the ε that each mechanism needs for the exact top k, and how it does at a chosen ε; not private.

    Parameters
    ----------
    scores
        The scores, as for `dpselect.select`.
    k : int
        The number of items in the answer.
    epsilon : float, optional
        An ε at which to forecast each mechanism.
    accuracy : float
        The wanted probability of an exact answer.
    delta : float
        An allowed failure probability; adds the mechanisms that can use one.
    ordered : bool
        Whether the order of the answer has to be right too.
    sensitivity : Sensitivity
        How scores change when a person is added.
    max_items_per_person : int, optional
        How many items one person can touch; adds the Laplace mechanism, and with a delta the Gaussian one.
    aim : str
        What mechanism="auto" aims at, to mark the one it takes; as in `dpselect.select`.
    draws : int
        Draws for figures without an exact form.

    Returns
    -------
    Comparison
        The mechanisms, the one that needs the least ε first.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> compared = dps.forecast.compare([90, 70, 40, 10], 2, epsilon=0.1)
    >>> print(compared.needs[0].label, compared.forecasts[0].exact)
    canonical 0.957
    """
    table, wanted = Scores.of(scores), wanted_accuracy(accuracy)
    chosen = None if epsilon is None else positive_number("epsilon", epsilon)
    mechanisms = candidates(
        k, delta=delta, ordered=ordered, sensitivity=sensitivity, max_items_per_person=max_items_per_person
    )
    first = mechanisms[0].mechanism
    first.check_size(table.size)
    asked = Asked(delta, ordered, max_items_per_person, aim)
    needs = [solved(table, need, wanted, ordered) for need in mechanisms]
    limit = proven_limit(
        table, k, wanted, ordered=ordered, sensitivity=sensitivity, max_items_per_person=max_items_per_person
    )
    return Comparison(
        scores=table,
        k=first.k,
        accuracy=wanted,
        needs=marked(sorted(needs, key=lambda need: need.epsilon), chosen, asked),
        limit=limit,
        yardstick=swap_yardstick(table, first, wanted),
        ordered=first.ordered,
        epsilon=chosen,
        draws=checked_draws(draws),
    )


def candidates(
    k: int, *, delta: float, ordered: bool, sensitivity: Sensitivity, max_items_per_person: int | None = None
) -> list[Need]:
    """Return the mechanisms that answer the same question, without the ε they need."""
    k, allowed = positive_integer("k", k), probability_of_failure(delta)
    common: dict[str, Any] = {"k": k, "epsilon": 1.0, "sensitivity": sensitivity}
    gumbel = {**common, "noise": "gumbel"}
    with_delta = f"with delta = {allowed:g}"
    if ordered:
        listed: list[tuple[str, str, Mechanism]] = [
            ("joint", "draws the whole list at once", Joint(**common)),
            ("joint, published", "joint as in the paper", Joint(**gumbel, margin=False)),
            ("peeling", "chooses one item after the other", Peeling(**common)),
            ("peeling, gumbel", "peeling with gumbel noise", Peeling(**gumbel)),
            ("oneshot", "adds noise to all scores, takes the k largest", OneShot(**common, ordered=True)),
        ]
        if allowed:
            listed.append(("peeling, gumbel, delta", f"peeling {with_delta}", Peeling(**gumbel, delta=allowed)))
    else:
        listed = [
            ("oneshot", "adds noise to all scores, takes the k largest", OneShot(**common)),
            ("oneshot, gumbel", "oneshot with gumbel noise", OneShot(**gumbel)),
            ("oneshot, laplace", "oneshot as most programs do it", OneShot(**{**common, "noise": "laplace"})),
        ]
        if k > 1:
            listed = [
                ("canonical", "draws the whole set at once", Canonical(**common)),
                ("canonical, gumbel", "canonical with gumbel noise", Canonical(**gumbel)),
                ("canonical, published", "canonical as in the paper", Canonical(**gumbel, margin=False)),
                *listed,
            ]
        else:
            listed[0] = ("canonical", "draws the item at once", Canonical(**common, gamma=1.0))
        if allowed:
            listed.append(("oneshot, gumbel, delta", f"oneshot {with_delta}", OneShot(**gumbel, delta=allowed)))
    if max_items_per_person is not None:
        few = {**common, "max_items_per_person": max_items_per_person}
        listed.append(("laplace", "adds laplace noise to all scores", Laplace(**few)))
        if allowed:
            normal = Gaussian(**few, delta=allowed)
            listed.append(("gaussian", f"adds normal noise to all scores, {with_delta}", normal))
    return [Need(label, words, mechanism, 0.0, False) for label, words, mechanism in listed]


class Asked(NamedTuple):
    """What decides which mechanism "auto" takes, beside k and ε."""

    delta: float
    ordered: bool
    max_items_per_person: int | None
    aim: str


def solved(table: Scores, need: Need, accuracy: float, ordered: bool) -> Need:
    """Return the need with its ε."""
    return replace(need, epsilon=smallest_epsilon(table, need.mechanism, accuracy, ordered=ordered))


def marked(needs: list[Need], epsilon: float | None, asked: Asked) -> list[Need]:
    """Return the needs with the one marked that "auto" takes at the ε, or if that is None, the first at its own ε."""
    for place, need in enumerate(needs):
        own = need.epsilon if 0 < need.epsilon < math.inf else 1.0
        if is_default(need.mechanism, own if epsilon is None else epsilon, asked):
            return [*needs[:place], replace(need, default=True), *needs[place + 1 :]]
    return needs


def is_default(template: Mechanism, epsilon: float, asked: Asked) -> bool:
    """Return whether "auto" would take the mechanism at an ε."""
    shared: dict[str, Any] = {"k": template.k, "epsilon": epsilon, "sensitivity": template.sensitivity}
    chosen = mechanism_for("auto", **shared, **asked._asdict())
    return chosen == replace(template, epsilon=epsilon)
