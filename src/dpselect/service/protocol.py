"""HTTP/1.1 as uvicorn speaks it with h11, with a limit to headers that holds however their bytes arrive."""

from __future__ import annotations

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

LARGEST_HEAD = 16 << 10
"""Bytes of a request line with all headers, or of the trailers of a body; browsers send about one thousand."""


class LimitedConnection(h11.Connection):
    """Refuses too long headers also when all of them arrive at once; h11 by itself limits only those still incomplete.

    What is counted are the bytes on the wire, spaces and empty lines among them, but not those of a body.
    """

    def next_event(self) -> Any:
        """Return the next event, or refuse the request with the error that uvicorn answers with status 400."""
        before = len(self.trailing_data[0])
        event = super().next_event()
        body = len(event.data) if isinstance(event, h11.Data) else 0
        if before - len(self.trailing_data[0]) - body > LARGEST_HEAD:
            raise h11.RemoteProtocolError("headers too long", error_status_hint=431)
        return event


class LimitedProtocol(H11Protocol):
    """The protocol of uvicorn on a limited connection."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.conn = LimitedConnection(h11.SERVER, LARGEST_HEAD)
