"""One-shot selection: noise is added once to every score, and the k largest are returned, as a set or in order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import (
    Law,
    Mechanism,
    check_noise,
    in_random_order,
    scaled_locations,
    spread_over_members,
)
from dpselect.privacy.calibration import guarantee_of_rounds, range_per_round
from dpselect.privacy.conversion import rate_of_oneshot_laplace
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.sampling import NOISES, BitSource, Field, top_k
from dpselect.sampling.laws import sequence_law, set_law
from dpselect.scores import Members, Scores

LARGEST_EPSILON, LARGEST_DELTA = 0.2, 0.05
"""Theorem 2.2 of the one-shot paper holds up to these; beyond them the pure scale is used."""


@dataclass(frozen=True, kw_only=True)
class OneShot(Mechanism):
    """One-shot selection: the k largest of `x_i + (k w / ε) · Z_i`, as a set or in order, Z_i i.i.d.

    w is the spread of the sensitivity. For k = 1 this is permute-and-flip (exponential noise), the exponential
    mechanism (gumbel) or report-noisy-max (laplace). The noise has `f(z + s) >= e^{−s} f(z)` for s >= 0, so that the
    order of the noisy values is private as well as the set; the values are not. Canonical, section 3; mathematics,
    section 2; proof in oneshot.md.

    Parameters
    ----------
    k, epsilon, sensitivity
        As in `Mechanism`.
    noise
        "exponential", "gumbel", "laplace", "logistic" or "half-logistic".
    delta
        The δ of the guarantee. It allows less noise with gumbel noise (that of CDP-PEEL) and laplace noise (scale
        `8 (w/2) √(k log(d/δ)) / ε` for d items, one-shot paper, theorem 2.2).
    ordered
        Whether the answer is the sequence of the k largest, highest first, instead of their set.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or a delta is given with another noise, or with laplace noise for a sequence.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.OneShot(k=2, epsilon=1.0, noise="laplace")
    >>> sorted(mechanism.select([900, 5, 700, 30], seed=1).tolist())
    [0, 2]
    >>> dps.OneShot(k=2, epsilon=1.0, ordered=True).select([5, 900, 700, 30], seed=1).tolist()
    [1, 2]
    """

    name: ClassVar[str] = "oneshot"
    noises_with_delta: ClassVar[tuple[str, ...]] = ("gumbel", "laplace")

    noise: str = "exponential"
    delta: float = 0.0
    ordered: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.noise, NOISES)
        object.__setattr__(self, "delta", probability_of_failure(self.delta))
        if self.delta and self.noise not in self.noises_with_delta:
            accepted = " or ".join(self.noises_with_delta)
            raise InvalidInput("delta", self.delta, f"must be 0 for {self.noise} noise; use {accepted} noise")
        if not isinstance(self.ordered, bool):
            raise InvalidInput("ordered", self.ordered, "must be True or False")
        if self.delta and self.ordered and self.noise == "laplace":
            raise InvalidInput(
                "delta",
                self.delta,
                "must be 0 for an ordered answer with laplace noise, as its theorem covers sets only; use gumbel noise",
            )

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ), or pure ε if δ makes no difference for any size of the domain."""
        if not self.delta:
            return super().guarantee
        if self.noise == "gumbel":
            share = range_per_round(self.epsilon, self.delta, self.k)
            return guarantee_of_rounds(self.epsilon, self.delta, self.k, share, share)
        # The scale grows with d, so the smallest domain, k items, decides whether δ is ever used.
        used = self._share(self.k) > Fraction(self.epsilon) / self.k
        return Guarantee(epsilon=self.epsilon, delta=self.delta if used else 0.0)

    def rate(self, size: int) -> Fraction:
        """Return the inverse of the noise scale for a domain of `size` items."""
        return self._share(size) / Fraction(self.sensitivity.spread)

    def _share(self, size: int) -> Fraction:
        """Return the inverse of the noise scale for a spread of 1: at least ε/k."""
        plainly = Fraction(self.epsilon) / self.k
        if not self.delta:
            return plainly
        if self.noise == "gumbel":
            return range_per_round(self.epsilon, self.delta, self.k)
        if size < 2 or self.epsilon > LARGEST_EPSILON or self.delta > LARGEST_DELTA:
            return plainly
        # The floats 0.2 and 0.05 are a little above the numbers that the theorem allows.
        epsilon, delta = min(Fraction(self.epsilon), Fraction(1, 5)), min(Fraction(self.delta), Fraction(1, 20))
        return max(plainly, rate_of_oneshot_laplace(epsilon, delta, self.k, size))

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen items: by descending noisy score if `ordered`, otherwise in uniformly random order."""
        self.check_size(scores.size)
        grouping = scores.entries
        field = Field(grouping.values, self.rate(scores.size), grouping.multiplicities, winners=self.k)
        winners = top_k(field, NOISES[self.noise], bits, ordered=self.ordered)
        return spread_over_members(grouping, winners if self.ordered else in_random_order(winners, bits), bits)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-subset, or k-sequence if `ordered`, by numerical integration."""
        scores = self.small_domain(scores)
        locations = scaled_locations(scores, self.rate(scores.size))
        law = sequence_law if self.ordered else set_law
        return dict(law(locations, self.k, NOISES[self.noise]))
