"""What leaves the desk, and when, does not depend on the rows beyond what the guarantee allows."""

from __future__ import annotations

import asyncio
import json
import math
import types
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from desks import FILMS, PRIVATE, QUESTION, RunningDesk, served, token_for, write_config
from hypothesis import given
from hypothesis import strategies as st

from dpselect.desk import SharedDesk, read_config
from dpselect.desk.datasets import DataSet
from dpselect.desk.padding import leaves_at, padded
from dpselect.desk.questions import Question
from dpselect.ledger import Ledger
from dpselect.privacy import Guarantee

pytestmark = pytest.mark.slow

ESTIMATE, PREVIEW, RELEASES = (f"/v1/datasets/views/{call}" for call in ("estimate", "preview", "releases"))


class Clock:
    """A clock that moves only when it is told to, or when somebody sleeps; it keeps when each sleep ended."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.ends: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.ends.append(self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("dpselect.desk.padding.time", types.SimpleNamespace(monotonic=found.monotonic))
    monkeypatch.setattr("dpselect.desk.padding.asyncio", types.SimpleNamespace(sleep=found.sleep))
    return found


@given(st.floats(0, 1e6), st.floats(1e-3, 3600))
def test_an_answer_leaves_at_one_of_the_public_moments(elapsed: float, answer_after: float) -> None:
    moment = leaves_at(elapsed, answer_after)
    assert moment >= elapsed
    assert math.log2(moment / answer_after).is_integer()
    assert moment == answer_after or moment / 2 < elapsed


def test_without_padding_an_answer_leaves_at_once() -> None:
    assert leaves_at(0.25, 0.0) == 0.25


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(
    ("takes", "moment"), [(0.0, 3.0), (0.001, 3.0), (2.9, 3.0), (3.0, 3.0), (3.1, 6.0), (7.0, 12.0)]
)
def test_answers_and_failures_leave_at_the_same_moment(clock: Clock, takes: float, moment: float, fails: bool) -> None:
    late: list[float] = []

    async def work() -> str:
        clock.now += takes
        if fails:
            raise ValueError
        return "answer"

    async def ask() -> str:
        try:
            return await padded(work, 3.0, late.append)
        except ValueError:
            return "failed"

    assert asyncio.run(ask()) == ("failed" if fails else "answer")
    assert clock.now == 1000.0 + moment
    assert late == ([moment] if moment > 3.0 else [])


def test_whatever_is_answered_after_a_question_was_accepted_is_padded(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = iter([0.5, 2.0, 0.0, 1.0, 0.25, 5.0])
    answer = DataSet.release

    def slow(*arguments: Any) -> Any:
        clock.now += next(taken)
        return answer(*arguments)

    monkeypatch.setattr(DataSet, "release", slow)
    with served(write_config(tmp_path, answer_after=3.0, epsilon=0.75)) as desk:
        asked: list[tuple[dict[str, Any], str, int]] = [
            ({}, "a", 201),
            ({}, "a", 200),
            ({"k": 2}, "a", 409),
            ({"epsilon": 0.75}, "b", 409),
            ({"filter": "adults"}, "c", 201),
        ]
        for number, (change, key, status) in enumerate(asked):
            assert desk.release({**QUESTION, **change}, key=key)[0] == status
            assert clock.ends[number:] == [1000.0 + 3.0 * (number + 1)]
        (tmp_path / "views.csv").unlink()
        start = clock.now
        assert desk.release(key="d")[0] == 503
        assert clock.ends[-1] == start + 6.0
        late = [json.loads(line) for line in desk.log if "answer-late" in line]
        assert [(event["seconds"], event["dataset"]) for event in late] == [(6.0, "views")]


def test_the_history_does_not_show_an_answer_before_it_leaves(tmp_path: Path) -> None:
    """Otherwise whoever asks for the history all the time would see when the engine was done."""
    config = write_config(tmp_path, answer_after=3600.0)
    with served(config) as desk:
        elsewhere = SharedDesk(read_config(config)).dataset("views")
        assert elsewhere is not None
        elsewhere.release(Question.model_validate(QUESTION), "ann", "key")
        curator = token_for(config, "cleo", scopes=["ask", "curate"])
        for path, token in ((RELEASES, None), (f"{RELEASES}/key", None), (f"{RELEASES}?everyone=true", curator)):
            found = desk.send("GET", path, token=token)[2]
            entry = found[0] if isinstance(found, list) else found
            assert (entry["key"], entry["answered"], entry["release"]) == ("key", False, None)
        with elsewhere.leaving("ann", "key"):
            past = elsewhere.past("ann", "key")
            assert past is not None
            assert not past.answered
        past = elsewhere.past("ann", "key")
        assert past is not None
        assert past.answered
        with elsewhere.leaving("ann", "key"):
            repeated = elsewhere.past("ann", "key")
            assert repeated is not None
            assert repeated.answered
    with served(write_config(tmp_path, answer_after=0.001)) as desk:
        while not desk.send("GET", f"{RELEASES}/key")[2]["answered"]:
            pass


def public_facts(desk: RunningDesk) -> list[Any]:
    """Return all answers that must not need a row."""
    asked = [QUESTION, {**QUESTION, "lead": 5.0, "accuracy": 0.9}, {**QUESTION, "by": "country", "filter": "adults"}]
    found = [desk.send("GET", path)[2] for path in ("/v1/session", "/v1/datasets", RELEASES)]
    return [*found, *(desk.send("POST", ESTIMATE, question) for question in asked)]


def status_and_body(answers: list[Any]) -> str:
    return json.dumps([each if isinstance(each, list | dict) else (each[0], each[2]) for each in answers])


def test_forms_estimates_and_previews_do_not_read_the_rows(tmp_path: Path) -> None:
    with served(write_config(tmp_path)) as desk:
        before = status_and_body(public_facts(desk))
        (tmp_path / "views.csv").unlink()
        assert status_and_body(public_facts(desk)) == before
        for change in ({}, {"by": "country", "filter": "adults"}):
            assert desk.send("POST", PREVIEW, {**QUESTION, **change})[0] == 200


def test_a_data_set_that_vanishes_is_a_clear_error_that_says_whether_it_was_charged(tmp_path: Path) -> None:
    with served(write_config(tmp_path)) as desk:
        assert desk.send("POST", ESTIMATE, QUESTION)[0] == 200
        (tmp_path / "views.csv").rename(tmp_path / "away.csv")
        status, error = desk.release()
        assert (status, error["error"]["code"], error["error"]["charged"]) == (503, "source-failed", False)
        assert "Nothing was charged" in error["error"]["message"]
        assert "views.csv" not in error["error"]["message"]
        assert desk.send("GET", f"{RELEASES}/key")[0] == 404
        (tmp_path / "away.csv").rename(tmp_path / "views.csv")
        assert desk.release()[0] == 201


@pytest.mark.parametrize("change", [{}, {"by": "country", "filter": "adults", "values": 0.5, "ordered": True}])
def test_a_stored_answer_needs_no_source(tmp_path: Path, change: dict[str, Any]) -> None:
    question = {**QUESTION, **change}
    with served(write_config(tmp_path)) as desk:
        status, first = desk.release({**question, "purpose": "weekly"})
        assert status == 201
        (tmp_path / "views.csv").unlink()
        assert desk.release(question) == (200, first)
        for other in ({"k": 4}, {"epsilon": 0.5}, {"filter": None if change else "adults"}, {"ordered": not change}):
            status, error = desk.release({**question, **other})
            assert (status, error["error"]["charged"]) == (503, True)
        assert desk.release(question, key="new")[1]["error"]["charged"] is False


def test_a_public_list_that_vanishes_is_the_fault_of_the_source(tmp_path: Path) -> None:
    with served(write_config(tmp_path)) as desk:
        (tmp_path / "films.csv").unlink()
        for method, path in (("GET", "/v1/datasets"), ("POST", ESTIMATE), ("POST", PREVIEW), ("POST", RELEASES)):
            status, _, error = desk.send(method, path, QUESTION if method == "POST" else None, key="k")
            assert (status, error["error"]["code"], error["error"]["charged"]) == (503, "source-failed", False), path
        assert any("films.csv" in line for line in desk.log)


def test_a_public_list_that_vanishes_leaves_stored_answers_and_says_what_was_charged(tmp_path: Path) -> None:
    with served(write_config(tmp_path)) as desk, Ledger(tmp_path / "ledger.sqlite") as ledger:
        _, first = desk.release(key="answered")
        ledger.spend_once("views", Guarantee(0.25), "ann:charged", {})
        (tmp_path / "films.csv").unlink()
        assert desk.release(key="answered") == (200, first)
        for key, charged in (("charged", True), ("new", False)):
            status, error = desk.release(key=key)
            assert (status, error["error"]["charged"]) == (503, charged)


def damage(file: Path) -> bytes:
    """Make the values of a Parquet file unreadable, but not its schema; return what it was."""
    whole = file.read_bytes()
    file.write_bytes(whole[:4] + bytes(200) + whole[204:])
    return whole


def test_a_failure_after_the_charge_says_so_and_the_same_key_asks_again_for_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path, source="views.parquet", filters=None, groups=None)
    rows = [{"film": film, "viewer": f"{PRIVATE} {number}"} for number in range(300) for film in FILMS[: number % 12]]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "views.parquet", compression="none")
    with served(config) as desk, Ledger(tmp_path / "ledger.sqlite") as ledger:
        whole = damage(tmp_path / "views.parquet")
        status, error = desk.release()
        assert (status, error["error"]["code"], error["error"]["charged"]) == (503, "source-failed", True)
        assert "The release was charged" in error["error"]["message"]
        assert PRIVATE not in json.dumps(error) + "".join(desk.log)
        assert ledger.spent("views").epsilon == 0.25
        past = desk.send("GET", f"{RELEASES}/key")[2]
        assert (past["answered"], past["release"]) == (False, None)
        (tmp_path / "views.parquet").write_bytes(whole)
        assert desk.release({**QUESTION, "k": 1})[0] == 409
        assert desk.release()[0] == 201
        assert ledger.spent("views").epsilon == 0.25


@pytest.mark.parametrize("rows", ["good", "unfit for the condition"])
def test_no_private_value_is_in_an_answer_a_log_an_error_a_metric_or_the_history(
    tmp_path: Path, rows: str, capfd: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, delta=1e-3, epsilon=20.0)
    if rows != "good":
        views = tmp_path / "views.csv"
        views.write_text(views.read_text().replace(",12,", f",{PRIVATE}-age,") + f'Film A,"{PRIVATE}\n')
    seen: list[Any] = []
    with served(config) as desk:
        curator = token_for(config, "cleo", scopes=["ask", "curate"])
        questions = [
            {},
            {"filter": "adults"},
            {"by": "country"},
            {"values": 0.5},
            {"ordered": True, "epsilon": 5.0},
            {"item": "viewer"},
            {"k": 13},
            {"epsilon": 100.0},
            {"seed": 1},
        ]
        for number, change in enumerate(questions):
            for call in ("estimate", "preview", "releases", "releases"):
                asked = {**QUESTION, **change}
                seen.append(desk.send("POST", f"/v1/datasets/views/{call}", asked, key=f"key-{number}"))
        paths = ("/v1/session", "/v1/datasets", RELEASES, f"{RELEASES}?everyone=true", "/metrics", "/openapi.json")
        seen += [desk.send("GET", path, token=curator) for path in paths]
        views = tmp_path / "views.csv"
        views.write_bytes(views.read_bytes().replace(b"film,viewer", b"film,person"))
        seen.append(desk.send("POST", RELEASES, QUESTION, key="changed"))
        assert {status for status, _, _ in seen} == {200, 201, 400, 409, 503}
        told = repr(seen) + "".join(desk.log)
    assert PRIVATE not in told + "".join(capfd.readouterr())
    assert not any(PRIVATE.encode() in file.read_bytes() for file in tmp_path.glob("ledger.sqlite*"))


def test_refusals_and_estimates_are_the_same_for_other_rows(tmp_path: Path) -> None:
    """Everything but the answer itself is the same for a table of hundreds of rows, and for one without any."""
    told = []
    for place, text in enumerate(("", "film,viewer,age,country,day\n")):
        folder = tmp_path / str(place)
        folder.mkdir()
        config = write_config(folder, epsilon=0.5)
        if text:
            (folder / "views.csv").write_text(text)
        with served(config) as desk:
            found = public_facts(desk)
            for change in ({}, {"k": 13}, {"item": "viewer"}, {"epsilon": 3.0}, {"filter": "adults"}):
                status, content = desk.release({**QUESTION, **change}, key=f"key-{len(found)}")
                # The list is public, and so is how many items an answer has.
                length = len(content.get("items") or [])
                found.append({"status": status, "length": length, "error": content.get("error")})
            told.append(status_and_body([*found, *public_facts(desk)[:2]]))
    assert told[0] == told[1]
