"""Unknown domains: how many items to expect, from scores, a look-alike or public facts.

Figures that follow from one integral are computed: the length of the answers of LimitedDomain with gumbel noise and of
TopStable. They leave out answers cut by a nameless item, which have probability at most δ. That of Discovered is a sum
over items. All others are simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._numbers import exact_fraction, finite_number, positive_integer
from dpselect._show import table_html
from dpselect.errors import InvalidInput
from dpselect.forecast.outcome import WARNING, checked_draws
from dpselect.forecast.simulate import Figure, simulated
from dpselect.forecast.theorems import full_answer_gap
from dpselect.mechanisms import (
    FOR_UNKNOWN_DOMAINS,
    Discovered,
    Discovery,
    LimitedDomain,
    PooledDomain,
    Restricted,
    TopStable,
    UnknownDomain,
    mechanism_for,
)
from dpselect.mechanisms.unknown import Pool
from dpselect.privacy.calibration import laplace_threshold
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.sampling.laws import threshold_probability
from dpselect.sampling.noise import NOISES
from dpselect.scores import Scores

UNKNOWN_TITLES = {"returned": "items returned", "full": "P(all k)", "f1": "F1", "score_ratio": "score ratio"}
"""The figures of a mechanism for unknown domains."""

_LARGEST_INTEGRAL = 10**6
"""Largest pool times k for which the length of an answer is computed instead of simulated."""

_NEGLIGIBLE = 1e-12
"""Items that are listed with a smaller probability are left out of the length of an answer."""

_FARTHEST = 600.0
"""Scores this many scales of noise from a threshold are as good as infinitely far."""


@dataclass(frozen=True)
class UnknownOutlook:
    """What to expect of one mechanism for unknown domains on given scores.

    Attributes
    ----------
    mechanism : UnknownDomain
        The mechanism.
    returned, f1, score_ratio : Figure or None
        Expected number of items, F1 and sum of scores over that of the top k; None if simulated and `draws` is 0.
    full : Figure or None
        P[the answer has k items].

    Examples
    --------
    >>> import dpselect as dps
    >>> outlook = dps.forecast.compare_unknown([900, 700, 50, 1], 3, epsilon=1.0, delta=1e-6).outlooks[1]
    >>> print(outlook.mechanism.name, outlook.returned)
    limited 2.29
    """

    mechanism: UnknownDomain
    returned: Figure | None
    full: Figure | None
    f1: Figure | None
    score_ratio: Figure | None

    def figures(self) -> dict[str, Figure | None]:
        """Return all figures by name."""
        return {name: getattr(self, name) for name in UNKNOWN_TITLES}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json.dumps accepts."""
        figures = {name: figure and figure.to_dict() for name, figure in self.figures().items()}
        return {"mechanism": self.mechanism.describe(), **figures}


@dataclass(frozen=True, repr=False)
class UnknownComparison:
    """The mechanisms for unknown domains on given scores, at one ε and δ; **not private** unless these are public.

    Attributes
    ----------
    outlooks : list of UnknownOutlook
        What to expect of restricted, limited and, unless the order matters, top-stable.
    k, epsilon, delta, draws
        What was stated.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.forecast.compare_unknown([900, 700, 80, 1], 3, epsilon=1.0, delta=1e-6)
    <UnknownComparison for k = 3 at epsilon = 1, delta = 1e-06: restricted, limited, top-stable>
    """

    outlooks: list[UnknownOutlook]
    k: int
    epsilon: float
    delta: float
    draws: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json.dumps accepts."""
        stated = {"k": self.k, "epsilon": self.epsilon, "delta": self.delta, "draws": self.draws, "private": False}
        return {**stated, "mechanisms": [outlook.to_dict() for outlook in self.outlooks]}

    def _repr_html_(self) -> str:
        title = f"Unknown domain: top {self.k} at epsilon = {self.epsilon:g}, delta = {self.delta:g}"
        rows = [
            [each.mechanism.name, *(str(figure or "") for figure in each.figures().values())] for each in self.outlooks
        ]
        return table_html(title, ["mechanism", *UNKNOWN_TITLES.values()], rows, note=WARNING)

    def __repr__(self) -> str:
        """Show what was compared."""
        names = ", ".join(outlook.mechanism.name for outlook in self.outlooks)
        return f"<UnknownComparison for k = {self.k} at epsilon = {self.epsilon:g}, delta = {self.delta:g}: {names}>"


def compare_unknown(
    scores: Any,
    k: int,
    *,
    epsilon: float,
    delta: float,
    pool: int | None = None,
    ordered: bool = False,
    sensitivity: Sensitivity = COUNTS,
    max_items_per_person: int | None = None,
    draws: int = 200,
    seed: int | None = 0,
) -> UnknownComparison:
    """Return how many items each mechanism for unknown domains will return, and how good they are; not private.

    Parameters
    ----------
    scores
        The scores of the items that exist, as for `dpselect.select`.
    k : int
        The largest number of items in the answer.
    epsilon, delta : float
        The cost of a release.
    pool : int, optional
        How many of the highest scores are considered; 10 k if not stated.
    ordered : bool
        Whether the answer must have an order; leaves out top-stable.
    sensitivity : Sensitivity
        How scores change when a person is added; others than COUNTS leave out discovered.
    max_items_per_person : int, optional
        How many items one person can touch.
    draws : int
        Draws for figures without an exact form, which are None if it is 0.
    seed : int, optional
        Seed of the draws.

    Returns
    -------
    UnknownComparison
        The figures of each mechanism.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> counts = [round(2000 / rank) for rank in range(1, 1001)]
    >>> compared = dps.forecast.compare_unknown(counts, 10, epsilon=1.0, delta=1e-7)
    >>> for outlook in compared.outlooks[1:]:
    ...     print(outlook.mechanism.name, outlook.returned, outlook.full)
    limited 9.96 0.963
    top-stable 2.98 5.7e-08
    """
    length, table, number = positive_integer("k", k), Scores.of(scores), checked_draws(draws)
    asked: dict[str, Any] = {"pool": pool, "sensitivity": sensitivity, "max_items_per_person": max_items_per_person}
    mechanisms = _candidates(length, epsilon, delta, ordered=ordered, **asked)
    outlooks = [_outlook(table, mechanism, number, seed, ordered) for mechanism in mechanisms]
    return UnknownComparison(outlooks, length, mechanisms[0].epsilon, mechanisms[0].guarantee.delta, number)


def _candidates(
    k: int,
    epsilon: float,
    delta: float,
    *,
    pool: int | None = None,
    ordered: bool = False,
    sensitivity: Sensitivity = COUNTS,
    max_items_per_person: int | None = None,
) -> list[UnknownDomain]:
    """Return the mechanisms for unknown domains by name; those with an ordered answer if `ordered`.

    Discovered counts people, needs a limit of items per person, and has no pool.
    """
    can_discover = sensitivity == COUNTS and max_items_per_person is not None and pool is None
    named = [
        _named(name, k, epsilon, delta, pool, max_items_per_person, sensitivity)
        for name in FOR_UNKNOWN_DOMAINS
        if name != Discovered.name or can_discover
    ]
    return [mechanism for mechanism in named if mechanism.ordered or not ordered]


def _named(
    name: str,
    k: int,
    epsilon: float,
    delta: float,
    pool: int | None,
    max_items_per_person: int | None,
    sensitivity: Sensitivity = COUNTS,
) -> UnknownDomain:
    """Return the mechanism for unknown domains with a name, with the limit per person if it can use it."""
    can_use = hasattr(FOR_UNKNOWN_DOMAINS[name], "max_items_per_person")
    limit: dict[str, Any] = {"max_items_per_person": max_items_per_person} if can_use else {}
    mechanism = mechanism_for(name, k=k, epsilon=epsilon, delta=delta, sensitivity=sensitivity, pool=pool, **limit)
    assert isinstance(mechanism, UnknownDomain)
    return mechanism


def _outlook(table: Scores, mechanism: UnknownDomain, draws: int, seed: int | None, ordered: bool) -> UnknownOutlook:
    """Return the figures of one mechanism."""
    lengths = length_law(table, mechanism)
    known: dict[str, Figure | None] = {}
    if lengths is not None:
        known = {
            "returned": Figure.known(float(lengths @ np.arange(mechanism.k + 1))),
            "full": Figure.known(float(lengths[-1])),
        }
    missing = [name for name in UNKNOWN_TITLES if name not in known]
    found = simulated(_filled(table, mechanism.k), mechanism, draws, seed, missing, ordered) if draws else {}
    return UnknownOutlook(mechanism, **{name: known.get(name) or found.get(name) for name in UNKNOWN_TITLES})


def _filled(table: Scores, k: int) -> Scores:
    """Return at least k items; added ones have a score of 0, and so do not exist."""
    missing = k - table.size
    if missing <= 0:
        return table
    return Scores.from_histogram([*table.values.tolist(), 0], [*table.multiplicities.tolist(), missing])


def length_law(table: Scores, mechanism: UnknownDomain) -> FloatArray | None:
    """Return the probabilities of answers of 0 … k items, up to δ; None if no integral gives them."""
    if isinstance(mechanism, Discovered):
        return _listed_lengths(table, mechanism)
    assert isinstance(mechanism, PooledDomain)
    size = mechanism.pool_size
    if size * mechanism.k > _LARGEST_INTEGRAL:
        return None
    pool = Pool.of(table, size)
    held = pool.scores.multiplicities[: pool.named].astype(np.int64)
    ranked = [exact_fraction(score) for score in np.repeat(pool.scores.values[: pool.named], held)]
    following = exact_fraction(pool.following)
    if isinstance(mechanism, LimitedDomain) and mechanism.noise == "gumbel" and not mechanism.pool_epsilon:
        rate, dummy = mechanism.rate(), mechanism.dummy(following)
        return _above_dummy(_leads([rate * (score - dummy) for score in ranked]), mechanism.k)
    if isinstance(mechanism, TopStable):
        return _stable_lengths(mechanism, ranked, following)
    return None


def _leads(numbers: list[Fraction]) -> FloatArray:
    """Return exact numbers as floats of limited size."""
    return np.array([float(max(min(number, Fraction(_FARTHEST)), -Fraction(_FARTHEST))) for number in numbers])


def _above_dummy(leads: FloatArray, k: int) -> FloatArray:
    """Return the law of min(k, number of items above the dummy), given their leads over it in scales of the noise.

    Given the dummy's noise z, each item is above it independently. The trapezoid rule converges exponentially.
    """
    gumbel = NOISES["gumbel"]
    z, step = np.linspace(-6.0, 42.0, 2401, retstep=True)
    counts = np.zeros((k + 1, len(z)))
    counts[0] = 1
    for lead in leads:
        above = gumbel.survival(z - lead)
        moved = counts[:-1] * above
        counts[:-1] -= moved
        counts[1:] += moved
    law: FloatArray = counts @ (gumbel.density(z) * step)
    return law


def _listed_lengths(table: Scores, mechanism: Discovered) -> FloatArray | None:
    """Return the law of min(k, number of listed items): each item is listed independently.

    Items that are listed with a probability below 1e-12 are left out.
    """
    chances = mechanism.discovery.probabilities(mechanism.weights(table).values)
    possible = chances >= _NEGLIGIBLE
    sizes = table.multiplicities[possible]
    if int(sizes.sum()) * mechanism.k > _LARGEST_INTEGRAL:
        return None
    law = np.zeros(mechanism.k + 1)
    law[0] = 1.0
    for chance in np.repeat(chances[possible], sizes.astype(np.int64)):
        moved = law[:-1] * chance
        law[:-1] -= moved
        law[1:] += moved
    return law


def _stable_lengths(mechanism: TopStable, ranked: list[Fraction], following: Fraction) -> FloatArray:
    """Return the law of the length of TopStable's answer: k if one of the gaps from rank k on is accepted."""
    spread, rate, height = Fraction(mechanism.sensitivity.spread), mechanism.rate(), mechanism.height()
    gaps = [max(here - below, spread) for here, below in pairwise([*ranked, following])]
    gaps += [spread] * (mechanism.pool_size - len(gaps))
    margins = _leads([rate * gap - height for gap in gaps]).tolist()
    law = np.zeros(mechanism.k + 1)
    failed = margins[mechanism.k - 1 :]
    none_before = threshold_probability([], failed)
    law[min(mechanism.k, len(ranked))] = 1 - none_before
    for size in range(mechanism.k - 1, 0, -1):
        failed = [*failed, margins[size - 1]]
        none_yet = threshold_probability([], failed)
        law[min(size, len(ranked))] += none_before - none_yet
        none_before = none_yet
    law[0] += none_before
    return law


@dataclass(frozen=True)
class UnknownFacts:
    """What one mechanism needs to release an item of an unknown domain, from public facts alone.

    Attributes
    ----------
    mechanism : UnknownDomain
        The mechanism.
    half, likely : float
        The score above x_[pool+1] that a chosen item needs to pass with probability ½ and 0.99. For top-stable, the
        gap behind a rank at which its answer may end; for discovered, the score itself, if everybody has as many items
        as allowed.
    full : float
        A gap x_[pool] − x_[pool+1] with which all k items are returned with probability 0.99 (restricted, theorem 4);
        for top-stable, the gap behind rank k; for discovered, the score of rank k.
    for_tests : float
        The share of ε that is spent on hiding which items exist instead of choosing.

    Examples
    --------
    >>> import dpselect as dps
    >>> facts = dps.forecast.plan_unknown(10, epsilon=1.0, delta=1e-7)[0]
    >>> print(f"{facts.mechanism.name}: {facts.half:.0f} {facts.likely:.0f} {facts.full:.0f} {facts.for_tests:.2f}")
    restricted: 75 96 106 0.50
    """

    mechanism: UnknownDomain
    half: float
    likely: float
    full: float
    for_tests: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json.dumps accepts."""
        numbers = {name: getattr(self, name) for name in ("half", "likely", "full", "for_tests")}
        return {"mechanism": self.mechanism.describe(), **numbers}


def plan_unknown(
    k: int,
    *,
    epsilon: float,
    delta: float,
    pool: int | None = None,
    ordered: bool = False,
    max_items_per_person: int | None = None,
) -> list[UnknownFacts]:
    """Return what each mechanism needs to release items of an unknown domain, from public facts alone.

    Parameters
    ----------
    k, epsilon, delta, pool, ordered, max_items_per_person
        As in `compare_unknown`.

    Returns
    -------
    list of UnknownFacts
        One for each mechanism.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> for facts in dps.forecast.plan_unknown(10, epsilon=1.0, delta=1e-7):
    ...     print(facts.mechanism.name, round(facts.half))
    restricted 75
    limited 157
    top-stable 141
    """
    asked: dict[str, Any] = {"pool": pool, "ordered": ordered, "max_items_per_person": max_items_per_person}
    return [_facts(mechanism) for mechanism in _candidates(k, epsilon, delta, **asked)]


_FAILURE = Fraction(1, 100)
"""The probability of failure for which `likely` and `full` are stated."""


def _facts(mechanism: Any) -> UnknownFacts:
    """Return the facts of one mechanism, whose tests compare two noises of one kind."""
    if isinstance(mechanism, Discovered):
        return _facts_of_discovered(mechanism)
    if isinstance(mechanism, LimitedDomain):
        # An item beats the dummy by logistic noise. A round takes the dummy with at most 1/(1 + (pool − k + 1) e^y).
        odds = math.log(1 / _FAILURE - 1)
        behind = math.log(float(mechanism.k / _FAILURE - 1) / (mechanism.pool_size - mechanism.k + 1))
        half, rate = float(mechanism.lead()), float(mechanism.rate())
        return UnknownFacts(mechanism, half, half + odds / rate, half + behind / rate, 0.0)
    half, likely = (
        float((mechanism.height() + tail) / mechanism.rate()) for tail in (Fraction(), laplace_threshold(_FAILURE))
    )
    if isinstance(mechanism, Restricted):
        share = mechanism.test_epsilon / mechanism.guarantee.epsilon
        return UnknownFacts(mechanism, half, likely, full_answer_gap(mechanism, float(_FAILURE)), share)
    spent = 0.0 if mechanism.choice is None else mechanism.choice.epsilon
    return UnknownFacts(mechanism, half, likely, likely, 1 - spent / mechanism.epsilon)


def _facts_of_discovered(mechanism: Discovered) -> UnknownFacts:
    """Return the facts of Discovered: the counts at which items are listed, of people with as many items as allowed."""
    found = mechanism.discovery
    least, noise = found.weight(found.max_items_per_person), NormalDist(0.0, found.sigma * found.units)
    failures = (0.5, float(_FAILURE), float(_FAILURE / mechanism.k))
    half, likely, full = ((found.threshold - noise.inv_cdf(failure)) / least for failure in failures)
    return UnknownFacts(mechanism, half, likely, full, found.epsilon / mechanism.guarantee.epsilon)


def expected_discovered(scores: Any, discovery: Discovery, *, items_per_person: int | None = None) -> float:
    """Return how many items a discovery lists on average, if the items have these counts; not private.

    Parameters
    ----------
    scores
        How many people have each item, after keeping at most max_items_per_person of each, as for `dpselect.select`.
    discovery : Discovery
        The discovery.
    items_per_person : int, optional
        How many items each of these people has, at most max_items_per_person, which is assumed if it is left out: the
        fewest items are then listed.

    Returns
    -------
    float
        `Σ Φ((w_i − ρ)/σ)`, the expected number of listed items.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> counts = [round(2000 / rank) for rank in range(1, 1001)]
    >>> discovery = dps.Discovery(epsilon=1.0, delta=1e-7, max_items_per_person=20)
    >>> found = [dps.forecast.expected_discovered(counts, discovery, items_per_person=items) for items in (20, 5)]
    >>> [round(number) for number in found]
    [16, 32]
    """
    most = discovery.max_items_per_person
    held = most if items_per_person is None else positive_integer("items_per_person", items_per_person)
    if held > most:
        raise InvalidInput("items_per_person", held, f"must be at most max_items_per_person = {most}")
    table = Scores.of(scores)
    weights = np.array([max(int(count), 0) * discovery.weight(held) for count in table.values.tolist()], dtype=object)
    return math.fsum(discovery.probabilities(weights) * table.multiplicities.astype(np.float64))


def epsilon_for_items(
    scores: Any,
    mechanism: str,
    k: int,
    wanted: float,
    *,
    delta: float,
    pool: int | None = None,
    max_items_per_person: int | None = None,
    draws: int = 1000,
    seed: int | None = 0,
) -> float:
    """Return the ε at which a mechanism for unknown domains returns a number of items on average; not private.

    Parameters
    ----------
    scores
        The scores, as for `dpselect.select`.
    mechanism : str
        "restricted", "limited" or "top-stable".
    k, delta, pool, max_items_per_person
        As in `compare_unknown`.
    wanted : float
        The average number of items, above 0 and below k.
    draws : int
        Draws at each ε that is tried, for restricted; the result is then an estimate.
    seed : int, optional
        Seed of the draws, the same for every ε.

    Returns
    -------
    float
        ε to two digits, rounded up; ∞ if an ε of 10,000 is not enough.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> counts = [round(2000 / rank) for rank in range(1, 1001)]
    >>> dps.forecast.epsilon_for_items(counts, "limited", 10, 9, delta=1e-7)
    0.82
    """
    table, length, number = Scores.of(scores), positive_integer("k", k), float(finite_number("wanted", wanted))
    if not 0 < number < length:
        raise InvalidInput("wanted", wanted, f"must be above 0 and below k = {length}, an average number of items")
    if mechanism not in FOR_UNKNOWN_DOMAINS:
        raise InvalidInput("mechanism", mechanism, f"must be one of {', '.join(FOR_UNKNOWN_DOMAINS)}")

    def enough(epsilon: float) -> bool:
        chosen = _named(mechanism, length, epsilon, delta, pool, max_items_per_person)
        lengths = length_law(table, chosen)
        if lengths is not None:
            return bool(lengths @ np.arange(length + 1) >= number)
        figure = simulated(_filled(table, length), chosen, checked_draws(draws), seed, ["returned"], False)["returned"]
        return figure is not None and figure.value >= number

    low, high = 1e-4, 1e4
    if not enough(high):
        return math.inf
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    digit = 10.0 ** (math.floor(math.log10(high)) - 1)
    return float(f"{math.ceil(high / digit) * digit:.2g}")
