"""The server's side of multi-selection: it answers one noisy signal with the k results that serve its sender best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpselect._numbers import finite_number, positive_integer, positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.catalogue import BestResult, Catalogue, Result
from dpselect.multiselect.offsets import optimal_offsets

LARGEST_SIGNAL = 1e300
"""Signals must stay below this, so that adding an offset cannot overflow."""


class Server:
    """Answers signals with k results.

    The best answers to a signal s are the results for `s + a_1, …, s + a_k`, where the offsets a depend on k, ε and the
    disutility only (multiselect.md). From a catalogue the server takes the result nearest to each of these targets, all
    different: if two targets have the same nearest result, the target nearer to the signal gets it, and the other gets
    its next nearest.

    The privacy loss is that of the signal; computing answers from it adds nothing.

    Parameters
    ----------
    catalogue
        Positions, a mapping item → position, a Catalogue, or a function that returns the best result for a position.
    k
        Number of results in an answer.
    epsilon
        The epsilon of the clients, per unit of distance.
    disutility
        What a distance costs: see `as_disutility`.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or the catalogue has fewer than k results.

    Examples
    --------
    >>> from dpselect.multiselect import Server
    >>> server = Server({"harbour": 0.4, "market": 3.1, "mill": 7.9}, k=2, epsilon=0.5)
    >>> [result.item for result in server.answer(2.5)]
    ['harbour', 'market']
    """

    def __init__(self, catalogue: Any, k: int, epsilon: float, disutility: Any = "linear") -> None:
        self.k = positive_integer("k", k)
        self.epsilon = positive_number("epsilon", epsilon)
        self._best: BestResult | None = catalogue if callable(catalogue) else None
        self._catalogue = None if self._best else Catalogue.of(catalogue)
        if self._catalogue is not None:
            self._catalogue.check_answers(self.k)
        self.offsets = np.asarray(optimal_offsets(self.k, self.epsilon, disutility), dtype=np.float64)
        # Targets nearest to the signal choose first.
        self._by_distance = self.offsets[np.argsort(np.abs(self.offsets), kind="stable")]

    @property
    def catalogue(self) -> Catalogue | None:
        """The results; None if a function makes them."""
        return self._catalogue

    def answer(self, signal: Any) -> list[Result]:
        """Return k results for a signal, by ascending position."""
        received = checked_signal(signal)
        if self._catalogue is not None:
            places = sorted(self._catalogue.nearest(self._by_distance + received))
            return [self._catalogue[place] for place in places]
        assert self._best is not None
        return [Result(self._best(position), position) for position in (self.offsets + received).tolist()]


def checked_signal(signal: Any) -> float:
    """Return a signal as a float, or refuse it with an error that does not show it, so that no log can hold it.

    Parameters
    ----------
    signal
        A number between -1e300 and 1e300.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If it is anything else.

    Examples
    --------
    >>> from dpselect.multiselect import checked_signal
    >>> checked_signal(3)
    3.0
    """
    try:
        number = float(finite_number("signal", signal))
    except InvalidInput:
        number = math.inf
    if not abs(number) < LARGEST_SIGNAL:
        raise InvalidInput("signal", plain("something else"), "must be a number between -1e300 and 1e300")
    return number
