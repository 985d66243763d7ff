"""Calibration: thresholds, noise scales, conversions and budgets against independently computed exact values.

Each number must be on the safe side of the exact value, and close to it. Every check takes the function or class under
test as an argument, so that the broken twins can replace it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpselect.mechanisms import Gaussian, OneShot, Peeling
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.multiselect.account import SignalBudget
from dpselect.privacy.bounded_range import Grid
from dpselect.privacy.calibration import gumbel_threshold, laplace_threshold, unit_sigma
from dpselect.privacy.conversion import epsilon_of_ranges, epsilon_of_zcdp, mean_of_range, rho_of_range, upper_bound
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.ranking.bounds import Bounds
from dpselect.ranking.walk import Walk, stationary
from dpselect.sampling.balls import ball, working_precision
from dpselect.verify.exact import ExactCheck

DELTAS = (0.3, 0.05, 1e-3, 1e-6, 1e-12)
PRECISION = 512

AnyFunction = Callable[..., Any]


def laplace_tail(q: Any) -> Any:
    """Return P[ν − ρ > q] of two standard Laplace variables: `¼ (2 + q) e^{−q}`."""
    return (2 + q) * (-q).exp() / 4


def gumbel_tail(u: Any) -> Any:
    """Return the bound `e^{−u}` on P[Z > Z' + u] of two standard Gumbel variables."""
    return (-u).exp()


def thresholds(
    name: str, noise: str = "laplace", threshold: AnyFunction = laplace_threshold, tail: AnyFunction = laplace_tail
) -> ExactCheck:
    """Compare tails at thresholds with the requested δ: log(tail/δ) is in [−2 rounding steps, 0]."""

    def excess(delta: float) -> float:
        height = threshold(Fraction(delta))
        with working_precision(PRECISION):
            return float((tail(ball(height)) / ball(Fraction(delta))).log())

    return ExactCheck(name, f"log of tail / delta, {noise}", tuple(map(excess, DELTAS)), -(2.0**-30), 0.0)


TARGETS = ((0.1, 1e-6), (1.0, 1e-3), (1.0, 0.1), (8.0, 1e-9))


def deviations(name: str, sigma: AnyFunction = unit_sigma) -> ExactCheck:
    """Compare the δ of normal noise, `Φ(1/(2σ) − εσ) − e^ε Φ(−1/(2σ) − εσ)`, with the requested δ."""

    def excess(target: tuple[float, float]) -> float:
        epsilon, delta = target
        stated = sigma(epsilon, delta)
        with working_precision(PRECISION):
            size, root = ball(stated), ball(Fraction(2)).sqrt()
            upper, lower = (sign / (2 * size) - ball(epsilon) * size for sign in (1, -1))
            needed = (-upper / root).erfc() / 2 - ball(epsilon).exp() * (-lower / root).erfc() / 2
            return float((needed / ball(delta)).log())

    return ExactCheck(name, "log of delta needed / delta, normal", tuple(map(excess, TARGETS)), -1e-8, 0.0)


def concentration(name: str, rho: AnyFunction = rho_of_range) -> ExactCheck:
    """Compare ρ of bounded range r with the Rényi divergences of the worst two-point pair: `sup D_α/α = r²/8` as r → 0.

    The pair has losses t and t − r; `p e^{−t} + (1 − p) e^{r − t} = 1` fixes their probabilities.
    """
    width = Fraction(1, 64)
    worst = 0.0
    with working_precision(PRECISION):
        r = ball(width)
        for twentieths in range(1, 20):
            t = r * twentieths / 20
            p = (1 - (t - r).exp()) / (1 - (-r).exp())
            for alpha in (Fraction(33, 32), Fraction(2), Fraction(8)):
                order = ball(alpha)
                moment = p * ((order - 1) * t).exp() + (1 - p) * ((order - 1) * (t - r)).exp()
                worst = max(worst, float(moment.log() / ((order - 1) * order)))
    return ExactCheck(name, "zCDP of the worst pair / rho of bounded range", (worst / float(rho(width)),), 0.99, 1.0)


def composed_delta(epsilon: float, width: float, rounds: int) -> float:
    """Return a lower bound on the δ of composed rounds of bounded range r at ε: the worst pair with losses t and t − r.

    Independent rounds are one choice of the adversary, hence a lower bound.
    """
    worst = 0.0
    for twentieths in range(1, 20):
        t = width * twentieths / 20
        p = math.expm1(t - width) / math.expm1(-width)
        needed = 0.0
        for high in range(rounds + 1):
            loss = high * t + (rounds - high) * (t - width)
            if loss > epsilon:
                log_probability = (
                    math.lgamma(rounds + 1) - math.lgamma(high + 1) - math.lgamma(rounds - high + 1)
                    + high * math.log(p) + (rounds - high) * math.log1p(-p)
                )  # fmt: skip
                needed += math.exp(log_probability) * -math.expm1(epsilon - loss)
        worst = max(worst, needed)
    return worst


COMPOSED = ((0.1, 100), (0.02, 1000), (0.5, 20))


def rounds_of_ranges(name: str, epsilon_of: AnyFunction = epsilon_of_ranges) -> ExactCheck:
    """Compare the δ that rounds need at the stated ε, `Σ mean(r) + √(½ Σ r² log(1/δ))`, with the stated δ."""

    def used(case: tuple[float, int]) -> float:
        width, rounds = case
        exact, delta = Fraction(width), 1e-9
        mean, squares = rounds * mean_of_range(exact), rounds * exact * exact
        return composed_delta(epsilon_of(mean, squares, Fraction(delta)), width, rounds) / delta

    compared = "delta needed by rounds of bounded range / delta"
    return ExactCheck(name, compared, tuple(map(used, COMPOSED)), 1e-6, 1.0)


def adaptive_delta(epsilon: float, width: float, rounds: int) -> float:
    """Return a lower bound on the δ of a few rounds of bounded range r at ε: pairs chosen in view of earlier losses."""
    t = width * np.arange(1, 20) / 20
    p = np.expm1(t - width) / math.expm1(-width)

    def worst(left: int, lost: Any) -> Any:
        if not left:
            return np.maximum(0.0, -np.expm1(epsilon - lost))
        return np.max(
            p * worst(left - 1, lost[..., None] + t) + (1 - p) * worst(left - 1, lost[..., None] + t - width), axis=-1
        )

    return float(worst(rounds, np.zeros(())))


def optimal_rounds(name: str, grid_of: AnyFunction = Grid.of) -> ExactCheck:
    """Compare the δ that adaptively chosen rounds need with the bound by optimal composition."""
    cases = [(0.3, 0.1, 4), (1.2, 0.5, 3), (2.0, 1.0, 4)]

    def used(case: tuple[float, float, int]) -> float:
        epsilon, width, rounds = case
        return float(adaptive_delta(*case) / grid_of(width, rounds, epsilon).deltas(epsilon)[0])

    return ExactCheck(name, "delta needed by adaptive rounds / bound", tuple(map(used, cases)), 0.98, 1.0)


def per_round(epsilon: float, delta: float, k: int, noise: str) -> Fraction:
    """Return ε₀ of one round of peeling: its rate for scores of spread 1."""
    return Peeling(k=k, epsilon=epsilon, delta=delta, noise=noise).rate()


def rounds_of_peeling(name: str, noise: str, share_of: AnyFunction = per_round) -> ExactCheck:
    """Compare the δ that k rounds need with the stated one; only gumbel noise has rounds of range ε₀."""
    cases = [(epsilon, delta, k) for epsilon, delta in ((0.5, 1e-3), (1.0, 1e-6)) for k in (10, 100)]

    def used(case: tuple[float, float, int]) -> float:
        epsilon, delta, k = case
        share = float(share_of(epsilon, delta, k, noise))
        if k * share <= epsilon:
            return 0.0
        return composed_delta(epsilon, share * (1 if noise == "gumbel" else 2), k) / delta

    return ExactCheck(name, f"delta needed by k rounds / delta, {noise}", tuple(map(used, cases)), 0.0, 1.0)


def ranges_stated(name: str, mechanism_of: AnyFunction = Peeling) -> ExactCheck:
    """Compare the stated range of one round with that on two items, of which one overtakes the other.

    There permute-and-flip at ε₀ has a range of nearly 2ε₀, and the exponential mechanism one of ε₀.
    """

    def used(noise: str) -> float:
        mechanism = mechanism_of(k=10, epsilon=0.1, delta=0.2, noise=noise)
        [(stated, _)] = mechanism.guarantee.ranges
        one = Peeling(k=1, epsilon=float(mechanism.rate()), noise=noise)
        here, there = one.law([0, 0.5]), one.law([1, 0.5])
        losses = [math.log(there[outcome] / here[outcome]) for outcome in here]
        return (max(losses) - min(losses)) / float(stated)

    return ExactCheck(name, "range of a round / stated range", (used("gumbel"), used("exponential")), 0.95, 1 + 1e-9)


def rho_of_rounds(name: str, mechanism_of: AnyFunction = Peeling) -> ExactCheck:
    """Compare the ρ that k rounds state with k r²/8, r being the stated range of each."""

    def ratio(noise: str) -> float:
        guarantee = mechanism_of(k=10, epsilon=0.1, delta=0.2, noise=noise).guarantee
        [(width, rounds)] = guarantee.ranges
        return float(guarantee.rho / (rounds * width * width / 8))

    return ExactCheck(name, "rho stated / k r^2/8", (ratio("gumbel"), ratio("exponential")), 1.0, 1 + 1e-12)


def means_of_range(name: str, mean_of: AnyFunction = mean_of_range) -> ExactCheck:
    """Compare the expected loss of the worst two-point pair of bounded range with the stated one."""

    def used(width: float) -> float:
        worst = 0.0
        for hundredths in range(1, 100):
            t = width * hundredths / 100
            p = math.expm1(t - width) / math.expm1(-width)
            worst = max(worst, p * t + (1 - p) * (t - width))
        return worst / float(mean_of(Fraction(width)))

    return ExactCheck(name, "mean loss of the worst pair / stated mean", (used(0.1), used(1.0), used(4.0)), 0.99, 1.0)


def normal_noise(name: str, mechanism_of: AnyFunction = Gaussian) -> ExactCheck:
    """Compare σ with `√m s σ₁` and ρ with `1/(2σ₁²)`: three items per person, each score moved by at most s = 2."""
    mechanism = mechanism_of(k=2, epsilon=0.5, delta=1e-3, sensitivity=Sensitivity(-2, 1), max_items_per_person=3)
    unit = unit_sigma(0.5, 1e-3)
    values = mechanism.sigma / (2 * math.sqrt(3) * unit), mechanism.guarantee.rho * 2 * unit * unit
    return ExactCheck(name, "sigma and rho / theorem", values, 1 - 1e-12, 1 + 1e-12)


def dummies(name: str, mechanism_of: AnyFunction = LimitedDomain) -> ExactCheck:
    """Compare the bound on P[a new item passes the dummy], m e^{−u}, with the δ left by the rounds: half or all."""
    cases = [(50, 1.0, 1e-6), (1, 1.0, 1e-6), (200, 0.1, 1e-3)]

    def excess(case: tuple[int, float, float]) -> float:
        k, epsilon, delta = case
        mechanism = mechanism_of(k=k, epsilon=epsilon, delta=delta, max_items_per_person=7)
        left = delta / 2 if k * mechanism.rate() > Fraction(epsilon) else delta
        new_items = min(7, mechanism.pool_size)
        return math.log(new_items / left) - float((mechanism.lead() - 1) * mechanism.rate())

    return ExactCheck(name, "log of newcomers past the dummy / delta left", tuple(map(excess, cases)), -1e-4, 0.0)


def laplace_theorem(name: str, mechanism_of: AnyFunction = OneShot) -> ExactCheck:
    """Compare rates of laplace noise with `ε / (4 w √(k log(d/δ)))` for ε <= 0.2 and δ <= 0.05, else with ε/(kw)."""
    cases = [(0.1, 0.05, 1000, 10**6), (0.2, 1e-6, 400, 10**4), (0.3, 0.05, 1000, 10**6), (0.1, 0.06, 1000, 10**6)]

    def ratio(case: tuple[float, float, int, int]) -> float:
        epsilon, delta, k, size = case
        theorem = epsilon / (4 * math.sqrt(k * math.log(size / delta))) if epsilon <= 0.2 and delta <= 0.05 else 0.0
        mechanism = mechanism_of(k=k, epsilon=epsilon, delta=delta, noise="laplace", sensitivity=Sensitivity(-1, 2))
        return float(mechanism.rate(size)) * 3 / max(theorem, epsilon / k)

    return ExactCheck(name, "rate of laplace noise with delta / theorem", tuple(map(ratio, cases)), 1 - 1e-9, 1 + 1e-12)


def sums_of_parts(name: str, mechanism_of: AnyFunction = Restricted) -> ExactCheck:
    """Compare the guarantee of a restricted mechanism with the exact sums of its parts: at most one rounding above."""
    inner = Peeling(k=4, epsilon=0.1, delta=0.1, noise="gumbel")
    whole = mechanism_of(inner=inner, pool=4, test_epsilon=0.7, test_delta=0.2).guarantee
    epsilons = Fraction(whole.epsilon) - Fraction(0.1) - Fraction(0.7)
    deltas = Fraction(whole.delta) - Fraction(inner.guarantee.delta) - Fraction(0.2)
    return ExactCheck(name, "guarantee less the sum of its parts", (float(epsilons), float(deltas)), 0.0, 2.0**-52)


def zcdp_epsilons(name: str, epsilon_of: AnyFunction = epsilon_of_zcdp) -> ExactCheck:
    """Compare ε of ρ-zCDP with `min over α of αρ + log(1 − 1/α) − log(αδ)/(α − 1)`, on a grid of orders."""
    cases = [(rho, delta) for rho in (1e-4, 0.01, 0.5, 10.0) for delta in (1e-3, 1e-9)]

    def ratio(case: tuple[float, float]) -> float:
        rho, delta = case
        orders = (1 + math.exp(step / 200) for step in range(-2000, 2000))
        least = min(a * rho + math.log1p(-1 / a) - math.log(a * delta) / (a - 1) for a in orders)
        return float(epsilon_of(Fraction(rho), Fraction(delta)) / least)

    return ExactCheck(name, "epsilon of zCDP / least over all orders", tuple(map(ratio, cases)), 1 - 1e-4, 1 + 1e-9)


def upper_bounds(name: str, bound: AnyFunction = upper_bound) -> ExactCheck:
    """Compare upper bounds with fractions that are not floats: the excess, in units in the last place."""

    def added(number: int) -> float:
        exact = Fraction(number, 7)
        stated = bound(lambda: ball(exact), exact)
        return float((Fraction(stated) - exact) / Fraction(math.ulp(stated)))

    numbers = [number for number in range(1, 60) if number % 7]
    return ExactCheck(name, "bounds from above, last places added", tuple(map(added, numbers)), 0.0, 2.0)


def spreads(name: str, bounds_of: AnyFunction = Bounds) -> ExactCheck:
    """Compare the spread of a ranking with its theorem, `m · 2 (1 − α) s / (D L α) + 4τ`, `τ = w/4096`."""
    cases = [(10, 1, 2, Fraction(1, 2), 1), (10, 3, 9, Fraction(1, 4), 2), (4, 2, 3, Fraction(7, 8), 1)]

    def ratio(case: tuple[int, int, int, Fraction, int]) -> float:
        size, most, degree, alpha, votes = case
        passed_on = min(Fraction(1), Fraction(2, degree)) * (1 - alpha)
        pair = (passed_on + 2 * alpha / size) / (passed_on + alpha)
        moved = votes * 2 * (1 - alpha) * pair / (degree * most * alpha)
        bounds = bounds_of(most, degree, float(alpha), votes=votes)
        return float(Fraction(bounds.sensitivity(size).spread) / (moved * (1 + Fraction(1, 1024))))

    return ExactCheck(name, "spread / theorem", tuple(map(ratio, cases)), 1.0, 1 + 1e-12)


def errors_of_walks(name: str, distribution: AnyFunction = stationary) -> ExactCheck:
    """Compare the error of a computed stationary distribution with τ, on a slow walk: one item keeps 98 %."""
    bounds = Bounds(50, 1, 0.0625)
    walk = Walk(2, 100, np.array([0]), np.array([1]), np.array([2]))
    # π_0 = (1 − α) 0.98 π_0 + α/2.
    first = Fraction(1, 32) / (1 - Fraction(15, 16) * Fraction(98, 100))
    found = distribution(walk, bounds)
    error = sum(abs(Fraction(float(share)) - exact) for share, exact in zip(found, (first, 1 - first), strict=True))
    return ExactCheck(name, "error of scores / tolerance", (float(error / bounds.tolerance(2)),), 0.0, 1.0)


def signals_paid(name: str, account_of: AnyFunction = SignalBudget) -> ExactCheck:
    """Count the signals that a budget for three pays for: three, and two if the budget is one rounding less."""
    surplus = []
    for budget, paid in ((0.75, 3), (math.nextafter(0.75, 0), 2)):
        account = account_of(budget)
        surplus.append(float(sum(account.charge(0.25) for _ in range(9)) - paid))
    return ExactCheck(name, "signals beyond what a budget pays for", tuple(surplus), 0.0, 0.0)


CALIBRATIONS: list[tuple[str, Callable[[str], ExactCheck]]] = [
    *[(name, thresholds) for name in ("restricted", "limited", "top-stable")],
    ("limited", partial(thresholds, noise="gumbel", threshold=gumbel_threshold, tail=gumbel_tail)),
    ("gaussian", deviations),
    *[
        (name, check)
        for name in ("oneshot", "peeling")
        for check in (concentration, means_of_range, rounds_of_ranges, optimal_rounds, zcdp_epsilons, upper_bounds)
    ],
    *[("peeling", partial(rounds_of_peeling, noise=noise)) for noise in ("gumbel", "exponential", "laplace")],
    ("peeling", ranges_stated),
    ("peeling", rho_of_rounds),
    ("gaussian", normal_noise),
    ("limited", dummies),
    ("oneshot", laplace_theorem),
    ("restricted", sums_of_parts),
    ("ranking", spreads),
    ("ranking", errors_of_walks),
    ("multiselect", signals_paid),
]
"""Mechanism and check."""
