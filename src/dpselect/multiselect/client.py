"""The user's side of multi-selection: noise is added here, and the choice among the answers is made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpselect._numbers import finite_number, seed_or_none
from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.multiselect.account import Account
from dpselect.multiselect.grid import DistanceGuarantee, GridNoise
from dpselect.sampling.bits import bit_source

STAYING = (
    "the user stays at one place: after the budget is spent the client answers at earlier places only, "
    "with an earlier signal, which shows whether the user is at one of them"
)
"""The premise of a guarantee with `reuse=True`."""


class Client:
    """Sends signals about private positions, keeps account of what they tell, and chooses among the answers.

    Each signal is private by itself: ε per unit of distance (`guarantee`). Several add up: m of them tell at most m ε
    per unit of distance. With a `budget`, the most that all signals together may cost, the client refuses every signal
    that would exceed it with BudgetExceeded. When it refuses depends on the number of signals alone, so a refusal
    tells nothing about any position.

    `reuse=True` is for a user who stays at one place: after the budget is spent the client sends the last signal for
    the same grid point again, which tells nothing new about that point, and refuses other positions. If the user
    moves, sending and refusing show whether the user is back at an earlier place; `guarantee` states this premise.

    Threads may share a client, and `choose` is then about the last position of them all. It cannot be pickled or
    used in a forked process, which would spend the whole budget again.

    A seed makes signals reproducible, for tests and examples; `secure` is then False.
    """

    def __init__(
        self,
        epsilon: float,
        grid: float | None = None,
        budget: float | None = None,
        seed: int | None = None,
        *,
        reuse: bool = False,
    ) -> None:
        self._noise = GridNoise(epsilon, grid)
        self._account = Account(budget)
        self._bits = bit_source(seed_or_none(seed))
        self._reuse = reuse
        self._remembered: dict[int, float] = {}
        self._value: Fraction | None = None

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
        """What one signal promises, with the premise of `reuse=True` where that is asked for."""
        if self._reuse and self._account.limited:
            return replace(self._noise.guarantee, premise=STAYING)
        return self._noise.guarantee

    @property
    def secure(self) -> bool:
        """False when a seed was given."""
        return self._bits.secure

    @property
    def signals(self) -> int:
        """How many signals were drawn; those sent again do not count."""
        return self._account.charges

    @property
    def spent(self) -> float:
        """What all signals together cost per unit of distance, rounded up."""
        return self._account.spent

    @property
    def remaining(self) -> float | None:
        """What is left of the budget, rounded down; None without a budget."""
        return self._account.remaining

    def signal(self, value: Any) -> float:
        """Return what to send in place of a private position: a multiple of the grid step, with noise.

        The position stays here, for `choose`. The cost is written down before the noise is drawn.
        """
        place = self._noise.nearest(value)
        if self._account.charge(self.epsilon):
            signal = self._noise.position(self._noise.draw(place, self._bits))
            if self._account.limited and self._reuse:
                self._remembered[place] = signal
        elif place in self._remembered:
            signal = self._remembered[place]
        else:
            raise BudgetExceeded(self.epsilon, self._account.remaining or 0.0)
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
