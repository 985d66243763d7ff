"""The user's side of multi-selection: noise is added here, and the choice among the answers is made here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from threading import Lock
from typing import Any, NoReturn

from dpselect.errors import BudgetExceeded, DpSelectError, InvalidInput, plain
from dpselect.multiselect.grid import DistanceGuarantee, GridNoise
from dpselect.privacy.conversion import float_above
from dpselect.sampling.bits import bit_source
from dpselect.validation import finite_number, float_below, positive_number, seed_or_none


class Client:
    """Sends signals about private positions, keeps account of what they tell, and chooses among the answers.

    Each signal is private by itself: ε per unit of distance (`guarantee`). Several add up: m of them tell at most m ε
    per unit of distance. With a `budget`, the most that all signals together may cost, the client stops drawing
    noise when the next signal would exceed it. It then sends the last signal for the same grid point again, which tells
    nothing new about that point, and refuses other positions with BudgetExceeded. That it sends or refuses
    shows whether the user is back at an earlier place; with `reuse=False` it always refuses, and nothing shows.

    Threads may share a client, and `choose` is then about the last position of them all. Copies and other processes
    may not: each would spend the whole budget again.

    A seed makes signals reproducible, for tests and examples; `secure` is then False.
    """

    def __init__(
        self,
        epsilon: float,
        grid: float | None = None,
        budget: float | None = None,
        seed: int | None = None,
        *,
        reuse: bool = True,
    ) -> None:
        self._noise = GridNoise(epsilon, grid)
        self._budget = None if budget is None else Fraction(positive_number("budget", budget))
        self._bits = bit_source(seed_or_none(seed))
        self._reuse = reuse
        self._signals = 0
        self._remembered: dict[int, float] = {}
        self._value: Fraction | None = None
        self._lock = Lock()
        self._process = os.getpid()

    @property
    def epsilon(self) -> float:
        """What one signal costs per unit of distance."""
        return self._noise.epsilon

    @property
    def grid(self) -> float:
        """The step of the public grid that signals lie on."""
        return self._noise.step

    @property
    def guarantee(self) -> DistanceGuarantee:
        """What one signal promises."""
        return self._noise.guarantee

    @property
    def secure(self) -> bool:
        """False when a seed was given."""
        return self._bits.secure

    @property
    def signals(self) -> int:
        """How many signals were drawn; those sent again do not count."""
        return self._signals

    @property
    def spent(self) -> float:
        """What all signals together cost per unit of distance, rounded up."""
        return float_above(self._spent) if self._signals else 0.0

    @property
    def remaining(self) -> float | None:
        """What is left of the budget, rounded down; None without a budget."""
        return None if self._budget is None else float_below(self._budget - self._spent)

    @property
    def _spent(self) -> Fraction:
        return self._signals * Fraction(self.epsilon)

    def signal(self, value: Any) -> float:
        """Return what to send in place of a private position: a multiple of the grid step, with noise.

        The position stays here, for `choose`. The cost is written down before the noise is drawn.
        """
        if os.getpid() != self._process:
            raise DpSelectError("this client belongs to another process; make one in each and share the budget out")
        place = self._noise.nearest(value)
        with self._lock:
            if self._budget is None or self._spent + Fraction(self.epsilon) <= self._budget:
                self._signals += 1
                signal = self._noise.position(self._noise.draw(place, self._bits))
                if self._budget is not None and self._reuse:
                    self._remembered[place] = signal
            elif place in self._remembered:
                signal = self._remembered[place]
            else:
                raise BudgetExceeded(self.epsilon, float_below(self._budget - self._spent))
            self._value = Fraction(finite_number("value", value))
            return signal

    def choose(self, results: Any) -> Any:
        """Return the result nearest to the last private position, the first of equals; nothing is sent.

        `results` is what `Server.answer` returns, or the JSON of the service.
        """
        if self._value is None:
            raise InvalidInput(
                "results", plain("an answer"), "ask for a signal first: the choice is about its position"
            )
        value = self._value
        answers = _listed(results)
        return min(answers, key=lambda result: abs(_position(result) - value))

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or written down: the account would be, and the private position."""
        raise TypeError("a client cannot be copied or pickled: each copy would spend the whole budget again")

    def __repr__(self) -> str:
        """Show what is public; positions and signals are not."""
        return f"Client(epsilon={self.epsilon!r}, grid={self.grid!r}, signals={self.signals})"


def _listed(results: Any) -> Sequence[Any]:
    answers = results.get("results") if isinstance(results, Mapping) else results
    if not isinstance(answers, Sequence) or isinstance(answers, str | bytes) or not answers:
        raise InvalidInput("results", results, "the answer of a server is needed: at least one result with a position")
    return answers


def _position(result: Any) -> Fraction:
    position = result.get("position") if isinstance(result, Mapping) else getattr(result, "position", None)
    try:
        return Fraction(finite_number("results", position))
    except InvalidInput:
        raise InvalidInput("results", plain("a result without a position"), "a finite number is needed") from None
