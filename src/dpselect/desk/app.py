"""The desk over HTTP: who may ask, what is asked, and how answers and errors leave.

No cookie is set, nothing that a client sends becomes part of a query, and no error or log line has a value from the
rows. Errors of a source leave at the same fixed time as answers, and say whether the release was charged.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any, Protocol
from urllib.parse import SplitResult, urlsplit

import anyio
from fastapi import Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import dpselect
from dpselect.desk import questions as shapes
from dpselect.desk.datasets import DataSet
from dpselect.desk.estimates import estimate, look_alike_task, words
from dpselect.desk.operations import Log, Metrics, RateLimit
from dpselect.desk.padding import padded
from dpselect.desk.workers import Workers
from dpselect.errors import BudgetExceeded, DpSelectError, InvalidInput, KeyReused, SourceError
from dpselect.service import Guard

LARGEST_BODY = 2 << 20
"""Bytes of a request's body; an uploaded look-alike needs the most."""

MOST_AT_ONCE = 8
"""Releases that are computed at the same time; others wait."""

MOST_TRIED = 2
"""Estimates and previews that are computed at the same time, so that they do not delay releases; others wait."""

LONGEST_WAIT = 10.0
"""Seconds within which the body of a request must arrive."""

ASK, CURATE, OWN = "ask", "curate", "own"
"""Scopes: to ask, to see everybody's history, and to describe the data (alone only)."""

PAGE = {
    "": ("index.html", "text/html; charset=utf-8"),
    "look.css": ("look.css", "text/css; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
_CODES = {400: "invalid-input", 401: "unauthorized", 403: "forbidden", 404: "not-found", 405: "not-allowed"}
_CODES |= {
    408: "too-slow",
    409: "conflict",
    413: "too-large",
    429: "too-many-requests",
    500: "failed",
    503: "source-failed",
}

_OF_THE_SOURCE = frozenset({"domain", "groups", "ledger", "person", "table", "table_name", "time", "where"})
"""Arguments that the configuration states, not the client."""

_TRIES = 4
"""Look-alikes that one analyst may have under way."""

_TEXTS = {
    400: "the body must be JSON in UTF-8",
    404: "there is nothing at this address",
    405: "this address does not take this method",
    408: f"the body must arrive within {LONGEST_WAIT:g} s",
    413: f"the body must have at most {LARGEST_BODY} bytes",
}

KeyHeader = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=100,
        pattern=r"^[!-~]+$",
        description="A key of your own: the same question under the same key is answered and charged once.",
    ),
]


@dataclass(frozen=True)
class Caller:
    """Who asks: the name of the analyst, what the token allows, and for which data sets (None: all)."""

    analyst: str
    scopes: frozenset[str]
    datasets: frozenset[str] | None = None


class Desk(Protocol):
    """What the application serves: `shared.SharedDesk` or `alone.AloneDesk`."""

    mode: shapes.Mode
    hosts: frozenset[str]
    requests_per_minute: int
    offered: list[str]

    def caller(self, token: str) -> Caller | None:
        """Return whose token this is, or None."""

    def states(self, caller: Caller) -> list[shapes.DataSetState]:
        """Return the public facts of all data sets that the caller may ask about."""

    def dataset(self, name: str) -> DataSet | None:
        """Return a data set that can be asked about."""

    def sharing(self, budget: str) -> frozenset[str]:
        """Return the names of the data sets that share a budget."""

    def describe(self, name: str, description: shapes.Description) -> shapes.DataSetState:
        """Keep what the curator states of a data set; alone only."""

    def discover(self, name: str, asked: shapes.DiscoverQuestion, key: str) -> tuple[shapes.DomainFound, bool]:
        """Publish which items exist, and say whether the answer was stored before; alone only."""

    def remember_look(self, name: str) -> None:
        """Keep that the true scores were looked at; alone only."""

    def ready(self) -> bool:
        """Whether the ledger can be read."""


class Refused(Exception):
    """An answer that is not a success."""

    def __init__(self, status: int, message: str, *, code: str = "", headers: Any = None, **facts: Any) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        known = {name: value for name, value in facts.items() if value is not None}
        self.error = {"code": code or _CODES[status], "message": message, **known}

    def response(self) -> Response:
        """Return the answer over HTTP."""
        return Response(json.dumps({"error": self.error}), self.status, self.headers, media_type="application/json")


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
Name = Annotated[str, Path(max_length=200, description="Name of the data set.")]


def create_app(desk: Desk, *, log: Log | None = None) -> FastAPI:
    """Return the ASGI application of a desk.

    Parameters
    ----------
    desk : SharedDesk or AloneDesk
        What is served.
    log : Log, optional
        Where events are written; standard error if not stated.

    Returns
    -------
    FastAPI
        The application, for any ASGI server.
    """
    app = FastAPI(
        title="dpselect desk",
        version=dpselect.__version__,
        description="Private top-k answers under a budget. Every call under /v1 needs a token.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    desk_log, metrics, workers = log or Log(), Metrics(), Workers()
    computing: Counter[str] = Counter()
    app.state.desk, app.state.rates = desk, RateLimit(desk.requests_per_minute)
    room, room_to_try = anyio.CapacityLimiter(MOST_AT_ONCE), anyio.CapacityLimiter(MOST_TRIED)
    app.add_middleware(Door, hosts=desk.hosts, metrics=metrics, log=desk_log)
    app.add_middleware(Guard)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)

    def named(name: str, who: Caller, scope: str = ASK) -> DataSet:
        if scope not in who.scopes:
            raise Refused(403, "the token does not allow this")
        found = desk.dataset(name) if who.datasets is None or name in who.datasets else None
        if found is None:
            raise Refused(404, "no such data set; GET /v1/datasets lists them")
        return found

    def own(who: Caller) -> None:
        if OWN not in who.scopes:
            raise Refused(403, "only the curator's own desk can do this; change the configuration instead")

    async def in_thread(work: Callable[[], Any]) -> Any:
        return await anyio.to_thread.run_sync(work, limiter=room)

    async def tried(work: Callable[[], Any]) -> Any:
        return await anyio.to_thread.run_sync(work, limiter=room_to_try)

    async def curve_of(task: dict[str, Any], who: Caller, request: Request) -> dict[str, Any]:
        """Compute the curve of a look-alike in a process of its own."""
        if computing[who.analyst] >= _TRIES:
            text = "other estimates from look-alikes are still computed; wait for them, or end them"
            raise Refused(429, text, headers={"Retry-After": "5"})
        computing[who.analyst] += 1
        try:
            found: dict[str, Any] = await _unless_gone(request, workers.run(task))
            return found
        finally:
            computing[who.analyst] -= 1

    async def library_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, DpSelectError)
        refusal = _refusal_of(error, shown=desk.mode == "alone")
        if refusal.status == 503:
            desk_log("source-failed", charged=False, error=str(error))
        return refusal.response()

    app.add_exception_handler(DpSelectError, library_error)

    async def charged_work(work: Callable[[], Any], dataset: DataSet, who: Caller, key: str) -> Any:
        """Run what is charged; whatever fails after the charge is a failure of the source, whose text stays here."""

        async def attempt() -> Any:
            try:
                return await in_thread(work)
            except (KeyReused, BudgetExceeded, Refused):
                raise
            except Exception as error:
                charged = None
                with suppress(DpSelectError):
                    charged = await in_thread(lambda: dataset.was_charged(who.analyst, key))
                asked_wrong = isinstance(error, InvalidInput) and error.argument not in _OF_THE_SOURCE | {"item", "by"}
                if asked_wrong and charged is False:
                    raise
                text = str(error) if isinstance(error, DpSelectError) else type(error).__name__
                desk_log("source-failed", dataset=dataset.name, analyst=who.analyst, charged=charged, error=text)
            raise _source_failed(charged, text if desk.mode == "alone" else "")

        answer_after = dataset.config.answer_after

        def overran(moment: float) -> None:
            desk_log("answer-late", dataset=dataset.name, seconds=moment, answer_after=answer_after)

        return await padded(attempt, answer_after, overran)

    problems = _documented(400, 401, 403, 404, 408, 409, 413, 429, 503)
    short = _documented(400, 401, 403, 404, 408, 409, 413, 429, 503)
    answered: dict[int | str, dict[str, Any]] = {200: {"description": "The stored answer"}, **problems}

    @app.get("/v1/session", responses=_documented(401, 429))
    def session(who: Who) -> shapes.Session:
        """Return who is asking, and what they may do."""
        return shapes.Session(
            mode=desk.mode,
            analyst=who.analyst,
            scopes=sorted(who.scopes),
            datasets=[state.name for state in desk.states(who)],
            version=dpselect.__version__,
            offered=desk.offered if OWN in who.scopes else [],
        )

    @app.get("/v1/datasets", responses=_documented(401, 403, 429, 503))
    def datasets(who: Who) -> list[shapes.DataSetState]:
        """Return the public facts of every data set that the caller may ask about."""
        if ASK not in who.scopes:
            raise Refused(403, "the token does not allow this")
        return desk.states(who)

    @app.post("/v1/datasets/{name}/describe", responses=problems)
    def describe(name: Name, description: shapes.Description, who: Who) -> shapes.DataSetState:
        """State what the data set holds. Person, budget and period are fixed by the first call (alone only)."""
        own(who)
        return desk.describe(name, description)

    @app.post("/v1/datasets/{name}/discover", responses=answered, status_code=201)
    async def discover(
        name: Name, asked: shapes.DiscoverQuestion, who: Who, key: KeyHeader, response: Response
    ) -> shapes.DomainFound:
        """Publish which items of a column exist, and use the list from then on (alone only)."""
        own(who)
        dataset = named(name, who)
        found: tuple[shapes.DomainFound, bool]
        found = await charged_work(lambda: desk.discover(name, asked, key), dataset, who, key)
        told, repeated = found
        response.status_code = 200 if repeated else 201
        return told

    @app.post("/v1/datasets/{name}/estimate", responses=short)
    async def estimated(name: Name, asked: shapes.EstimateQuestion, who: Who, request: Request) -> shapes.Estimate:
        """Return what a question would cost and how good it would be, from public facts; it costs nothing."""
        dataset = named(name, who)
        curve = None
        if asked.like is not None:
            like = asked.like
            counts = await tried(lambda: dataset.like(like)) if isinstance(like, str) else like.counts
            task = look_alike_task(asked, dataset.question(asked), counts, [1] * len(counts))
            curve = await curve_of(task, who, request)
        found: shapes.Estimate = await tried(lambda: estimate(dataset, asked, who.analyst, curve))
        return found

    @app.post("/v1/datasets/{name}/look", responses=problems)
    async def look(name: Name, asked: shapes.Question, who: Who, request: Request) -> shapes.Look:
        """Return a curve from the private rows, which is not private; the ledger remembers it (alone only)."""
        own(who)
        dataset = named(name, who)
        settled = dataset.question(asked)
        desk.remember_look(name)
        try:
            histograms = await in_thread(lambda: dataset.true_scores(asked))
        except SourceError as error:
            desk_log("source-failed", dataset=dataset.name, analyst=who.analyst, charged=False, error=str(error))
            raise _source_failed(False, str(error)) from None
        return shapes.Look(
            curve=await curve_of(look_alike_task(asked, settled, *histograms[0]), who, request),
            warning="Not private: computed from the rows. Do not publish it. Releases from now on are recorded with "
            "the note that their parameters were chosen after looking.",
        )

    @app.post("/v1/datasets/{name}/preview", responses=short)
    async def preview(name: Name, asked: shapes.Question, who: Who) -> shapes.Preview:
        """Answer a question on generated data of the declared shape; it costs nothing."""
        dataset = named(name, who)
        dataset.question(asked)
        release, people = await tried(lambda: dataset.generated(asked))
        text = f"Made-up rows of {people:,} people, in which items are popular at random. Nothing was charged."
        return shapes.Preview(release=shown(release), people=people, words=text)

    @app.post("/v1/datasets/{name}/releases", responses=answered, status_code=201)
    async def release(
        name: Name, asked: shapes.Question, who: Who, key: KeyHeader, response: Response
    ) -> dict[str, Any]:
        """Ask. 201 with a new answer, 200 with the stored one of the same question under the same key."""
        dataset = named(name, who)
        dataset.question(asked)
        found = await charged_work(lambda: dataset.release(asked, who.analyst, key), dataset, who, key)
        desk_log(
            "released",
            dataset=dataset.name,
            analyst=who.analyst,
            key=key,
            repeated=found.repeated,
            epsilon=found.guarantee.epsilon,
            delta=found.guarantee.delta,
            period=asked.period,
        )
        dataset.has_left(who.analyst, key)
        response.status_code = 200 if found.repeated else 201
        return shown(found)

    @app.get("/v1/datasets/{name}/releases", responses=short)
    def history(
        name: Name, who: Who, everyone: Annotated[bool, Query(description="Of all analysts; for the curator.")] = False
    ) -> list[shapes.PastRelease]:
        """Return the caller's releases, or everybody's, the latest first."""
        dataset = named(name, who, CURATE if everyone else ASK)
        if everyone and who.datasets is not None and not desk.sharing(dataset.budget) <= who.datasets:
            raise Refused(403, "the data set shares its budget and history with one that the token does not allow")
        return [_in_words(each) for each in dataset.history(None if everyone else who.analyst)]

    @app.get("/v1/datasets/{name}/releases/{key:path}", responses=short)
    def past(name: Name, key: Annotated[str, Path(max_length=100)], who: Who) -> shapes.PastRelease:
        """Return one release of the caller."""
        found = named(name, who).past(who.analyst, key)
        if found is None:
            raise Refused(404, "nothing was asked under this key")
        return _in_words(found)

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        """Say that the process runs."""
        return {"status": "ok"}

    @app.get("/readyz", responses=_documented(503))
    def readyz() -> dict[str, str]:
        """Say whether the ledger can be read."""
        if desk.ready():
            return {"status": "ready"}
        raise Refused(503, "the ledger cannot be read", code="not-ready")

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    def metrics_text() -> Response:
        """Return counters in the text format of Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    for path, content, kind in _pages():
        app.get(f"/{path}", include_in_schema=False)(_static(content, kind))
    _state_scheme(app)
    return app


def shown(release: dpselect.Release) -> dict[str, Any]:
    """Return a release as plain data, with sentences for people."""
    reach = release.reach
    return {**release.to_dict(), "words": words(release.guarantee, None if reach is None else str(reach))}


def _in_words(past: shapes.PastRelease) -> shapes.PastRelease:
    """Return a past release with sentences for people."""
    kept = past.release or {}
    reach = dpselect.Release.from_dict(kept).reach if kept.get("reach") else None
    told = words(dpselect.Guarantee(**past.guarantee), None if reach is None else str(reach))
    return past.model_copy(update={"words": told})


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
                raise HTTPException(408) from None
            whole = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received > LARGEST_BODY:
                raise HTTPException(413)
            return message

        refusal = self._refusal({name: value.decode("latin-1") for name, value in scope["headers"]})
        if refusal is not None:
            return await refusal.response()(scope, receive, counted)
        try:
            await self._app(scope, limited, counted)
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
            return Refused(413, _TEXTS[413])
        return None


def _split(address: str) -> SplitResult:
    """Return the parts of a host or origin; nothing of one that has no such form."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


async def _unless_gone(request: Request, work: Awaitable[Any]) -> Any:
    """Return the result of the work; end it if the client goes away."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=0.25)
            if not task.done() and await request.is_disconnected():
                raise Refused(503, "cancelled", code="cancelled")
        return task.result()
    finally:
        task.cancel()


def _source_failed(charged: bool | None, why: str = "") -> Refused:
    """Return the refusal; `why` is for the curator alone."""
    paid = {
        True: "The release was charged: ask the same question with the same key again, which costs nothing more",
        False: "Nothing was charged: ask again",
        None: "Whether it was charged is not known: ask with the same key again, which is charged once at most",
    }[charged]
    failed = f"the source of the data failed ({why})" if why else "the source of the data failed"
    return Refused(503, f"{failed}. {paid}{'' if why else ', or tell the curator'}", charged=charged)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return error.response()


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = _TEXTS.get(error.status_code, "the request cannot be answered")
    return Refused(
        error.status_code, text, code=_CODES.get(error.status_code, "failed"), headers=error.headers
    ).response()


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "header", "path")]
    field = place[0] if place and not place[0].isdigit() else None
    text = {"extra_forbidden": "is not a field of this question", "missing": "is missing"}.get(
        first["type"], str(first["msg"])[:200]
    )
    return Refused(400, f"{field or 'the body'}: {text}", field=field).response()


def _refusal_of(error: DpSelectError, *, shown: bool) -> Refused:
    """Return the refusal for an error of the library; `shown` is whether an error of the source may be shown."""
    if isinstance(error, KeyReused):
        text = "another question was asked under this key; ask the same question, or choose another key"
        return Refused(409, text, code="key-reused")
    if isinstance(error, BudgetExceeded):
        amounts = {"requested": error.requested, "remaining": error.remaining, "difference": error.difference}
        deltas = {"requested_delta": error.requested_delta, "remaining_delta": error.remaining_delta}
        text = f"{error}. Nothing was charged"
        return Refused(409, text, code="budget-exceeded", field="epsilon", **amounts, **deltas)
    if isinstance(error, InvalidInput) and (shown or error.argument not in _OF_THE_SOURCE):
        return Refused(400, str(error), field=error.argument)
    return _source_failed(False, str(error) if shown else "")


def _documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": shapes.ProblemAnswer, "description": _CODES[status]} for status in statuses}


def _state_scheme(app: FastAPI) -> None:
    """Say in the OpenAPI document that calls under /v1 need a bearer token."""
    document = app.openapi()
    document.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, calls in document["paths"].items():
        for call in calls.values():
            call.get("responses", {}).pop("422", None)
            if path.startswith("/v1/"):
                call["security"] = [{"token": []}]
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)


def _pages() -> list[tuple[str, bytes, str]]:
    """Return the address, content and type of each file of the page."""
    kinds = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8"}
    kinds |= {".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
    found = []
    for file in sorted(files("dpselect.desk").joinpath("static").iterdir(), key=lambda each: each.name):
        kind = kinds.get(f".{file.name.rpartition('.')[2]}")
        if kind is not None:
            found.append(("" if file.name == "index.html" else file.name, file.read_bytes(), kind))
    shared = files("dpselect.service").joinpath("static")
    return [*found, *((name, shared.joinpath(name).read_bytes(), PAGE[name][1]) for name in ("look.css", "icon.svg"))]


def _static(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def page() -> Response:
        return Response(content, media_type=kind)

    return page
