"""The desk over HTTP: questions, keys, budgets, refusals and limits."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from desks import COUNTRIES, FILMS, QUESTION, RunningDesk, running, served, token_for, write_config, write_data

import dpselect as dps
from dpselect.desk.door import Door
from dpselect.desk.operations import Log, Metrics
from dpselect.ledger import Ledger

pytestmark = pytest.mark.slow

ESTIMATE, PREVIEW, RELEASES = (f"/v1/datasets/views/{call}" for call in ("estimate", "preview", "releases"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    """A desk with a budget that is large enough for all tests of this file; each uses keys of its own."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "last.csv").write_text("count\n" + "".join(f"{count}\n" for count in range(100, 40, -5)))
    with served(write_config(folder, epsilon=1000.0, like={"last": "last.csv"})) as found:
        yield found


@pytest.fixture
def small(tmp_path: Path) -> Iterator[RunningDesk]:
    """A desk with a budget of 1, of which "ann" has 0.5."""
    with served(write_config(tmp_path, epsilon=1.0, analysts={"ann": 0.5})) as found:
        yield found


def spent(desk: RunningDesk, account: str = "views") -> float:
    with Ledger(desk.folder / "ledger.sqlite") as ledger:
        return ledger.spent(account).epsilon


def test_a_release_is_answered_once_under_a_key(desk: RunningDesk) -> None:
    before = spent(desk)
    status, first = desk.release(key="once")
    assert status == 201
    assert set(first["items"]) <= set(FILMS)
    assert (first["k"], first["guarantee"]["epsilon"], first["secure"]) == (3, 0.25, True)
    status, again = desk.release(key="once")
    assert (status, again) == (200, first)
    assert spent(desk) == before + 0.25


def test_another_question_under_a_used_key_is_refused_and_shows_nothing_of_the_first(desk: RunningDesk) -> None:
    _, first = desk.release({**QUESTION, "purpose": "the first purpose"}, key="reused")
    before = spent(desk)
    for change in ({"k": 4}, {"epsilon": 0.5}, {"filter": "adults"}, {"by": "country"}, {"ordered": True}):
        status, error = desk.release({**QUESTION, **change}, key="reused")
        assert (status, error["error"]["code"]) == (409, "key-reused")
        told = json.dumps(error)
        assert not any(item in told for item in first["items"])
        assert "purpose" not in told
    assert spent(desk) == before


def test_a_question_that_cannot_be_asked_is_refused_as_such_under_a_used_key(desk: RunningDesk) -> None:
    assert desk.release(key="used")[0] == 201
    status, error = desk.release({**QUESTION, "purpose": "two\nlines"}, key="used")
    assert (status, error["error"]["field"]) == (400, "purpose")


def test_a_key_belongs_to_its_analyst(desk: RunningDesk) -> None:
    bob = token_for(desk.folder / "desk.toml", "bob")
    _, first = desk.release(key="chart")
    status, other = desk.release({**QUESTION, "k": 5}, key="chart", token=bob)
    assert status == 201
    assert len(other["items"]) == 5
    # "bob" with the key "x:y" is not "bob:x" with the key "y": names of analysts have no colon.
    assert desk.release(key="x:y", token=bob)[0] == 201
    assert desk.send("GET", f"{RELEASES}/x:y", token=bob)[2]["key"] == "x:y"
    assert desk.send("GET", f"{RELEASES}/x:y")[0] == 404
    mine = desk.send("GET", RELEASES)[2]
    assert {entry["analyst"] for entry in mine} == {"ann"}
    assert mine[0]["release"] == {name: value for name, value in first.items() if name != "words"}


@pytest.mark.parametrize("key", ["a/b", "100%", "?x=1&y", "ü".encode().hex() + "~!", ".."])
def test_the_release_of_any_key_can_be_fetched(desk: RunningDesk, key: str) -> None:
    assert desk.release(key=key)[0] in (200, 201)
    status, _, past = desk.send("GET", f"{RELEASES}/{quote(key, safe='')}")
    assert (status, past["key"], past["answered"]) == (200, key, True)


def test_the_history_of_everybody_is_for_curators(desk: RunningDesk) -> None:
    config = desk.folder / "desk.toml"
    bob, curator = token_for(config, "bob"), token_for(config, "cleo", scopes=["ask", "curate"])
    desk.release(key="of-ann")
    desk.release(key="of-bob", token=bob)
    assert desk.send("GET", f"{RELEASES}?everyone=true")[0] == 403
    everybody = desk.send("GET", f"{RELEASES}?everyone=true", token=curator)[2]
    assert {"ann", "bob"} <= {entry["analyst"] for entry in everybody}
    assert desk.send("GET", RELEASES, token=curator)[2] == []
    assert desk.send("GET", f"{RELEASES}?everyone=perhaps")[0] == 400


BAD: dict[str, Any] = {
    "seed": {"seed": 1},
    "unknown field": {"mechanism": "joint"},
    "column of the rows": {"item": "viewer"},
    "SQL as item": {"item": 'film" FROM views; --'},
    "SQL as filter": {"filter": "age >= 18"},
    "no such group": {"by": "viewer"},
    "period without periods": {"period": "2025-W01"},
    "NaN": {"epsilon": float("nan")},
    "infinity": {"epsilon": float("inf")},
    "epsilon 0": {"epsilon": 0},
    "negative epsilon": {"epsilon": -1.0},
    "huge epsilon": {"epsilon": 1e300},
    "tiny epsilon": {"epsilon": 1e-300},
    "epsilon as text": {"epsilon": "1"},
    "epsilon true": {"epsilon": True},
    "k 0": {"k": 0},
    "k above the list": {"k": 13},
    "huge k": {"k": 10**30},
    "k as a fraction": {"k": 2.5},
    "k as text": {"k": "3"},
    "delta 1": {"delta": 1.0},
    "delta NaN": {"delta": float("nan")},
    "values 1": {"values": 1},
    "values -1": {"values": -0.5},
    "aim": {"aim": "best"},
    "ordered": {"ordered": 1},
    "purpose": {"purpose": "x" * 501},
    "purpose with a line": {"purpose": "a\nb"},
    "item null": {"item": None},
    "item as a list": {"item": ["film"]},
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_the_field_and_costs_nothing(desk: RunningDesk, case: str) -> None:
    before = spent(desk)
    [field] = BAD[case]
    status, error = desk.release({**QUESTION, **BAD[case]}, key=f"bad-{field}")
    assert (status, error["error"]["code"], error["error"]["field"]) == (400, "invalid-input", field)
    assert spent(desk) == before
    assert desk.send("GET", f"{RELEASES}/bad-{field}")[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"3",
        b"not json",
        b"\xff\xfe",
        b'{"item": ',
        b"[" * 100_000,
        b'{"k": 1' + b"0" * 5000 + b"}",
    ],
    ids=range(9),
)
def test_a_body_that_is_no_question_is_refused(desk: RunningDesk, body: bytes) -> None:
    for path in (ESTIMATE, PREVIEW, RELEASES):
        status, _, error = desk.send("POST", path, body, key="k")
        assert (status, error["error"]["code"]) == (400, "invalid-input")


@pytest.mark.parametrize("key", [None, "", "x" * 101, "two words", "a\tb", "é"])
def test_a_release_needs_a_key_that_can_be_used(desk: RunningDesk, key: str | None) -> None:
    status, _, error = desk.send("POST", RELEASES, QUESTION, key=key)
    assert (status, error["error"]["code"]) == (400, "invalid-input")
    assert "dempotency" in error["error"]["message"]


def test_filters_groups_and_values_are_answered(desk: RunningDesk) -> None:
    status, adults = desk.release({**QUESTION, "filter": "adults", "epsilon": 50.0, "values": 0.5}, key="adults")
    assert status == 201
    value = dict(zip(adults["items"], adults["values"], strict=True))["Film A"]
    assert value == pytest.approx(sum(12 + number % 60 >= 18 for number in range(120)), abs=3)
    status, charts = desk.release({**QUESTION, "by": "country"}, key="countries")
    assert status == 201
    assert list(charts["groups"]) == list(COUNTRIES)


def test_an_answer_has_so_many_items_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpselect.desk.datasets.MOST_ANSWERED", 10)
    with served(write_config(tmp_path)) as desk:
        assert desk.release({**QUESTION, "by": "country"})[0] == 201
        for path in (ESTIMATE, PREVIEW, RELEASES):
            status, _, error = desk.send("POST", path, {**QUESTION, "k": 4, "by": "country"}, key="more")
            assert (status, error["error"]["field"]) == (400, "k")
            assert "at most 3" in error["error"]["message"]


def test_a_period_is_charged_by_itself(tmp_path: Path) -> None:
    config = write_config(tmp_path, time="day", every="week", epsilon=0.25, analysts={"ann": 0.25})
    with served(config) as desk:
        asked = {**QUESTION, "period": "2025-W45"}
        assert desk.release(asked, key="a")[0] == 201
        status, error = desk.release(asked, key="b")
        assert (status, error["error"]["code"]) == (409, "budget-exceeded")
        assert desk.release({**asked, "period": "2025-W46"}, key="c")[0] == 201
        for wrong in (None, "2025-11", "2025-W99", "2999-W01", "' OR 1=1", ""):
            for path in (ESTIMATE, RELEASES):
                status, _, error = desk.send("POST", path, {**QUESTION, "period": wrong}, key="d")
                assert (status, error["error"]["field"]) == (400, "period"), (wrong, error)
        estimate = desk.send("POST", ESTIMATE, asked)[2]
        assert (estimate["cost"]["remaining"], estimate["cost"]["affordable"]) == (0.0, False)


def test_the_budget_of_an_analyst_is_by_name_and_not_by_token(small: RunningDesk) -> None:
    assert small.release({**QUESTION, "epsilon": 0.5}, key="a")[0] == 201
    config = small.folder / "desk.toml"
    for token in (small.token, token_for(config, "ann"), token_for(config, "ann", scopes=["ask", "curate"])):
        status, error = small.release(key="b", token=token)
        assert (status, error["error"]["code"], error["error"]["field"]) == (409, "budget-exceeded", "epsilon")
        assert (error["error"]["requested"], error["error"]["remaining"]) == (0.25, 0.0)
        assert error["error"]["difference"] == 0.25
        assert "Nothing was charged" in error["error"]["message"]
    assert (spent(small), spent(small, "views/ann")) == (0.5, 0.5)
    bob = token_for(config, "bob")
    assert small.release({**QUESTION, "epsilon": 0.5}, key="a", token=bob)[0] == 201
    assert small.release({**QUESTION, "epsilon": 0.01}, key="b", token=bob)[0] == 409
    assert small.release({**QUESTION, "epsilon": 0.5}, key="a", token=bob)[0] == 200
    states = small.send("GET", "/v1/datasets")[2][0]
    assert (states["budget"]["remaining"], states["analyst_budget"]["spent"]) == (0.0, 0.5)
    assert small.send("GET", "/v1/datasets", token=bob)[2][0]["analyst_budget"] is None


def test_both_budgets_are_charged_or_neither(small: RunningDesk) -> None:
    bob = token_for(small.folder / "desk.toml", "bob")
    assert small.release({**QUESTION, "epsilon": 0.75}, key="a", token=bob)[0] == 201
    assert small.release({**QUESTION, "epsilon": 0.5}, key="b")[0] == 409
    assert (spent(small), spent(small, "views/ann")) == (0.75, 0.0)


def test_racing_for_the_last_of_a_budget_never_exceeds_it(small: RunningDesk) -> None:
    bob = token_for(small.folder / "desk.toml", "bob")
    found: list[int] = []

    def ask(number: int) -> None:
        found.append(small.release({**QUESTION, "epsilon": 0.25}, key=f"race-{number}", token=bob)[0])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [201] * 4 + [409] * 6
    assert spent(small) == 1.0


def test_estimates_say_cost_quality_and_what_the_rest_buys(desk: RunningDesk) -> None:
    status, _, estimate = desk.send("POST", ESTIMATE, {**QUESTION, "lead": 20.0, "accuracy": 0.9})
    assert status == 200
    assert (estimate["cost"]["epsilon"], estimate["domain_size"]) == (0.25, len(FILMS))
    assert estimate["curve"]["kind"] == "success"
    assert estimate["curve"]["value_label"] == (
        f"least probability of exactly the right {QUESTION['k']}, if the last leads the rest by 20 people"
    )
    values = [point["value"] for point in estimate["curve"]["points"]]
    assert values == sorted(values)
    needed = estimate["needed"]["epsilon"]
    again = desk.send("POST", ESTIMATE, {**QUESTION, "epsilon": needed, "lead": 20.0})[2]
    assert again["curve"]["at"]["value"] >= 0.9 - 1e-9
    assert estimate["buys"]["releases"] > 0


def test_an_estimate_that_would_take_minutes_is_refused(desk: RunningDesk) -> None:
    status, _, error = desk.send("POST", ESTIMATE, {**QUESTION, "k": 1001, "ordered": True, "lead": 20.0})
    assert (status, error["error"]["field"]) == (400, "lead")


@pytest.mark.parametrize("like", ["last", {"counts": [float(count) for count in range(100, 40, -5)]}])
def test_look_alikes_come_from_the_configuration_or_an_upload(desk: RunningDesk, like: Any) -> None:
    status, _, estimate = desk.send("POST", ESTIMATE, {**QUESTION, "like": like})
    assert (status, estimate["curve"]["kind"]) == (200, "right")
    assert 0 < estimate["curve"]["at"]["value"] <= 3


@pytest.mark.parametrize(
    "like",
    ["films.csv", "../films.csv", {"counts": [1]}, {"counts": [1, -1]}, {"counts": ["1", 2]}, {"counts": [2, 1]}],
    ids=range(6),
)
def test_a_look_alike_that_cannot_be_used_is_refused(desk: RunningDesk, like: Any) -> None:
    status, _, error = desk.send("POST", ESTIMATE, {**QUESTION, "like": like})
    assert (status, error["error"]["field"]) == (400, "like")


def test_a_preview_is_of_generated_rows_and_costs_nothing(desk: RunningDesk) -> None:
    before = spent(desk)
    for change in ({}, {"by": "country"}, {"filter": "adults", "ordered": True}):
        status, _, preview = desk.send("POST", PREVIEW, {**QUESTION, **change})
        assert status == 200
        assert "Made-up" in preview["words"]
    assert spent(desk) == before


def test_only_described_addresses_and_methods_are_answered(desk: RunningDesk) -> None:
    for method, path, expected in [
        ("GET", "/v1/datasets/none/releases", 404),
        ("POST", "/v1/datasets/views%2F..%2Fother/estimate", 404),
        ("POST", "/v1/datasets/..%2f..%2fetc%2fpasswd/estimate", 404),
        ("POST", "/v1/datasets/%00/estimate", 404),
        ("POST", "/v1/datasets/views';DROP TABLE x/estimate".replace(" ", "%20"), 404),
        ("POST", "/v1/datasets/" + "x" * 300 + "/estimate", 400),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/static/%2e%2e/config.py", 404),
        ("GET", "/docs", 404),
        ("GET", "/v1/datasets/", 404),
        ("DELETE", "/v1/datasets", 405),
        ("PUT", "/v1/datasets/views/releases", 405),
    ]:
        status, _, error = desk.send(method, path, QUESTION if method == "POST" else None)
        assert (status, set(error)) == (expected, {"error"}), path
        assert {"code", "message"} <= set(error["error"]), path


def test_a_shared_service_has_no_call_for_what_only_the_curators_own_desk_can_do(desk: RunningDesk) -> None:
    described = {"person": "viewer", "epsilon": 9.0, "items": {"film": "films.csv"}}
    discovery = {"item": "film", "epsilon": 0.1, "delta": 1e-6, "max_items_per_person": 3}
    curator = token_for(desk.folder / "desk.toml", "cleo", scopes=["ask", "curate", "own"])
    for token in (desk.token, curator):
        for path, body in (("describe", described), ("discover", discovery), ("look", QUESTION)):
            status, _, error = desk.send("POST", f"/v1/datasets/views/{path}", body, key="k", token=token)
            assert (status, error["error"]["code"]) == (404, "not-found")


def test_large_bodies_are_refused_whether_they_state_their_size_or_not(
    desk: RunningDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpselect.desk.door.LARGEST_BODY", 1000)
    head = f"POST {ESTIMATE} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {desk.token}\r\n"
    head += "Content-Type: application/json\r\n"
    assert b" 413 " in raw(desk, f"{head}Content-Length: 1001\r\n\r\n".encode())
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n"
    part = "1f4\r\n" + " " * 500 + "\r\n"
    assert b" 413 " in raw(desk, (chunked + 3 * part).encode())
    question = json.dumps(QUESTION)
    pieces = "".join(f"{len(piece):x}\r\n{piece}\r\n" for piece in (question[:5], question[5:], ""))
    assert b" 200 " in raw(desk, (chunked + pieces).encode())


def raw(desk: RunningDesk, request: bytes) -> bytes:
    """Return the first line of the answer to bytes on a new connection."""
    with socket.create_connection(urlsplit(desk.url).netloc.split(":"), timeout=60) as connection:
        connection.sendall(request)
        return connection.recv(4096).partition(b"\r\n")[0]


def test_a_body_that_does_not_arrive_is_not_waited_for(desk: RunningDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpselect.desk.door.LONGEST_WAIT", 0.2)
    head = (
        f"POST {ESTIMATE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
    )
    assert b" 408 " in raw(desk, head.encode())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: localhost", b"200"),
        ("Host: LOCALHOST:99", b"200"),
        ("Host: evil.example", b"403"),
        ("Host: localhost.evil.example", b"403"),
        ("Host: http://localhost", b"403"),
        ("Host: [::1", b"403"),
        ("Host: [oops]", b"403"),
        ("Host:", b"403"),
        ("X: y", b"400"),
        ("Host: localhost\r\nHost: evil.example", b"400"),
        ("Host: localhost\r\nOrigin: http://localhost", b"200"),
        ("Host: localhost\r\nOrigin: http://localhost:1", b"403"),
        ("Host: localhost\r\nOrigin: http://evil.example", b"403"),
        ("Host: localhost\r\nOrigin: null", b"403"),
        ("Host: localhost\r\nOrigin: http://[", b"403"),
        ("Host: localhost\r\nContent-Length: 1e3", b"400"),
        ("Host: localhost\r\nContent-Length: " + "9" * 5000, b"400"),
        ("Host: localhost\r\nContent-Length: 99999999999", b"413"),
    ],
)
def test_other_hosts_and_sites_are_refused(desk: RunningDesk, headers: str, status: bytes) -> None:
    assert raw(desk, f"GET /healthz HTTP/1.1\r\n{headers}\r\n\r\n".encode()).split()[1] == status


def test_further_hosts_can_be_stated(tmp_path: Path) -> None:
    with served(write_config(tmp_path, extra='hosts = ["Desk.Example"]\n')) as desk:
        assert b" 200 " in raw(desk, b"GET /healthz HTTP/1.1\r\nHost: desk.example\r\n\r\n")


def test_every_answer_keeps_a_browser_to_this_service_and_sets_no_cookie(desk: RunningDesk) -> None:
    asked = [("GET", "/"), ("GET", "/desk.js"), ("GET", "/nowhere"), ("GET", "/openapi.json"), ("GET", "/v1/datasets")]
    for method, path in [*asked, ("POST", RELEASES), ("GET", "/healthz"), ("GET", "/metrics")]:
        _, headers, _ = desk.send(method, path, {} if method == "POST" else None)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers


def test_too_many_requests_are_refused_by_analyst_and_before_any_work(tmp_path: Path) -> None:
    with served(write_config(tmp_path, extra="requests_per_minute = 5\n")) as desk:
        bob = token_for(desk.folder / "desk.toml", "bob")
        found = [desk.send("POST", ESTIMATE, {"not": "read"}) for _ in range(8)]
        assert [status for status, _, _ in found] == [400] * 5 + [429] * 3
        assert int(found[-1][1]["retry-after"]) >= 1
        # Another token of the same analyst has the same limit; another analyst has their own.
        assert desk.send("GET", "/v1/session", token=token_for(desk.folder / "desk.toml", "ann"))[0] == 429
        assert desk.send("GET", "/v1/session", token=bob)[0] == 200
        wrong = [desk.send("GET", "/v1/session", token="wrong")[0] for _ in range(8)]
        assert wrong == [401] * 5 + [429] * 3
        assert desk.send("GET", "/v1/session", token=bob)[0] == 200


def test_health_and_metrics_need_no_token_and_name_nothing(desk: RunningDesk) -> None:
    desk.release(key="counted")
    for path in ("/healthz", "/readyz", "/metrics"):
        assert desk.send("GET", path, token="")[0] == 200
    text = desk.send("GET", "/metrics")[2].decode()
    assert 'requests_total{method="POST",path="/v1/datasets/{name}/releases",status="201"}' in text
    assert not any(name in text for name in ("views", "ann", "film", "epsilon", "seconds"))


def test_a_service_without_its_ledger_is_not_ready(tmp_path: Path) -> None:
    with served(write_config(tmp_path)) as desk:
        (tmp_path / "ledger.sqlite").rename(tmp_path / "gone")
        status, _, error = desk.send("GET", "/readyz")
        assert (status, error["error"]["code"]) == (503, "not-ready")
        assert desk.send("GET", "/healthz")[0] == 200


def test_a_failure_inside_shows_and_logs_no_text(desk: RunningDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        raise RuntimeError("secret inside")

    monkeypatch.setattr("dpselect.desk.datasets.DataSet.history", broken)
    status, _, error = desk.send("GET", RELEASES)
    assert (status, error["error"]["code"]) == (500, "failed")
    assert "secret" not in json.dumps(error) + "".join(desk.log)
    assert json.loads([line for line in desk.log if line.strip()][-1])["error"] == "RuntimeError"


def test_a_request_that_is_ended_at_the_stop_is_told_so() -> None:
    sent: list[Any] = []

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    async def stopped() -> None:
        async def send(message: Any) -> None:
            sent.append(message)

        door = Door(endless, hosts=frozenset({"localhost"}), metrics=Metrics(), log=Log(io.StringIO()))
        scope = {"type": "http", "method": "POST", "path": RELEASES, "headers": [(b"host", b"localhost")]}
        request = asyncio.create_task(door(scope, asyncio.Event().wait, send))
        await asyncio.sleep(0)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    asyncio.run(stopped())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["error"]["code"] == "stopping"


def test_a_process_serves_a_shared_desk_and_one_alone(tmp_path: Path) -> None:
    write_config(tmp_path)
    with running(tmp_path, "--config", "desk.toml") as desk:
        assert desk.release()[0] == 201
    assert desk.process is not None
    assert json.loads(desk.log[-1])["event"] == "released"
    alone = tmp_path / "alone"
    alone.mkdir()
    write_data(alone)
    with running(alone, "views.csv", "films.csv") as desk:
        assert desk.release(QUESTION)[0] == 409
        described = {"person": "viewer", "epsilon": 1.0, "items": {"film": "films.csv"}}
        assert desk.send("POST", "/v1/datasets/views/describe", described)[0] == 200
        assert desk.release(QUESTION)[0] == 201


def with_shared_budget(folder: Path) -> Path:
    """Write a configuration of two data sets with one budget, "views" and "pay"."""
    config = write_config(folder)
    (folder / "pay.csv").write_text("grade,viewer\nA,v1\nB,v2\n")
    (folder / "grades.csv").write_text("grade\nA\nB\n")
    with config.open("a") as file:
        file.write(
            '\n[datasets.pay]\nsource = "pay.csv"\nperson = "viewer"\nitems = { grade = "grades.csv" }\nepsilon = 2.0\n'
            'budget = "views"\n'
        )
    return config


def test_everybodys_history_of_a_shared_budget_needs_a_token_for_all_its_data_sets(tmp_path: Path) -> None:
    config = with_shared_budget(tmp_path)
    with served(config) as desk:
        path = f"{RELEASES}?everyone=true"
        one, both = (token_for(config, "eve", scopes=["ask", "curate"], datasets=names) for names in (["views"], None))
        assert desk.send("GET", path, token=one)[0] == 403
        assert desk.send("GET", path, token=both)[0] == 200


def test_ones_own_history_is_of_one_data_set_though_it_shares_its_budget(tmp_path: Path) -> None:
    config = with_shared_budget(tmp_path)
    with served(config) as desk:
        assert desk.release({**QUESTION, "purpose": "pay: not a data set"}, key="film")[0] == 201
        asked = {"item": "grade", "k": 1, "epsilon": 0.25}
        assert desk.send("POST", "/v1/datasets/pay/releases", asked, key="grade")[0] == 201
        pay = token_for(config, datasets=["pay"])
        found = {name: desk.send("GET", f"/v1/datasets/{name}/releases")[2] for name in ("views", "pay")}
        assert [(each["key"], each["dataset"]) for each in found["views"]] == [("film", "views")]
        assert [(each["key"], each["question"]) for each in found["pay"]] == [("grade", "grade")]
        assert desk.send("GET", "/v1/datasets/pay/releases/film", token=pay)[0] == 404
        assert desk.send("POST", "/v1/datasets/pay/releases", asked, key="film", token=pay)[0] == 409
        curator = token_for(config, "cleo", scopes=["ask", "curate"])
        everybody = desk.send("GET", f"{RELEASES}?everyone=true", token=curator)[2]
        assert [each["dataset"] for each in everybody] == ["pay", "views"]


def test_an_entry_that_names_no_data_set_is_in_the_history_of_all_that_share_its_budget(tmp_path: Path) -> None:
    config = with_shared_budget(tmp_path)
    with served(config) as desk, Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.spend_once("views", dps.Guarantee(0.25), "ann:old", {"k": 1}, purpose="weekly; film by country")
        for name in ("views", "pay"):
            [past] = desk.send("GET", f"/v1/datasets/{name}/releases")[2]
            assert (past["purpose"], past["dataset"], past["question"]) == ("weekly", "", "film by country")


PERIODS = {
    None: "must name a week",
    "2025-11": "must be a week, such as 2026-W46",
    "2999-W01": "must be a week that is over",
    "last week": "must be a day (2026-11-18), an ISO week (2026-W46) or a month",
}


@pytest.mark.parametrize("period", PERIODS)
def test_a_period_that_cannot_be_asked_about_is_refused_in_words_of_the_desk(
    period: str | None, tmp_path: Path
) -> None:
    with served(write_config(tmp_path, time="day", every="week")) as desk:
        status, error = desk.release({**QUESTION, "period": period})
        assert (status, error["error"]["field"]) == (400, "period")
        assert PERIODS[period] in error["error"]["message"]
        assert "unfinished" not in error["error"]["message"], "the desk has no such option"
        assert spent(desk) == 0


def test_an_estimate_shows_what_is_spent_of_each_budget_in_the_period(tmp_path: Path) -> None:
    config = write_config(tmp_path, epsilon=1.0, analysts={"ann": 0.5}, time="day", every="week")
    with served(config) as desk:
        for number, (period, token) in enumerate([("2025-W46", None), ("2025-W45", None), ("2025-W46", "bob")]):
            other = token and token_for(config, token)
            assert desk.release({**QUESTION, "period": period}, f"key-{number}", token=other)[0] == 201
        _, _, found = desk.send("POST", ESTIMATE, {**QUESTION, "period": "2025-W46"})
        assert [(each["epsilon"], each["spent"], each["remaining"]) for each in found["budgets"]] == [
            (1.0, 0.5, 0.5),
            (0.5, 0.25, 0.25),
        ]
