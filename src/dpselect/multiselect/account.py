"""What a user's signals cost together."""

from __future__ import annotations

import os
from fractions import Fraction
from threading import Lock
from typing import Any, NoReturn

from dpselect._numbers import float_below, positive_number
from dpselect.errors import DpSelectError
from dpselect.privacy.conversion import float_above


class Account:
    """Adds up costs exactly, and says when a budget does not allow another.

    Threads may share it. A copy or a forked process would spend the whole budget again, so there are none.
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
        """What was spent, rounded up."""
        return float_above(self._spent) if self._spent else 0.0

    @property
    def remaining(self) -> float | None:
        """What is left of the budget, rounded down; None without a budget."""
        return None if self._budget is None else float_below(self._budget - self._spent)

    def charge(self, cost: float) -> bool:
        """Write a cost down if the budget allows it, and say whether it does."""
        if os.getpid() != self._process:
            raise DpSelectError("this client belongs to another process; make one in each and share the budget out")
        with self._lock:
            spent = self._spent + Fraction(cost)
            if self._budget is not None and spent > self._budget:
                return False
            self._spent = spent
            self.charges += 1
            return True

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError("a client cannot be pickled or copied as a whole: each copy would spend the whole budget again")
