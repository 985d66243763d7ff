"""Answers of the desk that are not a success: each has a code and a text, and never a value from the rows."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from dpselect.desk.operations import Log
from dpselect.desk.questions import ProblemAnswer
from dpselect.errors import BudgetExceeded, DpSelectError, InvalidInput, KeyReused

_CODES = {400: "invalid-input", 401: "unauthorized", 403: "forbidden", 404: "not-found", 405: "not-allowed"}
_CODES |= {408: "too-slow", 409: "conflict", 413: "too-large", 429: "too-many-requests"}
_CODES |= {500: "failed", 503: "source-failed"}

_TEXTS = {
    400: "the body must be JSON in UTF-8",
    404: "there is nothing at this address",
    405: "this address does not take this method",
}

OF_THE_SOURCE = frozenset({"domain", "groups", "ledger", "person", "table", "table_name", "time", "where"})
"""Arguments that the configuration states, not the client."""


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


def source_failed(charged: bool | None, why: str = "") -> Refused:
    """Return the refusal; `why` is for the curator alone."""
    paid = {
        True: "The release was charged: ask the same question with the same key again, which costs nothing more",
        False: "Nothing was charged: ask again",
        None: "Whether it was charged is not known: ask with the same key again, which is charged once at most",
    }[charged]
    failed = f"the source of the data failed ({why})" if why else "the source of the data failed"
    return Refused(503, f"{failed}. {paid}{'' if why else ', or tell the curator'}", charged=charged)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what the OpenAPI document says about refusals."""
    return {status: {"model": ProblemAnswer, "description": _CODES[status]} for status in statuses}


def answer_errors(app: FastAPI, log: Log, *, shown: bool) -> None:
    """Let an application answer errors as refusals; `shown` is whether an error of the source may be shown."""

    async def library_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, DpSelectError)
        refusal = _refusal_of(error, shown=shown)
        if refusal.status == 503:
            log("source-failed", charged=False, error=str(error))
        return refusal.response()

    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(DpSelectError, library_error)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return error.response()


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # Only the door refuses with 408 and 413, in words of its own.
    own = {408: error.detail, 413: error.detail}
    text = {**_TEXTS, **own}.get(error.status_code, "the request cannot be answered")
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
    if isinstance(error, KeyReused):
        text = "another question was asked under this key; ask the same question, or choose another key"
        return Refused(409, text, code="key-reused")
    if isinstance(error, BudgetExceeded):
        amounts = {"requested": error.requested, "remaining": error.remaining, "difference": error.difference}
        deltas = {"requested_delta": error.requested_delta, "remaining_delta": error.remaining_delta}
        text = f"{error}. Nothing was charged"
        only_delta = error.requested <= error.remaining and error.requested_delta > error.remaining_delta
        field = "delta" if only_delta else "epsilon"
        return Refused(409, text, code="budget-exceeded", field=field, **amounts, **deltas)
    if isinstance(error, InvalidInput) and (shown or error.argument not in OF_THE_SOURCE):
        return Refused(400, str(error), field=error.argument)
    return source_failed(False, str(error) if shown else "")
