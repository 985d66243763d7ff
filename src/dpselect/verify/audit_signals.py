"""What the audit asks multi-selection: clients at one place and at another, and all that goes to and from a server."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from dpselect.errors import BudgetExceeded
from dpselect.multiselect import (
    Client,
    FeatureClient,
    FeatureServer,
    Ring,
    RingClient,
    RingServer,
    Server,
    optimal_ring,
)
from dpselect.privacy import Guarantee
from dpselect.privacy.conversion import float_above
from dpselect.verify import signals
from dpselect.verify.audit import Probe

DOOR = signals.NAME


@dataclass(frozen=True)
class Session:
    """What a user asks for at some places, or else at others that are `apart` from them, one by one.

    `client` makes a client from a seed, `answer` is the server's.
    """

    name: str
    client: Callable[..., Any]
    answer: Callable[[Any], Sequence[Any]]
    places: Sequence[Any]
    others: Sequence[Any]
    apart: Any
    flaw: str = ""

    def probe(self, runs: int) -> Probe:
        """Return the question, to be asked so many times at either places."""
        return Probe(DOOR, self.name, partial(self._answers, runs), self.flaw, portable=True)

    def _answers(self, runs: int, elsewhere: bool, seeds: Iterator[int | None]) -> tuple[Guarantee, list[Hashable]]:
        found: list[Hashable] = []
        for _ in range(runs):
            client = self.client(seed=next(seeds))
            found.append(tuple(self._heard(client, place) for place in (self.others if elsewhere else self.places)))
        one = client.guarantee
        signals_sent = client.signals
        claim = Guarantee(
            float_above(signals_sent * one.loss(self.apart)),
            signals_sent * one.delta,
            protects=one.protects,
            neighbours="places nearby",
        )
        return claim, found

    def _heard(self, client: Any, place: Any) -> Hashable:
        """Return what a listener hears: the signal, of a vector its first feature, and the answer; or a refusal."""
        try:
            signal = client.signal(place)
        except BudgetExceeded:
            return "refused"
        return float(np.ravel(signal)[0]), tuple(str(result.item) for result in self.answer(signal))


_STOPS = {"harbour": 0.0, "market": 1.0, "mill": 2.5}
_LINE = Server(_STOPS, k=1, epsilon=2.0)
_FEATURES = FeatureServer([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], k=1, epsilon=2.0)
_ORIGIN, _NEAR = [(0.0, 0.0)], [(1.0, 0.0)]


def _on_the_line(signal: Any) -> Sequence[Any]:
    return _LINE.answer(signal)


def _features(signal: Any) -> Sequence[Any]:
    return _FEATURES.answer(signal)


@cache
def _ring() -> Ring:
    return optimal_ring(2, epsilon=2.0, circumference=8.0, places=16)


def _on_the_ring(signal: Any) -> Sequence[Any]:
    return RingServer(_STOPS, _ring()).answer(signal)


def _ring_client(seed: int | None) -> RingClient:
    return RingClient(_ring(), seed=seed)


SESSIONS = [
    Session("one signal", partial(Client, 2.0, 0.5), _on_the_line, [0.0], [1.0], 1.0),
    Session("a moving user, budget of two", partial(Client, 2.0, 0.5, 4.0), _on_the_line, [0.0] * 3, [0.5] * 3, 0.5),
    Session(
        "a user who stays, reuse", partial(Client, 2.0, 0.5, 2.0, reuse=True), _on_the_line, [0.0] * 3, [1.0] * 3, 1.0
    ),
    Session("two features", partial(FeatureClient, 2.0, 2, 0.5), _features, _ORIGIN, _NEAR, (1.0, 0.0)),
    Session(
        "two features, gaussian",
        partial(FeatureClient, 2.0, 2, 0.5, noise="gaussian", delta=0.01),
        _features,
        _ORIGIN,
        _NEAR,
        (1.0, 0.0),
    ),
    Session("a ring", _ring_client, _on_the_ring, [0.0], [1.0], 1.0),
]


BROKEN = [
    Session(
        "reuse, broken",
        partial(Client, 2.0, 0.5, 4.0, reuse=True),
        _on_the_line,
        [0.0, 0.5, 0.0],
        [0.0, 0.5, 0.5],
        0.5,
        flaw="the user moves, and reuse=True is for one who stays",
    ),
]
