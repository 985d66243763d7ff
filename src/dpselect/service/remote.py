"""The service as seen by a Python client: `answer` works as that of a local server, over HTTP."""

from __future__ import annotations

import http.client
import json
import math
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.multiselect import Result, checked_signal

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

    Attributes
    ----------
    k, epsilon : int, float
        The settings for which the answers are optimal.
    grid : float
        The grid step that the service proposes.

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
        self, url: str, catalogue: str, *, k: int | None = None, epsilon: float | None = None, timeout: float = 10.0
    ) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InvalidInput("url", url, "must be an address that begins with http:// or https://")
        asked = {name: value for name, value in (("k", k), ("epsilon", epsilon)) if value is not None}
        query = f"?{urllib.parse.urlencode(asked)}" if asked else ""
        self._address = f"{url.rstrip('/')}/v1/multiselect/{urllib.parse.quote(str(catalogue), safe='')}{query}"
        self._timeout = timeout
        described = self._exchange(None)
        try:
            self.k, self.epsilon = int(described["k"]), float(described["epsilon"])
            self.grid = float(described["grid"])
        except (KeyError, TypeError, ValueError):
            raise SourceError("the service did not describe the catalogue as expected") from None
        # A client that takes its epsilon from here must not get more than was asked for.
        if (k is not None and self.k != k) or (epsilon is not None and self.epsilon != epsilon):
            raise SourceError("the service answers with other settings than those asked for")

    def answer(self, signal: Any) -> list[Result]:
        """Send a signal and return the results."""
        reply = self._exchange(json.dumps({"signal": checked_signal(signal)}).encode())
        try:
            results: list[Result] | None = [
                Result(result["item"], float(result["position"])) for result in reply["results"]
            ]
        except (KeyError, TypeError, ValueError, OverflowError):
            results = None
        if results is None or not all(math.isfinite(result.position) for result in results):
            raise SourceError("the service did not answer with results")
        return results

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


def _said(error: urllib.error.HTTPError) -> str:
    try:
        return f"the service says: {str(json.loads(error.read(LARGEST_ANSWER))['error'])[:300]}"
    except (OSError, ValueError, KeyError, TypeError):
        return f"the service refuses it with status {error.code}"
