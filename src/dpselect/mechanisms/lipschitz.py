"""The Lipschitz mechanism: the k largest scores under a noise of the user's own (canonical, definition 2.1)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from math import fsum
from typing import Any, ClassVar

from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms.base import Law, Mechanism, in_random_order, scaled_locations, spread_over_members
from dpselect.sampling import NOISES, BitSource, Field, Noise
from dpselect.sampling.laws import set_law
from dpselect.sampling.own_noise import (
    adapted,
    ball_top_k,
    check_ball_quantile,
    check_lipschitz,
    float_top_k,
    noise_name,
)
from dpselect.scores import Members, Scores

LAW_TOLERANCE = 1e-6
"""A law whose probabilities are off from 1 by more than this in total is refused."""


@dataclass(frozen=True, kw_only=True)
class Lipschitz(Mechanism):
    """The Lipschitz mechanism: the set of the k largest of `x_i + (k w / ε) · Z_i`, Z_i i.i.d. with your own noise.

    w is the spread of the sensitivity. It is ε-DP if log(1 − F) is 1-Lipschitz, F the distribution function of the
    noise: `|log(1 − F(z)) − log(1 − F(z + s))| <= |s|`. A fine grid is searched for places where this fails; that none
    is found proves nothing, so that the condition is **your promise**, and every release says so. For the five noises
    with a proof use `OneShot`. Canonical, definition 2.1, algorithm 2 and theorem 4.1; proof in lipschitz.md.

    Parameters
    ----------
    k, epsilon, sensitivity
        As in `Mechanism`.
    noise
        A frozen distribution of scipy.stats, or an object with the same methods for arrays: cdf, sf, ppf, isf, pdf, and
        optionally `support()` and `kinks`, points where the density is not smooth; or a `dpselect.sampling.Noise`.
        Draws compare floats, a release is marked `secure=False`, and no ledger takes it, unless the object also has
        `ball_quantile`: a function from a ball E of python-flint to a ball that contains F⁻¹(exp(−E)) and shrinks with
        E and the working precision. Then draws are exact, and take about 0.1 ms per item.

    Raises
    ------
    InvalidInput
        If an argument is out of range, the noise lacks a method, its functions contradict each other, or its log(1 − F)
        is too steep at some place, which the message names.

    Examples
    --------
    >>> import dpselect as dps, scipy.stats
    >>> mechanism = dps.Lipschitz(k=2, epsilon=1.0, noise=scipy.stats.hypsecant())
    >>> sorted(mechanism.select([900, 5, 700, 30], seed=1).tolist())
    [0, 2]
    >>> mechanism.promise
    'log(1 - F) of the noise hypsecant is 1-Lipschitz'
    >>> dps.Lipschitz(k=2, epsilon=1.0, noise=scipy.stats.norm())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    dpselect.errors.InvalidInput: noise must have a 1-Lipschitz log(1 - F), ... 1.000035 near 0.3027 and by 37.07...
    """

    name: ClassVar[str] = "lipschitz"

    noise: Any = field(hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._proven:
            return
        check_lipschitz(self.distribution, self.noise_name)
        if self.exact:
            check_ball_quantile(self.distribution, self.noise_name)

    @property
    def ordered(self) -> bool:
        """False: the answer is a set in random order. The condition does not cover the order."""
        return False

    @property
    def _proven(self) -> bool:
        """Whether it is one of our own noises, which have a proof."""
        return any(self.noise is noise for noise in NOISES.values())

    @cached_property
    def _adapted(self) -> tuple[Noise, bool]:
        return adapted(self.noise)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the adapted noise out of a pickle: its functions are local, and it is made again on first use."""
        return {name: value for name, value in vars(self).items() if name != "_adapted"}

    @property
    def distribution(self) -> Noise:
        """The noise, in the form that samplers and laws use."""
        return self._adapted[0]

    @property
    def exact(self) -> bool:
        """Whether the noise has an inverse in ball arithmetic, so that draws follow the law exactly."""
        return self._adapted[1]

    @property
    def noise_name(self) -> str:
        """The name of the noise."""
        return noise_name(self.noise)

    @property
    def promise(self) -> str:
        """What is taken on trust: the condition, and the inverse in ball arithmetic; nothing for our own noises."""
        if self._proven:
            return ""
        condition = f"log(1 - F) of the noise {self.noise_name} is 1-Lipschitz"
        return condition + (", and its ball_quantile contains the inverse of F" if self.exact else "")

    def describe(self) -> dict[str, Any]:
        """Return the name, all parameters and the promise as plain data; the noise by its name."""
        return {
            "name": self.name,
            "k": self.k,
            "epsilon": self.epsilon,
            "sensitivity": asdict(self.sensitivity),
            "noise": self.noise_name,
            **({"promise": self.promise} if self.promise else {}),
        }

    def rate(self) -> Fraction:
        """Return ε/(k w), the inverse of the noise scale."""
        return self.exact_rate() / self.k

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen set, in uniformly random order."""
        self.check_size(scores.size)
        grouping = scores.entries
        entrants = Field(grouping.values, self.rate(), grouping.multiplicities, winners=self.k)
        winners = (ball_top_k if self.exact else float_top_k)(entrants, self.distribution, bits)
        return spread_over_members(grouping, in_random_order(winners, bits), bits)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-subset, by numerical integration.

        Raises
        ------
        InvalidInput
            If there are more than 10,000 outcomes, or the integration misses a part of the noise: it is far from 0, its
            tails are much heavier than exp(−|z|), or its density has unstated kinks or contradicts its distribution.
        """
        table = self.small_domain(scores)
        law = dict(set_law(scaled_locations(table, self.rate()), self.k, self.distribution))
        if abs(fsum(law.values()) - 1) > LAW_TOLERANCE:
            raise InvalidInput(
                "noise",
                plain(self.noise_name),
                "must for a law have its mass near 0, tails like exp(-|z|), and a density that matches cdf and is "
                "smooth between its `kinks`; state these as an attribute",
            )
        return law
