"""Plans: which ε a question needs, or what an ε can tell apart, before any private row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._numbers import finite_number, positive_integer, positive_number
from dpselect._show import table_html
from dpselect.errors import InvalidInput, plain
from dpselect.forecast.compare import (
    Asked,
    Comparison,
    Need,
    candidates,
    compare,
    is_default,
    marked,
    solved,
    titled,
)
from dpselect.forecast.outcome import forecast
from dpselect.forecast.reach import Reach, reach, worst_case
from dpselect.mechanisms import Canonical, Mechanism
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.privacy.sensitivity import COUNTS
from dpselect.scores import Scores

USUAL_ITEMS = 10_000
"""The number of possible items if it is not stated."""

LEAD_PROBABILITIES = (0.5, 0.9, 0.99)
"""The probabilities of an exact answer for which leads are listed."""

GAMMAS = (0.25, 0.5, 0.75, 1.0)
"""The values of γ that are tried on a look-alike."""

_USUAL_ACCURACY = 0.99
_LARGEST_GAP = 1e100
_PUBLIC_NOTE = "computed from what was stated, not from private data"


@dataclass(frozen=True, repr=False)
class Plan:
    """The mechanisms under a public model of the data: the ε that each needs, and how each does at a stated ε.

    Attributes
    ----------
    comparison : Comparison
        The mechanisms under the model.
    model : str
        The model in words.
    gap, items, people
        What was stated.
    gamma : float or None
        The best γ of the canonical mechanism on a look-alike; None if there is none, or no choice.
    exact : Need or None
        What the default of aim="exact" needs, if that is less than the default needs.
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
    gamma: float | None = None
    exact: Need | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data that json.dumps accepts."""
        data = self.comparison.to_dict()
        del data["private"], data["size"]
        return {
            **data,
            "items": self.items,
            "gap": self.gap,
            "people": self.people,
            "gamma": self.gamma,
            "model": self.model,
        }

    def plot(self, axes: Any = None) -> Any:
        """Draw P[exact top k] against ε for all mechanisms under the model, and return the Matplotlib axes."""
        return self.comparison.plot(axes)

    def _repr_html_(self) -> str:
        return self.comparison._repr_html_()

    def __repr__(self) -> str:
        """Show the model and the best mechanism."""
        best = self.comparison.needs[0]
        return f"<Plan for k = {self.comparison.k}: {best.label} needs epsilon = {best.epsilon:.3g}>"


@dataclass(frozen=True)
class Lead:
    """What one mechanism can tell apart.

    Attributes
    ----------
    label, words
        The mechanism's name in a table, and what it does.
    mechanism, default
        The mechanism, and whether it is the one that "auto" takes.
    reaches
        Its `Reach` for each of `LEAD_PROBABILITIES`; None where there is none.
    """

    label: str
    words: str
    mechanism: Mechanism
    default: bool
    reaches: tuple[Reach | None, ...]

    @property
    def leads(self) -> dict[str, float | None]:
        """The lead for each probability."""
        return {
            f"{probability:g}": None if each is None else each.lead
            for probability, each in zip(LEAD_PROBABILITIES, self.reaches, strict=True)
        }

    @property
    def title(self) -> str:
        """The label, and whether this is the default."""
        return titled(self.label, self.default)

    @property
    def shown(self) -> list[str]:
        """The leads as text."""
        return ["none" if lead is None else f"{lead:,}" for lead in self.leads.values()]


@dataclass(frozen=True, repr=False)
class Leads:
    """What each mechanism can tell apart at a stated ε, in the worst case.

    Attributes
    ----------
    rows : list of Lead
        The mechanisms, the one with the smallest lead first.
    k, epsilon, items, ordered, people
        What was stated.
    notes : tuple of str
        Remarks on what was assumed.

    Examples
    --------
    >>> import dpselect as dps
    >>> best = dps.forecast.plan(10, epsilon=1.0, items=10_000).rows[0]
    >>> print(best.label, best.leads)
    canonical {'0.5': 77, '0.9': 79, '0.99': 81}
    """

    rows: list[Lead]
    k: int
    epsilon: float
    items: int
    ordered: bool
    people: int | None
    notes: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """The model in words."""
        return _model(self.k, "by that many people", self.items, self.ordered)

    def to_dict(self) -> dict[str, Any]:
        """Return the leads as plain data that json.dumps accepts."""
        return {
            "k": self.k,
            "epsilon": self.epsilon,
            "items": self.items,
            "ordered": self.ordered,
            "people": self.people,
            "model": self.model,
            "mechanisms": [
                {
                    "label": row.label,
                    "leads": row.leads,
                    "default": row.default,
                    "mechanism": row.mechanism.describe(),
                }
                for row in self.rows
            ],
        }

    def _repr_html_(self) -> str:
        title = f"Lead in people needed for the exact top {self.k} at epsilon = {self.epsilon:g}"
        headings = ["mechanism", *(f"for {probability:g}" for probability in LEAD_PROBABILITIES), ""]
        rows = [[row.title, *row.shown, row.words] for row in self.rows]
        return table_html(title, headings, rows, note=_PUBLIC_NOTE)

    def __repr__(self) -> str:
        """Show the best mechanism's reach."""
        best = self.rows[0]
        return f"<Leads for k = {self.k} at epsilon = {self.epsilon:g}: {best.label} needs {best.leads['0.9']} for 0.9>"


def plan(
    k: int,
    *,
    accuracy: float | None = None,
    gap: float | None = None,
    like: Any = None,
    epsilon: float | None = None,
    items: int | None = None,
    people: int | None = None,
    like_people: int | None = None,
    delta: float = 0.0,
    ordered: bool = False,
    max_items_per_person: int | None = None,
    aim: str = "most",
) -> Plan | Leads:
    """Return the ε that each mechanism needs for exactly the top k, or what it does at an ε, from public facts alone.

    Parameters
    ----------
    k : int
        The number of items in the answer.
    accuracy : float, optional
        The wanted probability of an exact answer; 0.99 if not stated.
    gap : float, optional
        By how many people the k-th item leads the next one; for an ordered answer, by how many each of the first k
        items leads the next. The model is the worst case: every lead equals the gap, and all other items are tied.
    like : optional
        Instead of a gap, public scores that resemble the private ones.
    epsilon : float, optional
        Asks the reverse question, instead of a gap: which lead is needed at this ε; or, with `like`, how many items of
        the answer are expected to be right.
    items : int, optional
        How many items are possible; 10,000 if not stated.
    people, like_people : int, optional
        The numbers of people in the private data and behind `like`, which is scaled from one to the other if both are
        stated.
    delta : float
        An allowed failure probability; adds the mechanisms that can use one.
    ordered : bool
        Whether the order of the answer has to be right too.
    max_items_per_person : int, optional
        How many items one person can touch; adds the Laplace mechanism, and with a delta the Gaussian one.
    aim : str
        What mechanism="auto" aims at, to mark the one it takes; as in `dpselect.select`.

    Returns
    -------
    Plan or Leads
        The mechanisms, the one that needs the least first; `Leads` if an ε is stated and no look-alike.

    Raises
    ------
    InvalidInput
        If the facts contradict each other or are out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.forecast.plan(10, gap=50, accuracy=0.99)
    <Plan for k = 10: canonical needs epsilon = 1.62>
    >>> dps.forecast.plan(10, epsilon=1.0, items=10_000)
    <Leads for k = 10 at epsilon = 1: canonical needs 79 for 0.9>
    """
    k = positive_integer("k", k)
    people = None if people is None else positive_integer("people", people)
    _check_question(gap, like, epsilon, accuracy, like_people)
    notes = _notes(like is None and items is None, delta, people)
    wanted = _USUAL_ACCURACY if accuracy is None else accuracy
    asked = Asked(delta, ordered, max_items_per_person, aim)
    if like is not None:
        if items is not None:
            raise InvalidInput("items", items, "must be left out with a look-alike, which has its own number of items")
        scores = scaled_to(Scores.of(like), people, like_people)
        found = compare(scores, k, epsilon=epsilon, accuracy=wanted, **asked._asdict())
        exact = _exact(found, asked)
        found, gamma = (found, None) if ordered or k == 1 else _with_gamma(found)
        model = f"the {scores.size:,} items have the scores of the look-alike"
        return Plan(replace(found, warning=_PUBLIC_NOTE), model, None, scores.size, people, gamma, exact, notes)
    size = positive_integer("items", USUAL_ITEMS if items is None else items)
    if size <= k:
        raise InvalidInput("items", size, f"must be more than k = {k}, or all items are chosen")
    if epsilon is not None:
        chosen = positive_number("epsilon", epsilon)
        return Leads(_leads(k, chosen, size, asked), k, chosen, size, ordered, people, notes)
    step = _checked_gap(gap, people)
    people_ahead = int(step) if step.is_integer() else step
    found = compare(worst_case(k, people_ahead, size, ordered), k, accuracy=wanted, draws=0, **asked._asdict())
    model = _model(k, f"by {step:g} people", size, ordered)
    return Plan(replace(found, warning=_PUBLIC_NOTE), model, step, size, people, None, _exact(found, asked), notes)


def _check_question(gap: Any, like: Any, epsilon: Any, accuracy: Any, like_people: Any) -> None:
    """Refuse facts that ask no question, or more than one."""
    if gap is None and like is None and epsilon is None:
        requirement = "must be stated; or like (similar public scores) or epsilon (to see what it can do) instead"
        raise InvalidInput("gap", plain("nothing"), requirement)
    if gap is not None and like is not None:
        raise InvalidInput("gap", gap, "must be left out with similar public scores (like); state one of them")
    if epsilon is not None and (gap is not None or accuracy is not None):
        argument, given, answer = ("accuracy", accuracy, "probability") if gap is None else ("gap", gap, "lead")
        raise InvalidInput(argument, given, f"must be left out with epsilon; the {answer} is then the answer")
    if like is None and like_people is not None:
        raise InvalidInput("like_people", like_people, "must be left out without a look-alike; it belongs to `like`")


def _leads(k: int, epsilon: float, items: int, asked: Asked) -> list[Lead]:
    """Return the leads of all mechanisms at an ε, the smallest first."""
    rows = []
    for need in candidates(
        k,
        sensitivity=COUNTS,
        delta=asked.delta,
        ordered=asked.ordered,
        max_items_per_person=asked.max_items_per_person,
    ):
        template: Any = need.mechanism
        mechanism = replace(template, epsilon=epsilon)
        reaches = tuple(
            reach(mechanism, items, probability, ordered=asked.ordered) for probability in LEAD_PROBABILITIES
        )
        rows.append(Lead(need.label, need.words, mechanism, is_default(template, epsilon, asked), reaches))
    return sorted(rows, key=lambda row: [math.inf if each is None else each.lead for each in row.reaches[::-1]])


def _exact(comparison: Comparison, asked: Asked) -> Need | None:
    """Return what the default of aim="exact" needs, if that is less than the default needs."""
    plainly = [replace(need, default=False) for need in comparison.needs]
    other = next((need for need in marked(plainly, None, asked._replace(aim="exact")) if need.default), None)
    default = next((need for need in comparison.needs if need.default), None)
    return None if other is None or default is None or other.epsilon >= default.epsilon else other


def _with_gamma(comparison: Comparison) -> tuple[Comparison, float]:
    """Return the best γ of the canonical mechanism, and the comparison with a row for it if it is not the default.

    The best one needs the least ε, or, at a stated ε, has the most items right.
    """
    template: Any = next(need.mechanism for need in comparison.needs if isinstance(need.mechanism, Canonical))
    needs = {}
    for gamma in GAMMAS:
        mechanism = replace(template, gamma=gamma, noise="exponential", margin=True)
        need = Need(f"canonical, gamma {gamma:g}", "canonical with a gamma for this look-alike", mechanism, 0.0, False)
        needs[gamma] = solved(comparison.scores, need, comparison.accuracy, False)
    best = min(GAMMAS, key=lambda gamma: (-_right(comparison, needs[gamma]), needs[gamma].epsilon))
    if best == template.gamma:
        return comparison, best
    rows = sorted([*comparison.needs, needs[best]], key=lambda need: need.epsilon)
    return replace(comparison, needs=rows), best


def _right(comparison: Comparison, need: Need) -> float:
    """Return the expected number of right items at the stated ε; 0 if none is stated."""
    if comparison.epsilon is None:
        return 0.0
    template: Any = need.mechanism
    figure = forecast(comparison.scores, replace(template, epsilon=comparison.epsilon), draws=comparison.draws).correct
    return 0.0 if figure is None else figure.value


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


def _model(k: int, lead: str, size: int, ordered: bool) -> str:
    """Return the worst case in words."""
    if ordered:
        return f"each of the first {k} of {size:,} items leads the next {lead}, and the rest are tied"
    leads, those = ("leads", "it") if k == 1 else ("lead", "them")
    return f"{k} of {size:,} items {leads} {lead}, and all others are tied behind {those}"


def scaled_to(scores: Scores, people: int | None, like_people: int | None) -> Scores:
    """Return scores as they would be with another number of people, rounded to whole numbers."""
    if like_people is None:
        return scores
    if people is None:
        raise InvalidInput("people", None, "must be given with like_people: `like` is scaled by their ratio")
    factor = Fraction(people, positive_integer("like_people", like_people))
    values = np.array([int(Fraction(value) * factor + Fraction(1, 2)) for value in scores.values.tolist()])
    return Scores.from_histogram(values, scores.multiplicities)
