"""`dpselect serve`: a catalogue from a file or the invented one, an address on standard error, Ctrl-C to stop."""

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
from urllib.parse import urlsplit

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from dpselect.cli import app
from dpselect.multiselect.client import Client
from dpselect.service import RemoteServer

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("command", [["serve"], ["multiselect", "serve"]], ids=" ".join)
def test_the_invented_coast_is_served_until_interrupted(command: list[str]) -> None:
    with serving(*command, "-k", "3", "--epsilon", "0.5") as (address, process):
        assert b"<title>dpselect" in urllib.request.urlopen(address).read()
        remote = RemoteServer(address, "coast")
        assert (remote.k, remote.epsilon) == (3, 0.5)
        assert len(remote.answer(Client(0.5, remote.grid).signal(20))) == 3
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert output == ""
        assert "Traceback" not in errors


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_catalogues_are_read_from_files(tmp_path: Path, kind: str) -> None:
    rows = [{"shop": "east", "km": 8.5}, {"shop": "west", "km": 0.5}, {"shop": "middle", "km": 4.0}]
    file = tmp_path / f"shops.{kind}"
    if kind == "csv":
        file.write_text("shop,km\n" + "".join(f"{row['shop']},{row['km']}\n" for row in rows))
    elif kind == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    with serving("serve", str(file), "--item", "shop", "--position", "km", "-k", "2") as (address, _):
        assert [result.item for result in RemoteServer(address, "shops").answer(0)] == ["west", "middle"]


def test_bad_input_is_told_in_a_line(tmp_path: Path) -> None:
    small = tmp_path / "small.csv"
    small.write_text("item,position\na,1\nb,2\n")
    words = tmp_path / "words.csv"
    words.write_text("item,position\na,here\nb,there\n")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    for arguments, said in [
        ([str(tmp_path / "none.csv")], "FILE: "),
        ([str(tmp_path)], "the folder has no file that ends in .parquet"),
        ([str(small), "-k", "5"], "-k: 5 was given; at most 2 are needed"),
        ([str(small), "-k", "1", "--position", "place"], "--position"),
        ([str(words), "-k", "1"], "not a number"),
        ([str(empty), "-k", "1"], "the header has no column"),
        (["--epsilon", "0"], "--epsilon: "),
        (["--grid", "-1"], "--grid: "),
        (["--port", "70000"], "--port: 70000 was given"),
    ]:
        finished = CliRunner().invoke(app, ["serve", *arguments])
        assert finished.exit_code == 2, arguments
        assert said in finished.stderr, arguments
        assert "Traceback" not in finished.stderr


def test_headers_without_end_are_refused() -> None:
    with serving("serve", "-k", "1") as (address, _):
        place = urlsplit(address)
        with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nX: " + b"x" * 100_000)
            assert connection.recv(12) == b"HTTP/1.1 400"


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        finished = CliRunner().invoke(app, ["serve", "--port", str(taken.getsockname()[1])])
    assert finished.exit_code == 2
    assert "cannot be listened on" in finished.stderr
