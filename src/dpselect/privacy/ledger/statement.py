"""What a ledger says about one data set: spent, left, and what the remainder would still buy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect._format import shown_above
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.ledger import rules
from dpselect.privacy.ledger.amounts import Amount, Budget
from dpselect.privacy.ledger.chain import Account, Entry


@dataclass(frozen=True)
class Offer:
    """How many releases of one cost the remainder allows."""

    releases: int
    cost: Budget
    like_the_last: bool

    def __str__(self) -> str:
        """Say what could be bought."""
        cost = f"epsilon {shown_above(self.cost.epsilon)}"
        cost += f", delta {shown_above(self.cost.delta)}" if self.cost.delta else ""
        number = f"{self.releases} release" + ("" if self.releases == 1 else "s")
        if not self.like_the_last:
            return f"{number} of {cost}"
        return number.replace("release", "more release") + f" like the last one ({cost})"


@dataclass(frozen=True)
class Statement:
    """One consistent view of a data set: its account, the exact sum of its costs, and its last entries."""

    account: Account
    exact_spent: Amount
    entries: list[Entry]

    @property
    def spent(self) -> Budget:
        """What all releases cost together, rounded up."""
        return rules.spent(self.account, self.exact_spent)

    @property
    def remaining(self) -> Budget:
        """What is left of the total, rounded down."""
        return rules.remaining(self.account, self._left())

    def buys(self, cost: Guarantee) -> int:
        """Return how many releases with that guarantee the remainder allows."""
        return self._left().buys(rules.cost(self.account, cost))

    def offers(self) -> list[Offer]:
        """Return what the remainder buys: releases like the last one, or ten pure ones."""
        costs = [(self.entries[-1].guarantee, True)] if self.entries else []
        tenth = _short_below(rules.largest_pure(self.account, self._left() / 10))
        if tenth > 0:
            costs.append((Guarantee(tenth), False))
        return [Offer(self.buys(cost), Budget(cost.epsilon, cost.delta), like) for cost, like in costs]

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain data that json.dumps accepts."""
        return {
            **self.account.to_dict(),
            "spent": self.spent.to_dict(),
            "remaining": self.remaining.to_dict(),
            "buys": [
                {"releases": offer.releases, "epsilon": offer.cost.epsilon, "delta": offer.cost.delta}
                for offer in self.offers()
            ],
            "entries": [entry.to_dict() for entry in self.entries],
        }

    def _left(self) -> Amount:
        return rules.limit(self.account) - self.exact_spent


def _short_below(amount: Fraction) -> float:
    """Return the largest number of three decimal digits whose float does not exceed a positive amount, or else 0."""
    if amount < Fraction(1, 10**300):
        return 0.0
    unit = Fraction(10) ** (math.floor(math.log10(amount)) - 2)
    digits = math.floor(amount / unit)
    next_below = Fraction(999, 10) if digits == 100 else Fraction(digits - 1)
    return next(number for number in (float(digits * unit), float(next_below * unit)) if Fraction(number) <= amount)
