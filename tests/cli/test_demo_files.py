"""The folder of the demo: what is the user's own is not overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from dpselect.cli import app


def demo(rows: int, *options: str) -> Any:
    return CliRunner().invoke(app, ["demo", "--rows", str(rows), "--out", ".", *options])


def test_the_demo_overwrites_only_its_own_files_unless_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(pyarrow.table({"film": ["Heat"], "viewer": ["ann"]}), "views.parquet")
    Path("films.csv").write_text("film\nHeat\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    refused = demo(10)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--out: '.' was given; it holds views.parquet and films.csv, not made by the demo" in refused.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    Path("films.csv").unlink()
    assert "it holds views.parquet, not made" in demo(10).stderr
    assert demo(10, "--force").exit_code == 0
    assert demo(20).exit_code == 0
    assert pyarrow.parquet.read_table("views.parquet").num_rows == 20
    Path("films.csv").write_text("film\nmine\n")
    assert "it holds films.csv, not made" in demo(10).stderr
    Path("films.csv").unlink()
    Path("views.parquet").write_text("no table")
    assert "it holds views.parquet, not made" in demo(10).stderr
