"""The application: one URL that accepts a signal and nothing else, a list of catalogues, and a page.

`/healthz` says that it runs, and `/openapi.json` describes its requests.

Requests are not logged, no cookie is set, and no error quotes the request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpselect.errors import InvalidInput
from dpselect.service.document import openapi_document
from dpselect.service.settings import PublicSettings

LONGEST_WAIT = 10.0
"""Seconds within which a body must arrive."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
CLOSE = (b"connection", b"close")
BODY_HEADERS = (b"content-length", b"transfer-encoding")
PAGE = {
    "": ("index.html", "text/html; charset=utf-8"),
    "look.css": ("look.css", "text/css; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "drawing.js": ("drawing.js", "text/javascript; charset=utf-8"),
    "dpselect.js": ("dpselect.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}


class Signal(BaseModel):
    """The only thing that a client may send: a number, or a list of numbers for a catalogue of vectors."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    signal: float | list[float]


def create_app(offers: Mapping[str, PublicSettings]) -> FastAPI:
    """Return an ASGI application that serves offers by name.

    Parameters
    ----------
    offers : mapping of str to Offer, RingOffer or VectorOffer
        The offers; names must not be empty or contain a slash.

    Returns
    -------
    FastAPI
        The application, for any ASGI server.

    Raises
    ------
    InvalidInput
        If a name cannot be part of a URL.

    Examples
    --------
    >>> from dpselect.service import Offer
    >>> create_app({"numbers": Offer([0.0, 1.0, 2.0], k=2)}).title
    'dpselect'
    """
    # No redirects: they would repeat the URL, with whatever it contains.
    app = FastAPI(title="dpselect", openapi_url=None, redirect_slashes=False)
    app.add_middleware(Guard)
    app.add_exception_handler(HTTPException, _http_error)
    known = {_checked_name(name): offer for name, offer in offers.items()}

    # Registered first and without parameters that FastAPI checks, because this route must be fast.
    @app.post("/v1/multiselect/{catalogue}")
    async def answer(request: Request) -> Response:
        try:
            offer = _found(known, request.path_params["catalogue"])
            settings = offer.settings(request.query_params.multi_items())
            return Response(offer.answer(await _signal(request, offer), *settings), media_type="application/json")
        except InvalidInput as error:
            return _refusal(error)

    @app.get("/v1/multiselect")
    async def catalogues(request: Request) -> Response:
        if request.query_params:
            return _error(422, "query: must be empty here")
        return _json({"catalogues": [{"name": name, **offer.summary()} for name, offer in known.items()]})

    @app.get("/v1/multiselect/{catalogue}")
    async def description(catalogue: str, request: Request) -> Response:
        try:
            offer = _found(known, catalogue)
            return _json({"name": catalogue, **offer.description(*offer.settings(request.query_params.multi_items()))})
        except InvalidInput as error:
            return _refusal(error)

    document = openapi_document(known)

    @app.get("/openapi.json")
    async def openapi() -> Response:
        return _json(document)

    @app.get("/healthz")
    async def health() -> Response:
        return _json({"status": "ok"})

    for path, (file, kind) in PAGE.items():
        app.get(f"/{path}")(_static(file, kind))
    return app


class Guard:
    """Adds security headers to every answer, and turns an unexpected error into a plain answer.

    If the body of a request has not been read to its end, the answer closes the connection, so that the rest of the
    body is never read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        started = False
        unread = scope["type"] == "http" and any(name in BODY_HEADERS for name, _ in scope["headers"])

        async def received() -> Message:
            nonlocal unread
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                unread = False
            return message

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *HEADERS, *([CLOSE] if unread else [])]
            await send(message)

        try:
            await self._app(scope, received, guarded)
        except Exception:
            # The error could quote the request, so it is neither shown nor logged.
            if started or scope["type"] != "http":
                raise ConnectionError("the answer could not be sent") from None
            await _error(500, "the service failed; nothing of the request was kept")(scope, receive, guarded)


async def _signal(request: Request, offer: PublicSettings) -> Any:
    """Read a body of the form {"signal": …}, and never more bytes than a signal of this offer needs."""
    body = b""
    try:
        async with asyncio.timeout(LONGEST_WAIT):
            async for part in request.stream():
                body += part
                if len(body) > offer.largest_body:
                    raise HTTPException(413, f"body must have at most {offer.largest_body} bytes")
    except TimeoutError:
        raise HTTPException(408, f"body must arrive within {LONGEST_WAIT:g} seconds") from None
    try:
        signal = Signal.model_validate_json(body).signal
    except ValidationError:
        signal = None
    # JSON may repeat a field, and parsers keep the last; the others could contain anything.
    if signal is None or body.count(b":") != 1:
        raise HTTPException(422, f'body must be {{"signal": {offer.signal_form}}}, without any other field')
    return signal


def _checked_name(name: str) -> str:
    """Return the name of a catalogue if it can be part of a URL."""
    if name and "/" not in name and name not in (".", ".."):
        return name
    raise InvalidInput("name", name, "must have at least one character and no slash")


def _found(offers: Mapping[str, PublicSettings], name: str) -> PublicSettings:
    if name in offers:
        return offers[name]
    raise HTTPException(404, "no such catalogue; GET /v1/multiselect lists them")


def _static(file: str, kind: str) -> Any:
    content = files("dpselect.service").joinpath("static", file).read_bytes()

    async def page() -> Response:
        return Response(content, media_type=kind)

    return page


def _refusal(error: InvalidInput) -> Response:
    return _error(422, str(error))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        # Each route names only its own method, and GET and POST of one path are two routes.
        found = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
        headers["Allow"] = ", ".join(sorted({method for route in found for method in route.methods}))
    return _error(error.status_code, str(error.detail), headers)


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps({"error": text}), status, headers, media_type="application/json")


def _json(data: dict[str, Any]) -> Response:
    return Response(json.dumps(data, ensure_ascii=False, allow_nan=False), media_type="application/json")
