"""The dpselect command: results on standard output, all else on standard error, readable errors."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import dpselect
from dpselect.cli import app
from dpselect.cli.demo import COUNTRIES, FILMS, FIRST_DAY, WEEKS, DemoData

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


@pytest.mark.slow
def test_json_is_the_release_and_nothing_else(folder: Path) -> None:
    result = installed(*top_line(**{"--format": "json", "--mechanism": "oneshot"}))
    data = json.loads(result.stdout)
    assert (result.returncode, result.stderr) == (0, "")
    assert set(data) == {"items", "ordered", "values", "mechanism", "guarantee", "domain", "reach", "secure", "k"}
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
    assert "random, without meaning" in shown
    assert "oneshot, exponential noise" in shown
    assert "epsilon = 2" in shown
    assert "Reach the right 3 come out with probability 0.9 if the last of them leads the" in " ".join(shown.split())
    assert "Protection moderate" in " ".join(shown.split())
    gaussian = {"--epsilon": "1", "--delta": "1e-5", "--mechanism": "gaussian", "--max-items-per-person": "2"}
    shown = run(*top_line(**gaussian)).stdout
    assert "strong, if the data are of fewer than 1/delta = 100,000 people" in " ".join(shown.split())
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "part of the" in run(*top_line(**{"--ordered": ""})).stdout


@pytest.mark.slow
def test_a_seed_makes_the_answer_reproducible_and_takes_its_guarantee(folder: Path) -> None:
    first, second = (run(*top_line(**{"--seed": "7", "--epsilon": "0.1"})) for _ in range(2))
    assert (first.exit_code, first.stdout) == (0, second.stdout)
    assert "not private" in first.stderr
    assert "Guarantee none, because a seed was given; without it, epsilon = " in " ".join(first.stdout.split())
    assert "because a seed was given" not in run(*top_line()).stdout


@pytest.mark.slow
def test_tables_are_drawn_in_ascii_where_the_terminal_has_no_more(folder: Path) -> None:
    result = installed(*top_line(), env={**os.environ, "PYTHONIOENCODING": "ascii"}, encoding="ascii")
    assert result.returncode == 0
    assert all(mark in result.stdout for mark in "+|")
    assert "\\u25" not in result.stdout


def test_noise_and_mechanism_are_used(folder: Path) -> None:
    result = run(*top_line(**{"--mechanism": "canonical", "--gamma": "0.75", "--format": "json"}))
    assert json.loads(result.stdout)["mechanism"]["gamma"] == 0.75
    result = run(*top_line(**{"--mechanism": "oneshot", "--noise": "gumbel", "--format": "json"}))
    assert json.loads(result.stdout)["mechanism"]["noise"] == "gumbel"
    for noise in ({}, {"--noise": "laplace"}):
        result = run(*top_line(**{"--mechanism": "oneshot", "--format": "json", **noise}), "--ordered")
        assert json.loads(result.stdout)["ordered"]
    for mechanism in ("canonical", "joint"):
        result = run(*top_line(**{"--mechanism": mechanism, "--format": "json"}), "--no-margin")
        assert json.loads(result.stdout)["mechanism"]["margin"] is False
    result = run(*top_line(**{"--mechanism": "canonical", "--format": "json"}), "--rounded")
    assert json.loads(result.stdout)["mechanism"]["rounded"] is True
    refused = run(*top_line(**{"--mechanism": "oneshot"}), "--no-margin")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.endswith("must be left out unless the mechanism is canonical, joint or restricted\n")


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("oneshot", {"--noise": "laplace"}),
        ("peeling", {"--noise": "laplace"}),
        ("canonical", {"--gamma": "0.75", "--noise": "gumbel"}),
    ],
    ids=["oneshot", "peeling", "canonical"],
)
def test_options_of_the_mechanism_go_together_with_values(
    folder: Path, mechanism: str, options: dict[str, str]
) -> None:
    """Algorithm 1 of the one-shot paper is the first: laplace noise for the choice and the values, both charged."""
    line = top_line(**{"--mechanism": mechanism, "--epsilon": "1", "--values": "0.3", "--format": "json", **options})
    release = json.loads(run(*line).stdout)
    assert release["guarantee"]["epsilon"] == pytest.approx(1.0, rel=1e-12)
    assert release["mechanism"]["epsilon"] == pytest.approx(0.7, rel=1e-12)
    assert release["mechanism"]["noise"] == options["--noise"]
    assert len(release["values"]) == release["k"]


def test_unseen_items_are_told_apart_from_text(folder: Path) -> None:
    line = top_line(**{"--domain": "1000000", "--epsilon": "1e-9", "--seed": "1"})
    assert {"unseen": 1} in json.loads(run(*line, "--format", "json").stdout)["items"]
    assert "(unseen item 1)" in run(*line).stdout


@pytest.mark.slow
def test_the_output_file_gets_the_result_in_the_format_of_its_name(folder: Path) -> None:
    for name, start in (("a.json", "{"), ("a.csv", "item\n"), ("a.txt", "Private top 3")):
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


@pytest.mark.slow
def test_every_json_table_gets_the_same_note_whatever_it_contains(folder: Path) -> None:
    name, said = "rows.jsonl", set()
    for content in ("", '{"film": "film 00", "viewer": 1}\n', '{"flim": "film 00", "viewer": 1}\n', "[{"):
        (folder / name).write_text(content)
        result = run(*top_line(FILE=name))
        assert result.exit_code == 0
        said.add(result.stderr)
    [note] = said
    assert "a misspelt field is not detected" in note
    assert "Check the spelling of --item and --person." in " ".join(note.split())
    assert "misspelt" not in run(*top_line()).stderr


BAD: list[tuple[dict[str, str | None], str]] = [
    ({"FILE": "none.parquet"}, "SOURCE 'none.parquet' no such file"),
    ({"--item": "movie"}, "'movie' 'film' 'viewer'"),
    ({"--domain": "none.csv"}, "--domain 'none.csv' no such file"),
    ({"--domain": "unknown"}, "--delta unknown domain"),
    ({"--domain": "-4"}, "--domain -4 at least 1"),
    ({"--domain": "5"}, "--domain 5 distinct items"),
    ({"-k": "13"}, "-k 13 12"),
    ({"-k": "ten"}, "-k 'ten' whole number"),
    ({"--epsilon": "nan"}, "--epsilon nan positive finite"),
    ({"--epsilon": "small"}, "--epsilon 'small' positive"),
    ({"--epsilon": None}, "Missing option --epsilon"),
    ({"--mechanism": "magic"}, "--mechanism 'magic' auto"),
    ({"--noise": "gumbel"}, "--noise 'gumbel' mechanism canonical"),
    ({"--mechanism": "oneshot", "--noise": "white"}, "--noise 'white'"),
    ({"--mechanism": "gamma", "--noise": "gumbel"}, "--noise mechanism canonical"),
    ({"--values": "0.3", "--noise": "gumbel"}, "--noise mechanism oneshot"),
    ({"--mechanism": "canonical", "--gamma": "2"}, "--gamma 2"),
    ({"--mechanism": "oneshot", "--gamma": "0.5"}, "--gamma 0.5 canonical"),
    ({"--format": "xml"}, "--format xml"),
    ({"--output": "no/such/place.csv"}, "--output 'no/such/place.csv' existing folder"),
    ({"--seed": "-1"}, "--seed -1"),
]


def test_bad_input_gets_a_readable_error_and_status_2(folder: Path) -> None:
    """Each word must be in the message: the option, what was given, and what is accepted."""
    for options, words in BAD:
        result = run(*top_line(**options))
        assert (result.exit_code, result.stdout) == (2, ""), options
        assert [word for word in words.split() if word not in result.stderr] == [], result.stderr
        assert len(result.stderr.splitlines()) <= 2, result.stderr


def test_an_unusable_file_gets_one_line_that_does_not_quote_it(folder: Path) -> None:
    contents = {
        "noheader.csv": b"Secret Film,mallory\n",
        "damaged.parquet": b"PAR1 Secret mallory PAR1",
        "utf16.csv": "film,viewer\nSecret,mallory\n".encode("utf-16"),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        result = run(*top_line(FILE=name))
        assert (result.exit_code, result.stdout) == (2, ""), name
        assert len(result.stderr.splitlines()) == 1, name
        assert "Secret" not in result.stderr, name
        assert "mallory" not in result.stderr, name


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
    assert "internal error (RuntimeError)" in result.stderr
    assert "Secret" not in result.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tpo", "No such command 'tpo'. Did you mean 'top'?\ndpselect: see dpselect --help\n"),
        ("multiselect offsets --epsilon 1", "'-k'.\ndpselect: see dpselect multiselect offsets --help\n"),
        ("desk --prot 1", "dpselect: see dpselect desk --help\n"),
        ("desk none.csv", "FILES must be files that exist"),
        ("ledger", ""),
    ],
)
def test_a_mistake_leads_to_the_help_of_its_command(line: str, said: str, folder: Path) -> None:
    result = run(*line.split())
    assert result.exit_code == 2
    assert said in result.stderr if said else not result.stderr


def test_a_lack_of_memory_is_no_bug(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def exhausted(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("dpselect.top", exhausted)
    result = run(*top_line())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("dpselect: not enough memory; ")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is a thing of Linux")
def test_a_standard_output_that_cannot_be_written_gets_one_line(folder: Path) -> None:
    for place, said in ((">&-", "standard output is closed"), (">/dev/full", "cannot be written to standard output")):
        line = " ".join([str(COMMAND), *top_line(), place])
        result = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        assert result.returncode == 2, result.stderr
        assert said in result.stderr
        assert len(result.stderr.splitlines()) == 1, result.stderr


@pytest.mark.slow
def test_a_condition_that_cannot_be_parsed_gets_one_line(folder: Path) -> None:
    """DuckDB's binding would report at exit a connection that the parser's error holds."""
    result = installed(*top_line(**{"--where": "film ="}))
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1, result.stderr


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    line = " ".join([str(COMMAND), *top_line(**{"--format": "json"})])
    result = subprocess.run(f"{line} | true", shell=True, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_command_and_the_module_are_the_same() -> None:
    line = [sys.executable, "-m", "dpselect", "--version"]
    module = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert module == installed("--version").stdout == f"dpselect {dpselect.__version__}\n"


def test_help_is_narrow_and_ends_in_an_example(folder: Path) -> None:
    for line in (["--help"], ["top", "--help"], ["demo", "-h"]):
        result = run(*line)
        assert result.exit_code == 0
        assert "dpselect demo --out demo" in result.stdout
        assert max(len(text) for text in result.stdout.splitlines()) <= 80
    assert run("nonsense").exit_code == 2


def test_the_example_in_the_help_runs_after_the_demo(folder: Path) -> None:
    assert run("demo", "--out", "demo", "--rows", "20000").exit_code == 0
    lines = [line.strip() for line in run("top", "--help").stdout.splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("dpselect top"))
    example = lines[start].removesuffix("\\") + lines[start + 1]
    result = run(*example.split()[1:])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Private top 5" in result.stdout


def test_the_demo_shows_the_private_answer_beside_the_true_one_and_keeps_nothing(folder: Path) -> None:
    before = sorted(folder.iterdir())
    result = run("demo", "--epsilon", "1e6", "--rows", "100000")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "The private answer has 10 of 10 films of the true top 10" in result.stdout
    assert "Not protected" in " ".join(result.stdout.split())
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert sorted(folder.iterdir()) == before


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


def test_the_demo_has_countries_with_tastes_of_their_own_and_whole_weeks(tmp_path: Path) -> None:
    assert run("demo", "--rows", "100000", "--out", str(tmp_path)).exit_code == 0
    rows = pyarrow.parquet.read_table(tmp_path / "views.parquet").to_pylist()
    listed = [line.strip('"') for line in (tmp_path / "countries.csv").read_text().splitlines()]
    assert listed == ["country", *sorted(COUNTRIES)]
    assert {row["country"] for row in rows} == set(COUNTRIES)
    days = {row["day"] for row in rows}
    assert days == {FIRST_DAY + timedelta(days=day) for day in range(7 * WEEKS)}
    assert FIRST_DAY.isoweekday() == 1

    countries: dict[int, Counter[str]] = {}
    for row in rows:
        countries.setdefault(row["viewer"], Counter())[row["country"]] += 1
    at_home = sum(found.most_common(1)[0][1] for found in countries.values())
    assert 0.98 < at_home / len(rows) < 1

    charts = [Counter(row["film"] for row in rows if row["country"] == country) for country in COUNTRIES]
    assert len({frozenset(film for film, _ in chart.most_common(5)) for chart in charts}) == len(COUNTRIES)


def test_a_demo_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("demo", "--rows", "10", "--out", str(tmp_path / "file"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "must be a folder with write permission" in result.stderr


def demo(rows: int, *options: str) -> Any:
    return run("demo", "--rows", str(rows), "--out", ".", *options)


def test_the_demo_overwrites_only_its_own_files_unless_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(pyarrow.table({"film": ["Heat"], "viewer": ["ann"]}), "views.parquet")
    Path("films.csv").write_text("film\nHeat\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    refused = demo(10)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--out must not contain a views.parquet or films.csv that the demo did not write, got '.'" in refused.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    Path("films.csv").unlink()
    assert "a views.parquet that the demo did not write" in demo(10).stderr
    assert demo(10, "--force").exit_code == 0
    assert demo(20).exit_code == 0
    assert pyarrow.parquet.read_table("views.parquet").num_rows == 20
    for name in ("films.csv", "countries.csv"):
        Path(name).write_text("film\nmine\n")
        assert f"a {name} that the demo did not write" in demo(10).stderr
        Path(name).unlink()
    Path("views.parquet").write_text("no table")
    assert "a views.parquet that the demo did not write" in demo(10).stderr


def test_an_unquoted_pattern_is_explained() -> None:
    result = run("top", "one.csv", "two.csv", *top_line()[2:])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "to read several files, quote the pattern, as in 'data/*.csv', or name their folder" in result.stderr
