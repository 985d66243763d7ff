"""The experiments compute what they say, and reproduce the tables of the manual where the data are."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpselect as dps

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from dpselect.forecast import chances  # noqa: E402
from experiments import data, errors, margin, oneshot, ordered  # noqa: E402

DATA = Path(os.environ.get("DPSELECT_DATA", ROOT.parent / "shared" / "data"))
with_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real data are not there; DPSELECT_DATA names their folder"
)

SMALL = [[9, 7, 4, 4, 1, 0], [6, 6, 5, 5, 5, 0], [30, 20, 10, 2, 1, 0]]
TABLE = {
    ("netflix", 1): [0.00949, 0.00475, 0.00499, 0.00436, 0.00411],
    ("netflix", 10): [0.00478, 0.00329, 0.00263, 0.00237, 0.00209],
    ("netflix", 100): [0.301, 0.297, 0.156, 0.135, 0.129],
    ("dpbench/PATENT", 10): [0.160, 0.135, 0.0824, 0.0755, 0.0657],
    ("dpbench/INCOME", 100): [0.00671, 0.00819, 0.00448, 0.00447, 0.00290],
    ("books_goodreads", 100): [0.00435, 0.00435, 0.00224, 0.00194, 0.00186],
    ("Zipf s=0.04", 1000): [10.6, 12.2, 5.55],
}
"""Mathematics, section 3: published γ=½ and γ=1, margin with Gumbel and exponential noise, swap limit."""

COLUMNS = [
    "published γ=½, gumbel",
    "published γ=1, gumbel",
    "margin γ=½, gumbel",
    "margin γ=½, exponential",
    "swap limit",
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "160"}
    command = [sys.executable, "-m", "experiments", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("counts", SMALL)
@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
@pytest.mark.parametrize(("gamma", "with_margin"), [(0.5, True), (0.5, False), (1.0, False), (0.25, True)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_chance_of_the_top_set_is_that_of_the_law(
    counts: list[int], noise: str, gamma: float, with_margin: bool, epsilon: float
) -> None:
    mechanism = dps.Canonical(k=2, epsilon=epsilon, gamma=gamma, noise=noise, margin=with_margin)
    classes = mechanism.classes(counts)
    others = classes.heads < 2
    found = chances.chance_of_best(0.0, classes.log_sizes[others], epsilon * classes.losses[others], noise)
    assert found == pytest.approx(mechanism.law(counts)[frozenset({0, 1})], rel=1e-9)


@pytest.mark.parametrize("counts", SMALL)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_chance_of_one_shot_selection_is_that_of_the_law(counts: list[int], k: int, epsilon: float) -> None:
    law = dps.OneShot(k=k, epsilon=epsilon).law(counts)
    found = oneshot.oneshot_chance(np.array(counts), k, epsilon)
    assert found == pytest.approx(law[frozenset(range(k))], rel=1e-9)


@pytest.mark.parametrize("counts", SMALL)
@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_chance_of_the_top_sequence_is_that_of_the_law(
    counts: list[int], noise: str, k: int, epsilon: float
) -> None:
    levels = dps.Joint(k=k, epsilon=epsilon).levels(counts)
    joint = chances.chance_of_best(
        float(levels.log_sizes[0]), levels.log_sizes[1:], epsilon / 2 * levels.losses[1:], noise
    )
    peeling = ordered.peeling_chance(np.array(counts), k, epsilon, noise)
    assert joint == pytest.approx(_exact(dps.Joint(k=k, epsilon=epsilon, noise=noise), counts), rel=1e-9)
    assert peeling == pytest.approx(_exact(dps.Peeling(k=k, epsilon=epsilon, noise=noise), counts), rel=1e-9)


def _exact(mechanism: dps.Mechanism, counts: list[int]) -> float:
    """The probability of a sequence without loss, straight from the law."""
    top = counts[: mechanism.k]
    return sum(chance for sequence, chance in mechanism.law(counts).items() if [counts[i] for i in sequence] == top)


@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
def test_chances_stay_right_where_sizes_leave_the_range_of_floats(noise: str) -> None:
    """A class of e^2000 outcomes at weight e^-2000 is like one outcome beside another, up to half the failures."""
    found = chances.chance_of_best(0.0, np.array([2000.0]), np.array([2000.0]), noise)
    assert found == pytest.approx(0.5 if noise == "gumbel" else 1 - np.exp(-1.0), rel=1e-9)
    assert chances.chance_of_best(5000.0, np.array([2000.0]), np.array([1.0]), noise) == pytest.approx(1.0, rel=1e-12)


def test_the_epsilon_found_is_the_one_at_which_the_mechanism_has_the_chance() -> None:
    counts = data.long_tail(60, 500)
    for gamma, with_margin, noise in margin.VARIANTS.values():
        epsilon = margin.epsilon_for_top(counts, 5, gamma, with_margin, noise)
        mechanism = dps.Canonical(k=5, epsilon=epsilon, gamma=gamma, noise=noise, margin=with_margin)
        assert mechanism.classes(counts).probability_of_top() == pytest.approx(0.99, abs=1e-9)
    joint = dps.Joint(k=5, epsilon=ordered.joint_epsilon(counts, 5))
    assert joint.levels(counts).probability_of_best() == pytest.approx(0.99, abs=1e-9)


def test_no_mechanism_goes_below_the_gap_limit_and_the_margin_comes_closest() -> None:
    counts = data.long_tail(60, 500)
    needed = {name: margin.epsilon_for_top(counts, 5, *settings) for name, settings in margin.VARIANTS.items()}
    assert min(needed, key=lambda name: needed[name]) == "margin γ=½, exponential"
    assert min(needed.values()) > margin.gap_limit(counts, 5)
    assert margin.swap_limit(counts, 5) > margin.gap_limit(counts, 5)


def test_errors_are_those_of_the_definition() -> None:
    true, chosen = np.array([9, 7, 4]), np.array([[9, 4, 7], [7, 9, 1]])
    assert errors.largest_error(true, chosen) == 3.0
    assert errors.relative_error(true, chosen) == 1.5
    sure = errors.draws(dps.Joint(k=2, epsilon=1.0), np.array([9000, 5000, 10]), 3)
    assert sure.tolist() == [[9000, 5000]] * 3


def test_zipf_counts_follow_their_law() -> None:
    counts = data.zipf(10_000, 0.04)
    assert counts.sum() == pytest.approx(1.5e8, rel=1e-5)
    assert counts[0] / counts[999] == pytest.approx(1000**0.04, rel=1e-4)


NAMES = ["margin", "ordered", "errors", "delta"]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_without_the_data_sets_is_no_mistake(name: str, tmp_path: Path) -> None:
    finished = run(name, "--data", str(tmp_path), "--out", str(tmp_path / "out"))
    assert finished.returncode == 0, finished.stderr
    first = "netflix" if name == "margin" else "games_steam"
    assert finished.stdout.startswith(f"skipped: {name} needs a data set that is not there: ")
    assert f"{first}.csv.gz" in finished.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", [[], ["--data", "no-such-folder"]])
def test_without_data_an_experiment_says_so_and_is_content(name: str, arguments: list[str]) -> None:
    finished = run(name, *arguments)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith(f"skipped: {name} ")


@with_data
@pytest.mark.slow
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


@with_data
@pytest.mark.slow
def test_joint_needs_less_than_peeling_from_three_items_on() -> None:
    """What "auto" rests on for sequences."""
    for counts in ordered.data_sets(DATA).values():
        for k in (1, 2, 3, 5):
            joint = ordered.joint_epsilon(counts, k)
            assert (ordered.peeling_chance(counts, k, joint) < ordered.WANTED - 1e-9) == (k >= 3)
