"""The gamma mechanism: one vector of noise for all scores, with a density that depends on its largest coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms.base import Law, Mechanism, scaled_locations, spread_over_members
from dpselect.sampling import BitSource, top_k
from dpselect.sampling.gamma import GammaDraw, RandomlyScaledField
from dpselect.sampling.laws import gauss_legendre, sequence_law
from dpselect.sampling.noise import UNIFORM
from dpselect.scores import Members, Scores

LARGEST_DOMAIN = 10**15
"""Maximum number of items for which incomplete gamma functions take a fraction of a second."""


@dataclass(frozen=True, kw_only=True)
class Gamma(Mechanism):
    """The gamma mechanism: the k largest of `x + (w/2) r u`, in order; r ~ Gamma(d + 1, 1/ε), u uniform on [−1, 1]ᵈ.

    The noise has density proportional to `exp(−ε ‖z‖_∞ / (w/2))`, so the noisy vector, up to a common shift, is ε-DP.
    Its scale grows with the number of items d: a baseline for small domains. Joint, section 5; mathematics, section 5;
    proof in gamma.md.

    Parameters
    ----------
    k, epsilon, sensitivity
        As in `Mechanism`.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.Gamma(k=2, epsilon=1.0).select([900, 5, 700, 30], seed=1).tolist()
    [0, 2]
    """

    name: ClassVar[str] = "gamma"

    @property
    def ordered(self) -> bool:
        """True: the answer is in the order of the noisy scores."""
        return True

    def check_size(self, size: int) -> None:
        """Raise InvalidInput for a domain with fewer than k or more than LARGEST_DOMAIN items."""
        super().check_size(size)
        if size > LARGEST_DOMAIN:
            raise InvalidInput("scores", plain(f"{size} items"), f"must have at most {LARGEST_DOMAIN} items for gamma")

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen sequence."""
        self.check_size(scores.size)
        grouping = scores.entries
        field = RandomlyScaledField(
            grouping.values,
            2 * self.exact_rate(),
            grouping.multiplicities,
            self.k,
            divisor=GammaDraw(scores.size + 1, bits),
        )
        return spread_over_members(grouping, top_k(field, UNIFORM, bits, ordered=True), bits)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-sequence, by integration over r."""
        table = self.small_domain(scores)
        return gamma_law(table, self.k, 2 * self.exact_rate(), shape=table.size + 1)


def gamma_law(scores: Scores, k: int, rate: Fraction, shape: int) -> Law:
    """Return the law of the k largest of `rate · x_i / g + u_i`, in order: g ~ Gamma(shape), u_i uniform on [−1, 1]."""
    locations = scaled_locations(scores, rate)
    order = sorted(range(scores.size), key=lambda item: -locations[item])
    law = _ranked_gamma_law(tuple(locations[item] for item in order), k, shape)
    return {tuple(order[rank] for rank in ranks): probability for ranks, probability in law.items()}


@lru_cache(maxsize=4096)
def _ranked_gamma_law(locations: tuple[float, ...], k: int, shape: int) -> dict[tuple[int, ...], float]:
    """Return `∫ P[sequence | g] g^{n−1} e^{−g} / Γ(n) dg`, n the shape: given g, noise is uniform on [−g, g].

    The integrand is smooth between the values of g at which the noisy ranges of two items begin to overlap.
    """
    meetings = {(a - b) / 2 for a in locations for b in locations if a > b}
    reach = shape + 60.0
    cuts = {meeting for meeting in meetings if meeting < reach}
    edges = np.array(sorted({0.0, reach, *np.arange(3.0, reach, 3.0).tolist(), *cuts}))
    points, weights = gauss_legendre(edges, 16)
    masses = weights * np.exp((shape - 1) * np.log(points) - points - math.lgamma(shape))
    law: dict[tuple[int, ...], float] = {}
    for point, mass in zip(points.ravel().tolist(), masses.ravel().tolist(), strict=True):
        given = sequence_law([location / point for location in locations], k, UNIFORM)
        for sequence, probability in given.items():
            law[sequence] = law.get(sequence, 0.0) + mass * probability
    return law
