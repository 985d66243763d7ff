"""What mechanism="auto" chooses, from public facts alone (docs/mechanisms.md has the evidence)."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist
from typing import Any

from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.canonical import Canonical
from dpselect.mechanisms.gaussian import Gaussian
from dpselect.mechanisms.joint import Joint
from dpselect.mechanisms.laplace import Laplace
from dpselect.mechanisms.noisy_vector import NoisyVector
from dpselect.mechanisms.oneshot import OneShot
from dpselect.mechanisms.peeling import Peeling
from dpselect.privacy.sensitivity import Sensitivity

AIMS = ("most", "exact")
"""What "auto" aims at: the most right items, or exactly the right answer."""

RESOLUTIONS = {
    "exponential": Fraction(log(50)),
    "gumbel": Fraction(log(99)),
    "laplace": Fraction(5.19182),
    "normal": Fraction(NormalDist().inv_cdf(0.99) * sqrt(2)),
}
"""The gap, in scales of the noise, at which one noisy score exceeds another with probability 0.99.

For x scales the probability of the reverse is ½ e^−x, 1/(1 + e^x), ¼ (2 + x) e^−x and Φ(−x/√2).
"""


def check_aim(aim: str) -> None:
    """Raise InvalidInput for an unknown aim."""
    if aim not in AIMS:
        raise InvalidInput("aim", aim, "must be 'most' (the most right items) or 'exact' (exactly the right answer)")


def automatic(
    *,
    k: int,
    epsilon: float,
    delta: float,
    sensitivity: Sensitivity,
    ordered: bool,
    aim: str = "most",
    max_items_per_person: int | None = None,
) -> Mechanism:
    """Return the mechanism that "auto" means.

    | | most | exact |
    |---|---|---|
    | pure set | Canonical | Canonical |
    | pure sequence | OneShot | Joint |
    | with δ | Gumbel noise, if its resolution is finer than OneShot's | as above, unless it is very fine |
    | with m | Laplace, or Gaussian with δ, if its resolution is the finest | as above, unless it is very fine |

    The resolution is the gap at which two items are told apart with probability 0.99. It is very fine if it is at least
    as fine as that of Laplace noise of scale w/ε, w being the spread of the sensitivity, as with counts and m = 1. For
    k = 1 both aims are the same.
    """
    shared: dict[str, Any] = {"k": k, "epsilon": epsilon, "sensitivity": sensitivity}
    # One item is best judged by its own score alone: with γ = 1 and k = 1 Canonical is permute-and-flip.
    canonical = Canonical(**shared, gamma=1.0 if k == 1 else 0.5)
    oneshot = OneShot(**shared, ordered=ordered)
    rivals: list[NoisyScores] = [oneshot]
    if delta:
        gumbel = {**shared, "noise": "gumbel", "delta": delta}
        rivals.append(Peeling(**gumbel) if ordered else OneShot(**gumbel))
    if max_items_per_person is not None:
        rivals += noisy_vectors(shared, max_items_per_person, delta)
    best = min(rivals, key=resolution)
    very_fine = RESOLUTIONS["laplace"] * Fraction(sensitivity.spread) / Fraction(epsilon)
    if aim == "exact" and k > 1 and resolution(best) > very_fine:
        return Joint(**shared) if ordered else canonical
    return canonical if best is oneshot and not ordered else best


def automatic_for_unknown(k: Any, max_items_per_person: Any, pool: Any, *, counts: bool) -> str:
    """Return the name of the mechanism that "auto" means on an unknown domain (docs/discovery.md has the evidence).

    The noise of "restricted" grows with √k, the threshold of "discovered" with √m, for at most m items per person: the
    latter is taken if k >= m. A discovery only counts people, and has no pool.
    """
    possible = counts and isinstance(max_items_per_person, int) and pool is None and isinstance(k, int)
    return "discovered" if possible and k >= max_items_per_person else "restricted"


def noisy_vectors(shared: dict[str, Any], max_items_per_person: int, delta: float) -> list[NoisyVector]:
    """Return Laplace, and with δ Gaussian, for k, ε and sensitivity in `shared`."""
    limited = {**shared, "max_items_per_person": max_items_per_person}
    vectors: list[NoisyVector] = [Laplace(**limited)]
    if delta:
        with contextlib.suppress(InvalidInput):  # no float holds the noise for an extreme ε and δ
            vectors.append(Gaussian(**limited, delta=delta))
    return vectors


NoisyScores = OneShot | Peeling | NoisyVector
"""Mechanisms that return the k largest noisy scores."""


def resolution(mechanism: NoisyScores) -> Fraction:
    """Return the gap at which a mechanism tells two items apart with probability 0.99."""
    if isinstance(mechanism, NoisyVector):
        return RESOLUTIONS[mechanism.distribution.name] / mechanism.rate()
    rate = mechanism.rate() if isinstance(mechanism, Peeling) else mechanism.rate(size=2)
    return RESOLUTIONS[mechanism.noise] / rate
