"""What JSON cannot hold is refused when the service starts, and never sent or taken for an answer."""

from __future__ import annotations

import http.server
import json
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.multiselect import Catalogue
from dpselect.service import Offer, RemoteServer

NAN, INFINITE = math.nan, math.inf


def endless() -> list[Any]:
    """Return a list that contains itself."""
    one: list[Any] = []
    one.append(one)
    return one


def test_an_item_that_json_cannot_hold_is_refused_by_its_number() -> None:
    for item in (NAN, np.float32("nan"), {"price": INFINITE}, ["secret", [NAN]], {("secret", 1): 2}, endless()):
        items = ["fine"] * 2345 + [item]
        with pytest.raises(dps.InvalidInput, match=r"items must be text, finite numbers.* at index 2345") as caught:
            Offer(Catalogue(np.arange(2346.0)[::-1], items), k=1)
        assert "secret" not in str(caught.value) + repr(caught.value.given)


def test_every_other_item_is_sent_as_json() -> None:
    items: Sequence[Any] = [
        "Ærø ☃",
        3,
        -0.5,
        None,
        True,
        np.int64(7),
        np.float64(0.25),
        {"name": "inn", "beds": [1, 2]},
    ]
    sent = json.loads(Offer(Catalogue(np.arange(8.0), items), k=8).answer(0.0, 8, 1.0))
    found = {result["position"]: result["item"] for result in sent["results"]}
    assert [found[place] for place in range(8)] == items


def test_a_position_that_is_not_a_finite_number_is_refused_by_its_index() -> None:
    for wrong in (NAN, -INFINITE, None):
        with pytest.raises(dps.InvalidInput, match="at index 2 "):
            Offer([1.0, 2.0, wrong], k=1)


WRONG_SETTINGS: list[tuple[str, Any]] = [
    ("shown", (0.0, NAN)),
    ("shown", (5.0, 5.0)),
    ("shown", (1.0, 2.0, 3.0)),
    ("shown", 3.0),
    ("landmarks", {"town": NAN}),
    ("landmarks", {NAN: 1.0}),
    ("unit", NAN),
    ("title", "\ud800"),
]


def test_settings_that_json_cannot_hold_are_refused_by_name() -> None:
    for argument, given in WRONG_SETTINGS:
        with pytest.raises(dps.InvalidInput) as caught:
            Offer([1.0, 2.0], k=1, **{argument: given})
        assert caught.value.argument == argument


def test_numbers_of_any_kind_are_fine_as_settings() -> None:
    offer = Offer([1.0, 2.0], k=1, shown=(np.int64(0), 3), landmarks={"town": np.float32(0.5)})
    assert json.loads(json.dumps(offer.summary(), allow_nan=False))["shown"] == [0.0, 3.0]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"item": [1.0, NAN], "position": [1.0, 2.0]}, "items must be text, finite numbers"),
        ({"item": ["a", "b"], "position": [INFINITE, 2.0]}, "at index 0"),
        ({"item": ["a", "b"], "position": [1.0, None]}, "at index 1"),
    ],
    ids=["item", "position", "null"],
)
def test_a_file_with_such_numbers_is_refused_in_a_line(tmp_path: Path, columns: dict[str, Any], said: str) -> None:
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "shops.parquet")
    finished = CliRunner().invoke(app, ["serve", str(tmp_path / "shops.parquet"), "-k", "1"])
    assert finished.exit_code == 2
    assert said in finished.stderr.replace("\n", " ")


def test_a_position_that_is_not_finite_is_no_answer() -> None:
    """As a dishonest service could send it."""
    described = {"k": 1, "epsilon": 1.0, "grid": 0.5}
    replies = iter([json.dumps(described), '{"results": [{"item": "a", "position": 1e999}]}'])

    class Dishonest(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(next(replies).encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Dishonest) as service:
        threading.Thread(target=lambda: [service.handle_request() for _ in range(2)], daemon=True).start()
        remote = RemoteServer(f"http://127.0.0.1:{service.server_port}", "line")
        with pytest.raises(dps.SourceError, match="did not answer with results"):
            remote.answer(3.0)
