"""Statement: one consistent view of a data set, with what its remainder buys."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect._format import shown_above, shown_below
from dpselect._printed import Printed, frame_of
from dpselect.ledger.chain import Account, Entry
from dpselect.ledger.charges import cost_of
from dpselect.ledger.rules import Amount, Budget
from dpselect.periods import UNITS
from dpselect.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType

PERIODS_SHOWN = 10
"""How many of the latest periods a statement has."""


@dataclass(frozen=True)
class BudgetOffer:
    """How many releases of one cost the remainder allows."""

    releases: int
    cost: Budget
    like_the_last: bool

    def __str__(self) -> str:
        """Say what could be bought."""
        cost = f"epsilon {shown_above(self.cost.epsilon)}"
        cost += f", delta {shown_above(self.cost.delta)}" if self.cost.delta else ""
        plural = "" if self.releases == 1 else "s"
        if self.like_the_last:
            return f"{self.releases} more release{plural} like the last one ({cost})"
        return f"{self.releases} release{plural} of {cost}"


@dataclass(frozen=True)
class Statement(Printed):
    """One consistent view of a data set: its account, the exact sum of its costs, and its last releases.

    See `Ledger.statement`. `print` and notebooks show it as `dpselect ledger show` does.

    Attributes
    ----------
    account, exact_spent, entries
        The account, the exact sum of its costs, and its last releases.
    answers
        The number of answers that the ledger keeps for it.
    periods
        What was spent in its latest periods, if it has any, the latest first.
    """

    account: Account
    exact_spent: Amount
    entries: list[Entry]
    answers: int = 0
    periods: dict[str, Amount] = field(default_factory=dict)

    @property
    def releases(self) -> int:
        """How many releases were charged; an answer that is kept is an entry of its own in the chain."""
        return self.account.count - self.answers

    @property
    def spent(self) -> Budget:
        """What all releases cost together, rounded up; with periods, for somebody who is in all of them."""
        return self.account.rule.spent(self.account.total, self.exact_spent)

    @property
    def remaining(self) -> Budget:
        """What is left of the total, rounded down; with periods, in one in which nothing was spent yet."""
        return self.account.rule.remaining(self.account.total, self._left())

    @property
    def a_year(self) -> Budget | None:
        """What a year of periods may cost somebody who is in all of them, rounded up; None without periods."""
        if not self.account.every:
            return None
        return self.account.rule.spent(self.account.total, self.account.limit * UNITS[self.account.every].a_year)

    @property
    def lifetime_left(self) -> Budget:
        """What is left of the total over all periods, rounded down; nothing if there is no such total."""
        account = self.account
        if account.lifetime is None or account.lifetime_limit is None:
            return Budget(0.0)
        return account.rule.remaining(account.lifetime, account.lifetime_limit - self.exact_spent)

    def in_periods(self) -> dict[str, tuple[Budget, Budget]]:
        """Return what was spent and what is left in each of `periods`."""
        account = self.account
        return {
            name: (account.rule.spent(account.total, spent), remaining_in_period(account, self.exact_spent, spent))
            for name, spent in self.periods.items()
        }

    def buys(self, cost: Guarantee) -> int:
        """Return how many releases with that guarantee the remainder allows."""
        return self._left().buys(cost_of(self.account, cost, self.exact_spent))

    def offers(self) -> list[BudgetOffer]:
        """Return what the remainder buys: releases like the last one, or ten pure ones."""
        costs = [(self.entries[-1].guarantee, True)] if self.entries else []
        tenth = _three_digits_below(self.account.rule.largest_pure(self._left() / 10))
        if tenth > 0:
            costs.append((Guarantee(tenth), False))
        return [BudgetOffer(self.buys(cost), Budget(cost.epsilon, cost.delta), like) for cost, like in costs]

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
            **({"periods": self._periods_data()} if self.account.every else {}),
            "entries": [entry.to_dict() for entry in self.entries],
        }

    def to_frame(self) -> pandas.DataFrame:
        """Return the entries as a pandas DataFrame, with the columns of `dpselect ledger show --format csv`.

        Returns
        -------
        pandas.DataFrame
            A row for each entry of this statement, oldest first.

        Raises
        ------
        InvalidInput
            If pandas is not installed.
        """
        from dpselect._statement_text import ENTRY_COLUMNS, entry_rows

        return frame_of(entry_rows(self.entries), ENTRY_COLUMNS)

    def __repr__(self) -> str:
        """Say in one line what is spent, rounded up."""
        account = self.account
        total = f"spent in all {account.every}s" if account.every else f"of {shown_below(account.total.epsilon)} spent"
        spent = f"epsilon {shown_above(self.spent.epsilon)} {total}"
        releases = f"{self.releases:,} release{'' if self.releases == 1 else 's'}"
        return f"<Statement of {account.dataset!r}: {releases}, {spent}>"

    def _tables(self) -> list[RenderableType]:
        from dpselect._statement_text import statement_tables

        return statement_tables(self)

    def _periods_data(self) -> list[dict[str, Any]]:
        return [
            {"period": name, "spent": spent.to_dict(), "remaining": left.to_dict()}
            for name, (spent, left) in self.in_periods().items()
        ]

    def _left(self) -> Amount:
        return _left_in_period(self.account, self.exact_spent, Amount() if self.account.every else self.exact_spent)


def remaining_in_period(account: Account, whole: Amount, spent: Amount) -> Budget:
    """Return what is left in a period, rounded down, given what was spent in all of them and in this one."""
    return account.rule.remaining(account.total, _left_in_period(account, whole, spent))


def _left_in_period(account: Account, whole: Amount, spent: Amount) -> Amount:
    left = account.limit - spent
    return left if account.lifetime_limit is None else left.least(account.lifetime_limit - whole)


def _three_digits_below(amount: Fraction) -> float:
    """Return the largest number of three decimal digits whose float does not exceed a positive amount, or else 0."""
    if amount < Fraction(1, 10**300):
        return 0.0
    unit = Fraction(10) ** (math.floor(math.log10(amount)) - 2)
    digits = math.floor(amount / unit)
    next_below = Fraction(999, 10) if digits == 100 else Fraction(digits - 1)
    return next(number for number in (float(digits * unit), float(next_below * unit)) if Fraction(number) <= amount)
