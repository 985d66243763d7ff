"""The service takes a signal and nothing else, answers bad input with a clear 4xx, and logs nothing."""

from __future__ import annotations

import http.server
import json
import logging
import math
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from serving import Served, send, served

import dpselect as dps
from dpselect.multiselect import Catalogue, Client, Server, expected_cost
from dpselect.service import Offer, RemoteServer, create_app

LARGEST_BODY = Offer.largest_body

POSITIONS = np.arange(-200, 200) / 4


class Breaks:
    """Items that can be read when they are offered and not later, with a message that must not get out."""

    left = 3

    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> str:
        if not self.left:
            raise RuntimeError("secret inside")
        self.left -= 1
        return "soon gone"


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    offers = {
        "line": Offer(POSITIONS, k=3, epsilon=0.5, most=9, unit="mile"),
        "named": Offer({"a": 1.0, "b": 2.0}, k=1),
        "broken": Offer(Catalogue([1.0, 2.0, 3.0], Breaks()), k=1),  # type: ignore[arg-type]
    }
    with served(offers) as running:
        yield running


def post(service: Served, path: str, body: Any) -> tuple[int, Any]:
    status, _, content = send(service, "POST", path, body if isinstance(body, bytes | str) else json.dumps(body))
    return status, json.loads(content)


def test_a_signal_is_answered_with_the_same_results_as_by_the_server_itself(service: Served) -> None:
    status, reply = post(service, "/v1/multiselect/line", {"signal": 1.625})
    assert status == 200
    assert (reply["k"], reply["epsilon"]) == (3, 0.5)
    assert reply["results"] == [result.to_dict() for result in Server(POSITIONS, 3, 0.5).answer(1.625)]
    status, reply = post(service, "/v1/multiselect/line?k=7&epsilon=0.1", {"signal": 2})
    assert [result["position"] for result in reply["results"]] == [
        result.position for result in Server(POSITIONS, 7, 0.1).answer(2)
    ]
    assert post(service, "/v1/multiselect/named", {"signal": 0})[1]["results"] == [{"item": "a", "position": 1.0}]


def test_catalogues_are_listed_and_described(service: Served) -> None:
    listed = json.loads(send(service, "GET", "/v1/multiselect")[2])["catalogues"]
    assert [offer["name"] for offer in listed] == ["line", "named", "broken"]
    described = json.loads(send(service, "GET", "/v1/multiselect/line?k=4&epsilon=2")[2])
    assert (described["results"], described["unit"], described["most"]) == (400, "mile", 9)
    assert [answer["k"] for answer in described["answers"]] == [1, 2, 3, 4]
    for answer in described["answers"]:
        assert answer["offsets"] == pytest.approx(Server(POSITIONS, answer["k"], 2.0).offsets)
        assert answer["expected_cost"] == pytest.approx(expected_cost(answer["k"], 2.0))


def test_the_average_distance_is_simulated_on_the_catalogue_and_does_not_change(service: Served) -> None:
    first, again = (send(service, "GET", "/v1/multiselect/named?k=2&epsilon=5")[2] for _ in range(2))
    assert first == again
    described = json.loads(first)
    # Whoever lies between the two results, at 1 and 2, is a quarter from the nearer one on average, without any noise.
    assert described["answers"][1]["average_distance"] == pytest.approx(0.25, abs=1e-3)
    assert described["answers"][1]["expected_cost"] == pytest.approx(math.log(2) / 5)
    assert described["answers"][0]["average_distance"] > 0.25 + described["answers"][0]["margin"]
    assert (described["simulated_users"], described["shown"]) == (4000, [1.0, 2.0])


BODIES: list[Any] = [
    b"",
    b"not json",
    b"[1]",
    b"3",
    b"null",
    b'{"signal": NaN}',
    b'{"signal": Infinity}',
    b'{"signal": 1e999}',
    b'{"signal": "3.5"}',
    b'{"signal": true}',
    b'{"signal": null}',
    b'{"signal": [1]}',
    b"{}",
    b'{"signal": 1, "value": 61.8034}',
    b'{"signal": 1, "position": 61.8034}',
    b'{"Signal": 61.8034}',
    b"\xff\xfe",
    b'{"signal": 1e305}',
    b'{"signal": 61.8034, "signal": 1}',
]


def test_anything_but_one_finite_signal_is_refused_without_being_quoted(service: Served) -> None:
    for body in BODIES:
        status, reply = post(service, "/v1/multiselect/line", body)
        assert status == 422, body
        assert set(reply) == {"error"}, body
        assert "signal" in reply["error"], body
        assert "61.8" not in reply["error"], body


QUERIES = (
    "k=10 k=0 k=61.8034 k=%C2%B2 k=3&k=3 k=003 value=61.8034 epsilon=0.618034 epsilon=nan epsilon=0.50 epsilon=+0.5 "
    "epsilon=0.5000000000000000000618034"
)
PATHS = ("/v1/multiselect/61.8034", "/v1/multiselect/line/?value=61.8034", "/v1/multiselect/?value=61.8034", "/61.8034")


def test_settings_that_are_not_on_offer_are_refused_without_being_quoted(service: Served) -> None:
    refused = {f"/v1/multiselect/line?{query}": 422 for query in QUERIES.split()} | dict.fromkeys(PATHS, 404)
    for path, expected in refused.items():
        status, reply = post(service, path, {"signal": 1})
        assert status == expected, path
        assert "61.8" not in json.dumps(reply), path


def test_the_list_takes_no_field(service: Served) -> None:
    status, _, content = send(service, "GET", "/v1/multiselect?value=61.8034")
    assert status == 422
    assert b"61.8" not in content


@pytest.mark.parametrize("epsilon", [1.0, 1e-7, 1e16, 1 / 3], ids=["1", "1e-7", "1e16", "third"])
def test_epsilon_may_be_spelt_as_in_python_and_in_javascript(epsilon: float) -> None:
    offer = Offer([1.0, 2.0], k=1, epsilon=epsilon)
    spellings = {1.0: ["1"], 1e-7: ["1e-7"], 1e16: ["10000000000000000"], 250.0: ["250"]}.get(epsilon, [])
    for text in [repr(epsilon), *spellings]:
        assert offer.settings([("epsilon", text)]) == (1, epsilon)
    with pytest.raises(dps.InvalidInput, match="epsilon"):
        offer.settings([("epsilon", repr(epsilon) + "0")])


def test_a_name_that_cannot_be_part_of_a_url_is_refused() -> None:
    for name in ("", "a/b", ".", ".."):
        with pytest.raises(dps.InvalidInput, match="name must"):
            create_app({name: Offer([1.0], k=1)})


def test_a_body_that_does_not_arrive_is_not_waited_for(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpselect.service.app.LONGEST_WAIT", 0.05)
    with socket.create_connection(urlsplit(service.url).netloc.split(":"), timeout=30) as slow:
        slow.sendall(b'POST /v1/multiselect/line HTTP/1.1\r\nHost: here\r\nContent-Length: 13\r\n\r\n{"sig')
        assert slow.recv(12) == b"HTTP/1.1 408"


def test_large_bodies_are_refused_whether_they_state_their_size_or_not(service: Served) -> None:
    large = b'{"signal": 1' + b" " * LARGEST_BODY + b"}"
    assert post(service, "/v1/multiselect/line", large)[0] == 413
    chunks = b"64\r\n" + b" " * 100 + b"\r\n"
    # One write: the service answers and closes once it has seen enough, and later writes would fail.
    body = chunks * (LARGEST_BODY // 100 + 2) + b"0\r\n\r\n"
    status, _, content = send(service, "POST", "/v1/multiselect/line", body, {"Transfer-Encoding": "chunked"})
    assert status == 413
    assert str(LARGEST_BODY) in json.loads(content)["error"]
    assert post(service, "/v1/multiselect/line", b'{"signal": 1' + b" " * 50 + b"}")[0] == 200


def test_other_methods_are_refused_in_json(service: Served) -> None:
    for method in ("PUT", "DELETE", "PATCH"):
        status, headers, content = send(service, method, "/v1/multiselect/line", b"{}")
        assert status == 405
        assert headers["allow"] == "GET, POST"
        assert "error" in json.loads(content)


def test_a_failure_inside_shows_and_logs_nothing(service: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        status, reply = post(service, "/v1/multiselect/broken", {"signal": 1})
    assert status == 500
    assert "secret" not in json.dumps(reply) + caplog.text


def test_nothing_about_a_request_is_written_anywhere(
    service: Served, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        for body in (b'{"signal": 61.8034}', b'{"signal": 61.8034, "x": 1}', b"x" * 999):
            post(service, "/v1/multiselect/line", body)
    written = "".join(capfd.readouterr()) + caplog.text
    assert "61.8034" not in written
    assert "127.0.0.1" not in written


def test_every_answer_keeps_a_browser_to_this_service(service: Served) -> None:
    for method, path in (("GET", "/"), ("GET", "/dpselect.js"), ("GET", "/nowhere"), ("POST", "/v1/multiselect/line")):
        _, headers, _ = send(service, method, path, b"{}" if method == "POST" else None)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in headers


def test_the_page_asks_nobody_else_for_anything(service: Served) -> None:
    for path in ("/", "/look.css", "/page.css", "/page.js", "/drawing.js", "/dpselect.js"):
        status, _, content = send(service, "GET", path)
        assert status == 200
        assert content.replace(b"http://www.w3.org/2000/svg", b"").count(b"://") == 0


def test_the_service_says_that_it_runs(service: Served) -> None:
    status, headers, content = send(service, "GET", "/healthz")
    assert (status, json.loads(content)) == (200, {"status": "ok"})
    assert headers["content-type"] == "application/json"


def test_a_python_client_uses_the_service_like_a_server(service: Served) -> None:
    remote = RemoteServer(service.url + "/", "line", k=5)
    assert (remote.k, remote.epsilon) == (5, 0.5)
    client = Client(remote.epsilon, remote.grid, seed=5)
    service.bodies.clear()
    signal = client.signal(7.123456)
    results = remote.answer(signal)
    assert results == Server(POSITIONS, 5, 0.5).answer(signal)
    assert client.choose(results) in results
    assert [json.loads(body) for body in service.bodies] == [{"signal": signal}]
    assert not any(b"7.123" in seen for seen in service.bodies + service.requests)


def test_a_remote_server_says_what_is_wrong(service: Served) -> None:
    with pytest.raises(dps.InvalidInput, match="no such catalogue"):
        RemoteServer(service.url, "unknown")
    with pytest.raises(dps.InvalidInput, match="a whole number from 1 to 9"):
        RemoteServer(service.url, "line", k=99)
    for bad in ("file:///etc/passwd", None):
        with pytest.raises(dps.InvalidInput, match="http://"):
            RemoteServer(bad, "line")  # type: ignore[arg-type]
    with pytest.raises(dps.SourceError, match="cannot be reached"):
        RemoteServer("http://127.0.0.1:9", "line", timeout=5)
    remote = RemoteServer(service.url, "line")
    for bad in (math.nan, "3"):
        with pytest.raises(dps.InvalidInput, match="signal"):
            remote.answer(bad)


def test_a_service_cannot_give_an_epsilon_that_was_not_asked_for(service: Served) -> None:
    """The epsilon is changed on the way, as a dishonest service could change it."""

    class Relay(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.replace("epsilon=0.5", "epsilon=5")
            status, _, content = send(service, "GET", path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Relay) as relay:
        threading.Thread(target=relay.handle_request, daemon=True).start()
        with pytest.raises(dps.SourceError, match="other settings"):
            RemoteServer(f"http://127.0.0.1:{relay.server_port}", "line", epsilon=0.5)


def test_an_offer_needs_as_many_results_as_answers() -> None:
    with pytest.raises(dps.InvalidInput, match="k must be at most 2"):
        Offer([1.0, 2.0])
