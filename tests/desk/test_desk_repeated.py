"""Questions that are repeated while the first is still computed: one answer, at moments that tell nothing more.

Time is a clock of the tests: engines, padding and those who ask sleep on it, and it moves on when all of them sleep.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from desks import QUESTION, served, token_for, write_config

import dpselect as dps
from dpselect.desk import SharedDesk, read_config
from dpselect.desk.charged import MOST_AT_ONCE, ChargedWork
from dpselect.desk.datasets import DataSet
from dpselect.desk.operations import Log
from dpselect.desk.questions import Question
from dpselect.desk.refusals import Refused
from dpselect.errors import KeyReused
from dpselect.ledger import Ledger

pytestmark = pytest.mark.slow

KEYS = (f"key-{number}" for number in itertools.count())
OTHER = {**QUESTION, "k": 2}


class Clock:
    """A clock that jumps to the end of the next sleep once everybody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.busy = 0
        self._sleeps: list[tuple[float, asyncio.Event]] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self._sleeps.append((self.now + seconds, woken))
        await woken.wait()

    async def run(self, tasks: list[asyncio.Task[Any]]) -> None:
        """Let time pass until these tasks are done."""
        while True:
            quiet = 0
            while quiet < 20:  # turns of the loop in which no thread works
                await asyncio.sleep(0 if not self.busy else 0.001)
                quiet = 0 if self.busy else quiet + 1
            if all(task.done() for task in tasks):
                return
            self.now = min(end for end, _ in self._sleeps)
            for _, woken in [each for each in self._sleeps if each[0] <= self.now]:
                woken.set()
            self._sleeps = [each for each in self._sleeps if each[0] > self.now]


class SlowWork(ChargedWork):
    """Charged work whose engine needs a stated time, unless the answer is stored."""

    def __init__(self, clock: Clock, takes: float) -> None:
        super().__init__(Log(), shown=False)
        self.clock, self.takes, self.computed = clock, takes, 0

    async def _attempt(self, dataset: DataSet, analyst: str, key: str, work: Any) -> Any:
        past = dataset.past(analyst, key)
        if past is None or dataset.ledger.answer(dataset.budget, f"{analyst}:{key}") is None:
            self.computed += 1
            await self.clock.sleep(self.takes)
        self.clock.busy += 1
        try:
            return await super()._attempt(dataset, analyst, key, work)
        finally:
            self.clock.busy -= 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("dpselect.desk.padding.time", types.SimpleNamespace(monotonic=found.monotonic))
    monkeypatch.setattr("dpselect.desk.padding.asyncio", types.SimpleNamespace(sleep=found.sleep))
    return found


@pytest.fixture
def dataset(tmp_path: Path) -> DataSet:
    found = SharedDesk(read_config(write_config(tmp_path, answer_after=3.0, epsilon=1000.0))).dataset("views")
    assert found is not None
    return found


async def asking(
    work: SlowWork, dataset: DataSet, at: float, key: str, question: Mapping[str, Any] = QUESTION, analyst: str = "ann"
) -> tuple[float, Any]:
    """Ask at a moment; return when the answer leaves, and what it is."""
    asked = Question.model_validate(question)
    await work.clock.sleep(at)
    try:
        answer, _ = await work.answer(dataset, analyst, key, asked, lambda: dataset.release(asked, analyst, key))
    except (KeyReused, Refused) as refusal:
        return work.clock.now, type(refusal)
    return work.clock.now, answer.to_dict()


def answers(clock: Clock, dataset: DataSet, takes: float, moments: Mapping[float, Any]) -> list[tuple[float, Any]]:
    """Ask at 0 what an engine needs so long for, and then, under the same key, at these moments; return all answers."""

    async def scenario() -> list[tuple[float, Any]]:
        clock.now, key, work = 0.0, next(KEYS), SlowWork(clock, takes)
        asked = {0.0: QUESTION, **moments}
        tasks = [asyncio.create_task(asking(work, dataset, at, key, question)) for at, question in asked.items()]
        await clock.run(tasks)
        assert work.computed == 1
        return [task.result() for task in tasks]

    return asyncio.run(scenario())


MOMENTS = (0.5, 3.4, 3.6, 5.8)
"""Before and after an engine that needs 3.5 seconds is done, and one that needs 5.75; both are answered after 6."""


def test_the_moment_of_a_repetition_does_not_tell_when_the_engine_was_done(clock: Clock, dataset: DataSet) -> None:
    for takes, moment in itertools.product((3.5, 5.75), MOMENTS):
        first, again = answers(clock, dataset, takes, {moment: QUESTION})
        assert first[0] == 6.0
        assert again == first


def test_repetitions_at_all_moments_leave_with_the_first_and_later_ones_after_their_own_time(
    clock: Clock, dataset: DataSet
) -> None:
    for takes in (3.5, 5.75):
        found = answers(clock, dataset, takes, dict.fromkeys((*MOMENTS, 6.5, 20.0), QUESTION))
        assert [moment for moment, _ in found] == [6.0] * (1 + len(MOMENTS)) + [9.5, 23.0]
        assert all(answer == found[0][1] for _, answer in found)


def test_another_question_under_the_key_is_refused_when_it_tells_nothing(clock: Clock, dataset: DataSet) -> None:
    for takes, moment in itertools.product((3.5, 5.75), MOMENTS):
        _, other = answers(clock, dataset, takes, {moment: OTHER})
        assert other == (9.0, KeyReused)


def test_waiting_for_a_place_does_not_tell_when_an_engine_was_done(clock: Clock, dataset: DataSet) -> None:
    """A stored answer costs nothing; it must not tell when one of four releases made room for it."""

    async def scenario(takes: float, moment: float) -> float:
        clock.now, work, stored = 0.0, SlowWork(clock, takes), next(KEYS)
        dataset.release(Question.model_validate(QUESTION), "ann", stored)
        many = [asyncio.create_task(asking(work, dataset, 0.0, next(KEYS))) for _ in range(MOST_AT_ONCE // 2)]
        again = asyncio.create_task(asking(work, dataset, moment, stored))
        await clock.run([*many, again])
        return again.result()[0]

    for takes, moment in itertools.product((3.5, 5.75), (1.0, 4.5)):
        assert asyncio.run(scenario(takes, moment)) == 9.0


def test_an_answer_whose_client_is_gone_is_kept_and_others_get_it(clock: Clock, dataset: DataSet) -> None:
    async def scenario() -> Any:
        work, key = SlowWork(clock, 4.0), next(KEYS)
        first = asyncio.create_task(asking(work, dataset, 0.0, key))
        second = asyncio.create_task(asking(work, dataset, 1.0, key))

        async def leave() -> None:
            await clock.sleep(2.0)
            first.cancel()

        await clock.run([asyncio.create_task(leave()), second])
        assert first.cancelled()
        return work.computed, second.result(), dataset.ledger.answer("views", f"ann:{key}")

    computed, (moment, answer), kept = asyncio.run(scenario())
    assert (computed, moment) == (1, 6.0)
    assert kept is not None
    assert dps.Release.from_dict(kept).items == dps.Release.from_dict(answer).items


def test_a_failure_is_told_to_all_who_wait_and_the_next_one_asks_again(
    clock: Clock, dataset: DataSet, tmp_path: Path
) -> None:
    views = tmp_path / "views.csv"

    async def scenario() -> list[Any]:
        work, key = SlowWork(clock, 4.0), next(KEYS)
        tasks = [asyncio.create_task(asking(work, dataset, at, key)) for at in (0.0, 1.0, 5.0, 7.0)]

        async def mend() -> None:
            await clock.sleep(6.5)
            views.write_bytes(content)

        await clock.run([*tasks, asyncio.create_task(mend())])
        return [(moment, answer if isinstance(answer, type) else "answer") for moment, answer in map(result, tasks)]

    content = views.read_bytes()
    views.unlink()
    assert asyncio.run(scenario()) == [(6.0, Refused)] * 3 + [(13.0, "answer")]


def result(task: asyncio.Task[Any]) -> Any:
    return task.result()


def test_what_one_analyst_has_under_way_is_limited(
    clock: Clock, dataset: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpselect.desk.charged.MOST_ASKED", 6)

    async def scenario() -> list[Any]:
        work = SlowWork(clock, 1.0)
        tasks = [asyncio.create_task(asking(work, dataset, 0.0, next(KEYS))) for _ in range(8)]
        await clock.run(tasks)
        return [task.result() for task in tasks]

    found = asyncio.run(scenario())
    assert [moment for moment, _ in found] == [3.0] * 4 + [6.0] * 2 + [0.0] * 2
    assert [answer is Refused for _, answer in found] == [False] * 6 + [True] * 2


def test_repetitions_and_other_questions_under_a_key_count_as_under_way(
    clock: Clock, dataset: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpselect.desk.charged.MOST_ASKED", 4)

    async def scenario() -> list[Any]:
        work, key = SlowWork(clock, 1.0), next(KEYS)
        asked = [QUESTION, QUESTION, OTHER, OTHER, QUESTION, OTHER]
        tasks = [asyncio.create_task(asking(work, dataset, 0.0, key, question)) for question in asked]
        await clock.run(tasks)
        return [task.result() for task in tasks]

    found = asyncio.run(scenario())
    assert [moment for moment, _ in found] == [3.0, 3.0, 6.0, 6.0, 0.0, 0.0]
    assert [answer if isinstance(answer, type) else "answer" for _, answer in found] == [
        *["answer"] * 2,
        *[KeyReused] * 2,
        *[Refused] * 2,
    ]


def test_simultaneous_requests_over_http_get_one_answer_from_one_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on, computed = threading.Semaphore(0), threading.Event(), []
    answer, release = ChargedWork.answer, DataSet.release

    async def counted(*arguments: Any) -> Any:
        asked.release()
        return await answer(*arguments)

    def slow(*arguments: Any) -> Any:
        computed.append(arguments)
        go_on.wait(60)
        return release(*arguments)

    monkeypatch.setattr(ChargedWork, "answer", counted)
    monkeypatch.setattr(DataSet, "release", slow)
    found: list[tuple[int, Any]] = []
    with served(write_config(tmp_path)) as desk:
        threads = [threading.Thread(target=lambda: found.append(desk.release())) for _ in range(5)]
        for thread in threads:
            thread.start()
        assert all(asked.acquire(timeout=60) for _ in threads)
        go_on.set()
        for thread in threads:
            thread.join()
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            assert ledger.spent("views").epsilon == QUESTION["epsilon"]
    assert len(computed) == 1
    assert sorted(status for status, _ in found) == [200, 200, 200, 200, 201]
    assert len({str(content) for _, content in found}) == 1


def test_one_analyst_does_not_take_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, waiting = threading.Event(), threading.Semaphore(0)
    answer = DataSet.release

    def slow(dataset: DataSet, asked: Question, analyst: str, key: str) -> Any:
        if analyst == "ann":
            waiting.release()
            go_on.wait(60)
        return answer(dataset, asked, analyst, key)

    monkeypatch.setattr(DataSet, "release", slow)
    config = write_config(tmp_path, epsilon=100.0)
    with served(config) as desk:
        bob = token_for(config, "bob")
        threads = [threading.Thread(target=desk.release, args=(QUESTION, f"{number}")) for number in range(20)]
        try:
            for thread in threads:
                thread.start()
            for _ in range(MOST_AT_ONCE // 2):
                assert waiting.acquire(timeout=60)
            assert desk.release(token=bob)[0] == 201
        finally:
            go_on.set()
            for thread in threads:
                thread.join()
