"""Backup and restore of a desk as its page in the manual says: one copy holds budgets, answers and tokens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from desks import QUESTION, running, token_for, write_config

from dpselect.ledger import Ledger
from servers import fresh_database

pytestmark = pytest.mark.slow


def dpselect(folder: Path, *arguments: str) -> str:
    """Run a command in a folder; return what it prints."""
    command = [sys.executable, "-m", "dpselect", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_a_copy_of_a_running_desk_can_take_its_place(tmp_path: Path) -> None:
    config = write_config(tmp_path, epsilon=2.0)
    with running(tmp_path, "--config", str(config)) as desk:
        first = desk.release(QUESTION, "before")[1]
        shown = dpselect(tmp_path, "ledger", "backup", "copy.sqlite")
        assert desk.release(QUESTION, "after")[0] == 201
        later = token_for(config)
        desk.process.kill() if desk.process else None  # its log stays behind, beside the ledger
    head = re.search(r"nothing is missing; head (\S+)", shown)
    assert head is not None
    for left in tmp_path.glob("ledger.sqlite*"):
        left.unlink()
    (tmp_path / "copy.sqlite").rename(tmp_path / "ledger.sqlite")
    dpselect(tmp_path, "ledger", "spend", "views", "--epsilon", str(QUESTION["epsilon"]), "--purpose", "from the log")
    dpselect(tmp_path, "ledger", "check", "--head", head[1])
    with running(tmp_path, "--config", str(config)) as again:
        assert again.release(QUESTION, "before", token=desk.token) == (200, first)
        assert again.release(QUESTION, "before", token=later)[0] == 401
        assert again.send("GET", "/v1/datasets", token=desk.token)[2][0]["budget"]["spent"] == 2 * QUESTION["epsilon"]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.check() == []


def test_a_dump_of_a_running_desk_can_take_the_place_of_its_tables(postgresql_server: str, tmp_path: Path) -> None:
    import pgserver

    def tool(name: str, *arguments: str) -> str:
        command = [str(Path(pgserver.__file__).parent / "pginstall" / "bin" / name), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    place = fresh_database(postgresql_server).replace("postgresql+psycopg://", "postgresql://")  # as libpq writes it
    config = write_config(tmp_path, ledger=place)
    with running(tmp_path, "--config", str(config)) as desk:
        first = desk.release(QUESTION, "before")[1]
        head = dpselect(tmp_path, "ledger", "check", "--ledger", place).split()[-1]
        (tmp_path / "dump.sql").write_text(tool("pg_dump", "--clean", "--if-exists", "-t", "dpselect_*", place))
        assert desk.release(QUESTION, "after")[0] == 201
    tool("psql", "-1", "-v", "ON_ERROR_STOP=1", place, "-f", str(tmp_path / "dump.sql"))
    dpselect(tmp_path, "ledger", "check", "--ledger", place, "--head", head)
    with running(tmp_path, "--config", str(config)) as again:
        assert again.release(QUESTION, "before", token=desk.token) == (200, first)
        assert again.send("GET", "/v1/datasets", token=desk.token)[2][0]["budget"]["spent"] == QUESTION["epsilon"]
