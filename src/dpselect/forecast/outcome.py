"""A forecast: how good the answer of one mechanism will be on given scores."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpselect.errors import InvalidInput
from dpselect.forecast import metrics
from dpselect.forecast.chances import CERTAIN
from dpselect.forecast.curves import noisy_groups, success
from dpselect.forecast.sequence_figures import BoundedRows
from dpselect.forecast.sequences import Sequences
from dpselect.forecast.simulation import PROBABILITIES, Figure, simulated
from dpselect.forecast.subsets import Subsets
from dpselect.mechanisms import Canonical, Gaussian, Joint, Mechanism, OneShot, Peeling
from dpselect.mechanisms.ranking import Ranking, exact
from dpselect.sampling import NOISES
from dpselect.sampling.normal import NORMAL
from dpselect.scores import Scores
from dpselect.validation import seed_or_none

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


@dataclass(frozen=True)
class Forecast:
    """What to expect of one mechanism on given scores; computed from them, so **not private**.

    exact: P[the scores of the top k], of a sequence in order; tied items are interchangeable.
    great, good: P[the ⌈k/10⌉ (⌈k/100⌉) highest scores are there and none below that of rank ⌊11k/10⌋ (⌊3k/2⌋)].
    correct, f1, score_ratio: expected number of right items, F1 and sum of scores over the best sum.
    largest_error, total_error, relative_error: expected ℓ∞, ℓ1 and k-relative error (joint, Definition 2.2), of sets
    after sorting. A figure is None if it has no exact form here and `draws` is 0.
    """

    mechanism: Mechanism
    size: int
    draws: int
    exact: Figure | None
    great: Figure | None
    good: Figure | None
    correct: Figure | None
    f1: Figure | None
    score_ratio: Figure | None
    largest_error: Figure | None
    total_error: Figure | None
    relative_error: Figure | None
    scores: Scores

    def figures(self) -> dict[str, Figure | None]:
        """Return all figures by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in TITLES}

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
        """Draw P[exact top k] against ε, with this forecast's ε marked, and return the Matplotlib axes."""
        from dpselect.forecast.picture import draw_curves

        return draw_curves([("", success(self.scores, self.mechanism))], epsilon=self.mechanism.epsilon, axes=axes)

    def _repr_html_(self) -> str:
        from dpselect.forecast.page import table_html

        rows = [[TITLES[name], "" if figure is None else str(figure)] for name, figure in self.figures().items()]
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
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 0 or draws == 1:
        raise InvalidInput("draws", draws, "0, or a whole number of at least 2 is needed: one draw has no interval")
    seed_or_none(seed)
    found: dict[str, Figure | None] = dict.fromkeys(TITLES)
    for name, value in exact_figures(table, mechanism).items():
        found[name] = Figure.known(min(value, 1.0) if name in PROBABILITIES else value)
    missing = [name for name, figure in found.items() if figure is None]
    if draws and missing:
        found.update(simulated(table, mechanism, draws, seed, missing))
    if not mechanism.ordered:
        found["largest_error"] = _between(found["largest_error"], found["relative_error"], found["total_error"])
    return Forecast(mechanism=mechanism, size=table.size, draws=draws, scores=table, **found)


def _between(error: Figure | None, low: Figure | None, high: Figure | None) -> Figure | None:
    """Keep the ℓ∞ error of a set between its k-relative and its ℓ1 error, where these are exact."""
    if error is None or low is None or high is None or not (low.exact and high.exact):
        return error
    least, most = max(error.low, low.value), min(error.high, high.value)
    if least > most:
        least, most = low.value, high.value
    return Figure(min(max(error.value, least), most), False, least, most)


def exact_figures(table: Scores, mechanism: Mechanism) -> dict[str, float]:
    """Return every figure that has an exact form."""
    epsilon = mechanism.epsilon
    if isinstance(mechanism, Canonical):
        return Subsets.of(mechanism, table, epsilon).figures(epsilon, mechanism.noise, _best_sum(table, mechanism.k))
    if isinstance(mechanism, Joint):
        return _sequence_figures(table, mechanism)
    figures = {}
    if isinstance(mechanism, OneShot | Peeling):
        figures["exact"] = success(table, mechanism, smallest=epsilon).chance(epsilon)
    if isinstance(mechanism, OneShot | Gaussian) or (isinstance(mechanism, Peeling) and mechanism.noise == "gumbel"):
        figures |= _chances_within(table, mechanism, figures.get("exact", 0.0))
    return figures


def _best_sum(table: Scores, k: int) -> float:
    """Return the sum of the k highest scores."""
    top = Ranking.of(table.distinct).scores(np.arange(k))
    return float(sum(map(exact, top)) if top.dtype == object else top.sum(dtype=np.float64))


def _sequence_figures(table: Scores, mechanism: Joint) -> dict[str, float]:
    k, epsilon, noise = mechanism.k, mechanism.epsilon, mechanism.noise
    levels = Sequences.of(k, mechanism.sensitivity.spread, table, epsilon)
    figures = {"exact": levels.chance(epsilon, noise)}
    rows = BoundedRows.of(levels, Ranking.of(table.distinct), k, epsilon, noise)
    return figures if rows is None else figures | rows.figures(_best_sum(table, k))


def _chances_within(table: Scores, mechanism: Any, surely: float) -> dict[str, float]:
    """Return P[great] and P[good] of noisy scores; each is at least as likely as the one before."""
    k = mechanism.k
    if isinstance(mechanism, Gaussian):
        rate, noise = 1 / exact(mechanism.sigma), NORMAL
    else:
        rate = mechanism.rate(table.size) if isinstance(mechanism, OneShot) else mechanism.rate()
        noise = NOISES[mechanism.noise]
    noisy = noisy_groups(table, k, rate, noise)
    great = surely if surely > CERTAIN else noisy.within(*metrics.great_ranks(k, table.size))
    good = great if great > CERTAIN else noisy.within(*metrics.good_ranks(k, table.size))
    return {"great": great, "good": good}
