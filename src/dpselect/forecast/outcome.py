"""A forecast: how good the answer of one mechanism will be on given scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dpselect._numbers import seed_or_none
from dpselect.errors import InvalidInput
from dpselect.forecast.curves import has_curve, success
from dpselect.forecast.figures import ExactFigures
from dpselect.forecast.simulation import PROBABILITIES, Figure, simulated
from dpselect.mechanisms import Mechanism, Restricted
from dpselect.scores import Scores

WARNING = "forecasts are computed from the scores themselves and are not private: for the curator, not for release"

TITLES = {
    "exact": "P[exact top k]",
    "great": "P[great]",
    "good": "P[good]",
    "correct": "expected number correct",
    "f1": "F1",
    "score_ratio": "score ratio",
    "largest_error": "ℓ∞ error",
    "total_error": "ℓ1 error",
    "relative_error": "k-relative error",
}


_EQUAL = 1e-12
_AROUND = tuple(2.0 ** (step / 2) for step in range(-6, 7))
"""The multiples of a chosen ε at which a simulated curve is drawn."""


@dataclass(frozen=True, repr=False)
class Forecast:
    """What to expect of one mechanism on given scores; computed from them, so **not private**.

    exact: P[the scores of the top k], of a sequence in order; tied items are interchangeable.
    great, good: P[the ⌈k/10⌉ (⌈k/100⌉) highest scores are there and none below that of rank ⌊11k/10⌋ (⌊3k/2⌋)].
    correct, f1, score_ratio: expected number of right items, F1 and sum of scores over the best sum.
    largest_error, total_error, relative_error: expected ℓ∞, ℓ1 and k-relative error (joint, Definition 2.2), of sets
    after sorting. A figure is None if it has no exact form here and `draws` is 0, or is not always defined. What takes
    long is computed when it is first asked for.
    """

    mechanism: Mechanism
    scores: Scores
    draws: int
    seed: int
    known: ExactFigures

    @property
    def size(self) -> int:
        """The number of items."""
        return self.scores.size

    @property
    def exact(self) -> Figure | None:
        """P[exactly the top k]."""
        return self._figure("exact")

    @property
    def great(self) -> Figure | None:
        """P[great]."""
        return self._figure("great")

    @property
    def good(self) -> Figure | None:
        """P[good]."""
        return self._figure("good")

    @property
    def correct(self) -> Figure | None:
        """The expected number of right items."""
        return self._figure("correct")

    @property
    def f1(self) -> Figure | None:
        """The expected F1 score."""
        return self._figure("f1")

    @property
    def score_ratio(self) -> Figure | None:
        """The expected sum of the chosen scores over that of the top k."""
        return self._figure("score_ratio")

    @property
    def largest_error(self) -> Figure | None:
        """The expected ℓ∞ error."""
        return self._figure("largest_error")

    @property
    def total_error(self) -> Figure | None:
        """The expected ℓ1 error."""
        return self._figure("total_error")

    @property
    def relative_error(self) -> Figure | None:
        """The expected k-relative error."""
        return self._figure("relative_error")

    def _figure(self, name: str) -> Figure | None:
        return self._chances.get(name) or self._exact.get(name) or self._simulated[name]

    @cached_property
    def _chances(self) -> dict[str, Figure]:
        return _known(self.known.chances)

    @cached_property
    def _exact(self) -> dict[str, Figure]:
        return self._chances | _known(self.known.expectations)

    @cached_property
    def _simulated(self) -> dict[str, Figure | None]:
        missing = [name for name in TITLES if name not in self._exact]
        if not self.draws:
            return dict.fromkeys(missing)
        found = simulated(self.scores, self.mechanism, self.draws, self.seed, missing)
        if "largest_error" in found:
            bounds = (self._exact.get(name) for name in ("relative_error", "total_error"))
            found["largest_error"] = _between(found["largest_error"], *bounds)
        return found

    def figures(self) -> dict[str, Figure | None]:
        """Return all figures by name."""
        return {name: self._figure(name) for name in TITLES}

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast as plain data that json.dumps accepts."""
        figures = {name: figure and figure.to_dict() for name, figure in self.figures().items()}
        return {
            "mechanism": self.mechanism.describe(),
            "size": self.size,
            "draws": self.draws,
            "private": False,
            **figures,
        }

    def plot(self, axes: Any = None) -> Any:
        """Draw P[exact top k] against ε, with this forecast's ε marked, and return the Matplotlib axes.

        Where there is no exact curve, from as many draws at each of some ε around it, with 95% intervals.
        """
        from dpselect.forecast.picture import draw_curves, draw_points

        epsilon = self.mechanism.epsilon
        if has_curve(self.mechanism) and "exact" in self._chances:
            return draw_curves([("", success(self.scores, self.mechanism))], epsilon=epsilon, axes=axes)
        if not self.draws:
            raise InvalidInput("draws", 0, "at least 2 are needed: the curve of this mechanism is simulated")
        around = [_scaled(self.mechanism, factor) for factor in _AROUND]
        chances = [forecast(self.scores, each, draws=self.draws, seed=self.seed).exact for each in around]
        points = [(each.epsilon, chance) for each, chance in zip(around, chances, strict=True) if chance is not None]
        return draw_points(points, epsilon=epsilon, draws=self.draws, axes=axes)

    def _repr_html_(self) -> str:
        from dpselect.forecast.page import table_html

        # Without draws what has no exact form is missing; with them, what an answer of fewer than k items leaves open.
        missing = "not always defined" if self.draws else "no exact form; set draws"
        rows = [[TITLES[name], missing if figure is None else str(figure)] for name, figure in self.figures().items()]
        title = f"Forecast: {self.mechanism.name}, k = {self.mechanism.k}, epsilon = {self.mechanism.epsilon:g}"
        return table_html(title, ["figure", "value"], rows, note=WARNING)

    def __repr__(self) -> str:
        """Show the mechanism and the chance of an exact answer."""
        return f"<Forecast of {self.mechanism!r}: {TITLES['exact']} = {self.exact}>"


def forecast(scores: Any, mechanism: Mechanism, *, draws: int = 200, seed: int = 0) -> Forecast:
    """Return what to expect of a mechanism on given scores; exact where its law allows, simulated elsewhere.

    Not private: the result depends on the scores directly. Figures without an exact form come from so many draws,
    with a 95% interval; with draws=0 they are None.

    >>> import dpselect as dps
    >>> votes = [120, 100, 80, 20, 10, 5]
    >>> outlook = dps.forecast.forecast(votes, dps.Canonical(k=3, epsilon=0.1), draws=0)
    >>> print(outlook.exact, outlook.correct, outlook.largest_error)
    0.995 2.99 None
    """
    table = Scores.of(scores)
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput("mechanism", mechanism, "a mechanism object is needed, such as dpselect.Canonical(...)")
    mechanism.check_size(table.size)
    seed_or_none(seed)
    return Forecast(mechanism, table, checked_draws(draws), seed, ExactFigures(table, mechanism))


def checked_draws(draws: Any) -> int:
    """Return the number of draws if it is one."""
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 0 or draws == 1:
        raise InvalidInput("draws", draws, "0, or a whole number of at least 2 is needed: one draw has no interval")
    return draws


def _scaled(mechanism: Mechanism, factor: float) -> Any:
    """Return a mechanism with a multiple of its ε, each part of it."""
    if isinstance(mechanism, Restricted):
        inner = _scaled(mechanism.inner, factor)
        # k, epsilon and sensitivity follow from these.
        unset: dict[str, Any] = {"k": None, "epsilon": None, "sensitivity": None}
        return replace(mechanism, **unset, inner=inner, test_epsilon=mechanism.test_epsilon * factor)
    return replace(mechanism, epsilon=mechanism.epsilon * factor)


def _known(values: dict[str, float]) -> dict[str, Figure]:
    """Return exact figures; rounding may have carried a probability beyond 1."""
    return {name: Figure.known(min(value, 1.0) if name in PROBABILITIES else value) for name, value in values.items()}


def _between(error: Figure | None, low: Figure | None, high: Figure | None) -> Figure | None:
    """Keep the ℓ∞ error above its k-relative and below its ℓ1 error, where these are exact."""
    if error is None:
        return None
    if low is not None and high is not None and high.value - low.value <= _EQUAL * high.value:
        return high
    least = error.low if low is None else max(error.low, low.value)
    most = error.high if high is None else min(error.high, high.value)
    if low is not None and error.high <= low.value:
        # Draws that all but miss what is rare say nothing; what is exact does.
        least, most = low.value, low.value if high is None else high.value
    elif least > most:
        least = most
    return Figure(min(max(error.value, least), most), False, least, most)
