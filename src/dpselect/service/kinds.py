"""Offers beside those on a line: results on a ring, and results with feature vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.multiselect import Catalogue, FeatureClient, FeatureServer, Ring, RingServer, optimal_ring
from dpselect.service.settings import EPSILONS, PublicSettings, answer_json, check_items

MOST_ON_A_RING = 4


class RingOffer(PublicSettings):
    """Results on a ring, with the noise and the answers that cost least there.

    A signal is the number of a place. The service describes the noise by its heights, from which a client makes the
    `Ring` itself; a ring whose heights would break its epsilon is refused there.

    Parameters
    ----------
    catalogue : Catalogue, mapping or sequence of float
        The results, by position along the ring.
    circumference : float
        Length of the ring, such as 24 for hours.
    k, epsilon : int, float
        The defaults; k is at most 4.
    epsilons : sequence of float
        The values of epsilon on offer.
    most : int
        The largest k on offer, at most 4.
    places : int
        Number of places of the ring.
    unit, title : str
        For display.
    model : QualityModel, optional
        A model of quality that clients may choose by.

    Raises
    ------
    InvalidInput
        If a setting is not accepted.

    Examples
    --------
    >>> offer = RingOffer({"early": 5.0, "late": 23.0}, circumference=24.0, k=1, places=24)
    >>> offer.answer(23, 1, 1.0)
    b'{"results": [{"item": "late", "position": 23.0}], "k": 1, "epsilon": 1.0}'
    """

    kind = "ring"
    signal_form = "a whole number"

    def __init__(
        self,
        catalogue: Any,
        *,
        circumference: float,
        k: int = 2,
        epsilon: float = 1.0,
        epsilons: Sequence[float] = EPSILONS,
        most: int = MOST_ON_A_RING,
        places: int = 240,
        unit: str = "unit",
        title: str = "",
        model: Any = None,
    ) -> None:
        self._results = Catalogue.of(catalogue)
        check_items(self._results.items)
        super().__init__(
            len(self._results),
            k=k,
            epsilon=epsilon,
            epsilons=epsilons,
            most=min(most, MOST_ON_A_RING),
            unit=unit,
            title=title,
            model=model,
        )
        self.circumference, self.places = circumference, places
        self.signal_schema = {"type": "integer", "minimum": 0, "maximum": places - 1}
        self._ring = lru_cache(maxsize=None)(self._new_ring)
        self.circumference = self._ring(self.k, self.epsilon).circumference

    def answer(self, signal: Any, k: int, epsilon: float) -> bytes:
        """Return the JSON of k results for the number of a place."""
        place = int(signal) if isinstance(signal, float) and signal.is_integer() else signal
        results = RingServer(self._results, self._ring(k, epsilon)).answer(place)
        return answer_json([result.to_dict() for result in results], k, epsilon)

    def summary(self) -> dict[str, Any]:
        """Return the public settings."""
        return {**super().summary(), "circumference": self.circumference, "places": self.places}

    def details(self, k: int, epsilon: float) -> dict[str, Any]:
        """Return the noise by its heights, the places of the answers relative to the signal, and their cost."""
        ring = self._ring(k, epsilon)
        return {"heights": list(ring.heights), "answers": list(ring.answers), "expected_cost": ring.cost}

    def _new_ring(self, k: int, epsilon: float) -> Ring:
        return optimal_ring(k, epsilon, circumference=self.circumference, places=self.places)


class VectorOffer(PublicSettings):
    """Results with feature vectors; a signal is a list of as many numbers as a vector has.

    Parameters
    ----------
    vectors : array
        A feature vector for each result.
    items : sequence, optional
        What each result is. Default: numbers.
    k, epsilon : int, float
        The defaults.
    epsilons : sequence of float
        The values of epsilon on offer.
    most : int
        The largest k on offer.
    grid : float, optional
        The grid step that clients should use. Default: fine enough for the largest epsilon.
    noise, delta : str, float
        The noise that clients add, as in `FeatureClient`.
    search_dimensions : int
        The number of directions in which the service searches.
    unit, title : str
        For display.
    model : QualityModel, optional
        A model of quality that clients may choose by.

    Raises
    ------
    InvalidInput
        If a setting is not accepted.

    Examples
    --------
    >>> offer = VectorOffer([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], k=1, epsilon=5.0)
    >>> offer.answer([0.9, 0.2], 1, 5.0)
    b'{"results": [{"item": 1, "vector": [1.0, 0.0]}], "k": 1, "epsilon": 5.0}'
    """

    kind = "vectors"

    def __init__(
        self,
        vectors: Any,
        items: Sequence[Any] | None = None,
        *,
        k: int = 5,
        epsilon: float = 1.0,
        epsilons: Sequence[float] = EPSILONS,
        most: int = 25,
        grid: float | None = None,
        noise: str = "laplace",
        delta: float = 0.0,
        search_dimensions: int = 2,
        unit: str = "unit",
        title: str = "",
        model: Any = None,
    ) -> None:
        check_items(items)
        settings: dict[str, Any] = {"noise": noise, "delta": delta}
        first = FeatureServer(vectors, k, epsilon, dimensions=search_dimensions, items=items, **settings)
        super().__init__(
            len(first), k=k, epsilon=epsilon, epsilons=epsilons, most=most, unit=unit, title=title, model=model
        )
        self.dimensions = len(first.mean)
        self.noise, self.delta = noise, delta
        self.grid = FeatureClient(self.epsilons[-1], self.dimensions, grid, **settings).guarantee.step
        self.search_dimensions = search_dimensions
        self.signal_form = f"a list of {self.dimensions} finite numbers"
        self.largest_body = 64 + 32 * self.dimensions
        feature = {"type": "number", "minimum": -1e100, "maximum": 1e100}
        size = {"minItems": self.dimensions, "maxItems": self.dimensions}
        self.signal_schema = {"type": "array", "items": feature, **size}
        self._server = lru_cache(maxsize=None)(first.resized)

    def answer(self, signal: Any, k: int, epsilon: float) -> bytes:
        """Return the JSON of k results for a noisy vector."""
        if not isinstance(signal, list):
            raise InvalidInput("signal", plain("something else"), f"must be {self.signal_form}")
        results = self._server(k, epsilon).answer(signal)
        return answer_json([result.to_dict() for result in results], k, epsilon)

    def summary(self) -> dict[str, Any]:
        """Return the public settings."""
        names = ("grid", "dimensions", "noise", "delta", "search_dimensions")
        return {**super().summary(), **{name: getattr(self, name) for name in names}}

    def details(self, k: int, epsilon: float) -> dict[str, Any]:
        """Return nothing more: the summary is all that a client needs."""
        return {}
