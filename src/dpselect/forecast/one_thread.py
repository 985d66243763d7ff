"""Matrix products in one thread: those of a forecast are so small that threads mostly wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_LOCK = Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread inside, and as many as before afterwards.

    That is a setting of the whole process. Whoever enters first sets it and puts it back, whoever enters meanwhile goes
    on with what it finds.
    """
    if not _LOCK.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LOCK.release()


@cache
def _libraries() -> Any:
    """Find the libraries for matrix products, which takes milliseconds; those that are loaded later are left alone."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
