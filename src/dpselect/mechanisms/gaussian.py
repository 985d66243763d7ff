"""The Gaussian mechanism: normal noise on every score, for data in which each person has few items."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import ClassVar

from dpselect.mechanisms.noisy_vector import NoisyVector
from dpselect.privacy.calibration import unit_sigma
from dpselect.privacy.conversion import float_above, upper_bound
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.sampling import Noise
from dpselect.sampling.balls import ball
from dpselect.sampling.noise import NORMAL


@dataclass(frozen=True, kw_only=True)
class Gaussian(NoisyVector):
    """The Gaussian mechanism: the k largest of `x_i + σ N_i`, in order, with N_i standard normal.

    `σ = √m s σ₁`: one person changes at most m scores, each by at most `s = max(|low|, |high|)` of the sensitivity, and
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
    distribution: ClassVar[Noise] = NORMAL

    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", probability_of_failure(self.delta))
        super().__post_init__()

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise on each score, rounded up."""
        unit = self.sensitivity.reach * Fraction(unit_sigma(self.epsilon, self.delta))
        return float_above(unit * _root_above(self.max_items_per_person or 1))

    @property
    def scale(self) -> float:
        """σ."""
        return self.sigma

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ), and `ρ = m s² / (2σ²)` for composition."""
        unit = Fraction(unit_sigma(self.epsilon, self.delta))
        return Guarantee(epsilon=self.epsilon, delta=self.delta, rho=float_above(1 / (2 * unit * unit)))

    def rate(self) -> Fraction:
        """Return 1/σ."""
        return 1 / Fraction(self.sigma)

    def tail(self, failure: Fraction) -> Fraction:
        """Return `σ Φ⁻¹(1 − failure)`, rounded up: P[N > z] = ½ erfc(z/√2)."""
        return Fraction(upper_bound(lambda: ball(2).sqrt() * (2 * ball(failure)).erfcinv(), failure)) / self.rate()


def _root_above(number: int) -> Fraction:
    """Return √number exactly if it is whole, and otherwise rounded up by less than 2⁻⁶⁴."""
    root = isqrt(number)
    return Fraction(root) if root * root == number else Fraction(isqrt(number << 128) + 1, 1 << 64)
