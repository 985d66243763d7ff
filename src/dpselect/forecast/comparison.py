"""All mechanisms side by side on the same scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dpselect._format import shown_below
from dpselect._numbers import positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.forecast.curves import Success, gap_limit, smallest_epsilon, success, swap_limit, wanted_accuracy
from dpselect.forecast.outcome import TITLES, WARNING, Forecast, checked_draws, forecast
from dpselect.mechanisms import Canonical, Gaussian, Joint, Mechanism, OneShot, Peeling, mechanism_for
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.scores import Scores


@dataclass(frozen=True)
class Need:
    """How much ε one mechanism needs for the accuracy wanted: 0 if any will do, ∞ if none will."""

    label: str
    words: str
    mechanism: Mechanism
    epsilon: float
    default: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; an ε that does not exist is None."""
        described = {key: value for key, value in self.mechanism.describe().items() if key != "epsilon"}
        return {
            "label": self.label,
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "default": self.default,
            "mechanism": described,
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """The mechanisms for one question, what each needs, and how each does at a chosen ε; **not private**."""

    scores: Scores
    k: int
    accuracy: float
    needs: list[Need]
    limit: float
    swap_limit: float
    epsilon: float | None = None
    draws: int = 200
    warning: str = WARNING

    @cached_property
    def forecasts(self) -> list[Forecast]:
        """A forecast of each mechanism at the chosen ε, in the order of `needs`; none without one."""
        if self.epsilon is None:
            return []
        return [
            forecast(self.scores, replace(need.mechanism, epsilon=self.epsilon), draws=self.draws)
            for need in self.needs
        ]

    def curves(self) -> list[tuple[str, Success]]:
        """Return the label and the curve of each mechanism."""
        return [(need.label, success(self.scores, need.mechanism)) for need in self.needs]

    def plot(self, axes: Any = None) -> Any:
        """Draw P[exact top k] against ε for all mechanisms, the chosen ε marked, and return the Matplotlib axes."""
        from dpselect.forecast.picture import draw_curves

        return draw_curves(
            self.curves(), epsilon=self.epsilon, accuracy=self.accuracy, limit=self.limit or None, axes=axes
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
            "swap_limit": self.swap_limit,
        }

    def _repr_html_(self) -> str:
        from dpselect.forecast.page import table_html

        title = f"Epsilon needed for the exact top {self.k} with probability {self.accuracy:g}"
        rows = [[need.label, shown_epsilon(need.epsilon), need.words] for need in self.needs]
        if self.limit:
            rows.append(["limit", shown_limit(self.limit), LIMIT_WORDS])
        return table_html(title, ["mechanism", "epsilon", ""], rows, note=self.warning)

    def __repr__(self) -> str:
        """Show what was compared."""
        return f"<Comparison of {len(self.needs)} mechanisms, k = {self.k} of {self.scores.size} items>"


LIMIT_WORDS = "no pure mechanism that treats items alike can do with less"


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
    draws: int = 200,
) -> Comparison:
    """Return what each mechanism needs for the exact top k, best first, and how it does at `epsilon`; not private.

    Of lists with a delta the Gaussian mechanism is one, if it is known how many items one person can touch.
    """
    table, wanted = Scores.of(scores), wanted_accuracy(accuracy)
    chosen = None if epsilon is None else positive_number("epsilon", epsilon)
    mechanisms = candidates(
        k, delta=delta, ordered=ordered, sensitivity=sensitivity, max_items_per_person=max_items_per_person
    )
    first = mechanisms[0].mechanism
    first.check_size(table.size)
    needs = [_solved(table, need, wanted, delta) for need in mechanisms]
    return Comparison(
        scores=table,
        k=first.k,
        accuracy=wanted,
        needs=sorted(needs, key=lambda need: need.epsilon),
        limit=gap_limit(table, first, wanted),
        swap_limit=swap_limit(table, first, wanted),
        epsilon=chosen,
        draws=checked_draws(draws),
    )


def candidates(
    k: int, *, delta: float, ordered: bool, sensitivity: Sensitivity, max_items_per_person: int | None = None
) -> list[Need]:
    """Return the mechanisms that answer the same question, at ε = 1."""
    k, allowed = positive_integer("k", k), probability_of_failure(delta)
    if max_items_per_person is not None and not (ordered and allowed):
        raise InvalidInput(
            "max_items_per_person",
            max_items_per_person,
            "leave it out, or ask for an ordered answer with a delta: only the gaussian mechanism uses it here",
        )
    common: dict[str, Any] = {"k": k, "epsilon": 1.0, "sensitivity": sensitivity}
    gumbel = {**common, "noise": "gumbel"}
    with_delta = f"with delta = {allowed:g}"
    if ordered:
        listed: list[tuple[str, str, Mechanism]] = [
            ("joint", "draws the whole list at once", Joint(**common)),
            ("joint, gumbel", "joint as in the paper", Joint(**gumbel)),
            ("peeling", "chooses one item after the other", Peeling(**common)),
            ("peeling, gumbel", "peeling by the exponential mechanism", Peeling(**gumbel)),
        ]
        if allowed:
            listed.append(("peeling, gumbel, delta", f"peeling {with_delta}", Peeling(**gumbel, delta=allowed)))
        if max_items_per_person is not None:
            gaussian = Gaussian(**common, delta=allowed, max_items_per_person=max_items_per_person)
            listed.append(("gaussian", f"adds normal noise to all scores, {with_delta}", gaussian))
    else:
        listed = [
            ("oneshot", "adds noise to all scores, takes the k largest", OneShot(**common)),
            ("oneshot, gumbel", "oneshot by the exponential mechanism", OneShot(**gumbel)),
            ("oneshot, laplace", "oneshot as most programs do it", OneShot(**{**common, "noise": "laplace"})),
        ]
        if k > 1:
            listed = [
                ("canonical", "draws the whole set at once", Canonical(**common)),
                ("canonical, gumbel", "canonical by the exponential mechanism", Canonical(**gumbel)),
                ("canonical, published", "canonical as in the paper", Canonical(**gumbel, margin=False)),
                *listed,
            ]
        else:
            listed[0] = ("canonical", "draws the item at once", Canonical(**common, gamma=1.0))
        if allowed:
            listed.append(("oneshot, gumbel, delta", f"oneshot {with_delta}", OneShot(**gumbel, delta=allowed)))
    return [Need(label, words, mechanism, 0.0, False) for label, words, mechanism in listed]


def _solved(table: Scores, need: Need, accuracy: float, delta: float) -> Need:
    """Return the need with its ε, and whether "auto" would take that mechanism there."""
    epsilon = smallest_epsilon(table, need.mechanism, accuracy)
    template = need.mechanism
    tried = epsilon if 0 < epsilon < math.inf else 1.0
    chosen = mechanism_for(
        "auto",
        k=template.k,
        epsilon=tried,
        delta=delta,
        sensitivity=template.sensitivity,
        ordered=template.ordered,
    )
    return replace(need, epsilon=epsilon, default=chosen == replace(template, epsilon=tried))


def shown_epsilon(epsilon: float) -> str:
    """Return an ε to three digits, rounded up so that it is still enough."""
    if epsilon == 0:
        return "any"
    return "none is enough" if math.isinf(epsilon) else f"{rounded_up(epsilon):g}"


def shown_limit(epsilon: float) -> str:
    """Return a limit to three digits, rounded down so that less is still not enough."""
    return shown_below(epsilon, 3)


def rounded_up(epsilon: float) -> float:
    """Return the next number of three digits."""
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
    nearest = float(f"{epsilon:.3g}")
    return nearest if nearest >= epsilon else float(f"{epsilon + unit:.3g}")
