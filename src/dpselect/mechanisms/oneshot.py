"""The Lipschitz mechanism in one shot: add noise once, return the set of the k largest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpselect.mechanisms.base import (
    Law,
    Mechanism,
    check_noise,
    in_random_order,
    scaled_locations,
    spread_over_members,
)
from dpselect.sampling import NOISES, BitSource, Field, top_k
from dpselect.sampling.laws import set_law
from dpselect.scores import Members, Scores


@dataclass(frozen=True, kw_only=True)
class OneShot(Mechanism):
    """The set of the k largest of `x_i + (k w / ε) · Z_i` is ε-DP, Z_i i.i.d. with log(1 − F) 1-Lipschitz.

    w is the spread of the sensitivity. k = 1 gives permute-and-flip (exponential noise), the exponential
    mechanism (gumbel) and report-noisy-max (laplace). Only the set is private: neither the order of
    the noisy values nor the values themselves may be shown. Canonical, section 3; mathematics, section 2; proof in
    oneshot.md.
    """

    name: ClassVar[str] = "oneshot"

    noise: str = "exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.noise, NOISES)

    @property
    def ordered(self) -> bool:
        """A set: its order is random."""
        return False

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen set, in uniformly random order."""
        self.check_size(scores.size)
        grouping = scores.entries
        field = Field(grouping.values, self.exact_rate() / self.k, grouping.multiplicities, winners=self.k)
        winners = top_k(field, NOISES[self.noise], bits)
        return spread_over_members(grouping, in_random_order(winners, bits), bits)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-subset, by numerical integration."""
        scores = self.small_domain(scores)
        locations = scaled_locations(scores, self.exact_rate() / self.k)
        return set_law(locations, self.k, NOISES[self.noise])
