"""The desk over HTTP: what may be asked, and how it is answered.

No cookie is set, nothing that a client sends becomes part of a query, and no error or log line has a value from the
rows. `door` lets requests in, `charged` runs what costs budget, and `refusals` answers errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from importlib.resources import files
from typing import Annotated, Any

import anyio
from fastapi import FastAPI, Header, Path, Query, Request, Response

import dpselect
from dpselect.desk import questions as shapes
from dpselect.desk.alone import AloneDesk
from dpselect.desk.charged import ChargedWork
from dpselect.desk.datasets import DataSet
from dpselect.desk.door import ASK, CURATE, Caller, Door, Who
from dpselect.desk.estimates import estimate, look_alike_task, words
from dpselect.desk.operations import Log, Metrics, RateLimit
from dpselect.desk.refusals import Refused, answer_errors, documented, source_failed
from dpselect.desk.room import FairRoom
from dpselect.desk.shared import SharedDesk
from dpselect.desk.workers import Workers
from dpselect.errors import SourceError
from dpselect.service import Guard

MOST_TRIED = 2
"""Estimates and previews that are computed at the same time, so that they do not delay releases; others wait."""

MOST_BRIEF = 4
"""Brief calls at the same time: checks of questions, some of which need a second of calibration, and histories."""

MOST_TRIES = 100
"""Estimates and previews that one analyst may have under way, waiting ones included; likewise brief calls."""

PAGE = {
    "": ("index.html", "text/html; charset=utf-8"),
    "look.css": ("look.css", "text/css; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
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


Name = Annotated[str, Path(max_length=200, description="Name of the data set.")]


def create_app(desk: AloneDesk | SharedDesk, *, log: Log | None = None) -> FastAPI:
    """Return the ASGI application of a desk.

    Parameters
    ----------
    desk : AloneDesk or SharedDesk
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
    app.state.desk, app.state.rates = desk, RateLimit(desk.requests_per_minute)
    app.add_middleware(Door, hosts=desk.hosts, metrics=metrics, log=desk_log)
    app.add_middleware(Guard)
    answer_errors(app, desk_log, shown=desk.mode == "alone")
    charged = ChargedWork(desk_log, shown=desk.mode == "alone")
    room, threads = FairRoom(MOST_TRIED, MOST_TRIES), anyio.CapacityLimiter(MOST_TRIED)
    brief_room = FairRoom(MOST_BRIEF, MOST_TRIES)

    def named(name: str, who: Caller, scope: str = ASK) -> DataSet:
        if scope not in who.scopes:
            raise Refused(403, "the token does not allow this")
        found = desk.dataset(name) if who.datasets is None or name in who.datasets else None
        if found is None:
            raise Refused(404, "no such data set; GET /v1/datasets lists them")
        return found

    async def tried(work: Callable[[], Any], who: Caller) -> Any:
        async with room.place(who.analyst):
            return await anyio.to_thread.run_sync(work, limiter=threads)

    async def briefly(work: Callable[[], Any], who: Caller) -> Any:
        async with brief_room.place(who.analyst):
            return await anyio.to_thread.run_sync(work)

    async def curve_of(task: dict[str, Any], who: Caller, request: Request) -> dict[str, Any]:
        """Compute the curve of a look-alike in a process of its own."""
        found: dict[str, Any] = await _unless_gone(request, workers.run(task, who.analyst))
        return found

    problems = documented(400, 401, 403, 404, 408, 409, 413, 429, 503)
    answered: dict[int | str, dict[str, Any]] = {200: {"description": "The stored answer"}, **problems}

    @app.get("/v1/session", responses=documented(401, 429))
    def session(who: Who) -> shapes.Session:
        """Return who is asking, and what they may do."""
        return shapes.Session(
            mode=desk.mode,
            analyst=who.analyst,
            scopes=sorted(who.scopes),
            datasets=[state.name for state in desk.states(who)],
            version=dpselect.__version__,
            offered=desk.offered,
        )

    @app.get("/v1/datasets", responses=documented(401, 403, 429, 503))
    def datasets(who: Who) -> list[shapes.DataSetState]:
        """Return the public facts of every data set that the caller may ask about."""
        if ASK not in who.scopes:
            raise Refused(403, "the token does not allow this")
        return desk.states(who)

    @app.post("/v1/datasets/{name}/estimate", responses=problems)
    async def estimated(name: Name, asked: shapes.EstimateQuestion, who: Who, request: Request) -> shapes.Estimate:
        """Return what a question would cost and how good it would be, from public facts; it costs nothing."""
        dataset = named(name, who)
        curve = None
        if (like := asked.like) is not None:
            settled = await tried(partial(dataset.question, asked), who)
            counts = await tried(partial(dataset.like, like), who) if isinstance(like, str) else like.counts
            curve = await curve_of(look_alike_task(asked, settled, counts, [1] * len(counts)), who, request)
        found: shapes.Estimate = await tried(partial(estimate, dataset, asked, who.analyst, curve), who)
        return found

    @app.post("/v1/datasets/{name}/preview", responses=problems)
    async def preview(name: Name, asked: shapes.Question, who: Who) -> shapes.Preview:
        """Answer a question on generated data of the declared shape; it costs nothing."""
        dataset = named(name, who)
        release, people = await tried(partial(dataset.generated, asked), who)
        text = f"Made-up rows of {people:,} people, in which items are popular at random. Nothing was charged."
        return shapes.Preview(release=shown(release), people=people, words=text)

    @app.post("/v1/datasets/{name}/releases", responses=answered, status_code=201)
    async def release(
        name: Name, asked: shapes.Question, who: Who, key: KeyHeader, response: Response
    ) -> dict[str, Any]:
        """Ask. 201 with a new answer, 200 with the stored one of the same question under the same key."""
        dataset = named(name, who)
        with suppress(SourceError):  # a stored answer needs no list
            await briefly(partial(dataset.question, asked), who)
        work = partial(dataset.release, asked, who.analyst, key)
        found, joined = await charged.answer(dataset, who.analyst, key, asked, work)
        repeated = found.repeated or joined
        desk_log(
            "released",
            dataset=dataset.name,
            analyst=who.analyst,
            key=key,
            repeated=repeated,
            epsilon=found.guarantee.epsilon,
            delta=found.guarantee.delta,
            period=asked.period,
        )
        response.status_code = 200 if repeated else 201
        return shown(found)

    @app.get("/v1/datasets/{name}/releases", responses=problems)
    async def history(
        name: Name, who: Who, everyone: Annotated[bool, Query(description="Of all analysts; for the curator.")] = False
    ) -> list[shapes.PastRelease]:
        """Return the caller's releases, or everybody's, the latest first."""
        dataset = named(name, who, CURATE if everyone else ASK)
        if everyone and who.datasets is not None and not desk.sharing(dataset.budget) <= who.datasets:
            raise Refused(403, "the data set shares its budget and history with one that the token does not allow")
        analyst = None if everyone else who.analyst
        found: list[shapes.PastRelease] = await briefly(lambda: list(map(_in_words, dataset.history(analyst))), who)
        return found

    @app.get("/v1/datasets/{name}/releases/{key:path}", responses=problems)
    def past(name: Name, key: Annotated[str, Path(max_length=100)], who: Who) -> shapes.PastRelease:
        """Return one release of the caller."""
        found = named(name, who).past(who.analyst, key)
        if found is None:
            raise Refused(404, "nothing was asked under this key")
        return _in_words(found)

    if isinstance(desk, AloneDesk):  # a shared service does not even have these calls

        @app.post("/v1/datasets/{name}/describe", responses=problems)
        def describe(name: Name, description: shapes.Description, who: Who) -> shapes.DataSetState:
            """State what the data set holds. Person, budget and period are fixed by the first call."""
            return desk.describe(name, description)

        @app.post("/v1/datasets/{name}/discover", responses=answered, status_code=201)
        async def discover(
            name: Name, asked: shapes.DiscoverQuestion, who: Who, key: KeyHeader, response: Response
        ) -> shapes.DomainFound:
            """Publish which items of a column exist, and use the list from then on."""
            dataset = named(name, who)
            work = partial(desk.discover, name, asked, key)
            found, joined = await charged.answer(dataset, who.analyst, key, asked, work)
            told: shapes.DomainFound = found[0]
            response.status_code = 200 if found[1] or joined else 201
            return told

        @app.post("/v1/datasets/{name}/look", responses=problems)
        async def look(name: Name, asked: shapes.Question, who: Who, request: Request) -> shapes.Look:
            """Return a curve from the private rows, which is not private; the ledger remembers it."""
            dataset = named(name, who)
            settled = await tried(partial(dataset.question, asked), who)
            desk.remember_look(name)
            try:
                histograms = await tried(partial(dataset.true_scores, asked), who)
            except SourceError as error:
                desk_log("source-failed", dataset=dataset.name, analyst=who.analyst, charged=False, error=str(error))
                raise source_failed(False, str(error)) from None
            return shapes.Look(
                curve=await curve_of(look_alike_task(asked, settled, *histograms[0]), who, request),
                warning="Not private: computed from the rows. Do not publish it. Releases from now on are recorded "
                "with the note that their parameters were chosen after looking.",
            )

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Say that the process runs."""
        return {"status": "ok"}

    @app.get("/readyz", responses=documented(503))
    def readyz() -> dict[str, str]:
        """Say whether the ledger can be read."""
        if desk.ready():
            return {"status": "ready"}
        raise Refused(503, "the ledger cannot be read", code="not-ready")

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics_text() -> Response:
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
