"""How questions that are charged are answered: once under each key, few at a time, at moments that are public."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import anyio

from dpselect.desk.datasets import DataSet
from dpselect.desk.operations import Log
from dpselect.desk.padding import padded
from dpselect.desk.refusals import OF_THE_SOURCE, Refused, source_failed
from dpselect.desk.room import FairRoom
from dpselect.errors import BudgetExceeded, DpSelectError, InvalidInput, KeyReused

MOST_AT_ONCE = 8
"""Releases that are computed at the same time; others wait."""

MOST_ASKED = 100
"""Releases that one analyst may have under way, waiting ones and repetitions included."""


class ChargedWork:
    """Runs what is charged. See `padding` for when it is answered.

    Parameters
    ----------
    log : Log
        Where failures, and answers that leave late, are written.
    shown : bool
        Whether the error of a source may be shown to whoever asks.
    """

    def __init__(self, log: Log, *, shown: bool) -> None:
        self._log, self._shown = log, shown
        self._room = FairRoom(MOST_AT_ONCE, MOST_ASKED)
        self._threads = anyio.CapacityLimiter(MOST_AT_ONCE)
        self._under_way: dict[Hashable, tuple[Any, asyncio.Task[Any]]] = {}

    async def answer(
        self, dataset: DataSet, analyst: str, key: str, asked: Any, work: Callable[[], Any]
    ) -> tuple[Any, bool]:
        """Return the answer to what is asked under a key, and whether it is that of a request that came before.

        The work goes on if the client goes away: others may wait for it, and the ledger keeps its answer.
        """
        place, question = (dataset.budget, analyst, key), (dataset.name, asked)
        with self._room.asking(analyst):
            while (found := self._under_way.get(place)) is not None and found[0] != question:
                await asyncio.wait({found[1]})
            if found is not None:
                return await asyncio.shield(found[1]), True
            task = asyncio.create_task(self._answered(dataset, analyst, key, work))
            self._under_way[place] = question, task
            task.add_done_callback(lambda _: self._under_way.pop(place))
            return await asyncio.shield(task), False

    async def _answered(self, dataset: DataSet, analyst: str, key: str, work: Callable[[], Any]) -> Any:
        answer_after = dataset.config.answer_after

        def overran(moment: float) -> None:
            self._log("answer-late", dataset=dataset.name, seconds=moment, answer_after=answer_after)

        # The place is kept until the answer leaves: who gets it next must not learn when the engine was done.
        async with self._room.entered(analyst):
            with dataset.leaving(analyst, key):
                return await padded(lambda: self._attempt(dataset, analyst, key, work), answer_after, overran)

    async def _attempt(self, dataset: DataSet, analyst: str, key: str, work: Callable[[], Any]) -> Any:
        """Run the work; whatever fails after the charge is a failure of the source, whose text stays here."""
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)
        except (KeyReused, BudgetExceeded, Refused):
            raise
        except Exception as error:
            charged = None
            with suppress(DpSelectError):
                charged = await anyio.to_thread.run_sync(dataset.was_charged, analyst, key, limiter=self._threads)
            asked_wrong = isinstance(error, InvalidInput) and error.argument not in OF_THE_SOURCE | {"item", "by"}
            if asked_wrong and charged is False:
                raise
            text = str(error) if isinstance(error, DpSelectError) else type(error).__name__
            self._log("source-failed", dataset=dataset.name, analyst=analyst, charged=charged, error=text)
        raise source_failed(charged, text if self._shown else "")
