"""`dpselect forecast`: exact probabilities with a warning, from counts or from people's rows."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.mechanisms import mechanism_for

COUNTS = [240 - 20 * place for place in range(12)]


@pytest.fixture(autouse=True)
def counts_files(folder: Path) -> None:
    """The counts of the people's rows as CSV, JSON lines and Parquet."""
    lines = [f"film {place:02d},{count}" for place, count in enumerate(COUNTS)]
    (folder / "counts.csv").write_text("item,count\n" + "\n".join(lines) + "\n")
    with gzip.open(folder / "counts.csv.gz", "wt") as packed:
        packed.write("item,count\n" + "\n".join(lines) + "\n")
    (folder / "counts.jsonl").write_text("".join(json.dumps({"item": "x", "count": c}) + "\n" for c in COUNTS))
    pyarrow.parquet.write_table(pyarrow.table({"count": COUNTS}), folder / "counts.parquet")
    (folder / "UPPER.CSV").write_text("item;count\n" + "\n".join(lines).replace(",", ";") + "\n")
    (folder / "counts.json").write_text(json.dumps([{"count": count} for count in COUNTS]))


def run(*line: str) -> Any:
    return CliRunner().invoke(app, ["forecast", *line])


def needed(result: Any) -> dict[str, float]:
    return {row["label"]: row["epsilon"] for row in json.loads(result.stdout)["mechanisms"]}


def test_rows_of_which_none_is_counted_are_mentioned() -> None:
    Path("german.csv").write_text("viewer;film;day\nann;film 00;18.11.2026\n")
    rows = ("german.csv", "--item", "film", "--person", "viewer", "--domain", "films.csv", "-k", "1")
    assert "no row is counted" not in run(*rows).stderr
    result = run(*rows, "--time", "day", "--period", "2026-11", "--unfinished")
    assert result.exit_code == 0, result.stderr
    assert "no row is counted" in result.stderr


def test_items_of_which_fewer_than_k_are_counted_are_mentioned() -> None:
    Path("spelling.csv").write_text("viewer,film\nann,film 00\nann,Film 1\nbob,FILM 2\n")
    rows = ("spelling.csv", "--item", "film", "--person", "viewer", "--domain", "films.csv", "-k")
    assert "items counted" not in run(*rows, "1").stderr
    assert "1 of 12 items counted, all others have the score 0" in run(*rows, "2").stderr


@pytest.mark.slow
def test_every_kind_of_file_gives_the_same_forecast_and_the_warning() -> None:
    wanted = {need.label: need.epsilon for need in dps.forecast.compare(np.array(COUNTS), 3).needs}
    rows = ("--item", "film", "--person", "viewer", "--domain", "films.csv")
    files = ("counts.csv", "counts.csv.gz", "counts.jsonl", "counts.parquet", "UPPER.CSV", "counts.json")
    listed = ["some.csv", "--domain", "films.csv", "--domain-column", "film"]
    Path("some.csv").write_text(
        "item,count\nanother,999\n" + "\n".join(Path("counts.csv").read_text().splitlines()[1:])
    )
    for line in (*([file] for file in files), ["views.parquet", *rows], listed):
        result = run(*line, "-k", "3", "--format", "json")
        assert result.exit_code == 0, result.stderr
        assert needed(result) == pytest.approx(wanted)
        assert "not private" in result.stderr


def test_of_lists_the_gaussian_mechanism_is_one_if_a_person_has_few_items() -> None:
    line = ("counts.csv", "-k", "3", "--ordered", "--delta", "1e-6", "--max-items-per-person", "2")
    template = dps.Gaussian(k=3, epsilon=1.0, delta=1e-6, max_items_per_person=2)
    wanted = dps.forecast.smallest_epsilon(COUNTS, template, 0.99)
    assert needed(run(*line, "--format", "json"))["gaussian"] == pytest.approx(wanted, rel=1e-9)
    assert "gaussian" in run(*line).stdout


def test_of_sets_too_laplace_and_gaussian_are_listed_and_judged_by_the_set() -> None:
    few = ("counts.csv", "-k", "3", "--max-items-per-person", "2", "--format", "json")
    assert "gaussian" not in needed(run(*few))
    found = needed(run(*few, "--delta", "1e-6"))
    for template in (
        dps.Laplace(k=3, epsilon=1.0, max_items_per_person=2),
        dps.Gaussian(k=3, epsilon=1.0, delta=1e-6, max_items_per_person=2),
    ):
        wanted = dps.forecast.smallest_epsilon(COUNTS, template, 0.99, ordered=False)
        assert found[template.name] == pytest.approx(wanted, rel=1e-9)


def test_the_table_without_an_epsilon_shows_several() -> None:
    result = run("counts.csv", "-k", "3")
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert all(text in result.stdout for text in ("ε = 0.01", "ε = 10", "ε for 0.99", "Limit: no pure mechanism"))
    exact = dps.forecast.forecast(COUNTS, dps.Canonical(k=3, epsilon=0.1), draws=0).exact
    assert exact is not None
    assert f"{exact.value:.3g}" in result.stdout


@pytest.mark.slow
def test_the_table_at_an_epsilon_marks_what_was_simulated() -> None:
    result = run("counts.csv", "-k", "3", "--epsilon", "0.2", "--draws", "50")
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "Top 3 at epsilon = 0.2" in result.stdout
    assert "from 50 draws" in result.stdout
    canonical = next(line for line in result.stdout.splitlines() if line.startswith("│canonical "))
    outlook = dps.forecast.forecast(COUNTS, dps.Canonical(k=3, epsilon=0.2), draws=0)
    assert outlook.exact is not None
    assert f" {outlook.exact.value:.3g} " in canonical
    assert "≈" not in canonical
    assert "≈" not in run("counts.csv", "-k", "3", "--epsilon", "0.2", "--draws", "0").stdout


def test_the_default_of_the_aim_is_marked_and_described() -> None:
    line = ("counts.csv", "-k", "3", "--epsilon", "0.2", "--ordered", "--draws", "0")
    for aim, label in (("most", "oneshot"), ("exact", "joint")):
        told = " ".join(run(*line, "--aim", aim).stdout.split())
        right = dps.forecast.forecast(
            COUNTS, mechanism_for("auto", k=3, epsilon=0.2, ordered=True, aim=aim), draws=0
        ).correct
        assert right is not None
        assert f"Expected with {label} (the default): {right.value:.3g} of 3 right" in told
        rows = csv.DictReader(io.StringIO(run(*line, "--aim", aim, "--format", "csv").stdout))
        assert [row["label"] for row in rows if row["default"] == "True"] == [label]


def test_json_and_csv_carry_intervals() -> None:
    line = ("counts.csv", "-k", "3", "--epsilon", "0.2", "--draws", "50", "--ordered", "--format")
    data = json.loads(run(*line, "json").stdout)
    rows = list(csv.DictReader(io.StringIO(run(*line, "csv").stdout)))
    assert data["private"] is False
    assert data["epsilon"] == 0.2
    for row, line_of_csv in zip(data["mechanisms"], rows, strict=True):
        assert row["label"] == line_of_csv["label"]
        assert row["forecast"]["exact"]["exact"]
        for name in ("exact", "great", "total_error"):
            figure = row["forecast"][name]
            assert figure["low"] <= figure["value"] <= figure["high"]
            assert float(line_of_csv[f"{name}_high"]) == figure["high"]


@pytest.mark.slow
def test_a_plot_is_written() -> None:
    result = run("counts.csv", "-k", "3", "--epsilon", "0.2", "--draws", "0", "--plot", "plot.svg")
    assert result.exit_code == 0, result.stderr
    assert Path("plot.svg").stat().st_size > 5000


BAD = [
    ("none.csv -k 1", "FILE 'none.csv' no such file"),
    ("counts.csv -k 13", "-k 13 12"),
    ("counts.csv -k 2 --epsilon 0", "--epsilon 0.0 positive"),
    ("counts.csv -k 2 --accuracy 1.5", "--accuracy 1.5"),
    ("counts.csv -k 2 --plot plot.pdf", "--plot 'plot.pdf' .png"),
    ("counts.csv -k 2 --epsilon 1 --draws 1", "--draws 1"),
    ("counts.csv -k 2 --domain films.csv", "--domain 'films.csv' 'film' --domain-column"),
    ("counts.csv -k 2 --domain counts.csv", "--domain 'counts.csv' file of counts"),
    ("counts.csv -k 2 --domain 12", "--domain '12' file unknown"),
    ("secret.csv -k 1 --item item", "--count finite numbers at least 0"),
    ("negative.csv -k 1 --item item", "--count finite numbers at least 0"),
    ("empty.csv -k 1 --item item", "without rows"),
    ("views.parquet -k 2", "FILE column 'count' --count --item"),
    ("views.parquet -k 2 --item film", "FILE 'count' --item --count --person"),
    ("views.parquet -k 2 --person viewer", "--item must be stated"),
    ("empty.csv -k 1", "without rows"),
    ("secret.csv -k 1", "FILE 'count'"),
    ("gap.csv -k 1", "without a count"),
    ("negative.csv -k 1", "FILE"),
    ("views.parquet -k 2 --item film --person viewer --domain 12 --value viewer", "--clip value"),
    ("views.parquet -k 2 --item film --person viewer --domain 12 --sensitivity 0 5", "--sensitivity --person --clip"),
    ("counts.csv -k 2 --sensitivity 5 0", "--sensitivity"),
]


def test_bad_input_is_refused_without_quoting_a_row() -> None:
    """Each word must be in the message."""
    Path("empty.csv").write_text("item,count\n")
    Path("secret.csv").write_text("item,count\nx,hush\n")
    Path("gap.csv").write_text("item,count\nx,3\ny,\n")
    Path("negative.csv").write_text("item,count\nx,3\ny,-77\n")
    for line, words in BAD:
        result = run(*line.split())
        assert (result.exit_code, result.stdout) == (2, ""), line
        assert [word for word in words.split() if word not in result.stderr] == [], result.stderr
        assert "hush" not in result.stderr
        assert "77" not in result.stderr


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ("--table views", "--table"),
        ("--where 'count > 3'", "--where"),
        ("--time day --period 2026-W41", "--period"),
        ("--value minutes --clip 0 9", "--value"),
        ("--weight trust", "--weight"),
    ],
)
def test_a_file_of_counts_has_no_rows_to_choose_from(options: str, option: str) -> None:
    result = run("counts.csv", "-k", "3", *shlex.split(options))
    assert result.exit_code == 2
    assert f"{option} must be left out without --person" in result.stderr


def test_a_forecast_counts_the_rows_that_top_would_count() -> None:
    rows = shlex.split("--item film --person viewer --domain films.csv -k 2 --epsilon 0.5 --draws 0 --format json")
    some = run("views.parquet", *rows, "--where", "viewer <> 'viewer 7'")
    table = pyarrow.parquet.read_table("views.parquet")
    kept = [viewer != "viewer 7" for viewer in table["viewer"].to_pylist()]
    pyarrow.parquet.write_table(table.filter(kept), "kept.parquet")
    assert some.exit_code == 0, some.stderr
    assert some.stdout == run("kept.parquet", *rows).stdout != run("views.parquet", *rows).stdout


MINUTES = {place: 11 + 5 * place for place in range(12)}
"""What every viewer of a film saw of it: another order than by the number of viewers."""
SCORES = [
    ("--value minutes --clip 0 20", [count * min(MINUTES[place], 20) for place, count in enumerate(COUNTS)], (0, 20)),
    ("--weight trust", [count * (place + 1) / 16 for place, count in enumerate(COUNTS)], (0, 1)),
    (
        "--value minutes --clip 0 20 --weight trust",
        [count * min(MINUTES[place], 20) * (place + 1) / 16 for place, count in enumerate(COUNTS)],
        (0, 20),
    ),
]


@pytest.fixture
def minutes() -> str:
    """Options that name rows with values and weights."""
    rows = [(f"film {place:02d}", f"viewer {v}", place) for place in range(12) for v in range(COUNTS[place])]
    columns = {
        "film": [film for film, _, _ in rows],
        "viewer": [viewer for _, viewer, _ in rows],
        "minutes": [MINUTES[place] for _, _, place in rows],
        "trust": [(place + 1) / 16 for _, _, place in rows],
        "land": ["Peru"] * len(rows),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), "minutes.parquet")
    Path("lands.csv").write_text("land\nPeru\n")
    return "minutes.parquet --item film --person viewer -k 3 --draws 0 --format json"


@pytest.mark.parametrize(("options", "scores", "moves"), SCORES, ids=[options for options, _, _ in SCORES])
def test_sums_and_weights_are_forecast_as_top_scores_them(
    minutes: str, options: str, scores: list[float], moves: tuple[float, float]
) -> None:
    sensitivity = dps.Sensitivity(*moves)
    known = f"{minutes} {options} --epsilon 0.02"
    found = json.loads(run(*shlex.split(f"{known} --domain films.csv")).stdout)["mechanisms"]
    wanted = dps.forecast.compare(scores, 3, epsilon=0.02, draws=0, sensitivity=sensitivity).to_dict()["mechanisms"]
    assert found == json.loads(json.dumps(wanted))
    assert 0 < found[0]["forecast"]["exact"]["value"] < 0.999
    [group] = json.loads(run(*shlex.split(f"{known} --domain films.csv --by land --groups lands.csv")).stdout)["groups"]
    charts = dps.forecast.forecast_groups({"Peru": scores}, 3, epsilon=0.02, draws=0, sensitivity=sensitivity)
    assert [group] == json.loads(json.dumps(charts.to_dict()["groups"]))
    asked = f"{minutes} {options} --domain unknown --epsilon 1 --delta 1e-6 --max-items-per-person 12"
    unknown = json.loads(run(*shlex.split(asked)).stdout)
    expected = dps.forecast.compare_unknown(
        scores, 3, epsilon=1.0, delta=1e-6, draws=0, sensitivity=sensitivity, pool=30, max_items_per_person=12
    )
    assert unknown == json.loads(json.dumps(expected.to_dict()))
    assert "discovered" not in [row["mechanism"]["name"] for row in unknown["mechanisms"]]


def test_counts_that_a_person_moves_by_more_are_forecast_with_what_select_is_told() -> None:
    line = "counts.csv -k 3 --epsilon 0.2 --draws 0 --format json --sensitivity 0 5"
    found = json.loads(run(*line.split()).stdout)
    wanted = dps.forecast.compare(COUNTS, 3, epsilon=0.2, draws=0, sensitivity=dps.Sensitivity(0, 5)).to_dict()
    assert found == json.loads(json.dumps(wanted))
    unknown = f"{line} --domain unknown --delta 1e-6 --max-items-per-person 3"
    listed = json.loads(run(*unknown.split()).stdout)
    assert "discovery" not in listed
    assert {row["mechanism"]["sensitivity"]["high"] for row in listed["mechanisms"]} == {5}


@pytest.mark.parametrize("options", ["", "--item item", "--by land", "--item item --by land"])
def test_scores_below_0_are_forecast_if_a_sensitivity_is_stated_as_select_takes_them(
    tmp_path: Path, options: str
) -> None:
    file = tmp_path / "sums.csv"
    file.write_text("item,land,count\ntea,Peru,2\nmate,Peru,-3\nmilk,Peru,-9\n")
    line = [str(file), *f"-k 1 --epsilon 0.2 --draws 0 --format json {options}".split()]
    found = json.loads(run(*line, "--sensitivity", "-1", "1").stdout)
    moves = dps.Sensitivity(-1, 1)
    wanted = dps.forecast.compare([2, -3, -9], 1, epsilon=0.2, draws=0, sensitivity=moves).to_dict()
    if "--by" in options:
        wanted = dps.forecast.forecast_groups(
            {"Peru": [2, -3, -9]}, 1, epsilon=0.2, draws=0, sensitivity=moves
        ).to_dict()
    assert found == json.loads(json.dumps(wanted))
    refused = run(*line)
    assert refused.exit_code == 2
    assert "at least 0" in refused.stderr


def test_a_forecast_keeps_as_many_items_of_each_person_as_top(minutes: str) -> None:
    """Of viewers 0 to 19, who saw all films, one is kept each; viewers 220 to 239 saw only the first film."""
    few = f"{minutes} --max-items-per-person 1 --epsilon 0.5 --delta 1e-6"
    found = json.loads(run(*shlex.split(f"{few} --domain films.csv")).stdout)["mechanisms"]
    assert {"laplace", "gaussian"} <= {row["label"] for row in found}
    every = json.loads(run(*shlex.split(f"{minutes} --epsilon 0.5 --domain films.csv")).stdout)["mechanisms"]
    assert found[0]["forecast"]["exact"] != every[0]["forecast"]["exact"]
    unknown = json.loads(run(*shlex.split(f"{few} --domain unknown")).stdout)
    assert unknown["mechanisms"][-1]["mechanism"]["name"] == "discovered"
    # Items that more people have than anybody's one item allows would be listed more often.
    counts = dps.forecast.expected_discovered(COUNTS, dps.Discovery(epsilon=0.5, delta=1e-6, max_items_per_person=1))
    assert 0 < unknown["discovery"]["listed"] < counts
