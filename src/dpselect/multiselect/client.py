"""The user's side of multi-selection: it adds the noise, and it chooses among the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpselect._numbers import finite_number, seed_or_none
from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.multiselect.account import SignalBudget
from dpselect.multiselect.noise import DistanceGuarantee, GridNoise
from dpselect.sampling.bits import bit_source

STAYING = (
    "the user stays at one place: after the budget is spent the client answers at earlier places only, "
    "with an earlier signal, which shows whether the user is at one of them"
)
"""The premise of a guarantee with `reuse=True`."""


class Client:
    """Sends signals about private positions, adds up their privacy loss, and chooses among the answers.

    One signal costs ε per unit of distance (`guarantee`), m signals at most m ε. A signal that would exceed the budget
    is refused with BudgetExceeded. Refusals depend on the number of signals only, so they reveal no position.

    Threads may share a client; `choose` then refers to the latest position of any thread. A client cannot be pickled or
    used in a forked process, which would spend the whole budget again.

    Parameters
    ----------
    epsilon
        Privacy loss of one signal per unit of distance.
    grid
        Step of the public grid that signals lie on; see `GridNoise` for the default.
    budget
        Largest sum of the epsilons of all signals; unlimited by default.
    seed
        Makes signals reproducible, for tests and examples; `secure` is then False.
    reuse
        For a user who stays at one place. After the budget is spent, the client repeats the last signal for the same
        grid point, which reveals nothing new about that point, and refuses other positions. If the user moves, this
        shows whether the user is back at an earlier place; `guarantee` states this premise.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import Client, Server
    >>> server = Server({"harbour": 0.4, "market": 3.1, "mill": 7.9}, k=2, epsilon=0.5)
    >>> client = Client(epsilon=0.5, grid=0.25, budget=2.0)
    >>> results = server.answer(client.signal(4.2))
    >>> client.choose(results) in results, client.remaining
    (True, 1.5)
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
        self._account = SignalBudget(budget)
        self._bits = bit_source(seed_or_none(seed))
        self._reuse = reuse
        self._remembered: dict[int, float] = {}
        self._value: Fraction | None = None

    @property
    def epsilon(self) -> float:
        """The cost of one signal per unit of distance."""
        return self._noise.epsilon

    @property
    def grid(self) -> float:
        """The step of the public grid that signals lie on."""
        return self._noise.step

    @property
    def guarantee(self) -> DistanceGuarantee:
        """The guarantee of one signal, with the premise of `reuse=True` if that applies."""
        if self._reuse and self._account.limited:
            return replace(self._noise.guarantee, premise=STAYING)
        return self._noise.guarantee

    @property
    def secure(self) -> bool:
        """False if a seed was given."""
        return self._bits.secure

    @property
    def signals(self) -> int:
        """The number of signals drawn, without repeated ones."""
        return self._account.charges

    @property
    def spent(self) -> float:
        """The cost of all signals together per unit of distance, rounded up."""
        return self._account.spent

    @property
    def remaining(self) -> float | None:
        """The remaining budget, rounded down; None without a budget."""
        return self._account.remaining

    def signal(self, value: Any) -> float:
        """Return what to send in place of a private position: a multiple of the grid step, with noise.

        The position stays in the client, for `choose`. The cost is charged before the noise is drawn.
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
        """Return the result nearest to the latest private position, the first of equals. Nothing is sent.

        `results` is what `Server.answer` returns, or the JSON of the service.
        """
        value = self._value
        if value is None:
            raise InvalidInput("results", plain("an answer"), "must follow a signal; call signal() first")
        return min(listed_results(results), key=lambda result: abs(_position(result) - value))

    def __repr__(self) -> str:
        """Show public settings only; positions and signals are private."""
        return f"Client(epsilon={self.epsilon!r}, grid={self.grid!r}, signals={self.signals})"


def listed_results(results: Any) -> Sequence[Any]:
    """Return the results of an answer, which is a list or the JSON of the service."""
    answers = results.get("results") if isinstance(results, Mapping) else results
    if not isinstance(answers, Sequence) or isinstance(answers, str | bytes) or not answers:
        raise InvalidInput("results", results, "must be the answer of a server, with at least one result")
    return answers


def _position(result: Any) -> Fraction:
    position = result.get("position") if isinstance(result, Mapping) else getattr(result, "position", None)
    try:
        return Fraction(finite_number("results", position))
    except InvalidInput:
        given = plain("a result without one")
        raise InvalidInput("results", given, "must each have a position, a finite number") from None
