"""The rules by which costs add up: which parts of a guarantee are counted, and against which total.

* basic: releases of cost (εᵢ, δᵢ) cost (Σ εᵢ, Σ δᵢ) together.
* zcdp: ρᵢ-zero-concentrated releases are Σ ρᵢ-zero-concentrated together, and the total (ε, δ) allows the largest ρ
  that implies it.

Both stay true when each cost is chosen in view of the answers before it, as long as the sum stays below a total that
was fixed beforehand (for zCDP: Feldman and Zrnic 2021, Whitehouse, Ramdas, Rogers and Wu 2023). Mathematics, section 6.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpselect._format import shown_above
from dpselect._numbers import float_below, positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.privacy.conversion import epsilon_of_zcdp, largest_rho, rho_of_pure
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.privacy.ledger.amounts import Amount, Budget
from dpselect.privacy.ledger.chain import Account

RULES = ("basic", "zcdp")


def total_for(rule: str, epsilon: float, delta: float) -> Budget:
    """Return a total as an account of that rule keeps it."""
    if rule not in RULES:
        raise InvalidInput("composition", rule, "one of " + ", ".join(RULES) + " is needed")
    total = Guarantee(epsilon=positive_number("epsilon", epsilon), delta=probability_of_failure(delta))
    if rule == "basic":
        return Budget(total.epsilon, total.delta)
    if not total.delta:
        raise InvalidInput("delta", delta, "a delta above 0 is needed: zCDP implies no pure guarantee")
    rho = largest_rho(total.epsilon, total.delta)
    if not rho:
        raise InvalidInput("epsilon", epsilon, "a larger epsilon or delta is needed: no rho is small enough for them")
    return Budget(total.epsilon, total.delta, rho)


def limit(account: Account) -> Amount:
    """Return what the costs of an account may add up to."""
    total = account.total
    if account.composition == "zcdp":
        return Amount(rho=Fraction(total.rho))
    return Amount(Fraction(total.epsilon), Fraction(total.delta))


def cost(account: Account, guarantee: Guarantee) -> Amount:
    """Return what a release costs under the rule of an account."""
    if account.composition != "zcdp":
        return Amount(Fraction(guarantee.epsilon), Fraction(guarantee.delta))
    rho = guarantee.known_rho
    if rho is None:
        raise InvalidInput(
            "guarantee",
            plain(f"one with delta = {shown_above(guarantee.delta)} and no rho"),
            f"data set {account.dataset!r} adds up rho (zCDP); a pure release, or one that states its rho, is needed",
        )
    return Amount(rho=rho)


def spent(account: Account, amount: Amount) -> Budget:
    """Return what the releases cost together, rounded up; under zCDP the ε that goes with the δ of the total."""
    shown = amount.rounded_up()
    if account.composition != "zcdp" or not amount.rho:
        return shown
    return Budget(epsilon_of_zcdp(amount.rho, Fraction(account.total.delta)), account.total.delta, shown.rho)


def remaining(account: Account, left: Amount) -> Budget:
    """Return what is left, rounded down; under zCDP the ε is that of the largest pure release that fits."""
    shown = left.rounded_down()
    if account.composition != "zcdp":
        return shown
    return Budget(float_below(largest_pure(account, left)), account.total.delta, shown.rho)


def largest_pure(account: Account, left: Amount) -> Fraction:
    """Return the largest ε of one pure release that fits into what is left."""
    if account.composition != "zcdp":
        return max(left.epsilon, Fraction(0))
    return Fraction(_pure_epsilon(max(left.rho, Fraction(0))))


def requested(guarantee: Guarantee, price: Amount) -> float:
    """Return the ε of a request as a refusal states it; where ρ is counted, that of a pure release of the same cost."""
    if not price.rho or rho_of_pure(Fraction(guarantee.epsilon)) == price.rho:
        return guarantee.epsilon
    return math.nextafter(_pure_epsilon(price.rho), math.inf)


def _pure_epsilon(rho: Fraction) -> float:
    """Return the largest ε of a pure release that costs no more than ρ."""
    below = float_below(rho)
    epsilon = math.sqrt(2 * below) if below <= 2 else below
    while epsilon > 0 and rho_of_pure(Fraction(epsilon)) > rho:
        epsilon = math.nextafter(epsilon, 0.0)
    return epsilon
