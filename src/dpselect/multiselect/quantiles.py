"""Answers at the quantiles of any symmetric log-concave noise, for servers whose users do not send Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect._arrays import FloatArray
from dpselect._numbers import positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.disutility import as_disutility
from dpselect.multiselect.offsets import checked_answers, checked_offsets

_SCIPY = {"laplace": "laplace", "gaussian": "norm", "logistic": "logistic", "secant": "hypsecant"}
_REQUIREMENT = (
    f"must be one of {', '.join(_SCIPY)}, as NAME or NAME:SCALE, or a symmetric log-concave SciPy distribution"
)
_LEVELS = np.linspace(0.001, 0.999, 333)


@dataclass(frozen=True)
class Noise:
    """Noise Y with a log-concave density that is symmetric about 0.

    Parameters
    ----------
    name
        "laplace", "gaussian", "logistic" or "secant".
    scale
        The scale of the distribution.
    distribution
        Set from the name. To use a distribution of your own, pass it in place of a Noise.

    Raises
    ------
    InvalidInput
        If the name is unknown or the scale not positive.

    Examples
    --------
    >>> from dpselect.multiselect import Noise
    >>> Noise("laplace", 2.0).rate, round(Noise("laplace", 2.0).spread, 6)
    (0.5, 2.0)
    """

    name: str
    scale: float = 1.0
    distribution: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Look the distribution up by its name."""
        scale = positive_number("scale", self.scale)
        if self.distribution is None:
            if self.name not in _SCIPY:
                raise InvalidInput("noise", self.name, _REQUIREMENT)
            from scipy import stats

            object.__setattr__(self, "distribution", getattr(stats, _SCIPY[self.name])(scale=scale))
        elif self.name in _SCIPY:
            given = plain("a distribution as well")
            raise InvalidInput("noise", given, f"must be only the name {self.name!r}; or pass the distribution itself")

    @property
    def rate(self) -> float | None:
        """The least ε with `|log f(y) − log f(y')| <= ε |y − y'|`, the privacy loss per unit of distance.

        It is 1/scale for Laplace, logistic and secant noise, infinite for Gaussian noise, which has no guarantee
        without a delta, and unknown (None) for other distributions.
        """
        known = {"gaussian": math.inf, **dict.fromkeys(("laplace", "logistic", "secant"), 1 / self.scale)}
        return known.get(self.name)

    @property
    def spread(self) -> float:
        """`E|Y|`, the paper's 1/ε."""
        from scipy.integrate import quad

        survival = self.distribution.sf
        ends = [0.0, *(float(self.distribution.isf(level)) for level in (0.25, 0.01, 1e-6, 1e-15))]
        pieces = [quad(survival, low, high, epsabs=0, epsrel=1e-9)[0] for low, high in pairwise(ends)]
        return 2 * math.fsum(pieces)


def quantile_offsets(k: int, noise: object) -> FloatArray:
    """Return k offsets at quantiles of `|Y|`, ascending and symmetric.

    With G the inverse of `P[|Y| >= y]`: `k = 2K−1` has 0 and `±G(1 − i/K)` for i = 1 … K−1; `k = 2b` has
    `±G(1 − (i − ½)/b)` for i = 1 … b. Source: multi-selection, appendix A.3, for odd k; multiselect.md for even k.

    Parameters
    ----------
    k
        Number of answers.
    noise
        A name, NAME:SCALE, a Noise, or a frozen SciPy distribution that is symmetric about 0 and log-concave.

    Returns
    -------
    FloatArray

    Raises
    ------
    InvalidInput
        If k is out of range or the noise does not qualify.

    Examples
    --------
    >>> from dpselect.multiselect import quantile_offsets
    >>> quantile_offsets(3, "gaussian:2").round(4).tolist()
    [-1.349, 0.0, 1.349]
    """
    k, wanted = checked_answers(k), _as_noise(noise)
    half = (k + 1) // 2
    levels = 1 - np.arange(1, half) / half if k % 2 else 1 - (np.arange(1, half + 1) - 0.5) / half
    right = np.asarray(wanted.distribution.isf(levels / 2), dtype=np.float64)
    return np.concatenate([-right[::-1], np.zeros(k % 2), right])


def quantile_bound(k: int, noise: object) -> float:
    """Return an upper bound on the expected cost of the quantile answers for h(t) = t: O(log k / k) times `E|Y|`.

    `k = 2K−1`: `E|Y| (e max(1, ln K) + 1) / K`. `k = 2b`: `E|Y| (e max(1, ln 2b) + ½) / b`. Source: multi-selection,
    theorem 24, with its constants; multiselect.md.

    Parameters
    ----------
    k, noise
        As in `quantile_offsets`.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If k is out of range or the noise does not qualify.

    Examples
    --------
    >>> from dpselect.multiselect import noise_cost, quantile_bound
    >>> noise_cost(5, "gaussian") <= quantile_bound(5, "gaussian")
    True
    """
    k, wanted = checked_answers(k), _as_noise(noise)
    half = (k + 1) // 2
    last, tail = (half, 1.0) if k % 2 else (2 * half, 0.5)
    return wanted.spread * (math.e * max(1.0, math.log(last)) + tail) / half


def noise_cost(answers: int | npt.ArrayLike, noise: object, disutility: object = "linear") -> float:
    """Return `E min_i h(|Y − a_i|)` by quadrature.

    Parameters
    ----------
    answers
        k, for the quantile offsets, or a list of offsets.
    noise, disutility
        As in `quantile_offsets` and `as_disutility`.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If an argument is out of range, or the expected cost is infinite.

    Examples
    --------
    >>> from dpselect.multiselect import noise_cost
    >>> round(noise_cost(1, "laplace:2"), 6)
    2.0
    """
    from scipy.integrate import quad

    wanted, h = _as_noise(noise), as_disutility(disutility)
    offsets = quantile_offsets(checked_answers(answers), wanted) if np.ndim(answers) == 0 else checked_offsets(answers)
    far = float(wanted.distribution.isf(1e-17))
    middles = (offsets[1:] + offsets[:-1]) / 2
    tails = wanted.distribution.isf([1e-12, 1e-6, 0.01, 0.25, 0.5])
    cuts = np.unique(np.clip([-far, far, *offsets, *middles, *tails, *(-tails)], -far, far))

    def weighted(y: float) -> float:
        return float(h(np.abs(y - offsets).min()) * wanted.distribution.pdf(y))

    pieces = [quad(weighted, low, high, epsabs=1e-14, epsrel=1e-8, limit=200)[0] for low, high in pairwise(cuts)]
    total = math.fsum(pieces)
    if not pieces[0] + pieces[-1] <= 1e-6 * total + 1e-12:
        given = plain("a function that grows about as fast as the noise falls")
        raise InvalidInput("disutility", given, "must have a finite expected value; let it grow more slowly")
    return total


@dataclass(frozen=True)
class QuantileAnswers:
    """The k answers at the quantiles of a noise, with expected costs; made by `quantile_answers`.

    Attributes
    ----------
    k, noise, disutility
        What was asked for; the disutility by its name.
    offsets
        Positions of the answers relative to the signal, ascending.
    cost
        Expected cost of the best of them.
    single
        Expected cost of a single answer.
    bound
        The upper bound of theorem 24 on the cost; None if the disutility is not linear.

    Examples
    --------
    >>> from dpselect.multiselect import quantile_answers
    >>> quantile_answers(3, "gaussian:2").to_dict()["rate"] is None
    True
    """

    k: int
    noise: Noise
    disutility: str
    offsets: tuple[float, ...]
    cost: float
    single: float
    bound: float | None

    @property
    def rate(self) -> float | None:
        """The privacy loss per unit of distance of this noise; None if it has none without a delta."""
        rate = self.noise.rate
        return rate if rate is not None and math.isfinite(rate) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain data."""
        noise = {"noise": self.noise.name, "scale": self.noise.scale, "rate": self.rate}
        rest = {name: getattr(self, name) for name in ("disutility", "cost", "single", "bound")}
        return {"k": self.k, **noise, **rest, "offsets": list(self.offsets)}

    def plot(self, axes: Any = None) -> Any:
        """Draw the density of the noise with the answers on it, and return the axes."""
        from dpselect.multiselect.picture import draw_answers

        reach = float(self.noise.distribution.isf(0.02))
        return draw_answers(self, axes, density=self.noise.distribution.pdf, reach=reach)

    def _repr_html_(self) -> str:
        from dpselect._show import table_html

        rows = [[str(number), f"{offset:.4g}"] for number, offset in enumerate(self.offsets, start=1)]
        note = f"expected cost {self.cost:.4g}, with a single answer {self.single:.4g}"
        title = f"{self.k} answers at the quantiles of {self.noise.name} noise of scale {self.noise.scale:g}"
        return table_html(title, ["answer", "offset"], rows, note=note)


def quantile_answers(k: int, noise: object, disutility: object = "linear") -> QuantileAnswers:
    """Return the k answers at the quantiles of a noise, with their costs.

    Parameters
    ----------
    k, noise
        As in `quantile_offsets`.
    disutility
        What a distance costs: see `as_disutility`.

    Returns
    -------
    QuantileAnswers

    Raises
    ------
    InvalidInput
        As in `quantile_offsets` and `noise_cost`.

    Examples
    --------
    >>> from dpselect.multiselect import quantile_answers
    >>> found = quantile_answers(5, "laplace:2")
    >>> round(found.cost, 3), found.rate
    (0.848, 0.5)
    """
    wanted, h = _as_noise(noise), as_disutility(disutility)
    offsets = tuple(quantile_offsets(k, wanted).tolist())
    bound = quantile_bound(k, wanted) if h.is_distance else None
    return QuantileAnswers(k, wanted, h.name, offsets, noise_cost(offsets, wanted, h), noise_cost(1, wanted, h), bound)


def _as_noise(given: object) -> Noise:
    """Return the noise of a name, of a frozen SciPy distribution, or a Noise unchanged."""
    if isinstance(given, Noise):
        return given
    if isinstance(given, str):
        name, _, scale = given.partition(":")
        try:
            return Noise(name, float(scale) if scale else 1.0)
        except ValueError:  # also an InvalidInput
            raise InvalidInput("noise", given, _REQUIREMENT) from None
    if not all(hasattr(given, method) for method in ("pdf", "sf", "isf")):
        raise InvalidInput("noise", given, _REQUIREMENT)
    distribution: Any = given
    places = np.asarray(distribution.isf(_LEVELS), dtype=np.float64)
    if not np.allclose(places, -places[::-1], rtol=1e-6, atol=1e-9 * float(np.ptp(places))):
        raise InvalidInput("noise", plain("a distribution that is not symmetric about 0"), _REQUIREMENT)
    steps = np.linspace(places[-1], places[0], 333)
    with np.errstate(divide="ignore"):
        curvature = np.diff(np.log(distribution.pdf(steps)), 2)
    if not (curvature <= 1e-9).all():
        raise InvalidInput("noise", plain("a distribution that is not log-concave"), _REQUIREMENT)
    return Noise("custom", float(places[0]), distribution)
