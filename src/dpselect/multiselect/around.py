"""Client and server on a ring whose results have names and positions, as on a line."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpselect._numbers import finite_number
from dpselect.errors import InvalidInput
from dpselect.multiselect.catalogue import Catalogue, Result
from dpselect.multiselect.client import SignalClient, position_of
from dpselect.multiselect.noise import PRIVATE_VALUE, DistanceGuarantee
from dpselect.multiselect.ring import Ring


class RingNoise:
    """The noise of a ring in the form that clients use: signals are the numbers of places."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring

    @property
    def epsilon(self) -> float:
        """The privacy loss of one signal per unit of distance."""
        return self.ring.epsilon

    @property
    def guarantee(self) -> DistanceGuarantee:
        """The guarantee of one signal."""
        return self.ring.guarantee

    def nearest(self, value: Any) -> int:
        """Return the place nearest to a position."""
        return self.ring.place_of(value)

    def draw(self, place: int, bits: Any) -> int:
        """Return a signal of a user at a place."""
        return self.ring.draw(place, bits)

    def position(self, place: int) -> int:
        """Return what is sent for a place: its number."""
        return place


class RingClient(SignalClient[int]):
    """Sends signals about private positions on a ring, adds up their privacy loss, and chooses among the answers.

    One signal costs ε per unit of distance along the ring (`guarantee`), m signals at most m ε. A signal that would
    exceed the budget is refused with BudgetExceeded, wherever the user is.

    Parameters
    ----------
    ring
        The public ring with its noise: see `optimal_ring`. It is private whoever made it, because a ring whose heights
        would break its epsilon is refused.
    budget
        Largest sum of the epsilons of all signals; unlimited by default.
    seed
        Makes signals reproducible, for tests and examples; `secure` is then False.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import RingClient, RingServer, optimal_ring
    >>> ring = optimal_ring(2, epsilon=0.5, circumference=24.0, places=48)
    >>> server = RingServer({"night bus": 1.5, "early train": 5.0, "day train": 13.0}, ring)
    >>> client = RingClient(ring, budget=1.0)
    >>> client.choose(server.answer(client.signal(23.5))).item in ("night bus", "early train", "day train")
    True
    """

    def __init__(self, ring: Ring, budget: float | None = None, seed: int | None = None) -> None:
        if not isinstance(ring, Ring):
            raise InvalidInput("ring", ring, "must be a Ring; optimal_ring(k, epsilon) makes one")
        super().__init__(RingNoise(ring), budget, seed)

    @property
    def ring(self) -> Ring:
        """The public ring."""
        ring: Ring = self._noise.ring
        return ring

    def _checked(self, value: Any) -> Any:
        try:
            return finite_number("value", value)
        except InvalidInput:
            raise InvalidInput("value", PRIVATE_VALUE, "must be a finite number") from None

    def _distance(self, value: Any, result: Any) -> float:
        apart = abs(float(position_of(result)) - float(value)) % self.ring.circumference
        return min(apart, self.ring.circumference - apart)

    def __repr__(self) -> str:
        """Show public settings only; positions and signals are private."""
        return f"RingClient(epsilon={self.epsilon!r}, places={self.ring.places}, signals={self.signals})"


class RingServer:
    """Answers signals on a ring with k results of a catalogue.

    The answers to a signal are the results nearest to the places `s + a_1, …, s + a_k` along the ring, all different.
    The privacy loss is that of the signal; computing answers from it adds nothing.

    Parameters
    ----------
    catalogue
        Positions along the ring, a mapping item → position, or a Catalogue. Positions count modulo the circumference.
    ring
        The ring of the clients.

    Raises
    ------
    InvalidInput
        If the catalogue has fewer results than the ring has answers.

    Examples
    --------
    >>> from dpselect.multiselect import RingServer, optimal_ring
    >>> ring = optimal_ring(1, epsilon=1.0, circumference=24.0, places=24)
    >>> RingServer({"night bus": 23.5, "day train": 13.0}, ring).answer(1)
    [Result(item='night bus', position=23.5)]
    """

    def __init__(self, catalogue: Any, ring: Ring) -> None:
        self.ring = ring
        self._catalogue = Catalogue.of(catalogue)
        self._catalogue.check_answers(ring.k)

    def answer(self, signal: Any) -> list[Result]:
        """Return k results for a signal, the number of a place."""
        chosen: list[int] = []
        for place in self.ring.answer(signal):
            apart = np.abs(self._catalogue.positions - place * self.ring.step) % self.ring.circumference
            apart = np.minimum(apart, self.ring.circumference - apart)
            apart[chosen] = np.inf
            chosen.append(int(np.argmin(apart)))
        return [self._catalogue[place] for place in sorted(chosen)]
