"""The papers' utility theorems: bounds from public facts, beside the exact forecasts; comparison in docs/forecast.md.

Notation: d items, spread w, α the probability of failure. Each function returns the bound that the paper's proof gives,
with exact logarithms and tails where the paper rounds them. All bounds also hold for the stronger mechanisms here:

* the loss of permute-and-flip (exponential noise) is stochastically smaller than that of the exponential mechanism
  (gumbel noise), for which the papers argue (McKenna and Sheldon 2020);
* the margin of Canonical and Joint raises the weight of the top answer and leaves all other weights as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpselect._numbers import finite_number, positive_integer
from dpselect.errors import InvalidInput
from dpselect.mechanisms import Canonical, Joint, LimitedDomain, Mechanism, OneShot, Peeling, Restricted
from dpselect.mechanisms.classes import check_unrounded
from dpselect.privacy.calibration import laplace_threshold
from dpselect.sampling.sequences import log_falling

_SWAPPED: dict[str, Callable[[float], float]] = {
    "laplace": lambda gap: (2 + gap) * math.exp(-gap) / 4,
    "exponential": lambda gap: math.exp(-gap) / 2,
    "gumbel": lambda gap: math.exp(-gap) / (1 + math.exp(-gap)),
}
"""P[two items change places], by noise; the gap is in units of its scale."""


def expected_leap(mechanism: Canonical | Peeling, items: int) -> float:
    """Return by how much noise lifts a wrong answer above the right one, on average (canonical, theorem 5.5).

    The leap is `X = (w/(γ ε)) (ln C(d, k) + L)` for Canonical, without the factor 1/γ if it has the margin, and
    `X' = (k w/ε) (ln(k (d − k)) + L)` for Peeling; L is standard logistic and has mean 0. If d > k, then
    `E[X'] / E[X] >= γ ln k / (1 + ln(d/k))`, which is the theorem's Ω(log k) for d/k = O(1).

    If rank k leads rank k + 1 by E[X], or E[X'], then P[exact set] >= ½ (lemmas 5.3 and 5.4, whose events are
    printed the wrong way round; 5.4 holds at the mean of X', not at every quantile).

    Parameters
    ----------
    mechanism : Canonical or Peeling
        With exponential or gumbel noise. Without the margin, Canonical needs γ > 0. With a delta, Peeling's k/ε is
        1/ε₀, ε₀ the cost of a round.
    items : int
        d. For Peeling the paper has d − 1, because it leaves out the lowest item in favour of Peeling.

    Returns
    -------
    float
        The mean, in units of the score.

    Raises
    ------
    InvalidInput
        If the theorem does not cover the mechanism, or there are fewer than k items.

    Examples
    --------
    >>> import dpselect as dps
    >>> for mechanism in (dps.Canonical(k=10, epsilon=1.0), dps.Peeling(k=10, epsilon=1.0)):
    ...     print(f"{dps.forecast.expected_leap(mechanism, 10_000):.1f}")
    77.0
    115.1
    """
    size = _checked(mechanism, (Canonical, Peeling), items)
    if isinstance(mechanism, Peeling):
        return math.log(max(mechanism.k * (size - mechanism.k), 1)) / float(mechanism.rate())
    weight = 1.0 if mechanism.margin else _positive_gamma(mechanism)
    return _log_subsets(size, mechanism.k) / (weight * float(mechanism.exact_rate()))


def tail_loss_bound(mechanism: Canonical | Peeling, items: int, failure: float = 0.01) -> float:
    """Return B with `P[x_[k] − x_T < B] >= 1 − α`, T the lowest chosen item (canonical, theorem 5.6).

    `B = (w/(γ ε)) (ln C(d, k) + ln(1/α))` for Canonical (lemma A.20) and `(k w/ε) ln(d/α')`,
    `α' = 1 − (1 − α)^{1/k}`, for Peeling (lemma A.21). `x_[k] − x_T` is the k-relative error.

    The theorem bounds `ln C(d, k)` by `k ln(d/k) + k`. It prints x_T < x_[k] + B, and for Peeling
    `k ln(d k/α) − 6k/100`, which is less than its lemma proves and fails for k = 1.

    Parameters
    ----------
    mechanism : Canonical or Peeling
        With exponential or gumbel noise; Canonical with γ > 0. With a delta, Peeling's k/ε is 1/ε₀, ε₀ the cost of a
        round.
    items : int
        d.
    failure : float
        α, between 0 and 1 (at most 0.1 in the paper).

    Returns
    -------
    float
        B, in units of the score.

    Raises
    ------
    InvalidInput
        If the theorem does not cover the mechanism, or an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> round(dps.forecast.tail_loss_bound(dps.Canonical(k=10, epsilon=1.0, gamma=1.0), 10_000))
    82
    """
    size, allowed = _checked(mechanism, (Canonical, Peeling), items), _probability(failure)
    if isinstance(mechanism, Peeling):
        in_a_round = -math.expm1(math.log1p(-allowed) / mechanism.k)
        return math.log(size / in_a_round) / float(mechanism.rate())
    rate = _positive_gamma(mechanism) * float(mechanism.exact_rate())
    return (_log_subsets(size, mechanism.k) - math.log(allowed)) / rate


def success_bound(mechanism: OneShot, items: int, gap: float) -> float:
    """Return a lower bound of P[exact], if consecutive scores differ by at least a gap (oneshot, theorem 2.3).

    It is `max(0, 1 − (d − 1) (2λ + g) e^{−g/λ} / (4λ))` for laplace noise of scale λ and a gap g: two neighbours change
    places with probability `(2λ + g) e^{−g/λ} / (4λ)`, and if none do, the order of all items is right. The bound thus
    holds for ordered answers as well. With other noise that probability is `½ e^{−g/λ}` (exponential) or
    `1/(1 + e^{g/λ})` (gumbel).

    The paper's example, g >= 20λ and d <= 8 · 10^6, gives 0.909, not 0.99, which takes d <= 8.8 · 10^5.

    Parameters
    ----------
    mechanism : OneShot
        With laplace, exponential or gumbel noise.
    items : int
        d; with a delta, λ of laplace noise depends on it.
    gap : float
        g, the least difference of two scores, at least 0.

    Returns
    -------
    float
        The bound.

    Raises
    ------
    InvalidInput
        If the theorem does not cover the mechanism, or an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> round(dps.forecast.success_bound(dps.OneShot(k=5, epsilon=1.0, noise="laplace"), 100, gap=60), 4)
    0.9979
    """
    size = _checked(mechanism, (OneShot,), items, tuple(_SWAPPED))
    least = finite_number("gap", gap)
    if least < 0:
        raise InvalidInput("gap", gap, "must be at least 0")
    swapped = _SWAPPED[mechanism.noise](float(mechanism.rate(size) * Fraction(least)))
    return max(0.0, 1 - (size - 1) * swapped)


def full_answer_gap(mechanism: Restricted | LimitedDomain, failure: float = 0.01) -> float:
    """Return the gap behind the pool with which all k items are returned (restricted, theorems 4 and 5).

    If `x_[pool] − x_[pool+1] >= w + b (q + y)`, `b = 2w/ε_R`, then all k chosen items pass their tests with probability
    at least 1 − α, whatever the inner mechanism. q and y are the least with `¼ (2 + q) e^{−q} <= δ_R` and
    `¼ (2 + y) e^{−y} <= α/k`. The paper has 3 instead of 2 in the first, and `2 ln(k/α)` for y; both are larger.

    For LimitedDomain with gumbel noise the gap is `w + u + (w/ε₀) ln(k / (α (pool − k + 1)))`, w + u being the lead of
    its dummy: in round j + 1 the dummy comes first with probability at most `1 / ((pool − j) e^a)`, if all items of the
    pool lie a scales above it. Theorem 5 compares the two: with ε_R >= 4 ε₀ Restricted needs the smaller gap. That does
    not make it the one that returns more items on all data (docs/unknown.md).

    Parameters
    ----------
    mechanism : Restricted or LimitedDomain
        Of Restricted only k, the spread and its tests matter; LimitedDomain must have gumbel noise and no pool_epsilon.
    failure : float
        α (β in the paper), between 0 and 1.

    Returns
    -------
    float
        The gap, in units of the score.

    Raises
    ------
    InvalidInput
        If the theorem does not cover the mechanism, or `failure` is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.Restricted(inner=dps.Joint(k=10, epsilon=0.5), test_epsilon=0.5, test_delta=1e-6)
    >>> round(dps.forecast.full_answer_gap(mechanism))
    93
    >>> for mechanism in (dps.RestrictedGumbel, dps.LimitedDomain):
    ...     print(round(dps.forecast.full_answer_gap(mechanism(k=100, epsilon=1.0, delta=1e-6))))
    289
    522
    """
    _check_kind(mechanism, (Restricted, LimitedDomain))
    allowed = _probability(failure)
    if isinstance(mechanism, LimitedDomain):
        if mechanism.noise != "gumbel" or mechanism.pool_epsilon:
            raise InvalidInput("mechanism", mechanism, "must have gumbel noise and a fixed pool for this theorem")
        odds = mechanism.k / (allowed * (mechanism.pool_size - mechanism.k + 1))
        return float(mechanism.lead()) + math.log(odds) / float(mechanism.rate())
    tail = laplace_threshold(Fraction(allowed) / mechanism.inner.k)
    return float((mechanism.height() + tail) / mechanism.rate())


def signed_error_bound(mechanism: Joint, items: int, failure: float = 0.01) -> float:
    """Return B with `P[max_i (x_[i] − y_i) < B] >= 1 − α`, y_i the score in place i (joint, theorem 3.3).

    `B = (2w/ε) (ln(d!/(d−k)!) + ln(1/α))`. The paper has `k ln d` for the first logarithm and 5 for the second, at
    α = 1/100. The error is that of `signed_error`.

    Parameters
    ----------
    mechanism : Joint
        The mechanism.
    items : int
        d.
    failure : float
        α, between 0 and 1.

    Returns
    -------
    float
        B, in units of the score.

    Raises
    ------
    InvalidInput
        If the theorem does not cover the mechanism, or an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> round(dps.forecast.signed_error_bound(dps.Joint(k=10, epsilon=1.0), 10_000))
    193
    """
    size, allowed = _checked(mechanism, (Joint,), items), _probability(failure)
    return (float(log_falling(size, mechanism.k)) - math.log(allowed)) / float(mechanism.rate)


def _checked(
    mechanism: Any, kinds: tuple[type[Mechanism], ...], items: Any, noises: tuple[str, ...] = ("exponential", "gumbel")
) -> int:
    """Return the number of items if a theorem covers the mechanism on so many."""
    _check_kind(mechanism, kinds)
    if isinstance(mechanism, Canonical):
        check_unrounded(mechanism)
    if mechanism.noise not in noises:
        raise InvalidInput("mechanism", mechanism, f"must have {' or '.join(noises)} noise for this theorem")
    size = positive_integer("items", items)
    mechanism.check_size(size)
    return size


def _check_kind(mechanism: Any, kinds: tuple[type[Mechanism], ...]) -> None:
    """Raise InvalidInput for a mechanism of another kind."""
    if not isinstance(mechanism, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidInput("mechanism", mechanism, f"must be a {names} object, which this theorem is about")


def _positive_gamma(mechanism: Canonical) -> float:
    """Return γ if it is positive."""
    if not mechanism.gamma:
        raise InvalidInput("mechanism", mechanism, "must have gamma above 0: with 0 the lowest item does not matter")
    return mechanism.gamma


def _probability(failure: Any) -> float:
    """Return the probability of failure if it is between 0 and 1."""
    allowed = float(finite_number("failure", failure))
    if not 0 < allowed < 1:
        raise InvalidInput("failure", failure, "must be a probability strictly between 0 and 1, such as 0.01")
    return allowed


def _log_subsets(size: int, k: int) -> float:
    """Return ln C(d, k)."""
    return float(log_falling(size, k) - log_falling(k, k))
