"""An offer of the service: a catalogue, and the public settings that a client may choose from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dpselect._numbers import finite_number, positive_integer, positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect import Catalogue, Client, Server, expected_cost, simulate_catalogue

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

USERS = 4000
"""Number of simulated users for the average distance; takes milliseconds for each k and epsilon."""

_ITEMS_AT_ONCE = 1000


class Offer:
    """A catalogue with the values of k and epsilon that clients may ask for.

    Both come from short public lists, so that neither can encode private data. Items that JSON cannot hold, such as
    NaN, are refused here, not when a signal asks for them.

    Parameters
    ----------
    catalogue : Catalogue or sequence of float
        The results.
    k, epsilon : int, float
        The defaults.
    epsilons : sequence of float
        The values of epsilon on offer.
    most : int
        The largest k on offer.
    grid : float, optional
        The grid step that clients should use. Default: fine enough for the largest epsilon.
    disutility : str or Disutility
        The cost of a distance.
    unit, title : str
        Shown on the page.
    shown : pair of float, optional
        The interval that the page shows. Default: all results.
    landmarks : mapping of str to float, optional
        Names and positions shown on the page.

    Raises
    ------
    InvalidInput
        If a setting is not accepted.

    Examples
    --------
    >>> offer = Offer([0.0, 1.0, 2.0], k=2)
    >>> offer.settings([("k", "1")])
    (1, 1.0)
    """

    def __init__(
        self,
        catalogue: Any,
        *,
        k: int = 5,
        epsilon: float = 1.0,
        epsilons: Sequence[float] = EPSILONS,
        most: int = 25,
        grid: float | None = None,
        disutility: Any = "linear",
        unit: str = "unit",
        title: str = "",
        shown: tuple[float, float] | None = None,
        landmarks: Mapping[str, float] | None = None,
    ) -> None:
        self._results = Catalogue.of(catalogue)
        _check_items(self._results.items)
        self.epsilon = positive_number("epsilon", epsilon)
        self.epsilons = tuple(sorted({self.epsilon, *(positive_number("epsilons", each) for each in epsilons)}))
        self._spelt = {text: each for each in self.epsilons for text in _spellings(each)}
        self.k = positive_integer("k", k)
        if self.k > len(self._results):
            raise InvalidInput("k", k, f"must be at most {len(self._results)} (the number of results)")
        self.most = min(max(self.k, positive_integer("most", most)), len(self._results))
        self.grid = Client(self.epsilons[-1], grid).grid
        self.unit = _text("unit", unit)
        self.title = _text("title", title)
        self.shown = self._interval() if shown is None else _ends(shown)
        self.landmarks = {
            _text("landmarks", name): float(finite_number("landmarks", place))
            for name, place in (landmarks or {}).items()
        }
        self._disutility = disutility
        self._server = lru_cache(maxsize=None)(self._new_server)
        self._cost = lru_cache(maxsize=None)(self._new_cost)
        self._average = lru_cache(maxsize=None)(self._new_average)
        self._server(self.k, self.epsilon)

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self._results)

    def settings(self, asked: Sequence[tuple[str, str]]) -> tuple[int, float]:
        """Return the k and ε of a query, or the defaults; only values on offer are accepted.

        Each may be given once and in its usual spelling, because repetitions or more digits could encode private data.
        """
        fields = dict(asked)
        if len(fields) != len(asked) or not fields.keys() <= {"k", "epsilon"}:
            raise InvalidInput(
                "query", plain("another query"), "must have no field but k and epsilon, each at most once"
            )
        return self._asked_k(fields.get("k")), self._asked_epsilon(fields.get("epsilon"))

    def answer(self, signal: float, k: int, epsilon: float) -> bytes:
        """Return the JSON of k results for a signal."""
        answered = self._server(k, epsilon).answer(signal)
        results = [{"item": item, "position": position} for item, position in answered]
        return _JSON.encode({"results": results, "k": k, "epsilon": epsilon}).encode()

    def summary(self) -> dict[str, Any]:
        """Return the public settings."""
        return {
            "title": self.title,
            "results": len(self),
            "unit": self.unit,
            "grid": self.grid,
            "k": self.k,
            "most": self.most,
            "epsilon": self.epsilon,
            "epsilons": list(self.epsilons),
            "shown": list(self.shown),
            "landmarks": self.landmarks,
        }

    def description(self, k: int, epsilon: float) -> dict[str, Any]:
        """Return the offsets of the answers and the distance to the kept one, for 1 to k answers.

        `expected_cost` assumes a result at every position. `average_distance` is simulated on this catalogue, for users
        spread evenly over the interval `shown`; `margin` is half the width of its 95% interval.
        """
        answers = []
        for count in range(1, k + 1):
            average, margin = self._average(count, epsilon)
            answers.append(
                {
                    "k": count,
                    "offsets": self._server(count, epsilon).offsets.tolist(),
                    "expected_cost": self._cost(count, epsilon),
                    "average_distance": average,
                    "margin": margin,
                }
            )
        return {**self.summary(), "k": k, "epsilon": epsilon, "simulated_users": USERS, "answers": answers}

    def _interval(self) -> tuple[float, float]:
        """Return the interval of the results; a single position is widened by the scale of the noise."""
        low, high = self._results.positions[[0, -1]].tolist()
        return (low, high) if low < high else (low - 1 / self.epsilon, high + 1 / self.epsilon)

    def _new_server(self, k: int, epsilon: float) -> Server:
        return Server(self._results, k, epsilon, self._disutility)

    def _new_cost(self, k: int, epsilon: float) -> float:
        return float(expected_cost(k, epsilon, self._disutility))

    def _new_average(self, k: int, epsilon: float) -> tuple[float, float]:
        return simulate_catalogue(self._server(k, epsilon), self.shown, grid=self.grid, users=USERS)

    def _asked_k(self, text: str | None) -> int:
        if text is None:
            return self.k
        if text.isascii() and text.isdecimal() and len(text) <= 6 and text[0] != "0" and int(text) <= self.most:
            return int(text)
        raise InvalidInput("k", plain("something else"), f"must be a whole number from 1 to {self.most}")

    def _asked_epsilon(self, text: str | None) -> float:
        if text is None:
            return self.epsilon
        if text in self._spelt:
            return self._spelt[text]
        accepted = ", ".join(repr(each).removesuffix(".0") for each in self.epsilons)
        raise InvalidInput("epsilon", plain("something else"), f"must be one of {accepted}")


TOWNS = {
    "Arden Bay": 6,
    "Holm": 21,
    "Saltwick": 34,
    "Marlow Sands": 52,
    "Tern Point": 68,
    "Eastry": 81,
    "Cape Lorn": 95,
}
"""Generated, like the coast."""


class Places(Sequence[str]):
    """The names of many places, computed on access."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        """Return the number of places."""
        return self._count

    def __getitem__(self, number: Any) -> Any:
        """Return the name of a place."""
        return f"place {number}"


def coast(count: int = 1_000_000, **settings: Any) -> Offer:
    """Return the generated example: a place every metre along 1000 km of coast, of which the page shows 100 km.

    Parameters
    ----------
    count : int
        Number of places.
    **settings
        Settings of `Offer`.

    Returns
    -------
    Offer
        The offer.

    Examples
    --------
    >>> len(coast(1000))
    1000
    """
    positions = np.linspace(-450, 550, count)
    usual = {"unit": "km", "most": 15, "title": "Places along a coast", "shown": (0.0, 100.0), "landmarks": TOWNS}
    return Offer(Catalogue(positions, Places(count)), **{**usual, **settings})


def _spellings(number: float) -> set[str]:
    """Return the accepted spellings of a number: those of Python, JavaScript and people."""
    shown = repr(number)
    whole = {f"{number:.0f}"} if number.is_integer() and number < 1e21 else set()
    return {shown, shown.replace("e-0", "e-"), *whole}


def _check_items(items: Sequence[Any] | None) -> None:
    """Refuse items that JSON cannot hold, a part at a time because items may be computed on access."""
    if items is None:
        return
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        some = [items[number] for number in range(start, min(start + _ITEMS_AT_ONCE, len(items)))]
        if not _fits(some):
            wrong = next(number for number, item in enumerate(some, start) if not _fits([item]))
            raise InvalidInput(
                "items",
                plain(f"something else at index {wrong} (counted from 0)"),
                "must be text, finite numbers, or lists and mappings of these",
            )


def _ends(shown: Any) -> tuple[float, float]:
    """Return both ends of an interval."""
    try:
        low, high = (float(finite_number("shown", end)) for end in shown)
        if low < high:
            return low, high
    except (InvalidInput, TypeError, ValueError):
        pass
    raise InvalidInput("shown", shown, "must be two finite numbers, the lower one first")


def _text(argument: str, given: Any) -> str:
    if isinstance(given, str) and _fits(given):
        return given
    raise InvalidInput(argument, given, "must be text")


def _plain(item: Any) -> Any:
    """Return an item in a form that JSON can hold."""
    return item.item() if isinstance(item, np.generic) else str(item)


def _fits(data: Any) -> bool:
    """Return whether data can be written as JSON in UTF-8."""
    try:
        _JSON.encode(data).encode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)
