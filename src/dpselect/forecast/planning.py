"""Which ε will be needed, from public facts alone: before any private row is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._numbers import finite_number, positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.forecast.comparison import Comparison, compare
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.scores import Scores

USUAL_ITEMS = 10_000
_LARGEST_GAP = 1e100
PUBLIC = "computed from what was stated, not from private data"


@dataclass(frozen=True, repr=False)
class Plan:
    """What each mechanism needs under a public model of the data, which `model` says in words."""

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
    """Return the ε that each mechanism needs to return exactly the top k with probability `accuracy`.

    gap: by how many people the k-th item leads the next; of an ordered answer, each of the k the next. The model is
        then the worst case with such gaps: k items that lead by just that, and all `items` − k others tied behind.
    like: instead, public scores that resemble the private ones; `people` and `like_people` scale them to the number of
        people in the private data.
    max_items_per_person: how many items one person can touch at most; adds the Gaussian mechanism to ordered answers
        with a delta.

    >>> import dpselect as dps
    >>> dps.forecast.plan(10, gap=50, accuracy=0.99)
    <Plan for k = 10: canonical needs epsilon = 1.62>
    """
    k = positive_integer("k", k)
    people = None if people is None else positive_integer("people", people)
    if (gap is None) == (like is None):
        given = "neither gap nor look-alike" if gap is None else "a gap beside a look-alike"
        accepted = "one of them is needed: the expected gap, or public scores that look alike"
        raise InvalidInput("gap", plain(given), accepted)
    if like is None:
        if like_people is not None:
            raise InvalidInput("like_people", like_people, "leave it out: it goes with a look-alike, not with a gap")
        step = _gap(gap, people)
        size = positive_integer("items", USUAL_ITEMS if items is None else items)
        if size <= k:
            raise InvalidInput("items", size, f"more than k = {k} possible items are needed; otherwise all are chosen")
        scores, model = _worst_case(k, step, size, ordered)
    else:
        if items is not None:
            raise InvalidInput("items", items, "leave it out: the look-alike has its own number of items")
        step = None
        scores = _scaled(Scores.of(like), people, like_people)
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
    comparison = replace(comparison, warning=PUBLIC)
    return Plan(comparison, model, step, size, people, _notes(like is None and items is None, delta, people))


def _notes(usual: bool, delta: float, people: int | None) -> tuple[str, ...]:
    notes = []
    if usual:
        notes.append(f"the number of possible items was not stated; {USUAL_ITEMS:,} were assumed")
    if people is not None and probability_of_failure(delta) * people > 1:
        notes.append(f"a delta above 1/people = {1 / people:.1g} may expose one person entirely; take a smaller one")
    return tuple(notes)


def _gap(gap: Any, people: int | None) -> float:
    step = finite_number("gap", gap)
    if step == 0:
        raise InvalidInput(
            "gap",
            gap,
            "a gap above 0 is needed: at a gap of 0 rank k and the next are tied, nothing tells which of them belongs, "
            "and no epsilon, however large, is enough",
        )
    if not 0 < step <= _LARGEST_GAP:
        raise InvalidInput(
            "gap", gap, f"a number above 0 and up to {_LARGEST_GAP:g} is needed: by how many people rank k leads"
        )
    if people is not None and step > people:
        raise InvalidInput("gap", gap, f"at most the number of people, {people}, is needed")
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


def _scaled(scores: Scores, people: int | None, like_people: int | None) -> Scores:
    """Return scores as they would be with another number of people, rounded to whole numbers."""
    if people is None and like_people is None:
        return scores
    if people is None or like_people is None:
        accepted = "both numbers of people are needed, to scale the look-alike from one to the other"
        raise InvalidInput("people" if people is None else "like_people", plain("no number"), accepted)
    factor = Fraction(people, positive_integer("like_people", like_people))
    values = np.array([int(Fraction(value) * factor + Fraction(1, 2)) for value in scores.values.tolist()])
    return Scores.from_histogram(values, scores.multiplicities)
