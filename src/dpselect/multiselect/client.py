"""The user's side of multi-selection: it adds the noise, and it chooses among the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

from dpselect._numbers import finite_number, seed_or_none
from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.multiselect.account import SignalBudget
from dpselect.multiselect.noise import PRIVATE_VALUE, DistanceGuarantee, GridNoise
from dpselect.sampling.bits import bit_source

Signal = TypeVar("Signal")

Quality = Callable[[Any, Any], Any]
"""How good a result is for a private value, `quality(value, result)`; the higher, the better."""

STAYING = (
    "the user stays at one place: after the budget is spent the client answers at earlier places only, "
    "with an earlier signal, which shows whether the user is at one of them"
)
"""The premise of a guarantee with `reuse=True`."""


class SignalClient(Generic[Signal]):
    """What all clients share: they charge each signal, draw its noise, and choose among the answers.

    `noise` has `epsilon`, `guarantee`, `nearest(value)`, `draw(place, bits)` and `position(place)`. Subclasses state
    which value they keep and how far a result is from it.
    """

    def __init__(self, noise: Any, budget: float | None, seed: int | None) -> None:
        self._noise = noise
        self._account = SignalBudget(budget)
        self._bits = bit_source(seed_or_none(seed))
        self._value: Any = None

    @property
    def epsilon(self) -> float:
        """The cost of one signal."""
        return float(self._noise.epsilon)

    @property
    def guarantee(self) -> Any:
        """The guarantee of one signal."""
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
        """The sum of the epsilons of all signals, rounded up."""
        return self._account.spent

    @property
    def remaining(self) -> float | None:
        """The remaining budget, rounded down; None without a budget."""
        return self._account.remaining

    def signal(self, value: Any) -> Signal:
        """Return what to send in place of a private value: a point of the public grid, with noise.

        The value stays in the client, for `choose`. The cost is charged before the noise is drawn.
        """
        private = self._checked(value)
        place = self._noise.nearest(private)
        signal = self._drawn(place) if self._account.charge(self.epsilon) else self._unpaid(place)
        self._value = private
        return signal

    def choose(self, results: Any, quality: Quality | None = None) -> Any:
        """Return the result that is best for the latest private value, the first of equals. Nothing is sent.

        Do not fetch the chosen result from the server afterwards: that would tell which one it was.

        Parameters
        ----------
        results
            What the server answered, or the JSON of the service.
        quality
            How good a result is, `quality(value, result)`: a finite number, the higher the better. `QualityModel` is
            one that a server may send. Default: the nearest result is the best.

        Returns
        -------
        object
            One of the results.

        Raises
        ------
        InvalidInput
            If no signal was drawn before, the results are not those of a server, or a quality is not a finite number.
        """
        value = self._value
        if value is None:
            raise InvalidInput("results", plain("an answer"), "must follow a signal; call signal() first")
        if quality is None:
            return min(listed_results(results), key=lambda result: self._distance(value, result))
        if not callable(quality):
            raise InvalidInput("quality", quality, "must be a function of the private value and a result")
        return max(listed_results(results), key=lambda result: _checked_quality(quality(value, result)))

    def _checked(self, value: Any) -> Any:
        """Return the private value as the client keeps it; no error shows it."""
        raise NotImplementedError

    def _distance(self, value: Any, result: Any) -> Any:
        """Return the distance of a result from a private value."""
        raise NotImplementedError

    def _drawn(self, place: Any) -> Signal:
        """Return a signal for a grid point, with new noise."""
        signal: Signal = self._noise.position(self._noise.draw(place, self._bits))
        return signal

    def _unpaid(self, place: Any) -> Signal:
        """Refuse a signal that would exceed the budget."""
        raise BudgetExceeded(self.epsilon, self._account.remaining or 0.0)


class Client(SignalClient[float]):
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
        super().__init__(GridNoise(epsilon, grid), budget, seed)
        self._reuse = reuse
        self._remembered: dict[int, float] = {}

    @property
    def grid(self) -> float:
        """The step of the public grid that signals lie on."""
        return float(self._noise.step)

    @property
    def guarantee(self) -> DistanceGuarantee:
        """The guarantee of one signal, with the premise of `reuse=True` if that applies."""
        stated: DistanceGuarantee = self._noise.guarantee
        if self._reuse and self._account.limited:
            return replace(stated, premise=STAYING)
        return stated

    def _checked(self, value: Any) -> Any:
        try:
            return finite_number("value", value)
        except InvalidInput:
            raise InvalidInput("value", PRIVATE_VALUE, "must be a finite number") from None

    def _distance(self, value: Any, result: Any) -> Fraction:
        return abs(position_of(result) - Fraction(value))

    def _drawn(self, place: int) -> float:
        signal = super()._drawn(place)
        if self._account.limited and self._reuse:
            self._remembered[place] = signal
        return signal

    def _unpaid(self, place: int) -> float:
        """Repeat the last signal for the same grid point if `reuse` allows it."""
        if place in self._remembered:
            return self._remembered[place]
        return super()._unpaid(place)

    def __repr__(self) -> str:
        """Show public settings only; positions and signals are private."""
        return f"Client(epsilon={self.epsilon!r}, grid={self.grid!r}, signals={self.signals})"


def listed_results(results: Any) -> Sequence[Any]:
    """Return the results of an answer, which is a list or the JSON of the service."""
    answers = results.get("results") if isinstance(results, Mapping) else results
    if not isinstance(answers, Sequence) or isinstance(answers, str | bytes) or not answers:
        raise InvalidInput("results", results, "must be the answer of a server, with at least one result")
    return answers


def _checked_quality(given: Any) -> Fraction:
    """Return a quality as an exact number; no error shows it, since it depends on the private value."""
    try:
        return Fraction(finite_number("quality", given))
    except InvalidInput:
        requirement = "must return a finite number for every result, the higher the better"
        raise InvalidInput(
            "quality", plain("a function that returned something else (not shown)"), requirement
        ) from None


def position_of(result: Any) -> Fraction:
    """Return the position of a result, which is a Result or the JSON of one."""
    position = result.get("position") if isinstance(result, Mapping) else getattr(result, "position", None)
    try:
        return Fraction(finite_number("results", position))
    except InvalidInput:
        given = plain("a result without one")
        raise InvalidInput("results", given, "must each have a position, a finite number") from None
