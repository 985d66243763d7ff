"""The desk over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from desks import FILMS, QUESTION, RunningDesk, running, served, write_config, write_data


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[RunningDesk]:
    with served(write_config(tmp_path)) as found:
        yield found


def test_a_release_is_answered_once_under_a_key(desk: RunningDesk) -> None:
    status, first = desk.release()
    assert status == 201
    assert set(first["items"]) <= set(FILMS)
    assert (first["k"], first["guarantee"]["epsilon"], first["secure"]) == (3, 0.25, True)
    status, again = desk.release()
    assert (status, again["items"]) == (200, first["items"])


@pytest.mark.slow
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
