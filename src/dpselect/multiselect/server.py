"""The server's side of multi-selection: one noisy signal in, the k results out that serve its sender best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpselect._numbers import finite_number, positive_integer, positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.catalogue import Best, Catalogue, Result
from dpselect.multiselect.offsets import optimal_offsets


class Server:
    """Answers signals with k results.

    The best answers to a signal s are the results for `s + a_1, …, s + a_k`, where the offsets a depend on k, ε and
    the disutility only (multiselect.md). A catalogue gives the nearest result to each, all different: where two
    targets share a nearest result, the target nearer to the signal has it and the other gets the next nearest. In
    place of a catalogue a callable may say which result is best for a position.

    A signal has already paid for its privacy: whatever is computed from it costs nothing more.
    """

    def __init__(self, catalogue: Any, k: int, epsilon: float, disutility: Any = "linear") -> None:
        self.k = positive_integer("k", k)
        self.epsilon = positive_number("epsilon", epsilon)
        self._best: Best | None = catalogue if callable(catalogue) else None
        self._catalogue = None if self._best else Catalogue.of(catalogue)
        if self._catalogue is not None and self.k > len(self._catalogue):
            raise InvalidInput("k", k, f"at most {len(self._catalogue)} are needed, the number of results")
        self.offsets = np.asarray(optimal_offsets(self.k, self.epsilon, disutility), dtype=np.float64)
        # The nearest to the signal choose first.
        self._by_distance = self.offsets[np.argsort(np.abs(self.offsets), kind="stable")]

    @property
    def catalogue(self) -> Catalogue | None:
        """The results, or None where a callable makes them."""
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
    """Return a signal as a float; no error shows it, so that no log can hold it."""
    try:
        number = float(finite_number("signal", signal))
    except InvalidInput:
        number = math.inf
    if not abs(number) < LARGEST:
        raise InvalidInput("signal", plain("something else"), "a number between -1e300 and 1e300 is needed")
    return number


LARGEST = 1e300
"""Signals from here on are refused, so that adding an offset cannot overflow."""
