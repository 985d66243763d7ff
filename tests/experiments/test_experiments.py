"""The experiments compute what they say, and reproduce the tables of the manual where the data are."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpselect as dps
from dpselect.forecast import forecast, proven_limit, smallest_epsilon, swap_yardstick

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments import __main__ as command  # noqa: E402
from experiments import data, margin, ordered, ordered_margin  # noqa: E402

DATA = Path(os.environ.get("DPSELECT_DATA", ROOT.parent / "shared" / "data"))
with_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real data are not there; DPSELECT_DATA names their folder"
)

TABLE = {
    ("netflix", 1): [0.00949, 0.00475, 0.00499, 0.00436, 0.00411],
    ("netflix", 10): [0.00478, 0.00329, 0.00263, 0.00237, 0.00209, 0.00182],
    ("netflix", 100): [0.301, 0.297, 0.156, 0.135, 0.129, 0.126],
    ("dpbench/PATENT", 10): [0.160, 0.135, 0.0824, 0.0755, 0.0657, 0.0649],
    ("dpbench/SEARCHLOGS", 100): [1.68, 1.54, 0.92, 0.837, 0.739, 0.652],
    ("dpbench/INCOME", 100): [0.00671, 0.00819, 0.00448, 0.00447, 0.00290, 0.00250],
    ("games_steam", 10): [0.122, 0.094, 0.0898, 0.0884, 0.0527, 0.0509],
    ("books_goodreads", 100): [0.00435, 0.00435, 0.00224, 0.00194, 0.00186, 0.00185],
    ("dpbench/MEDCOST", 100): [16.7, 23.6, 16.4, 16.3, 5.72, 8.95],
    ("Zipf s=0.04", 1000): [10.6, 12.2, 5.55],
}
"""Mathematics, section 3: published γ=½ and γ=1, margin with Gumbel and exponential noise, swap yardstick, limit."""

COLUMNS = [
    "published γ=½, gumbel",
    "published γ=1, gumbel",
    "margin γ=½, gumbel",
    "margin γ=½, exponential",
    "swap yardstick",
    "proven limit",
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "160"}
    command = [sys.executable, "-m", "experiments", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)


def test_the_epsilon_found_is_the_one_at_which_the_mechanism_has_the_chance() -> None:
    counts = data.long_tail(60, 500)
    for gamma, with_margin, noise in margin.VARIANTS.values():
        epsilon = margin.epsilon_for_top(counts, 5, gamma, with_margin, noise)
        mechanism = dps.Canonical(k=5, epsilon=epsilon, gamma=gamma, noise=noise, margin=with_margin)
        assert mechanism.classes(counts).probability_of_top() == pytest.approx(0.99, abs=1e-9)


def test_no_mechanism_goes_below_the_limit_and_the_margin_comes_closest() -> None:
    counts = data.long_tail(60, 500)
    needed = {name: margin.epsilon_for_top(counts, 5, *settings) for name, settings in margin.VARIANTS.items()}
    assert min(needed, key=lambda name: needed[name]) == "margin γ=½, exponential"
    assert min(needed.values()) > proven_limit(counts, 5, 0.99)


def test_zipf_counts_follow_their_law() -> None:
    counts = data.zipf(10_000, 0.04)
    assert counts.sum() == pytest.approx(1.5e8, rel=1e-5)
    assert counts[0] / counts[999] == pytest.approx(1000**0.04, rel=1e-4)


@pytest.mark.slow
def test_an_experiment_whose_data_sets_are_missing_is_skipped(tmp_path: Path) -> None:
    finished = run("margin", "--data", str(tmp_path), "--out", str(tmp_path / "out"))
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("skipped: margin needs a data set that is missing: ")
    assert "netflix.csv.gz" in finished.stdout
    assert not (tmp_path / "out").exists()


def test_an_experiment_without_a_folder_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("margin", "ordered", "auto"):
        for arguments in ([], ["--data", "no-such-folder"]):
            assert command.main([name, *arguments]) == 0
            assert capsys.readouterr().out.startswith(f"skipped: {name} ")


@with_data
@pytest.mark.long
def test_the_table_of_the_margin_is_reproduced_to_three_digits(tmp_path: Path) -> None:
    finished = run("margin", "--data", str(DATA), "--out", str(tmp_path))
    assert finished.returncode == 0, finished.stderr
    with (tmp_path / "margin.csv").open(encoding="utf-8", newline="") as file:
        rows: dict[Any, Any] = {(row["data"], int(row["k"])): row for row in csv.DictReader(file)}
    assert rows.keys() == TABLE.keys()
    for case, expected in TABLE.items():
        found = [float(f"{float(rows[case][column]):.3g}") for column in COLUMNS[: len(expected)]]
        assert found == expected, case
        held_only, both = (float(rows[case][f"{kind}, exponential"]) for kind in ("published γ=1", "margin γ=½"))
        assert (held_only < both) == (case[1] == 1), "auto takes γ = 1 for one item, and γ = ½ for more"
        assert f"{expected[0]:.3g}" in finished.stdout


ORDERED = {
    ("netflix", 10): 0.0674,
    ("netflix", 50): 0.978,
    ("books_goodreads", 10): 2.81e-4,
    ("games_steam", 10): 1.30,
    ("dpbench/INCOME", 50): 0.0277,
    ("dpbench/MEDCOST", 10): 3.95,
    ("dpbench/NETTRACE", 10): 0.172,
}
"""Mathematics, section 4: the ordered swap yardstick."""


@with_data
def test_the_ordered_yardstick_is_reproduced_and_lies_above_the_limit() -> None:
    for (name, k), expected in ORDERED.items():
        counts = data.real(DATA, name)
        yardstick = swap_yardstick(counts, dps.Joint(k=k, epsilon=1.0), 0.99)
        assert float(f"{yardstick:.3g}") == expected
        assert 0.8 * yardstick < proven_limit(counts, k, 0.99, ordered=True) < yardstick


@with_data
@pytest.mark.slow
def test_the_table_of_the_margin_for_sequences_is_reproduced_within_half_a_percent() -> None:
    for row in ordered_margin.rows(DATA):
        off = [abs(value) for label, value in row.items() if label.endswith("%")]
        assert len(off) == 3
        assert max(off) <= 0.5, row


@with_data
@pytest.mark.slow
def test_joint_needs_less_than_peeling_from_two_items_on() -> None:
    for counts in ordered.data_sets(DATA).values():
        for k in (1, 2, 3, 5):
            joint = smallest_epsilon(counts, dps.Joint(k=k, epsilon=1.0), ordered.WANTED)
            peeling = forecast(counts, dps.Peeling(k=k, epsilon=joint), draws=0).exact
            assert peeling is not None
            assert (peeling.value < ordered.WANTED - 1e-9) == (k >= 2)
