"""The Gaussian mechanism: normal noise on every score, for data in which each person has few items."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar

from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import SCALE_RANGE, Law, Mechanism, scaled_locations, spread_over_members
from dpselect.privacy.calibration import unit_sigma
from dpselect.privacy.conversion import float_above
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.sampling import BitSource, Field, top_k
from dpselect.sampling.laws import sequence_law
from dpselect.sampling.noise import NORMAL
from dpselect.scores import Members, Scores


@dataclass(frozen=True, kw_only=True)
class Gaussian(Mechanism):
    """The Gaussian mechanism: the k largest of `x_i + σ N_i`, in order, with N_i standard normal.

    `σ = √m s σ₁`: one person changes at most m scores, each by at most s = max(|low|, |high|) of the sensitivity, and
    σ₁ is the least noise for an L2 sensitivity of 1 (Balle and Wang 2018). The noise does not grow with k. Mathematics,
    sections 1 and 6; proof in gaussian.md.

    Parameters
    ----------
    k, epsilon, sensitivity
        As in `Mechanism`.
    delta
        The δ of the guarantee, above 0.
    max_items_per_person
        m. **It cannot be checked here**: the caller must drop surplus items of a person before computing the scores,
        or the guarantee does not hold.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.Gaussian(k=2, epsilon=1.0, delta=1e-6, max_items_per_person=4)
    >>> mechanism.select([900, 5, 700, 30], seed=1).tolist()
    [0, 2]
    >>> 8 < mechanism.sigma < 9
    True
    """

    name: ClassVar[str] = "gaussian"

    delta: float = 0.0
    max_items_per_person: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", probability_of_failure(self.delta))
        if self.max_items_per_person is None:
            raise InvalidInput(
                "max_items_per_person",
                None,
                "must be a whole number of at least 1; the noise depends on how many items one person can have",
            )
        object.__setattr__(
            self, "max_items_per_person", positive_integer("max_items_per_person", self.max_items_per_person)
        )
        if not 1 / SCALE_RANGE <= self.sigma <= SCALE_RANGE:
            raise InvalidInput("sensitivity", self.sensitivity, "must be such that the noise is in 1e-250..1e250")

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise on each score, rounded up."""
        unit = self.sensitivity.reach * Fraction(unit_sigma(self.epsilon, self.delta))
        return float_above(unit * _root_above(self.max_items_per_person or 1))

    @property
    def ordered(self) -> bool:
        """True: the noisy vector is private, and so is its order."""
        return True

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ), and `ρ = m s² / (2σ²)` for composition."""
        unit = Fraction(unit_sigma(self.epsilon, self.delta))
        return Guarantee(epsilon=self.epsilon, delta=self.delta, rho=float_above(1 / (2 * unit * unit)))

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen sequence."""
        self.check_size(scores.size)
        grouping = scores.entries
        field = Field(grouping.values, 1 / Fraction(self.sigma), grouping.multiplicities, winners=self.k)
        return spread_over_members(grouping, top_k(field, NORMAL, bits, ordered=True), bits)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-sequence, by numerical integration."""
        table = self.small_domain(scores)
        return dict(sequence_law(scaled_locations(table, 1 / Fraction(self.sigma)), self.k, NORMAL))


def _root_above(number: int) -> Fraction:
    """Return √number exactly if it is whole, and otherwise rounded up by less than 2⁻⁶⁴."""
    root = isqrt(number)
    return Fraction(root) if root * root == number else Fraction(isqrt(number << 128) + 1, 1 << 64)
