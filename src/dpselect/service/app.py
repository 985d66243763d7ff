"""The application: one address that takes a signal and nothing else, a list of catalogues, and a page.

No request is logged, no cookie is set, and no error repeats what was sent.
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
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpselect.errors import InvalidInput
from dpselect.service.offer import Offer

LARGEST_BODY = 256
"""Bytes; a signal needs about thirty."""

LONGEST_WAIT = 10.0
"""Seconds in which a body has to arrive."""

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
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "drawing.js": ("drawing.js", "text/javascript; charset=utf-8"),
    "dpselect.js": ("dpselect.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}


class Signal(BaseModel):
    """All that a client may send."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    signal: float


SIGNAL_SCHEMA = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": Signal.model_json_schema()}}},
    "parameters": [
        {"name": "catalogue", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "k", "in": "query", "required": False, "schema": {"type": "integer"}},
        {"name": "epsilon", "in": "query", "required": False, "schema": {"type": "number"}},
    ],
}


def create_app(offers: Mapping[str, Offer]) -> FastAPI:
    """Return an ASGI application that serves the offers by name."""
    # A redirection would repeat the address that was asked for, with whatever is in it.
    app = FastAPI(title="dpselect", docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_middleware(Guard)
    app.add_exception_handler(HTTPException, _http_error)
    known = {_checked_name(name): offer for name, offer in offers.items()}

    # First, and without arguments of its own to be checked, since this is what has to be fast.
    @app.post("/v1/multiselect/{catalogue}", openapi_extra=SIGNAL_SCHEMA)
    async def answer(request: Request) -> Response:
        try:
            offer = _found(known, request.path_params["catalogue"])
            settings = offer.settings(request.query_params.multi_items())
            return Response(offer.answer(await _signal(request), *settings), media_type="application/json")
        except InvalidInput as error:
            return _refusal(error)

    @app.get("/v1/multiselect")
    async def catalogues(request: Request) -> Response:
        if request.query_params:
            return _error(422, "query: no field is accepted here")
        return _json({"catalogues": [{"name": name, **offer.summary()} for name, offer in known.items()]})

    @app.get("/v1/multiselect/{catalogue}")
    async def description(catalogue: str, request: Request) -> Response:
        try:
            offer = _found(known, catalogue)
            return _json({"name": catalogue, **offer.description(*offer.settings(request.query_params.multi_items()))})
        except InvalidInput as error:
            return _refusal(error)

    for path, (file, kind) in PAGE.items():
        app.get(f"/{path}", include_in_schema=False)(_static(file, kind))
    return app


class Guard:
    """Adds the headers that keep a browser to this service, and turns an unforeseen failure into a plain answer.

    An answer to a request whose body has not been read to its end closes the connection, so that the rest of the body
    is not taken in.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
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
            # What went wrong could quote the request, so nothing of it is shown or logged.
            if started or scope["type"] != "http":
                raise ConnectionError("the answer could not be sent") from None
            await _error(500, "the service failed; nothing of the request was kept")(scope, receive, guarded)


async def _signal(request: Request) -> float:
    """Read a body of the form {"signal": number}, and never more of it than a signal needs."""
    body = b""
    try:
        async with asyncio.timeout(LONGEST_WAIT):
            async for part in request.stream():
                body += part
                if len(body) > LARGEST_BODY:
                    raise HTTPException(413, f"body: at most {LARGEST_BODY} bytes are accepted")
    except TimeoutError:
        raise HTTPException(408, f"body: it did not arrive within {LONGEST_WAIT:g} seconds") from None
    try:
        signal = Signal.model_validate_json(body).signal
    except ValidationError:
        signal = None
    # JSON may repeat a field, and parsers keep the last; the others could carry anything.
    if signal is None or body.count(b":") != 1:
        raise HTTPException(422, 'body: exactly {"signal": a finite number} is accepted, and no other field')
    return signal


def _checked_name(name: str) -> str:
    """Return the name of a catalogue if an address can hold it."""
    if name and "/" not in name and name not in (".", ".."):
        return name
    raise InvalidInput("name", name, "at least one character is needed, and no /")


def _found(offers: Mapping[str, Offer], name: str) -> Offer:
    if name in offers:
        return offers[name]
    raise HTTPException(404, "there is no such catalogue; GET /v1/multiselect lists them")


def _static(file: str, kind: str) -> Any:
    content = files("dpselect.service").joinpath("static", file).read_bytes()

    async def page() -> Response:
        return Response(content, media_type=kind)

    return page


def _refusal(error: InvalidInput) -> Response:
    return _error(422, str(error))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, str(error.detail), dict(error.headers or {}))


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps({"error": text}), status, headers, media_type="application/json")


def _json(data: dict[str, Any]) -> Response:
    return Response(json.dumps(data, ensure_ascii=False, allow_nan=False), media_type="application/json")
