"""All mechanisms side by side, on given scores or, before any private row is read, under a public model of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._format import shown_above, shown_below
from dpselect._numbers import finite_number, positive_integer, positive_number
from dpselect._show import table_html
from dpselect.errors import InvalidInput, plain
from dpselect.forecast.curves import Success, gap_limit, smallest_epsilon, success, swap_limit, wanted_accuracy
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
        Whether mechanism="auto" takes this one.

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
    """The mechanisms for one question, the ε that each needs, and how each does at a chosen ε; **not private**.

    Attributes
    ----------
    needs : list of Need
        What each mechanism needs, the least first.
    ordered : bool
        Whether the order has to be right; sequences that answer a question for a set are judged as sets.
    limit, swap_limit : float
        The ε of `gap_limit` and `swap_limit` for the same accuracy.
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
    swap_limit: float
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

    def curves(self) -> list[tuple[str, Success]]:
        """Return the label and the curve of each mechanism."""
        return [(need.label, success(self.scores, need.mechanism, ordered=self.ordered)) for need in self.needs]

    def plot(self, axes: Any = None) -> Any:
        """Draw P[exact top k] against ε for all mechanisms, the chosen ε marked, and return the Matplotlib axes."""
        from dpselect.forecast.render import draw_curves

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
        title = f"Epsilon needed for the exact top {self.k} with probability {self.accuracy:g}"
        rows = [[need.label, need.shown, need.words] for need in self.needs]
        if self.limit:
            rows.append(["limit", shown_below(self.limit, 3), LIMIT_WORDS])
        return table_html(title, ["mechanism", "epsilon", ""], rows, note=self.warning)

    def __repr__(self) -> str:
        """Show what was compared."""
        return f"<Comparison of {len(self.needs)} mechanisms, k = {self.k} of {self.scores.size} items>"


LIMIT_WORDS = "no pure mechanism that treats items alike needs less"


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
    needs = [_solved(table, need, wanted, delta, first.ordered) for need in mechanisms]
    return Comparison(
        scores=table,
        k=first.k,
        accuracy=wanted,
        needs=sorted(needs, key=lambda need: need.epsilon),
        limit=gap_limit(table, first, wanted),
        swap_limit=swap_limit(table, first, wanted),
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
            ("peeling, gumbel", "peeling by the exponential mechanism", Peeling(**gumbel)),
            ("oneshot", "adds noise to all scores, takes the k largest", OneShot(**common, ordered=True)),
        ]
        if allowed:
            listed.append(("peeling, gumbel, delta", f"peeling {with_delta}", Peeling(**gumbel, delta=allowed)))
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
    if max_items_per_person is not None:
        few = {**common, "max_items_per_person": max_items_per_person}
        listed.append(("laplace", "adds laplace noise to all scores", Laplace(**few)))
        if allowed:
            normal = Gaussian(**few, delta=allowed)
            listed.append(("gaussian", f"adds normal noise to all scores, {with_delta}", normal))
    return [Need(label, words, mechanism, 0.0, False) for label, words, mechanism in listed]


def _solved(table: Scores, need: Need, accuracy: float, delta: float, ordered: bool) -> Need:
    """Return the need with its ε, and whether "auto" would take that mechanism there."""
    epsilon = smallest_epsilon(table, need.mechanism, accuracy, ordered=ordered)
    template = need.mechanism
    tried = epsilon if 0 < epsilon < math.inf else 1.0
    chosen = mechanism_for(
        "auto",
        k=template.k,
        epsilon=tried,
        delta=delta,
        sensitivity=template.sensitivity,
        ordered=ordered,
    )
    return replace(need, epsilon=epsilon, default=chosen == replace(template, epsilon=tried))


USUAL_ITEMS = 10_000
"""The number of possible items if it is not stated."""

_LARGEST_GAP = 1e100
_PUBLIC_NOTE = "computed from what was stated, not from private data"


@dataclass(frozen=True, repr=False)
class Plan:
    """The ε that each mechanism needs under a public model of the data.

    Attributes
    ----------
    comparison : Comparison
        The mechanisms under the model.
    model : str
        The model in words.
    gap, items, people
        What was stated.
    notes : tuple of str
        Remarks on what was assumed.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.forecast.plan(10, gap=50).model
    '10 of 10,000 items lead by 50 people, and all others are tied behind them'
    """

    comparison: Comparison
    model: str
    gap: float | None
    items: int
    people: int | None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data that json.dumps accepts."""
        data = self.comparison.to_dict()
        del data["private"], data["epsilon"], data["size"]
        return {**data, "items": self.items, "gap": self.gap, "people": self.people, "model": self.model}

    def plot(self, axes: Any = None) -> Any:
        """Draw P[exact top k] against ε for all mechanisms under the model, and return the Matplotlib axes."""
        return self.comparison.plot(axes)

    def _repr_html_(self) -> str:
        return self.comparison._repr_html_()

    def __repr__(self) -> str:
        """Show the model and the best mechanism."""
        best = self.comparison.needs[0]
        return f"<Plan for k = {self.comparison.k}: {best.label} needs epsilon = {best.epsilon:.3g}>"


def plan(
    k: int,
    *,
    accuracy: float = 0.99,
    gap: float | None = None,
    like: Any = None,
    items: int | None = None,
    people: int | None = None,
    like_people: int | None = None,
    delta: float = 0.0,
    ordered: bool = False,
    max_items_per_person: int | None = None,
) -> Plan:
    """Return the ε that each mechanism needs to return exactly the top k, from public facts alone.

    Parameters
    ----------
    k : int
        The number of items in the answer.
    accuracy : float
        The wanted probability of an exact answer.
    gap : float, optional
        By how many people the k-th item leads the next one; for an ordered answer, by how many each of the first k
        items leads the next. The model is the worst case: every lead equals the gap, and all other items are tied.
    like : optional
        Instead of a gap, public scores that resemble the private ones.
    items : int, optional
        How many items are possible; 10,000 if not stated.
    people, like_people : int, optional
        The numbers of people in the private data and behind `like`, which is scaled from one to the other.
    delta : float
        An allowed failure probability; adds the mechanisms that can use one.
    ordered : bool
        Whether the order of the answer has to be right too.
    max_items_per_person : int, optional
        How many items one person can touch; adds the Laplace mechanism, and with a delta the Gaussian one.

    Returns
    -------
    Plan
        The mechanisms, the one that needs the least ε first.

    Raises
    ------
    InvalidInput
        If the facts contradict each other or are out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.forecast.plan(10, gap=50, accuracy=0.99)
    <Plan for k = 10: canonical needs epsilon = 1.62>
    """
    k = positive_integer("k", k)
    people = None if people is None else positive_integer("people", people)
    if (gap is None) == (like is None):
        given = "neither" if gap is None else "both"
        raise InvalidInput("gap", plain(given), "must be stated, or similar public scores (like) instead, but not both")
    if like is None:
        if like_people is not None:
            raise InvalidInput("like_people", like_people, "must be left out with a gap; it belongs to `like`")
        step = _checked_gap(gap, people)
        size = positive_integer("items", USUAL_ITEMS if items is None else items)
        if size <= k:
            raise InvalidInput("items", size, f"must be more than k = {k}, or all items are chosen")
        scores, model = _worst_case(k, step, size, ordered)
    else:
        if items is not None:
            raise InvalidInput("items", items, "must be left out with a look-alike, which has its own number of items")
        step = None
        scores = _scaled_to(Scores.of(like), people, like_people)
        size, model = scores.size, f"the {scores.size:,} items have the scores of the look-alike"
    comparison = compare(
        scores,
        k,
        accuracy=accuracy,
        delta=delta,
        ordered=ordered,
        max_items_per_person=max_items_per_person,
        draws=0,
    )
    comparison = replace(comparison, warning=_PUBLIC_NOTE)
    return Plan(comparison, model, step, size, people, _notes(like is None and items is None, delta, people))


def _notes(usual: bool, delta: float, people: int | None) -> tuple[str, ...]:
    notes = []
    if usual:
        notes.append(f"the number of possible items was not stated; {USUAL_ITEMS:,} were assumed")
    if people is not None and probability_of_failure(delta) * people > 1:
        notes.append(f"a delta above 1/people = {1 / people:.1g} may expose one person entirely; take a smaller one")
    return tuple(notes)


def _checked_gap(gap: Any, people: int | None) -> float:
    step = finite_number("gap", gap)
    if step == 0:
        raise InvalidInput(
            "gap",
            gap,
            "must be above 0; with a gap of 0 ranks k and k + 1 are tied, and no epsilon can distinguish them",
        )
    if not 0 < step <= _LARGEST_GAP:
        raise InvalidInput("gap", gap, f"must be above 0 and at most {_LARGEST_GAP:g} people")
    if people is not None and step > people:
        raise InvalidInput("gap", gap, f"must be at most {people} (the number of people)")
    return float(step)


def _worst_case(k: int, gap: float, size: int, ordered: bool) -> tuple[Scores, str]:
    step: Any = int(gap) if gap.is_integer() else gap
    if ordered:
        values = [*(step * place for place in range(k, 0, -1)), 0]
        words = f"each of the first {k} of {size:,} items leads the next by {gap:g} people, and the rest are tied"
        return Scores.from_histogram(values, [1] * k + [size - k]), words
    lead, those = ("leads", "it") if k == 1 else ("lead", "them")
    words = f"{k} of {size:,} items {lead} by {gap:g} people, and all others are tied behind {those}"
    return Scores.from_histogram([step, 0], [k, size - k]), words


def _scaled_to(scores: Scores, people: int | None, like_people: int | None) -> Scores:
    """Return scores as they would be with another number of people, rounded to whole numbers."""
    if people is None and like_people is None:
        return scores
    if people is None or like_people is None:
        missing, other = ("people", "like_people") if people is None else ("like_people", "people")
        raise InvalidInput(missing, None, f"must be given with {other}: `like` is scaled by their ratio")
    factor = Fraction(people, positive_integer("like_people", like_people))
    values = np.array([int(Fraction(value) * factor + Fraction(1, 2)) for value in scores.values.tolist()])
    return Scores.from_histogram(values, scores.multiplicities)
