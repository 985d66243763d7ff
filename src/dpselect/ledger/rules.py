"""Exact sums of costs, and the rules by which the releases of a data set add up.

* basic: releases of cost (εᵢ, δᵢ) cost (Σ εᵢ, Σ δᵢ) together.
* zcdp: ρᵢ-zero-concentrated releases are (Σ ρᵢ)-zero-concentrated together. The total (ε, δ) allows the largest ρ that
  implies it.

Both hold when each cost is chosen after seeing the answers before it, as long as the sum stays below a total that was
fixed beforehand (for zCDP: Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023). Mathematics, section 6.

A new rule is a subclass of `Rule`, with an entry in `RULES`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction

from dpselect._format import shown_above
from dpselect._numbers import float_below, positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.privacy.conversion import epsilon_of_zcdp, largest_rho, rho_of_pure
from dpselect.privacy.guarantee import Guarantee, probability_of_failure


@dataclass(frozen=True)
class Budget:
    """An amount of privacy cost. Unlike a guarantee it may be zero.

    Parameters
    ----------
    epsilon, delta
        The (ε, δ) of the amount.
    rho
        Its zCDP parameter, for data sets with the rule "zcdp"; otherwise 0.

    Examples
    --------
    >>> Budget(epsilon=0.5).to_dict()
    {'epsilon': 0.5, 'delta': 0.0}
    """

    epsilon: float
    delta: float = 0.0
    rho: float = 0.0

    def to_dict(self) -> dict[str, float]:
        """Return the amount as plain data, with rho if it is not 0."""
        return {name: part for name, part in asdict(self).items() if name != "rho" or part}


@dataclass(frozen=True)
class Amount:
    """The exact sum of the costs of releases; a rule decides which parts it counts.

    A float stands for its exact binary value, so ten times 0.1 is slightly more than 1.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    @staticmethod
    def parse(epsilon: str, delta: str, rho: str) -> Amount:
        """Return the amount that `text` wrote."""
        return Amount(Fraction(epsilon), Fraction(delta), Fraction(rho))

    def text(self) -> tuple[str, str, str]:
        """Return the parts as exact texts, such as 1/2."""
        return str(self.epsilon), str(self.delta), str(self.rho)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.epsilon - other.epsilon, self.delta - other.delta, self.rho - other.rho)

    def __mul__(self, number: int) -> Amount:
        return Amount(self.epsilon * number, self.delta * number, self.rho * number)

    def __truediv__(self, number: int) -> Amount:
        return Amount(self.epsilon / number, self.delta / number, self.rho / number)

    def least(self, other: Amount) -> Amount:
        """Return the smaller of the two in each part."""
        return Amount(*map(min, self._parts(), other._parts()))

    def within(self, total: Amount) -> bool:
        """Whether no part exceeds that of `total`."""
        return self.epsilon <= total.epsilon and self.delta <= total.delta and self.rho <= total.rho

    def rounded_up(self) -> Budget:
        """Return the amount as floats, rounded up: what was spent is never understated."""
        return Budget(*(0.0 - float_below(-part) for part in self._parts()))

    def rounded_down(self) -> Budget:
        """Return the amount as floats, rounded down but not below 0: what is left is never overstated."""
        return Budget(*(float_below(max(part, Fraction(0))) for part in self._parts()))

    def buys(self, cost: Amount) -> int:
        """Return how many releases of a positive cost fit into this amount."""
        pairs = zip(self._parts(), cost._parts(), strict=True)
        return max(0, min(math.floor(available / price) for available, price in pairs if price > 0))

    def _parts(self) -> tuple[Fraction, Fraction, Fraction]:
        return self.epsilon, self.delta, self.rho


class Rule:
    """How costs add up: which parts of a guarantee are counted, and against which total. This one adds ε and δ."""

    def total(self, epsilon: float, delta: float) -> Budget:
        """Return the total of a new data set; (ε, δ) is rounded down."""
        return Budget(positive_number("epsilon", epsilon), probability_of_failure(delta))

    def limit(self, total: Budget) -> Amount:
        """Return what the costs may add up to."""
        return Amount(Fraction(total.epsilon), Fraction(total.delta))

    def lifetime(self, total: Budget, epsilon: float) -> Budget:
        """Return the total over all periods, if each has a total of its own: δ grows in proportion to ε."""
        most = positive_number("lifetime", epsilon)
        if most < total.epsilon:
            raise InvalidInput("lifetime", epsilon, f"must be at least {total.epsilon!r}, the epsilon of one period")
        share = Fraction(most) / Fraction(total.epsilon)
        return Budget(most, min(float_below(share * Fraction(total.delta)), math.nextafter(1.0, 0.0)))

    def cost(self, guarantee: Guarantee, total: Budget, *, alone: bool) -> Amount:
        """Return what a release costs; `alone` if it is the first, and is all that will be released if it takes all."""
        return Amount(Fraction(guarantee.epsilon), Fraction(guarantee.delta))

    def stored_cost(self, epsilon: float, delta: float, rho: str) -> Amount:
        """Return what a stored entry was charged."""
        return Amount(Fraction(epsilon), Fraction(delta))

    def spent(self, total: Budget, amount: Amount) -> Budget:
        """Return what the releases cost together, rounded up."""
        return amount.rounded_up()

    def remaining(self, total: Budget, left: Amount) -> Budget:
        """Return what is left, rounded down."""
        return left.rounded_down()

    def largest_pure(self, left: Amount) -> Fraction:
        """Return the largest ε of one pure release that fits into what is left."""
        return max(left.epsilon, Fraction(0))

    def requested(self, guarantee: Guarantee, cost: Amount) -> float:
        """Return the ε that a refusal states for the request."""
        return guarantee.epsilon


class ZeroConcentrated(Rule):
    """Adds up ρ. An ε that is shown is that of the sum at the total's δ, or that of a pure release of the same cost."""

    def total(self, epsilon: float, delta: float) -> Budget:
        """Return the total (ε, δ) with the largest ρ that implies it."""
        total = super().total(epsilon, delta)
        if not total.delta:
            raise InvalidInput("delta", delta, "must be above 0 under zcdp, which implies no pure guarantee")
        rho = largest_rho(total.epsilon, total.delta)
        if not rho:
            raise InvalidInput("epsilon", epsilon, "must be larger; no rho implies this epsilon at this delta")
        return Budget(total.epsilon, total.delta, rho)

    def limit(self, total: Budget) -> Amount:
        """Return the ρ of the total."""
        return Amount(rho=Fraction(total.rho))

    def lifetime(self, total: Budget, epsilon: float) -> Budget:
        """Return the largest ρ that implies the ε over all periods at the δ of the total."""
        return self.total(super().lifetime(total, epsilon).epsilon, total.delta)

    def cost(self, guarantee: Guarantee, total: Budget, *, alone: bool) -> Amount:
        """Return the least ρ that follows from a guarantee; at most the total for a first release within its (ε, δ).

        Noise for the whole (ε, δ) may have more ρ than implies it. It fits alone, and is then all that was released;
        the sum of costs is then a share of the budget and no longer a bound on ρ.
        """
        rho = guarantee.known_rho
        if rho is None:
            given = plain(f"one with delta = {shown_above(guarantee.delta)} and no rho")
            raise InvalidInput("guarantee", given, "must be pure or state its rho, since this data set adds up rho")
        alone = alone and 0 < guarantee.delta <= total.delta and guarantee.epsilon <= total.epsilon
        return Amount(rho=min(rho, Fraction(total.rho)) if alone else rho)

    def stored_cost(self, epsilon: float, delta: float, rho: str) -> Amount:
        """Return ρ as it was stored: a later version may know a smaller one."""
        return Amount(rho=Fraction(rho))

    def spent(self, total: Budget, amount: Amount) -> Budget:
        """Return the sum, with the ε that it implies at the δ of the total."""
        shown = amount.rounded_up()
        if not amount.rho:
            return shown
        return Budget(epsilon_of_zcdp(amount.rho, Fraction(total.delta)), total.delta, shown.rho)

    def remaining(self, total: Budget, left: Amount) -> Budget:
        """Return what is left; ε is that of the largest pure release that fits."""
        return Budget(float_below(self.largest_pure(left)), total.delta, left.rounded_down().rho)

    def largest_pure(self, left: Amount) -> Fraction:
        """Return the largest ε of one pure release that fits into what is left."""
        return Fraction(_pure_epsilon(max(left.rho, Fraction(0))))

    def requested(self, guarantee: Guarantee, cost: Amount) -> float:
        """Return the ε of the request, or that of a pure release of the same ρ where the request is not pure."""
        if rho_of_pure(Fraction(guarantee.epsilon)) == cost.rho:
            return guarantee.epsilon
        return math.nextafter(_pure_epsilon(cost.rho), math.inf)


RULES: dict[str, Rule] = {"basic": Rule(), "zcdp": ZeroConcentrated()}


def rule_named(name: str) -> Rule:
    """Return the rule of that name."""
    if name not in RULES:
        raise InvalidInput("composition", name, f"must be one of {', '.join(RULES)}")
    return RULES[name]


def _pure_epsilon(rho: Fraction) -> float:
    """Return the largest ε of a pure release that costs no more than ρ."""
    below = float_below(rho)
    epsilon = math.sqrt(2 * below) if below <= 2 else below
    while epsilon > 0 and rho_of_pure(Fraction(epsilon)) > rho:
        epsilon = math.nextafter(epsilon, 0.0)
    return epsilon
