"""Filters: the rows for which a condition is true, without those on which it fails."""

from __future__ import annotations

import contextlib
from typing import Any

from dpselect.errors import InvalidInput
from dpselect.sources.conditions import Condition
from dpselect.sources.engine import Engine
from dpselect.sources.failures import EngineError


def filtered(
    stack: contextlib.ExitStack, engine: Engine, table: Any, where: str, names: dict[str, str] | None = None
) -> Any:
    """Return the rows of an Ibis table for which the condition is true; refuse it if it does not fit the columns.

    names: what the engine calls the columns, where it has other names for them than the user.
    """
    condition = Condition.of(where, engine.backend.dialect)
    text = condition.text if names is None else condition.with_names(names)
    engine.prepare(table)
    try:
        rows = engine.where(stack, table, condition, text)
        engine.check(rows)
        return rows
    except EngineError as error:
        reason = error.reason
    if names is None:
        condition.check_known(list(table.columns))
    raise InvalidInput("where", where, reason or "it does not fit the columns of the table; check names and types")
