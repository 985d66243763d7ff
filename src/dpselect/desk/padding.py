"""Answers leave at a fixed time after the question, so that the time of an answer tells nothing about the rows.

How long an engine takes can depend on private rows. An answer therefore leaves `answer_after` seconds after its
question began to be computed; if the engine needs longer, at twice that, four times that, and so on, which the curator
reads in the log. An observer of one answer learns which of these times it was.

Repetitions and other questions tell no more, because every moment is public, or follows from moments at which earlier
answers left (`charged`):

* Until an answer leaves, the same question under its key waits for the same work, and leaves with it. Another question
  under the key waits for that moment, and then begins like one that comes later.
* Once it has left, the ledger holds the answer, and a repetition leaves `answer_after` seconds after it came.
* At most so many releases are computed at the same time. One counts until its answer leaves, not until its engine is
  done, so that whoever waits for its place learns nothing else.

This is so within one process. Another process that shares the ledger draws again if it finds no answer yet, and returns
the answer if it finds one: who can choose the process learns whether the engine was done. A question that failed after
it was charged is computed again at each repetition, and each shows which of the times it needed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Result = TypeVar("Result")


def leaves_at(elapsed: float, answer_after: float) -> float:
    """Return when an answer leaves, in seconds after its question: answer_after · 2^j for the least j that fits.

    Examples
    --------
    >>> [leaves_at(elapsed, 3.0) for elapsed in (0.1, 3.0, 3.1, 13.0)]
    [3.0, 3.0, 6.0, 24.0]
    """
    if answer_after <= 0:
        return elapsed
    moment = answer_after
    while moment < elapsed:
        moment *= 2
    return moment


async def padded(
    work: Callable[[], Awaitable[Result]], answer_after: float, overran: Callable[[float], None]
) -> Result:
    """Return the result of the work, or raise its error, at a fixed time after the call."""
    started = time.monotonic()
    try:
        return await work()
    finally:
        moment = leaves_at(time.monotonic() - started, answer_after)
        if moment > answer_after > 0:
            overran(moment)
        await asyncio.sleep(max(0.0, started + moment - time.monotonic()))
