"""Peeling: k rounds of choosing one item, each without those already chosen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from dpselect.mechanisms.base import Law, Mechanism, check_noise, scaled_locations, spread_over_members
from dpselect.mechanisms.peeling_blocks import ItemsLeft
from dpselect.mechanisms.ranking import Ranking
from dpselect.privacy.calibration import guarantee_of_rounds, pure_per_round, range_per_round
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.sampling import NOISES, BitSource, Field, top_k
from dpselect.sampling.laws import single_law
from dpselect.sampling.race import race
from dpselect.sampling.sequences import whole_numbers
from dpselect.scores import Members, Scores


@dataclass(frozen=True, kw_only=True)
class Peeling(Mechanism):
    """k rounds of the one-item mechanism at ε₀ each, without replacement; the order is part of the output.

    Exponential noise makes each round permute-and-flip (PNF-PEEL of the joint paper). With gumbel noise
    all rounds together equal the k largest of one noisy vector, in order. ε₀ = ε/k, or more where `delta` allows it:
    with gumbel noise that is CDP-PEEL. Mathematics, sections 2, 5 and 6; proof in peeling.md.
    """

    name: ClassVar[str] = "peeling"

    noise: str = "exponential"
    delta: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.noise, ("exponential", "gumbel"))
        object.__setattr__(self, "delta", probability_of_failure(self.delta))

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ), or pure where the rounds cost no more than ε without δ."""
        if not self.delta:
            return super().guarantee
        share = self.per_round()
        # Only the exponential mechanism has a range as small as its ε.
        width = share if self.noise == "gumbel" else 2 * share
        return guarantee_of_rounds(self.epsilon, self.delta, self.k, share, width)

    def per_round(self) -> Fraction:
        """ε₀, what one round may cost."""
        share = range_per_round if self.noise == "gumbel" else pure_per_round
        return share(self.epsilon, self.delta, self.k)

    def rate(self) -> Fraction:
        """ε₀/w, what the scores are multiplied by before standard noise is added."""
        return self._rate

    @cached_property
    def _rate(self) -> Fraction:
        return self.per_round() / Fraction(self.sensitivity.spread)

    @property
    def ordered(self) -> bool:
        """A sequence: earlier items were chosen in earlier rounds."""
        return True

    def describe(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data, delta only where there is one."""
        described = super().describe()
        return described if self.delta else {key: value for key, value in described.items() if key != "delta"}

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen sequence."""
        self.check_size(scores.size)
        rate = self.rate()
        if self.noise == "gumbel":
            grouping = scores.entries
            field = Field(grouping.values, rate, grouping.multiplicities, winners=self.k)
            return spread_over_members(grouping, top_k(field, NOISES["gumbel"], bits, ordered=True), bits)
        ranking = Ranking.of(scores.distinct)
        left = ItemsLeft(ranking, self.k, rate)
        ranks: list[Any] = []
        for _ in range(self.k):
            ranks.append(race(left, NOISES["exponential"], bits).key)
            left.take(ranks[-1])
        return ranking.members(whole_numbers(ranks))

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-sequence, as a product of rounds."""
        scores = self.small_domain(scores)
        locations = scaled_locations(scores, self.rate())
        law: Law = {(): 1.0}
        for _ in range(self.k):
            law = {
                (*sequence, item): probability * chance
                for sequence, probability in law.items()
                for item, chance in self._round_law(locations, sequence)
            }
        return law

    def _round_law(self, locations: list[float], taken: Any) -> list[tuple[int, float]]:
        left = [item for item in range(len(locations)) if item not in taken]
        chances = single_law([locations[item] for item in left], NOISES[self.noise])
        return list(zip(left, map(float, chances), strict=True))
