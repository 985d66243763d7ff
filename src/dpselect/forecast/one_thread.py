"""Matrix products in one thread: those of a forecast are so small that threads mostly wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread inside, and as many as before afterwards.

    That is a setting of the whole process. If several threads enter, the first one sets it and puts it back, and the
    others go on with what they find.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> Any:
    """Find the libraries for matrix products that are loaded, which takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
