"""The Laplace mechanism: Laplace noise on every score, for data in which each person has few items."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpselect.mechanisms.noisy_vector import NoisyVector
from dpselect.privacy.conversion import float_above, upper_bound
from dpselect.sampling import Noise
from dpselect.sampling.balls import ball
from dpselect.sampling.noise import LAPLACE


@dataclass(frozen=True, kw_only=True)
class Laplace(NoisyVector):
    """The Laplace mechanism: the k largest of `x_i + b Z_i`, in order, with Z_i standard Laplace.

    `b = m s / ε`: one person changes at most m scores, each by at most `s = max(|low|, |high|)` of the sensitivity. The
    noise does not grow with k, and the guarantee is pure. Mathematics, section 2; proof in laplace.md.

    Parameters
    ----------
    k, epsilon, sensitivity
        As in `Mechanism`.
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
    >>> mechanism = dps.Laplace(k=2, epsilon=1.0, max_items_per_person=4)
    >>> mechanism.scale
    4.0
    >>> mechanism.select([900, 5, 700, 30], seed=1).tolist()
    [0, 2]
    """

    name: ClassVar[str] = "laplace"
    distribution: ClassVar[Noise] = LAPLACE

    @property
    def scale(self) -> float:
        """b, rounded up; draws use the exact fraction."""
        return float_above(1 / self.rate())

    def rate(self) -> Fraction:
        """Return 1/b."""
        return Fraction(self.epsilon) / ((self.max_items_per_person or 1) * self.sensitivity.reach)

    def tail(self, failure: Fraction) -> Fraction:
        """Return `b ln(1 / (2 failure))`, rounded up: P[Z > z] = ½ e^{−z}."""
        return Fraction(upper_bound(lambda: -(2 * ball(failure)).log(), failure)) / self.rate()
