"""Room for work, shared fairly between analysts."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from dpselect.desk.refusals import Refused


class FairRoom:
    """Places for work that is done at the same time; others wait. One analyst gets half of the places at most.

    Parameters
    ----------
    places : int
        How much is done at the same time.
    most_asked : int
        How much one analyst may have asked for and not got yet; more is refused.
    """

    def __init__(self, places: int, most_asked: int) -> None:
        self._places = asyncio.Semaphore(places)
        self._own = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(max(1, places // 2)))
        self._most_asked = most_asked
        self._asked: Counter[str] = Counter()

    @asynccontextmanager
    async def place(self, analyst: str) -> AsyncIterator[None]:
        """Ask for a place, wait for it, and keep it for the block."""
        with self.asking(analyst):
            async with self.entered(analyst):
                yield

    @asynccontextmanager
    async def entered(self, analyst: str) -> AsyncIterator[None]:
        """Wait for a place, and keep it for the block, in work that is counted by whoever asks for it."""
        async with self._own[analyst], self._places:
            yield

    @contextmanager
    def asking(self, analyst: str) -> Iterator[None]:
        """Count what an analyst has asked for, in the block; refuse more than may be."""
        if self._asked[analyst] >= self._most_asked:
            text = f"{self._most_asked} questions of this kind are not answered yet; wait for them, or end them"
            raise Refused(429, text, headers={"Retry-After": "5"})
        self._asked[analyst] += 1
        try:
            yield
        finally:
            self._asked[analyst] -= 1
