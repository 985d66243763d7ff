"""An offer of results on a line: a catalogue, and the public settings that a client may choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dpselect._numbers import finite_number
from dpselect.errors import InvalidInput
from dpselect.multiselect import Catalogue, Client, Server, expected_cost, simulate_catalogue
from dpselect.service.settings import EPSILONS, PublicSettings, answer_json, check_items, checked_text

USERS = 4000
"""Number of simulated users for the average distance; takes milliseconds for each k and epsilon."""


class Offer(PublicSettings):
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
    model : QualityModel, optional
        A model of quality that clients may choose by; the page keeps the nearest.

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
        model: Any = None,
    ) -> None:
        self._results = Catalogue.of(catalogue)
        check_items(self._results.items)
        super().__init__(
            len(self._results),
            k=k,
            epsilon=epsilon,
            epsilons=epsilons,
            most=most,
            unit=unit,
            title=title,
            model=model,
        )
        self.grid = Client(self.epsilons[-1], grid).grid
        self.shown = self._interval() if shown is None else _ends(shown)
        self.landmarks = {
            checked_text("landmarks", name): float(finite_number("landmarks", place))
            for name, place in (landmarks or {}).items()
        }
        self._disutility = disutility
        self._server = lru_cache(maxsize=None)(self._new_server)
        self._cost = lru_cache(maxsize=None)(self._new_cost)
        self._average = lru_cache(maxsize=None)(self._new_average)
        self._server(self.k, self.epsilon)

    def answer(self, signal: Any, k: int, epsilon: float) -> bytes:
        """Return the JSON of k results for a signal."""
        answered = self._server(k, epsilon).answer(signal)
        return answer_json([{"item": item, "position": position} for item, position in answered], k, epsilon)

    def summary(self) -> dict[str, Any]:
        """Return the public settings."""
        shown = {"grid": self.grid, "shown": list(self.shown), "landmarks": self.landmarks}
        return {**super().summary(), **shown}

    def details(self, k: int, epsilon: float) -> dict[str, Any]:
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
        return {"simulated_users": USERS, "answers": answers}

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
    settings
        Settings of `Offer`; epsilon is 0.2 per km if none is given.

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
    # Noise of 5 km on average can be seen on a map of 100 km, and five answers still help.
    usual = {"epsilon": 0.2, "unit": "km", "most": 15, "title": "Places along a coast"}
    shown = {"shown": (0.0, 100.0), "landmarks": TOWNS}
    return Offer(Catalogue(positions, Places(count)), **{**usual, **shown, **settings})


def _ends(shown: Any) -> tuple[float, float]:
    """Return both ends of an interval."""
    try:
        low, high = (float(finite_number("shown", end)) for end in shown)
        if low < high:
            return low, high
    except (InvalidInput, TypeError, ValueError):
        pass
    raise InvalidInput("shown", shown, "must be two finite numbers, the lower one first")
