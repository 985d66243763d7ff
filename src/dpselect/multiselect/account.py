"""The privacy budget of a client, spent signal by signal."""

from __future__ import annotations

import os
from fractions import Fraction
from threading import Lock
from typing import Any, NoReturn

from dpselect._numbers import float_below, positive_number
from dpselect.errors import DpSelectError
from dpselect.privacy.conversion import float_above


class SignalBudget:
    """Adds up the costs of signals exactly and refuses those that exceed the budget.

    Threads may share it. It cannot be copied or used in a forked process, which would spend the whole budget again.
    """

    def __init__(self, budget: Any = None) -> None:
        self._budget = None if budget is None else Fraction(positive_number("budget", budget))
        self._spent = Fraction()
        self.charges = 0
        self._lock = Lock()
        self._process = os.getpid()

    @property
    def limited(self) -> bool:
        """Whether there is a budget."""
        return self._budget is not None

    @property
    def spent(self) -> float:
        """The sum of all charges, rounded up."""
        return float_above(self._spent) if self._spent else 0.0

    @property
    def remaining(self) -> float | None:
        """The remaining budget, rounded down; None without a budget."""
        return None if self._budget is None else float_below(self._budget - self._spent)

    def charge(self, cost: float) -> bool:
        """Charge a cost if the budget allows it; return whether it does."""
        if os.getpid() != self._process:
            raise DpSelectError("this client belongs to another process; make one in each, with a part of the budget")
        with self._lock:
            spent = self._spent + Fraction(cost)
            if self._budget is not None and spent > self._budget:
                return False
            self._spent = spent
            self.charges += 1
            return True

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError("a client cannot be pickled or copied: each copy would spend the whole budget again")
