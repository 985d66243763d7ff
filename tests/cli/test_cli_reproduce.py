"""`dpselect reproduce`: verdicts on standard output, files in the folder, interruptible and resumable."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpselect.cli import app

sys.path.insert(0, str(Path(__file__).parents[1] / "reproduce"))
from small_sets import write_sets

COMMAND = Path(sys.executable).with_name("dpselect")
DATA = Path(os.environ.get("DPSELECT_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets(tmp_path_factory.mktemp("sets"))


def run(*line: str) -> Any:
    return CliRunner().invoke(app, ["reproduce", *line])


@pytest.mark.slow
def test_a_figure_is_shown_and_written(folder: Path, tmp_path: Path) -> None:
    result = run("joint", "--figure", "4", "--quick", "--data", str(folder), "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("# joint, figure 4: ")
    assert "The paper: " in result.stdout
    assert "figure-4.csv, figure-4.md, figure-4.svg" in result.stdout
    assert (tmp_path / "joint" / "figure-4.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.slow
def test_programs_get_json_and_csv(folder: Path, tmp_path: Path) -> None:
    line = ("joint", "--figure", "4", "--quick", "--data", str(folder), "--out", str(tmp_path), "--format")
    (from_json,) = json.loads(run(*line, "json").stdout)["studies"]
    (from_csv,) = csv.DictReader(io.StringIO(run(*line, "csv").stdout))
    for study in (from_json, from_csv):
        assert (study["paper"], study["study"]) == ("joint", "figure-4")


BAD = {
    "nosuch": "PAPER must be one of canonical, joint",
    "joint --figure 12": "--figure must be one of 1, 2, 3, 4, 5, 6 for the joint paper, got '12'",
    "joint --data nowhere": "--data must be an existing folder with the data sets, got 'nowhere'",
    "joint --data .": "--data must contain the data set books_goodreads",
    "joint --plot-format gif": "",
    "": "",
}


def test_bad_input_ends_with_status_2_and_one_message(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line, message in BAD.items():
        given = line.split() if "--data" in line else [*line.split(), "--data", str(folder)]
        result = run(*given, "--quick")
        assert (result.exit_code, result.stdout) == (2, ""), line
        assert result.stderr.startswith(f"dpselect: {message}"), line
    assert not (tmp_path / "reproduced").exists()


def test_a_folder_of_data_sets_is_asked_for_only_where_one_is_read(tmp_path: Path) -> None:
    made = run("multi-selection", "--figure", "2", "--quick", "--out", str(tmp_path))
    assert made.exit_code == 0
    assert (tmp_path / "multi-selection" / "figure-2.svg").is_file()
    refused = run("joint", "--figure", "1", "--quick", "--out", str(tmp_path))
    assert refused.exit_code == 2
    assert refused.stderr.startswith("dpselect: --data must be the folder with the data sets books")


def test_help_names_the_papers() -> None:
    text = " ".join(run("--help").stdout.replace("│", " ").split())
    assert "canonical, joint, oneshot, restricted, multi-selection" in text
    assert "dpselect reproduce canonical --figure 1 --quick --data data" in text


@pytest.mark.slow
def test_an_interrupted_run_says_so_and_goes_on_later(folder: Path, tmp_path: Path) -> None:
    """The numbers are those of a run that nobody interrupted."""
    line = [COMMAND, "reproduce", "oneshot", "--figure", "theorem-2.3", "--quick", "--data", folder, "--out"]
    environment = {**os.environ, "COLUMNS": "80"}
    points = tmp_path / "broken" / "oneshot" / "theorem-2.3.points.json"
    process = subprocess.Popen(
        [*line, tmp_path / "broken"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    while process.poll() is None and not points.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130, complaint
    assert "run the same command again to continue" in complaint
    assert not points.with_name("theorem-2.3.csv").exists()
    kept = json.loads(points.read_text(encoding="utf-8"))["finished"]
    assert kept
    for name in ("broken", "whole"):
        assert run(*map(str, line[2:]), str(tmp_path / name)).exit_code == 0
    broken, whole = (
        (tmp_path / name / "oneshot" / "theorem-2.3.csv").read_text(encoding="utf-8") for name in ("broken", "whole")
    )
    assert broken == whole


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not there; DPSELECT_DATA names their folder")
def test_the_example_of_the_help_runs_on_the_real_data(tmp_path: Path) -> None:
    result = run("joint", "--figure", "4", "--quick", "--data", str(DATA), "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "Books 99.5%" in result.stdout.replace("\n", " ")


def test_a_folder_that_cannot_be_written_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("joint", "--figure", "4", "--quick", "--data", str(folder), "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("dpselect: --out must be a folder with free space and write permission")
