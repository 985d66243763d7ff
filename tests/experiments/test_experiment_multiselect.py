"""The experiments on the ring and with feature vectors: what the tables say, and that the commands need no data."""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments import __main__ as command  # noqa: E402
from experiments import features, ring  # noqa: E402


def test_on_a_ring_laplace_noise_costs_more_where_epsilon_is_small() -> None:
    found = {(row["k"], row["ε"]): row for row in ring.rows(None, (1, 2), (0.375, 3.0), 60)}
    assert found[2, 0.375]["more, %"] == pytest.approx(4.8, abs=0.1)
    assert found[2, 0.375]["peaks"] == 2
    assert found[2, 3.0]["more, %"] < 0.01
    assert found[1, 0.375]["more, %"] < 1e-6, "with one answer Laplace noise is the best"
    assert found[1, 0.375]["peaks"] == 1


def test_peaks_are_counted_as_runs() -> None:
    for heights, count in (((0, 1, 2, 1), 1), ((0, 1, 0, 1), 2), ((0, 0, 1, 1), 1), ((0, 0), 0)):
        assert ring.peaks(heights) == count


@pytest.mark.slow
def test_errors_fall_with_epsilon_and_with_k_as_claimed() -> None:
    """O(1/(ε k^{1/d'})): in one dimension nearly 1/k, in three nearly its third root, where results lie close."""
    found = {(row["d'"], row["ε"], row["k"]): row for row in features.rows(None, (4.0, 16.0), (1, 16))}
    for dimensions in (1, 2, 3):
        single, many = (found[dimensions, 16.0, k] for k in (1, 16))
        slope = np.log(single["error in d'"] / many["error in d'"]) / np.log(16)
        assert slope == pytest.approx(1 / dimensions, rel=0.25)
        assert many["error in d'"] == pytest.approx(many["of the offsets"], rel=0.15)
        assert 3 < found[dimensions, 4.0, 1]["error in d'"] / single["error in d'"] < 5
        assert many["without noise"] < many["error in all"] < single["error in all"]


@pytest.mark.slow
def test_vectors_of_films_tell_tastes_apart(tmp_path: Path) -> None:
    """Two groups of viewers with films of their own: whoever was held out lies nearest to a film of their group."""
    generator = np.random.default_rng(0)
    path = tmp_path / features.DATA_SET / "pairs.csv.gz"
    path.parent.mkdir()
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "item"])
        for user in range(160):
            group = user % 2
            writer.writerows((user, 40 * group + int(film)) for film in generator.permutation(40)[:12])
    vectors, people = features.films(path)
    assert vectors.shape[1] == people.shape[1] == features.FEATURES
    assert len(people) == 40
    leading = features.FeatureServer(np.vstack([vectors, people]), 1, 1.0, dimensions=1)
    sides = leading.reduce(people)[:, 0] > 0
    assert 5 < sides.sum() < 35
    gaps = np.sort(leading.reduce(people)[:, 0])
    assert np.diff(gaps).max() > 5 * np.median(np.diff(gaps)), "two groups with a gap between them"
    assert {row["data"] for row in features.rows(tmp_path, (16.0,), (1,))} == {features.DATA_SET, "generated"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ring", "features"])
def test_the_command_needs_no_data_and_writes_table_and_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module: Any = {"ring": ring, "features": features}[name]
    few = list(ring.rows(None, (2,), (0.375, 1.0), 24) if name == "ring" else features.rows(None, (16.0,), (1, 4)))
    monkeypatch.setattr(module, "rows", lambda data: iter(few))
    assert command.main([name, "--out", str(tmp_path)]) == 0
    assert f"{few[0]['ε']:g}" in capsys.readouterr().out
    with (tmp_path / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(few)
    assert "<text" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
