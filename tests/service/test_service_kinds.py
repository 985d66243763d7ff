"""Rings, vectors, fading privacy and models of quality over HTTP: what a client learns, sends and gets back."""

from __future__ import annotations

import http.client
import http.server
import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from serving import Served, served
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.multiselect import (
    Client,
    FeatureClient,
    FeatureServer,
    Geographic,
    QualityModel,
    RingClient,
    RingServer,
    Server,
    optimal_ring,
)
from dpselect.service import Offer, RemoteServer, RingOffer, VectorOffer

pytestmark = pytest.mark.slow

TRAINS = {"night": 1.0, "early": 5.0, "noon": 12.0, "late": 23.0}
FILMS = np.random.default_rng(0).normal(size=(60, 3)) * [3.0, 1.0, 0.2]
SHOPS = {"a": 1.0, "b": 2.0, "c": 4.0}
RATHER_FAR = QualityModel(2.0, linear=3.0, squares=-1.0)
NAMES = [f"film {number}" for number in range(60)]


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    offers = {
        "trains": RingOffer(TRAINS, circumference=24.0, k=2, epsilon=0.5, places=48, unit="hour"),
        "films": VectorOffer(FILMS, NAMES, k=4, epsilon=2.0, most=4, model=QualityModel(np.eye(3))),
        "gaussian": VectorOffer(FILMS, k=2, epsilon=2.0, most=2, noise="gaussian", delta=1e-6),
        "shops": Offer(SHOPS, k=2, epsilon=0.5, model=RATHER_FAR),
    }
    with served(offers) as running:
        yield running


def post(service: Served, path: str, body: Any) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=30)
    try:
        connection.request("POST", path, body if isinstance(body, str) else json.dumps(body))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def test_a_client_on_a_ring_learns_the_noise_and_sends_a_place(service: Served) -> None:
    remote = RemoteServer(service.url, "trains", epsilon=0.5, circumference=24.0)
    assert remote.ring is not None
    own = optimal_ring(2, epsilon=0.5, circumference=24.0, places=48)
    assert (remote.kind, remote.ring.heights, remote.ring.answers) == ("ring", own.heights, own.answers)
    client = RingClient(remote.ring, budget=1.0, seed=1)
    service.bodies.clear()
    signal = client.signal(22.618034)
    results = remote.answer(signal)
    assert results == RingServer(TRAINS, own).answer(signal)
    assert client.choose(results) in results
    assert [json.loads(body) for body in service.bodies] == [{"signal": signal}]
    assert not any(b"22.6" in seen for seen in service.bodies + service.requests)
    assert [result.position for result in RemoteServer(service.url, "trains", k=1).answer(0)] == [1.0]


def test_a_client_with_vectors_sends_a_list(service: Served) -> None:
    remote = RemoteServer(service.url, "films", epsilon=2.0)
    assert (remote.kind, remote.dimensions, remote.noise, remote.delta) == ("vectors", 3, "laplace", 0.0)
    client = FeatureClient(2.0, remote.dimensions, remote.grid, seed=1)
    service.bodies.clear()
    signal = client.signal([0.618034, 1.0, 0.0])
    results = remote.answer(signal)
    expected = FeatureServer(FILMS, 4, 2.0, items=NAMES).answer(signal)
    assert [result.to_dict() for result in results] == [result.to_dict() for result in expected]
    assert client.choose(results) in results
    assert [json.loads(body) for body in service.bodies] == [{"signal": signal.tolist()}]
    assert not any(b"0.618" in seen for seen in service.bodies + service.requests)
    fewer = RemoteServer(service.url, "films", k=2, epsilon=0.5).answer(signal)
    assert [each.item for each in fewer] == [
        each.item for each in FeatureServer(FILMS, 2, 0.5, items=NAMES).answer(signal)
    ]


def test_a_client_learns_that_the_noise_is_gaussian(service: Served) -> None:
    remote = RemoteServer(service.url, "gaussian", epsilon=2.0)
    assert (remote.noise, remote.delta) == ("gaussian", 1e-6)
    signal = FeatureClient(2.0, 3, noise=remote.noise, delta=1e-6, seed=1).signal([0.0, 1.0, 0.0])
    expected = FeatureServer(FILMS, 2, 2.0, noise="gaussian", delta=1e-6).answer(signal)
    assert [result.item for result in remote.answer(signal)] == [result.item for result in expected]


def test_the_model_of_a_service_chooses_on_the_client(service: Served) -> None:
    remote = RemoteServer(service.url, "shops", k=3, epsilon=0.5)
    assert remote.model is not None
    assert remote.model.to_dict() == RATHER_FAR.to_dict()
    client = Client(0.5, remote.grid, seed=1)
    service.bodies.clear()
    results = remote.answer(client.signal(2.1))
    assert (client.choose(results).item, client.choose(results, quality=remote.model).item) == ("b", "c")
    assert len(service.bodies) == 1, "choosing sends nothing"
    films = RemoteServer(service.url, "films")
    taste = FeatureClient(2.0, 3, films.grid, seed=1)
    results = films.answer(taste.signal([1.0, 0.0, 0.0]))
    assert taste.choose(results, quality=films.model).vector[0] == max(result.vector[0] for result in results)
    assert RemoteServer(service.url, "trains").model is None


def test_fading_privacy_asks_for_the_largest_epsilon_that_keeps_it(service: Served) -> None:
    wanted = Geographic.named("exponential", 0.45, threshold=10.0)
    remote = RemoteServer(service.url, "shops", privacy=wanted, grid=0.5)
    assert 0.5 < wanted.rate(0.5) < 1
    assert (remote.epsilon, remote.grid) == (0.5, 0.5)
    client = Client(remote.epsilon, remote.grid)
    assert all(client.guarantee.loss(distance) <= wanted.loss(distance) for distance in np.arange(0, 10, 0.5))
    assert remote.answer(1.5) == Server(SHOPS, 2, 0.5).answer(1.5)
    assert RemoteServer(service.url, "shops", privacy=wanted).epsilon == 0.2, "without a grid the slope counts"
    with pytest.raises(dps.InvalidInput, match=r"epsilons must include one of at most 0\.01"):
        RemoteServer(service.url, "shops", privacy=Geographic.named("linear", 0.01))
    with pytest.raises(dps.InvalidInput, match="epsilon must be left out"):
        RemoteServer(service.url, "shops", epsilon=0.5, privacy=wanted)


def test_signals_of_another_kind_are_refused_without_being_quoted(service: Served) -> None:
    numbers = "[61.8034, 61.8034]"
    bodies = {
        "trains": ["61.8034", "-1", "48", "1e300", numbers, "true", "null", '"3"', "[]"],
        "films": [
            "61.8034",
            numbers,
            "[61.8034, 1, null]",
            "[1, 2, [3]]",
            "[]",
            "null",
            "[1, 2, 1e999]",
            "[1, 2, NaN]",
        ],
        "shops": [numbers, "[61.8034]"],
    }
    for name, signals in bodies.items():
        for signal in signals:
            status, reply = post(service, f"/v1/multiselect/{name}", f'{{"signal": {signal}}}')
            assert status == 422, (name, signal)
            assert "signal" in reply["error"]
            assert "61.8" not in reply["error"]
    long = post(service, "/v1/multiselect/films", {"signal": [0.1] * 500})
    assert (long[0], long[1]["error"]) == (413, "body must have at most 160 bytes")


def test_a_remote_server_refuses_signals_of_another_kind_without_sending_them(service: Served) -> None:
    service.bodies.clear()
    wrong: dict[str, list[Any]] = {
        "trains": [1.5, -1, 48, True, "secret", None],
        "films": [1.0, [1.0, 2.0], [1.0, math.nan, 0.0], "secret", ["secret"] * 3, None],
    }
    for name, signals in wrong.items():
        remote = RemoteServer(service.url, name)
        for signal in signals:
            with pytest.raises(dps.InvalidInput, match="signal must be") as error:
                remote.answer(signal)
            assert "secret" not in str(error.value)
    assert service.bodies == []


def dishonest(changes: dict[str, Any], service: Served, name: str, **settings: Any) -> RemoteServer:
    """Return the catalogue of a service whose description is changed on the way; None leaves a field out."""

    class Relay(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=30)
            connection.request("GET", self.path)
            described = json.loads(connection.getresponse().read())
            connection.close()
            self.send_response(200)
            self.end_headers()
            kept = {name: value for name, value in {**described, **changes}.items() if value is not None}
            self.wfile.write(json.dumps(kept).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Relay) as relay:
        threading.Thread(target=relay.handle_request, daemon=True).start()
        return RemoteServer(f"http://127.0.0.1:{relay.server_port}", name, **settings)


def test_a_description_that_breaks_the_promise_is_refused(service: Served) -> None:
    steep = [0, 2, *[1] * 46]
    for name, changes in [
        ("trains", {"heights": steep}),
        ("trains", {"heights": "many"}),
        ("trains", {"answers": [99]}),
        ("trains", {"circumference": -1}),
        ("films", {"dimensions": "3x"}),
        ("shops", {"kind": "sphere"}),
        ("shops", {"model": {"bilinear": "import os"}}),
    ]:
        with pytest.raises(dps.SourceError, match="did not describe"):
            dishonest(changes, service, name)
    with pytest.raises(dps.SourceError, match="other settings"):
        dishonest({"epsilon": 5.0}, service, "trains", epsilon=0.5)
    with pytest.raises(dps.SourceError, match="not lie on a ring of length 24"):
        dishonest({"circumference": 2400.0}, service, "trains", circumference=24.0)


def test_catalogues_say_their_kind_and_clients_without_kinds_still_work(service: Served) -> None:
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=30)
    connection.request("GET", "/v1/multiselect")
    listed = {offer["name"]: offer for offer in json.loads(connection.getresponse().read())["catalogues"]}
    connection.close()
    assert [offer["kind"] for offer in listed.values()] == ["ring", "vectors", "vectors", "line"]
    assert not any("model" in offer for offer in listed.values()), "models may be large, so they come one by one"
    assert {"grid", "shown", "landmarks", "epsilons", "most"} <= listed["shops"].keys()
    before = dishonest({"kind": None, "epsilons": None, "model": None}, service, "shops")
    assert (before.kind, before.grid, before.epsilons) == ("line", listed["shops"]["grid"], (0.5,))


def test_files_are_served_as_rings_and_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offers: dict[str, Any] = {}
    monkeypatch.setattr("dpselect.service.run", lambda given, **_: offers.update(given))
    trains, films = tmp_path / "trains.csv", tmp_path / "films.csv"
    trains.write_text("item,hour\n" + "".join(f"{name},{hour}\n" for name, hour in TRAINS.items()))
    films.write_text("item,x,y\nup,0,1\ndown,0,-1\nleft,-1,0\n")
    ring = f"serve {trains} --position hour --circumference 24 -k 2"
    vectors = f"serve {films} --features x,y -k 1 --noise gaussian --delta 1e-6"
    for line in (ring, vectors):
        finished = CliRunner().invoke(app, line.split())
        assert finished.exit_code == 0, finished.stderr
    assert (offers["trains"].kind, offers["trains"].circumference) == ("ring", 24.0)
    assert (offers["films"].kind, offers["films"].noise, offers["films"].delta) == ("vectors", "gaussian", 1e-6)
    assert json.loads(offers["films"].answer([0.0, 0.9], 1, 5.0))["results"] == [{"item": "up", "vector": [0.0, 1.0]}]
    for line, words in [
        (f"serve {trains} --position hour --circumference 24", "-k at most 4"),
        (f"serve {trains} --position hour --circumference 24 -k 2 --grid 1", "--grid left out on a ring"),
        (f"serve {films} --features x,z", "FILE --features"),
        (f"serve {films} --features x,y --circumference 24", "--circumference left out"),
        (f"serve {films} --noise gaussian", "--features"),
        ("serve --circumference 24", "--circumference FILE"),
    ]:
        finished = CliRunner().invoke(app, line.split())
        assert finished.exit_code == 2, line
        assert all(word in finished.stderr for word in words.split()), finished.stderr
