"""The dpselect command: results on standard output, all else on standard error, readable errors."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpselect
from dpselect.cli import app
from dpselect.cli.demo_data import FILMS, DemoData

COMMAND = Path(sys.executable).with_name("dpselect")


def top_line(**options: str | None) -> list[str]:
    """Return a command line for `dpselect top`, with options replaced, or left out where None."""
    given: dict[str, str | None] = {
        "--item": "film", "--person": "viewer", "-k": "3", "--epsilon": "1e6", "--domain": "films.csv", **options
    }  # fmt: skip
    file = given.pop("FILE", "views.parquet") or ""
    flags = [part for name, value in given.items() if value is not None for part in (name, value) if part]
    return ["top", file, *flags]


def run(*line: str) -> Any:
    return CliRunner().invoke(app, list(line))


def installed(*line: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *line], capture_output=True, text=True, check=False, timeout=120, **options)


def test_json_is_the_release_and_nothing_else(folder: Path) -> None:
    result = installed(*top_line(**{"--format": "json", "--mechanism": "oneshot"}))
    data = json.loads(result.stdout)
    assert (result.returncode, result.stderr) == (0, "")
    assert set(data) == {"items", "ordered", "values", "mechanism", "guarantee", "domain", "secure", "k"}
    assert set(data["items"]) == {"film 00", "film 01", "film 02"}
    assert data["mechanism"]["name"] == "oneshot"
    assert data["guarantee"] == {"epsilon": 1e6, "delta": 0.0, "protects": "one person", "neighbours": "add or remove"}
    assert data["domain"] == {"items": 12, "stated": "public"}
    assert data["secure"] is True


def test_csv_has_ranks_only_where_the_order_counts(folder: Path) -> None:
    plain = list(csv.DictReader(io.StringIO(run(*top_line(**{"--format": "csv"})).stdout)))
    assert sorted(row["item"] for row in plain) == ["film 00", "film 01", "film 02"]
    assert set(plain[0]) == {"item"}
    ranked = list(csv.DictReader(io.StringIO(run(*top_line(**{"--format": "csv", "--ordered": ""})).stdout)))
    assert ranked == [{"rank": str(i + 1), "item": f"film {i:02d}"} for i in range(3)]


def test_the_table_says_what_is_promised_and_what_the_order_means(folder: Path) -> None:
    shown = run(*top_line(**{"--epsilon": "2", "--mechanism": "oneshot"})).stdout
    assert "random; it means nothing" in shown
    assert "oneshot, exponential noise" in shown
    assert "epsilon = 2" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "part of the" in run(*top_line(**{"--ordered": ""})).stdout


def test_a_seed_is_answered_with_a_warning_on_standard_error(folder: Path) -> None:
    first, second = (installed(*top_line(**{"--seed": "7", "--epsilon": "0.1", "--format": "csv"})) for _ in range(2))
    assert first.stdout == second.stdout
    assert "protects nobody" in first.stderr
    assert first.returncode == 0


def test_a_seed_leaves_no_guarantee_in_the_table(folder: Path) -> None:
    for line in (top_line(), ["demo", "--rows", "1000"]):
        seeded = " ".join(run(*line, "--seed", "7").stdout.split())
        assert "Guarantee none, because a seed was given; without it, epsilon = " in seeded
        assert "because a seed was given" not in run(*line).stdout


@pytest.mark.parametrize(("encoding", "marks"), [("utf-8", "┏┃│└"), ("ascii", "+|"), ("latin-1", "+|")])
def test_tables_are_drawn_with_marks_that_the_terminal_has(encoding: str, marks: str, folder: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for line in (top_line(), ["demo", "--rows", "1000"]):
        result = installed(*line, env=environment, encoding=encoding)
        assert result.returncode == 0
        assert all(mark in result.stdout for mark in marks)
        assert "\\u25" not in result.stdout


def test_noise_and_mechanism_are_used(folder: Path) -> None:
    result = run(*top_line(**{"--mechanism": "oneshot", "--noise": "gumbel", "--format": "json"}))
    assert json.loads(result.stdout)["mechanism"]["noise"] == "gumbel"


def test_unseen_items_are_told_apart_from_text(folder: Path) -> None:
    line = top_line(**{"--domain": "1000000", "--epsilon": "1e-9", "--seed": "1"})
    assert {"unseen": 1} in json.loads(run(*line, "--format", "json").stdout)["items"]
    assert "(unseen item 1)" in run(*line).stdout


@pytest.mark.parametrize(("name", "start"), [("a.json", "{"), ("a.csv", "item\n"), ("a.txt", "Private top 3")])
def test_the_output_file_gets_the_result_in_the_format_of_its_name(name: str, start: str, folder: Path) -> None:
    result = run(*top_line(**{"--output": name}))
    assert (result.exit_code, result.stdout) == (0, "")
    assert (folder / name).read_text().startswith(start)


def test_odd_titles_are_shown_without_markup_or_control_characters(folder: Path) -> None:
    titles = ["[bold]x[/bold]", "\x1b[31mred", "two\nlines", ""]
    (folder / "odd.jsonl").write_text("".join(json.dumps({"film": title, "viewer": 1}) + "\n" for title in titles))
    shown = run(*top_line(**{"FILE": "odd.jsonl", "-k": "4", "--domain": "4"})).stdout
    assert "[bold]x[/bold]" in shown
    assert "\\x1b[31mred" in shown
    assert "two\\nlines" in shown
    assert "(empty text)" in shown
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.ndjson"])
def test_every_json_table_gets_the_same_note_whatever_it_holds(name: str, folder: Path) -> None:
    said = set()
    for content in ("", '{"film": "film 00", "viewer": 1}\n', '{"flim": "film 00", "viewer": 1}\n', "[{}]", "[{"):
        (folder / name).write_text(content)
        result = run(*top_line(FILE=name))
        assert result.exit_code == 0
        said.add(result.stderr)
    [note] = said
    assert "a misspelt field cannot be noticed" in note
    assert "misspelt" not in run(*top_line()).stderr


BAD: dict[str, tuple[dict[str, str | None], str]] = {
    "missing file": ({"FILE": "none.parquet"}, "SOURCE: 'none.parquet' was given; there is no such file"),
    "no name": ({"FILE": ""}, "SOURCE must be the path of a file, got ''"),
    "missing column": ({"--item": "movie"}, "there is no such column; the columns are 'film', 'viewer'"),
    "missing domain file": ({"--domain": "none.csv"}, "--domain: 'none.csv' was given; there is no such file"),
    "unknown domain": ({"--domain": "unknown"}, "--delta: none, or 0, was given; on an unknown domain a number"),
    "negative domain": ({"--domain": "-4"}, "--domain must be at least 1, got -4"),
    "domain too small": ({"--domain": "5"}, "--domain must be at least the number of distinct items in the table"),
    "k too large": ({"-k": "13"}, "-k must be at most 12"),
    "k zero": ({"-k": "0"}, "-k: 0 was given; a whole number of at least 1 is needed"),
    "k text": ({"-k": "ten"}, "-k: 'ten' was given; a whole number of at least 1 is needed"),
    "epsilon negative": ({"--epsilon": "-1"}, "--epsilon: -1.0 was given; a positive, finite number is needed"),
    "epsilon nan": ({"--epsilon": "nan"}, "--epsilon: nan was given"),
    "epsilon infinite": ({"--epsilon": "inf"}, "--epsilon: inf was given"),
    "epsilon text": ({"--epsilon": "small"}, "--epsilon: 'small' was given; a positive, finite number is needed"),
    "delta text": ({"--delta": "tiny"}, "--delta: 'tiny' was given"),
    "no epsilon": ({"--epsilon": None}, "--epsilon"),
    "no domain": ({"--domain": None}, "--domain"),
    "mechanism": ({"--mechanism": "magic"}, "--mechanism: 'magic' was given; one of auto"),
    "noise alone": ({"--noise": "gumbel"}, "--noise: 'gumbel' was given; name a mechanism that has it"),
    "noise": ({"--mechanism": "oneshot", "--noise": "white"}, "--noise: 'white' was given"),
    "noise of a mechanism without": ({"--mechanism": "gamma", "--noise": "gumbel"}, "name a mechanism that has it"),
    "endless name": ({"--output": "x" * 300}, "--output: "),
    "format": ({"--format": "xml"}, "xml"),
    "output in no folder": ({"--output": "no/such/place.csv"}, "--output: 'no/such/place.csv' was given"),
    "output over input": ({"--output": "films.csv"}, "it is read, or belongs to the ledger"),
    "seed": ({"--seed": "-1"}, "--seed: -1 was given"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", BAD)
def test_bad_input_gets_a_readable_error_and_status_2(wrong: str, folder: Path) -> None:
    options, complaint = BAD[wrong]
    result = run(*top_line(**options))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert complaint in " ".join(result.stderr.replace("│", " ").split())
    assert len(result.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("noheader.csv", b"Secret Film,mallory\n"),
        ("damaged.parquet", b"PAR1 Secret mallory PAR1"),
        ("empty.csv", b""),
        ("utf16.csv", "film,viewer\nSecret,mallory\n".encode("utf-16")),
        ("damaged.csv.gz", b"Secret,mallory\n"),
    ],
)
def test_unusable_files_end_in_one_line_without_their_content(name: str, content: bytes, folder: Path) -> None:
    (folder / name).write_bytes(content)
    result = installed(*top_line(FILE=name))
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert "Secret" not in result.stderr
    assert "mallory" not in result.stderr


def test_a_refused_budget_is_status_1_and_a_bug_shows_no_row(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def overdrawn(*_: Any, **__: Any) -> Any:
        raise dpselect.BudgetExceeded(1.0, 0.25)

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("Secret")

    monkeypatch.setattr("dpselect.top", overdrawn)
    result = run(*top_line())
    assert (result.exit_code, result.stdout) == (1, "")
    assert "requested 1, remaining 0.25, short by 0.75" in result.stderr
    monkeypatch.setattr("dpselect.top", broken)
    result = run(*top_line())
    assert result.exit_code == 70
    assert "RuntimeError" in result.stderr
    assert "Secret" not in result.stderr


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    line = " ".join([str(COMMAND), *top_line(**{"--format": "json"})])
    result = subprocess.run(f"{line} | true", shell=True, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_an_interrupt_ends_with_one_line_and_status_130(folder: Path) -> None:
    program = (
        "import signal, sys, dpselect, dpselect.cli as cli\n"
        "dpselect.top = lambda *_, **__: signal.raise_signal(signal.SIGINT)\n"
        "sys.argv[0] = 'dpselect'\n"
        "cli.main()\n"
    )
    line = [sys.executable, "-c", program, *top_line()]
    result = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "dpselect: interrupted\n")


def test_the_package_can_be_run_as_a_module() -> None:
    line = [sys.executable, "-m", "dpselect", "--version"]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == installed("--version").stdout


def test_version_and_help() -> None:
    assert installed("--version").stdout == f"dpselect {dpselect.__version__}\n"
    for line in (["--help"], ["top", "--help"], ["demo", "-h"]):
        result = installed(*line, env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"})
        assert result.returncode == 0
        assert "dpselect demo --out demo" in result.stdout
        assert max(len(text) for text in result.stdout.splitlines()) <= 80
    assert installed("nonsense").returncode == 2


def test_the_example_in_the_help_runs_after_the_demo(tmp_path: Path) -> None:
    demo = installed("demo", "--out", "demo", "--rows", "20000", cwd=tmp_path)
    assert demo.returncode == 0
    text = installed("top", "--help", env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}).stdout
    lines = [line.strip() for line in text.splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("dpselect top"))
    example = lines[start].removesuffix("\\") + lines[start + 1]
    result = installed(*example.split()[1:], cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Private top 5" in result.stdout


def test_the_demo_shows_the_private_answer_beside_the_true_one(tmp_path: Path) -> None:
    result = installed("demo", "--epsilon", "1e6", env={**os.environ, "COLUMNS": "80", "TMPDIR": str(tmp_path)})
    assert (result.returncode, result.stderr) == (0, "")
    assert "10 of 10 films of the true top 10 were found" in result.stdout
    assert "Not protected" in " ".join(result.stdout.split())
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert list(tmp_path.iterdir()) == []


def test_the_demo_speaks_json_and_csv_and_agrees_with_counting_in_plain_python(tmp_path: Path) -> None:
    line = ("demo", "--rows", "30000", "--epsilon", "1e6", "--seed", "1", "--format")
    data = json.loads(run(*line, "json").stdout)
    rows = list(csv.DictReader(io.StringIO(run(*line, "csv").stdout)))
    assert set(data["items"]) == set(data["true_items"]) == {row["item"] for row in rows}
    assert data["found"] == 10
    example = DemoData.generate(30_000)
    people: dict[str, set[int]] = {}
    for viewer, film in zip(example.viewers.tolist(), example.films.tolist(), strict=True):
        people.setdefault(example.titles[film], set()).add(viewer)
    assert [len(people[title]) for title in data["true_items"]] == sorted(map(len, people.values()), reverse=True)[:10]


def test_the_demo_is_always_the_same_and_counts_each_viewer_once() -> None:
    first, second = DemoData.generate(50_000), DemoData.generate(50_000)
    assert first.titles == second.titles
    assert (first.films == second.films).all()
    assert len(set(first.titles)) == FILMS
    pairs = set(zip(first.films.tolist(), first.viewers.tolist(), strict=True))
    assert len(pairs) < 50_000


def test_a_demo_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("demo", "--rows", "10", "--out", str(tmp_path / "file"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "a folder with permission to write is needed" in result.stderr
