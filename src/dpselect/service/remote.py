"""The service as seen by a Python client: `answer` works as that of a local server, over HTTP."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import numpy as np

from dpselect._numbers import positive_number
from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.multiselect import FeatureResult, Geographic, QualityModel, Result, Ring, checked_signal

LARGEST_ANSWER = 1 << 20
"""Largest number of bytes read from an answer."""


class RemoteServer:
    """A catalogue of a service; only noisy signals are sent to it.

    The service must not decide how much noise is enough: state the epsilon you want, and give clients no grid or your
    own. Whoever runs the service sees the address that signals come from; use a proxy if that matters.

    Parameters
    ----------
    url : str
        Address of the service, such as "http://127.0.0.1:8000".
    catalogue : str
        Name of the catalogue.
    k : int, optional
        Number of answers. Default: that of the service.
    epsilon : float, optional
        The epsilon for which the answers are optimal. Default: that of the service.
    timeout : float
        Seconds to wait for an answer.
    privacy : Geographic, optional
        A promise in place of an epsilon: the largest epsilon on offer that keeps it is asked for.
    grid : float, optional
        Your grid step; `privacy` is kept on it. Default: what the service proposes is in `grid`, and `privacy` must
        state its slope.
    circumference : float, optional
        The length of the ring that your positions are measured on; a ring of another length is refused.

    Attributes
    ----------
    kind : str
        "line", "ring" or "vectors".
    k, epsilon : int, float
        The settings for which the answers are optimal.
    epsilons : tuple of float
        The values of epsilon on offer.
    grid : float
        Your grid step, or the one that the service proposes; 0 on a ring, whose signals are numbers of places.
    ring : Ring or None
        On a ring: its places, noise and answers, for `RingClient`.
    dimensions, noise, delta : int, str, float
        With vectors: what `FeatureClient` needs.
    model : QualityModel or None
        The model of quality that the service sends, for `choose`.

    Raises
    ------
    InvalidInput
        If the service refuses the settings.
    SourceError
        If the service cannot be reached or does not answer as expected.

    Examples
    --------
    >>> import dpselect
    >>> server = RemoteServer("http://127.0.0.1:8000", "coast", epsilon=0.5)  # doctest: +SKIP
    >>> client = dpselect.multiselect.Client(epsilon=0.5)  # doctest: +SKIP
    >>> client.choose(server.answer(client.signal(12.3)))  # doctest: +SKIP
    Result(item='place 462300', position=12.3)
    """

    def __init__(
        self,
        url: str,
        catalogue: str,
        *,
        k: int | None = None,
        epsilon: float | None = None,
        timeout: float = 10.0,
        privacy: Geographic | None = None,
        grid: float | None = None,
        circumference: float | None = None,
    ) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InvalidInput("url", url, "must be an address that begins with http:// or https://")
        if privacy is not None and epsilon is not None:
            raise InvalidInput("epsilon", epsilon, "must be left out, because privacy chooses it")
        self._base = f"{url.rstrip('/')}/v1/multiselect/{urllib.parse.quote(str(catalogue), safe='')}"
        self._timeout = timeout
        if privacy is not None:
            self._ask_for()
            epsilon = privacy.largest(_epsilons(self._exchange(None)), grid)
        self._ask_for(k=k, epsilon=epsilon)
        described = self._exchange(None)
        try:
            self._learn(described)
        except (InvalidInput, KeyError, TypeError, ValueError, OverflowError):
            raise SourceError("the service did not describe the catalogue as expected") from None
        # A client that takes its epsilon or ring from here must not get more than was asked for.
        if (k is not None and self.k != k) or (epsilon is not None and self.epsilon != epsilon):
            raise SourceError("the service answers with other settings than those asked for")
        length = None if self.ring is None else self.ring.circumference
        if circumference is not None and length != circumference:
            raise SourceError(f"the catalogue does not lie on a ring of length {circumference:g}")
        if grid is not None:
            self.grid = positive_number("grid", grid)

    def _ask_for(self, **settings: Any) -> None:
        """Set the address for these settings; those that are None are left to the service."""
        asked = {name: value for name, value in settings.items() if value is not None}
        self._address = f"{self._base}?{urllib.parse.urlencode(asked)}" if asked else self._base

    def _learn(self, described: dict[str, Any]) -> None:
        """Set the attributes from a description; services before there were kinds have only lines."""
        self.kind = str(described.get("kind", "line"))
        self.k, self.epsilon = int(described["k"]), float(described["epsilon"])
        self.epsilons = _epsilons(described)
        self.model = QualityModel.of(described["model"]) if "model" in described else None
        self.grid = 0.0
        self.ring: Ring | None = None
        self.dimensions, self.noise, self.delta = 1, "laplace", 0.0
        if self.kind == "ring":
            self.ring = Ring(
                epsilon=self.epsilon,
                heights=tuple(described["heights"]),
                answers=tuple(described["answers"]),
                circumference=described["circumference"],
            )
            return
        self.grid = float(described["grid"])
        if self.kind == "vectors":
            self.dimensions, self.noise = int(described["dimensions"]), str(described["noise"])
            self.delta = float(described["delta"])
        elif self.kind != "line":
            raise ValueError(self.kind)

    def answer(self, signal: Any) -> list[Any]:
        """Send a signal and return the results: `Result`, or `FeatureResult` from a catalogue of vectors."""
        reply = self._exchange(json.dumps({"signal": self._checked(signal)}).encode())
        try:
            return [self._result(result) for result in reply["results"]]
        except (InvalidInput, KeyError, TypeError, ValueError, OverflowError):
            raise SourceError("the service did not answer with results") from None

    def _checked(self, signal: Any) -> Any:
        """Return a signal of the kind of the catalogue as plain data; no error shows it."""
        if self.kind == "vectors":
            try:
                numbers = np.array(signal, dtype=np.float64)
            except (TypeError, ValueError, OverflowError):
                numbers = np.array(np.nan)
            if numbers.shape == (self.dimensions,) and np.isfinite(numbers).all():
                return numbers.tolist()
            requirement = f"must be {self.dimensions} finite numbers"
        elif self.ring is not None:
            if isinstance(signal, int) and not isinstance(signal, bool) and 0 <= signal < self.ring.places:
                return signal
            requirement = f"must be the number of a place, from 0 to {self.ring.places - 1}"
        else:
            return checked_signal(signal)
        raise InvalidInput("signal", plain("something else"), requirement)

    def _result(self, result: dict[str, Any]) -> Result | FeatureResult:
        """Return a result of the JSON, or raise an error if it is none."""
        numbers = np.array(result["vector" if self.kind == "vectors" else "position"], dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError("a position must be finite")
        if self.kind == "vectors":
            if numbers.shape != (self.dimensions,):
                raise ValueError("a vector must have as many numbers as the signal")
            return FeatureResult(result["item"], numbers)
        return Result(result["item"], float(result["position"]))

    def _exchange(self, body: bytes | None) -> dict[str, Any]:
        request = urllib.request.Request(self._address, body, {"Content-Type": "application/json"} if body else {})
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as reply:
                data = json.loads(reply.read(LARGEST_ANSWER))
        except urllib.error.HTTPError as error:
            with error:
                raise InvalidInput("url", plain("this request"), _said(error)) from None
        except (OSError, ValueError, http.client.HTTPException):
            raise SourceError("the service cannot be reached or does not answer in JSON; check the address") from None
        if not isinstance(data, dict):
            raise SourceError("the service did not answer as expected")
        return data


def _epsilons(described: dict[str, Any]) -> tuple[float, ...]:
    try:
        return tuple(float(each) for each in described.get("epsilons", [described["epsilon"]]))
    except (KeyError, TypeError, ValueError):
        raise SourceError("the service did not describe the catalogue as expected") from None


def _said(error: urllib.error.HTTPError) -> str:
    try:
        return f"the service says: {str(json.loads(error.read(LARGEST_ANSWER))['error'])[:300]}"
    except (OSError, ValueError, KeyError, TypeError):
        return f"the service refuses it with status {error.code}"
