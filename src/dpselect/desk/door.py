"""The door of the desk: which requests come in at all, and whose they are."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from fastapi import Depends, Header, Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpselect.desk.operations import Log, Metrics
from dpselect.desk.refusals import Refused

LARGEST_BODY = 2 << 20
"""Bytes of a request's body; an uploaded look-alike needs the most."""

LONGEST_WAIT = 10.0
"""Seconds within which the body of a request must arrive."""

_STOPPING = (
    "the service is stopping. Ask again when it runs: a release under the same key, which is charged once at most"
)

ASK, CURATE = "ask", "curate"
"""Scopes: to ask, and to see everybody's history."""


@dataclass(frozen=True)
class Caller:
    """Who asks: the name of the analyst, what the token allows, and for which data sets (None: all)."""

    analyst: str
    scopes: frozenset[str]
    datasets: frozenset[str] | None = None


def authenticated(
    request: Request,
    authorization: Annotated[str, Header(description="Bearer TOKEN", include_in_schema=False)] = "",
) -> Caller:
    """Return who is asking; refuse a token that is not valid, and too many requests."""
    desk, rates = request.app.state.desk, request.app.state.rates
    kind, _, token = authorization.partition(" ")
    found: Caller | None = desk.caller(token.strip()) if kind.lower() == "bearer" else None
    address = request.client.host if request.client else ""
    wait = rates.wait(f"address {address}" if found is None else f"analyst {found.analyst}")
    if wait:
        seconds = math.ceil(wait)
        raise Refused(429, f"too many requests; ask again in {seconds} s", headers={"Retry-After": str(seconds)})
    if found is None:
        raise Refused(
            401,
            "the token is missing, wrong, expired or revoked; ask the curator for a token",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return found


Who = Annotated[Caller, Depends(authenticated)]


class Door:
    """Refuses other hosts and origins, and bodies that are too large or too slow; counts requests.

    A page of another site can make a browser call the service, but not with this host's name and the right origin.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], metrics: Metrics, log: Log) -> None:
        self._app = app
        self._hosts = frozenset(host.casefold() for host in hosts)
        self._metrics = metrics
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        received, started, whole = 0, False, False
        deadline = asyncio.get_running_loop().time() + LONGEST_WAIT

        async def counted(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                route = scope.get("route")
                self._metrics.count(scope["method"], getattr(route, "path", "other"), message["status"])
            await send(message)

        async def limited() -> Message:
            nonlocal received, whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"the body must arrive within {LONGEST_WAIT:g} s") from None
            whole = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received > LARGEST_BODY:
                raise HTTPException(413, _too_large())
            return message

        refusal = self._refusal({name: value.decode("latin-1") for name, value in scope["headers"]})
        if refusal is not None:
            return await refusal.response()(scope, receive, counted)
        try:
            await self._app(scope, limited, counted)
        except asyncio.CancelledError:  # the service was told to stop and has waited long enough
            if not started:
                await Refused(503, _STOPPING, code="stopping").response()(scope, receive, counted)
            raise
        except Exception as error:
            # The text of the error could quote the request or the rows.
            self._log("failed", error=type(error).__name__)
            if started:
                raise
            await Refused(500, "the desk failed; ask again, or tell the curator").response()(scope, receive, counted)

    def _refusal(self, headers: dict[bytes, str]) -> Refused | None:
        host = headers.get(b"host", "")
        if _split(f"//{host}").hostname not in self._hosts:
            return Refused(403, "this host name is not served; add it to `hosts` in the configuration")
        origin = headers.get(b"origin")
        if origin is not None and _split(origin).netloc != host:
            return Refused(403, "requests from other sites are refused")
        length = headers.get(b"content-length", "0")
        if length.isdecimal() and int(length[:20]) > LARGEST_BODY:
            return Refused(413, _too_large())
        return None


def _too_large() -> str:
    return f"the body must have at most {LARGEST_BODY} bytes"


def _split(address: str) -> SplitResult:
    """Return the parts of a host or origin; nothing of one that has no such form."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
