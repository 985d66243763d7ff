"""A forecast: how good the answer of one mechanism will be on given scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._numbers import exact_fraction, finite_number, seed_or_none
from dpselect._show import table_html
from dpselect.errors import InvalidInput
from dpselect.forecast.classes import Subsets
from dpselect.forecast.curves import exact_probability, has_curve, judged_in_order, success
from dpselect.forecast.levels import JointLevels
from dpselect.forecast.metrics import good_ranks, great_ranks
from dpselect.forecast.mistakes import expected_mistakes
from dpselect.forecast.noisy import NoisyItems, noisy_items
from dpselect.forecast.simulate import PROBABILITIES, Figure, simulated
from dpselect.mechanisms import Canonical, Joint, Mechanism, Restricted
from dpselect.sampling.bounds import scaled
from dpselect.scores import Ranking, Scores

WARNING = "forecasts are computed from the scores themselves and are not private: for the curator, not for release"
"""What is said beside every forecast."""

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
"""The figures of a mechanism, in the order in which they are shown, with their names."""

_FACTORS = tuple(2.0 ** (step / 2) for step in range(-6, 7))
"""The multiples of a chosen ε at which a simulated curve is drawn."""


@dataclass(frozen=True, repr=False)
class Forecast:
    """What to expect of one mechanism on given scores; computed from them, so **not private**.

    Figures are computed when they are first asked for. A figure is None if it has no exact form and `draws` is 0, or
    if it is not always defined.

    Attributes
    ----------
    exact : Figure
        P[the scores are those of the top k], for sequences in order unless they are judged as sets; tied items are
        interchangeable.
    great, good : Figure
        P[the ⌈k/10⌉ (⌈k/100⌉) highest scores are there and none below that of rank ⌊11k/10⌋ (⌊3k/2⌋)].
    correct, f1, score_ratio : Figure
        Expected number of right items, F1, and sum of scores over the largest possible sum.
    largest_error, total_error, relative_error : Figure
        Expected ℓ∞, ℓ1 and k-relative error (joint, Definition 2.2), for sets after sorting.
    inexact : Figure
        1 − `exact`, with full relative precision even if `exact` is close to 1.

    Examples
    --------
    >>> import dpselect as dps
    >>> outlook = dps.forecast.forecast([120, 100, 80, 20, 10, 5], dps.OneShot(k=3, epsilon=0.5))
    >>> print(outlook.exact, outlook.inexact)
    >0.999 2.89e-05
    """

    mechanism: Mechanism
    scores: Scores
    draws: int
    seed: int | None
    tolerance: float
    ordered: bool

    @property
    def size(self) -> int:
        """The number of items."""
        return self.scores.size

    @property
    def exact(self) -> Figure | None:
        """P[exactly the top k]."""
        return self._figure("exact")

    @property
    def inexact(self) -> Figure | None:
        """1 − P[exactly the top k]."""
        if self._pair is not None:
            return Figure.known(self._pair[1])
        figure = self.exact
        return None if figure is None else Figure(1 - figure.value, False, 1 - figure.high, 1 - figure.low)

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
        probabilities = {"exact"} if self._items is None else set(PROBABILITIES)
        known = self._probabilities if name in probabilities else self._exact
        return known.get(name) or self._simulated[name]

    @cached_property
    def _pair(self) -> tuple[float, float] | None:
        """P[exact] and its complement, None if they have no exact form."""
        if self._classes is not None and self.ordered == self.mechanism.ordered:
            mechanism: Any = self.mechanism
            pair: tuple[float, float] = self._classes.exact(mechanism.epsilon, mechanism.noise)
            return pair
        return exact_probability(self.scores, self.mechanism, self.tolerance, self.ordered)

    @cached_property
    def _classes(self) -> Any:
        """The classes of Canonical or the levels of Joint, None for other mechanisms."""
        kind: Any = {Canonical: Subsets, Joint: JointLevels}.get(type(self.mechanism))
        return None if kind is None else kind.of(self.mechanism, self.scores, self.mechanism.epsilon)

    @cached_property
    def _items(self) -> NoisyItems | None:
        """The items of which the mechanism takes the largest noisy scores, None for other mechanisms."""
        return noisy_items(self.scores, self.mechanism)

    @cached_property
    def _probabilities(self) -> dict[str, Figure]:
        """P[exact], and for noisy scores P[great] and P[good], which take less work than expectations."""
        values = {} if self._pair is None else {"exact": self._pair[0]}
        if self._items is not None:
            for name, ranks in (("great", great_ranks), ("good", good_ranks)):
                values[name] = self._items.within(*ranks(self.mechanism.k, self.size), self.tolerance)
        return _known(values)

    @cached_property
    def _exact(self) -> dict[str, Figure]:
        """All figures that have an exact form."""
        mechanism: Any = self.mechanism
        found: dict[str, float] = {}
        if self._classes is not None:
            found = self._classes.figures(mechanism.epsilon, mechanism.noise)
        elif self._items is not None:
            found = self._mistakes(self._items)
        values = {name: figure.value for name, figure in self._probabilities.items()}
        return _known(values | _expressed(found, self.scores, self.mechanism.k, self.ordered))

    def _mistakes(self, items: NoisyItems) -> dict[str, float]:
        """Return the expected number of wrong items, and the score lost."""
        if items.sizes[items.border] > 2.0**53:
            return {}  # one tied item more or less makes no difference in float64
        # `_pair` of an ordered answer requires the right order; the number of mistakes depends on the set alone.
        pair = items.exact(self.tolerance) if self.ordered or self._pair is None else self._pair
        border = Ranking.of(self.scores.distinct).scores(np.array([items.k - 1]))
        costs = np.abs(scaled(self.scores.values - border, Fraction(1)))
        mistakes = expected_mistakes(items, costs, pair[1], self.tolerance)
        return {"wrong": mistakes.wrong, "lost": mistakes.lost}

    @cached_property
    def _simulated(self) -> dict[str, Figure | None]:
        missing = [name for name in TITLES if name not in self._exact]
        if not self.draws:
            return dict.fromkeys(missing)
        found = simulated(self.scores, self.mechanism, self.draws, self.seed, missing, self.ordered)
        relative, total = (self._exact.get(name) for name in ("relative_error", "total_error"))
        for name, low in (("largest_error", relative), ("relative_error", None)):
            if name in found:
                found[name] = _between(self._widened(found[name]), low, total)
        if "total_error" in found:
            found["total_error"] = self._widened(found["total_error"], self.mechanism.k)
        return found

    def _widened(self, error: Figure | None, places: int = 1) -> Figure | None:
        """Return an error of which no draw had any with P[inexact] times the largest possible error as upper bound."""
        if error is None or error.high or self._pair is None:
            return error
        span = float(scaled(self.scores.values[:1] - self.scores.values[-1:], Fraction(1))[0])
        return Figure(0.0, False, 0.0, self._pair[1] * span * places)

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

        Where there is no exact curve, it is simulated at some ε around the forecast's, with 95% intervals.
        """
        from dpselect.forecast.render import draw_curves, draw_points

        epsilon = self.mechanism.epsilon
        if has_curve(self.mechanism, self.ordered) and self._pair is not None:
            curve = success(self.scores, self.mechanism, ordered=self.ordered)
            return draw_curves([(self.mechanism.name, curve)], epsilon=epsilon, axes=axes)
        if not self.draws:
            raise InvalidInput("draws", 0, "must be at least 2, because the curve of this mechanism is simulated")
        points = []
        for factor in _FACTORS:
            mechanism = _scaled(self.mechanism, factor)
            figure = replace(self, mechanism=mechanism).exact
            if figure is not None:
                points.append((mechanism.epsilon, figure))
        return draw_points(points, epsilon=epsilon, draws=self.draws, axes=axes)

    def _repr_html_(self) -> str:
        # Without draws, figures without an exact form are missing; with draws, those that short answers do not have.
        missing = "not always defined" if self.draws else "no exact form; set draws"
        rows = [[TITLES[name], missing if figure is None else str(figure)] for name, figure in self.figures().items()]
        title = f"Forecast: {self.mechanism.name}, k = {self.mechanism.k}, epsilon = {self.mechanism.epsilon:g}"
        return table_html(title, ["figure", "value"], rows, note=WARNING)

    def __repr__(self) -> str:
        """Show the mechanism and the probability of an exact answer."""
        return f"<Forecast of {self.mechanism!r}: {TITLES['exact']} = {self.exact}>"


def forecast(
    scores: Any,
    mechanism: Mechanism,
    *,
    draws: int = 200,
    seed: int | None = 0,
    tolerance: float = 1e-6,
    ordered: bool | None = None,
) -> Forecast:
    """Return what to expect of a mechanism on given scores: exact where its law allows, simulated elsewhere.

    Not private: the result depends on the scores directly.

    Parameters
    ----------
    scores
        The scores, as for `dpselect.select`.
    mechanism : Mechanism
        The mechanism, with its ε.
    draws : int
        Figures without an exact form come from so many draws, with a 95% interval; with 0 they are None.
    seed : int, optional
        Seed of the draws.
    tolerance : float
        Relative error of the exact figures: of P[exact], its complement and the other probabilities; and of the
        expected number and cost of mistakes (not of the number correct), which have an absolute error of 1e-12 too.
    ordered : bool, optional
        Whether the order has to be right; by default, whether the answer has one. False judges a sequence as a set.

    Returns
    -------
    Forecast
        The figures.

    Raises
    ------
    InvalidInput
        If the mechanism does not fit the scores, or an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> votes = [120, 100, 80, 20, 10, 5]
    >>> outlook = dps.forecast.forecast(votes, dps.Canonical(k=3, epsilon=0.1), draws=0)
    >>> print(outlook.exact, outlook.correct, outlook.largest_error)
    0.995 2.99 None
    """
    table = Scores.of(scores)
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput("mechanism", mechanism, "must be a mechanism object, such as dpselect.Canonical(...)")
    mechanism.check_size(table.size)
    seed_or_none(seed)
    allowed = float(finite_number("tolerance", tolerance))
    if not 1e-12 <= allowed <= 0.1:
        raise InvalidInput("tolerance", tolerance, "must be a number from 1e-12 to 0.1")
    in_order = judged_in_order(mechanism, ordered)
    return Forecast(mechanism, table, checked_draws(draws), seed, allowed, in_order)


def checked_draws(draws: Any) -> int:
    """Return the number of draws if it is one."""
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 0 or draws == 1:
        raise InvalidInput("draws", draws, "must be 0 or a whole number of at least 2: one draw has no interval")
    return draws


def _known(values: dict[str, float]) -> dict[str, Figure]:
    """Return exact figures; rounding errors beyond [0, 1] or against P[exact] <= P[great] <= P[good] are corrected."""
    values = {name: min(max(value, 0.0), 1.0) if name in PROBABILITIES else value for name, value in values.items()}
    for less, more in (("exact", "great"), ("great", "good")):
        if less in values and more in values:
            values[more] = min(max(values[less], values[more]), 1.0)
    return {name: Figure.known(value) for name, value in values.items() if np.isfinite(value)}


def _expressed(found: dict[str, float], table: Scores, k: int, ordered: bool) -> dict[str, float]:
    """Return the figures of a forecast, from the expected number of wrong items and the expected score lost."""
    figures = {name: found[name] for name in (*PROBABILITIES, "relative_error") if name in found}
    if "wrong" in found:
        figures |= {"correct": k - found["wrong"], "f1": 1 - found["wrong"] / k}
    if "lost" in found:
        total = _best_sum(table, k)
        figures["score_ratio"] = 1 - found["lost"] / total if total else 1.0
        if not ordered:
            # A sorted set falls short of the top k at every rank, so that its ℓ1 error is the score lost.
            figures["total_error"] = found["lost"]
    return figures


def _best_sum(table: Scores, k: int) -> float:
    """Return the sum of the k highest scores."""
    top = Ranking.of(table.distinct).scores(np.arange(k))
    return float(sum(map(exact_fraction, top)) if top.dtype == object else top.sum(dtype=np.float64))


def _scaled(mechanism: Mechanism, factor: float) -> Any:
    """Return the mechanism with ε, and every part of ε, multiplied by a factor."""
    if isinstance(mechanism, Restricted):
        inner = _scaled(mechanism.inner, factor)
        # k, epsilon and sensitivity follow from these.
        unset: dict[str, Any] = {"k": None, "epsilon": None, "sensitivity": None}
        return replace(mechanism, **unset, inner=inner, test_epsilon=mechanism.test_epsilon * factor)
    return replace(mechanism, epsilon=mechanism.epsilon * factor)


def _between(error: Figure | None, low: Figure | None, high: Figure | None) -> Figure | None:
    """Keep a simulated ℓ∞ error above the k-relative and below the ℓ1 error, where these are exact."""
    if error is None:
        return None
    if low is not None and high is not None and high.value - low.value <= 1e-12 * high.value:
        return high
    least = error.low if low is None else max(error.low, low.value)
    most = error.high if high is None else min(error.high, high.value)
    if low is not None and error.high <= low.value:
        # The draws missed the rare errors, so only the exact bounds are known.
        least, most = low.value, low.value if high is None else high.value
    elif least > most:
        least = most
    return Figure(min(max(error.value, least), most), False, least, most)
