"""What goes wrong with a DuckDB file; it is never written to."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from engine_cases import BUYERS, GOODS
from engine_places import DuckDbFile

import dpselect as dps


@pytest.fixture
def place(tmp_path: Path) -> DuckDbFile:
    one = DuckDbFile(tmp_path)
    one.put("orders", BUYERS)
    return one


def ask(source: dict[str, Any], **options: Any) -> dps.Release:
    arguments = {"item": "item", "person": "person", "k": 2, "epsilon": 1.0, "domain": GOODS, "seed": 1}
    arguments = {**arguments, **source, **options}
    return dps.top(arguments.pop("table"), **arguments)


def state(folder: Path) -> dict[str, str]:
    """Return every file under a folder with the hash of its content."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_file_is_only_read(place: DuckDbFile) -> None:
    before = state(place.file.parent)
    ask(place.source("orders"))
    ask(place.source("orders"), domain=10, value="paid", clip=(0, 5), max_items_per_person=1)
    with pytest.raises(dps.DpSelectError):
        ask(place.source("orders"), where="error(item) IS NULL")
    assert state(place.file.parent) == before


def test_a_file_that_may_not_be_written_is_read(place: DuckDbFile) -> None:
    place.file.chmod(0o400)
    assert len(ask(place.source("orders")).items) == 2


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(dps.InvalidInput):
        ask(DuckDbFile(tmp_path).source("orders"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = DuckDbFile(tmp_path)
    for content in (b"", b"no database", b"x" * 20000):
        file.file.write_bytes(content)
        with pytest.raises(dps.DpSelectError) as caught:
            ask(file.source("orders"))
        assert caught.value.__context__ is None
        assert state(tmp_path) == {"shop.duckdb": hashlib.sha256(content).hexdigest()}


def test_a_file_that_another_process_writes(place: DuckDbFile) -> None:
    program = (
        "import duckdb, sys; connection = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.readline()"
    )
    line = [sys.executable, "-c", program, str(place.file)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(dps.DpSelectError) as caught:
            ask(place.source("orders"))
        other.communicate("\n")
    assert caught.value.__context__ is None
    assert str(other.pid) not in str(caught.value)
    assert len(ask(place.source("orders")).items) == 2


def test_what_a_row_makes_a_view_say_is_withheld(place: DuckDbFile) -> None:
    with contextlib.closing(duckdb.connect(str(place.file))) as connection:
        connection.execute("CREATE VIEW failing AS SELECT * FROM orders WHERE error(item) IS NULL")
    with pytest.raises(dps.errors.SourceError) as caught:
        ask(place.source("failing"))
    assert "ham" not in str(caught.value)
    assert caught.value.__context__ is None
