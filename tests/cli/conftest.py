"""People's rows for the commands that read a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

VIEWS = [(f"film {place:02d}", f"viewer {viewer}") for place in range(12) for viewer in range(240 - 20 * place)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with views.parquet and films.csv, in which commands run."""
    table = pyarrow.table({"film": [film for film, _ in VIEWS], "viewer": [viewer for _, viewer in VIEWS]})
    pyarrow.parquet.write_table(table, tmp_path / "views.parquet")
    (tmp_path / "films.csv").write_text("film\n" + "".join(f"film {place:02d}\n" for place in range(12)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path
