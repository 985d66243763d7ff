"""`dpselect serve`: a catalogue from a file or the generated one, an address on standard error, Ctrl-C to stop."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from dpselect.cli import app
from dpselect.multiselect import Client
from dpselect.service import RemoteServer


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run the command on a free port; yield the address of the page."""
    program = "from dpselect.cli import main; main()"
    command = [sys.executable, "-c", program, *arguments, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            process.stderr.readline()
            yield process.stderr.readline().split("the page is at ")[1].split(";")[0], process
        finally:
            process.kill()


@pytest.mark.slow
def test_the_generated_coast_is_served_until_interrupted() -> None:
    with serving("serve", "-k", "3", "--epsilon", "0.5") as (address, process):
        assert b"<title>dpselect" in urllib.request.urlopen(address).read()
        remote = RemoteServer(address, "coast")
        assert (remote.k, remote.epsilon) == (3, 0.5)
        assert len(remote.answer(Client(0.5, remote.grid).signal(20))) == 3
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert output == ""
        assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_catalogues_are_read_from_files(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    offers: dict[str, Any] = {}
    monkeypatch.setattr("dpselect.service.run", lambda given, **_: offers.update(given))
    rows = [{"shop": "east", "km": 8.5}, {"shop": "west", "km": 0.5}, {"shop": "middle", "km": 4.0}]
    file = tmp_path / f"shops.{kind}"
    if kind == "csv":
        file.write_text("shop,km\n" + "".join(f"{row['shop']},{row['km']}\n" for row in rows))
    elif kind == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    line = ["serve", str(file), "--item", "shop", "--position", "km", "-k", "2"]
    assert CliRunner().invoke(app, line).exit_code == 0
    results = json.loads(offers["shops"].answer(0.0, 2, 1.0))["results"]
    assert [result["item"] for result in results] == ["west", "middle"]


def test_bad_input_is_told_in_a_line(tmp_path: Path) -> None:
    small = tmp_path / "small.csv"
    small.write_text("item,position\na,1\nb,2\n")
    words_file = tmp_path / "words.csv"
    words_file.write_text("item,position\na,here\nb,there\n")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    for arguments, words in [
        ([str(tmp_path / "none.csv")], "FILE no such file"),
        ([str(small), "-k", "5"], "-k 5 at most 2"),
        ([str(small), "-k", "1", "--position", "place"], "FILE --position"),
        ([str(words_file), "-k", "1"], "a number"),
        ([str(empty), "-k", "1"], "FILE 'empty.csv'"),
        (["--epsilon", "0"], "--epsilon 0"),
        (["--grid", "-1"], "--grid -1"),
        (["--port", "70000"], "--port must be a whole number from 0 to 65535, got 70000"),
    ]:
        finished = CliRunner().invoke(app, ["serve", *arguments])
        assert finished.exit_code == 2, arguments
        assert all(word in finished.stderr for word in words.split()), arguments
        assert len(finished.stderr.splitlines()) == 1, arguments


@pytest.mark.slow
def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        finished = CliRunner().invoke(app, ["serve", "--port", str(taken.getsockname()[1])])
    assert finished.exit_code == 2
    assert "--port must be free" in finished.stderr
