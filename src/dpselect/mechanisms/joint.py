"""The joint mechanism: a k-sequence in one draw."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any, ClassVar

from dpselect.mechanisms.base import FARTHEST, Law, Mechanism, check_noise
from dpselect.mechanisms.class_law import winner_law
from dpselect.mechanisms.classes import Levels, levels_of
from dpselect.mechanisms.joint_blocks import SequenceBlocks
from dpselect.mechanisms.ranking import Ranking
from dpselect.sampling import NOISES, BitSource
from dpselect.sampling.race import race
from dpselect.sampling.sequences import whole_numbers
from dpselect.scores import Members, Scores


@dataclass(frozen=True, kw_only=True)
class Joint(Mechanism):
    """Every k-sequence S competes with `−ε · loss(S) / (2w) + noise`, and the largest wins; the order is private too.

    `loss(S) = max_i (x_[i] − x_{s_i})` moves within a window of width 2w when a person is added. Gumbel noise gives the
    joint exponential mechanism as published, exponential noise permute-and-flip over sequences, which is never worse.
    Joint, section 3; mathematics, section 4; proof in joint.md.
    """

    name: ClassVar[str] = "joint"

    noise: str = "exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.noise, ("exponential", "gumbel"))

    @property
    def ordered(self) -> bool:
        """A sequence, its order included."""
        return True

    @property
    def rate(self) -> Fraction:
        """ε/(2w), the factor that turns loss into privacy loss."""
        return self.exact_rate() / 2

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen sequence."""
        self.check_size(scores.size)
        ranking = Ranking.of(scores.distinct)
        winner: Any = race(SequenceBlocks(ranking, self.k, self.rate), NOISES[self.noise], bits).key
        return ranking.members(whole_numbers(winner))

    def levels(self, scores: Any) -> Levels:
        """Return every loss level with its size and probability, without sampling; not private."""
        return levels_of(self, scores)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-sequence."""
        table = self.small_domain(scores)
        values = table.exact()
        top = sorted(values, reverse=True)
        sequences = list(permutations(range(table.size), self.k))
        losses = [max(top[row] - values[item] for row, item in enumerate(sequence)) for sequence in sequences]
        locations = [float(max(-self.rate * loss, -FARTHEST)) for loss in losses]
        return dict(zip(sequences, winner_law(locations, self.noise).tolist(), strict=True))
