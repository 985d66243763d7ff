"""Attack: one person's row decides what a condition does to the rows of others, or whether there is an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import pytest

import dpselect as dps

NAN = float("nan")


def payments(folder: Path, *, with_ann: bool) -> Path:
    """Write a hundred people with an amount that is no number, three with 3, and Ann with 10, to a Parquet file."""
    columns = {
        "film": ["Heat"] * 100 + ["Up"] * 3 + ["Up"] * with_ann,
        "viewer": list(range(103)) + [103] * with_ann,
        "amount": [NAN] * 100 + [3.0] * 3 + [10.0] * with_ann,
        "note": ["1"] * 103 + ["one"] * with_ann,
    }
    path = folder / f"payments {with_ann}.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def naive_counts(path: Path, where: str) -> dict[str, int]:
    """Return the people of each film, as the engine counts them."""
    with duckdb.connect() as engine:
        query = f"SELECT film, count(DISTINCT viewer) FROM '{path}' WHERE {where} GROUP BY film"
        return dict(engine.execute(query).fetchall())


def private_counts(path: Path, where: str) -> dict[str, int]:
    """Return the published counts; the epsilon is so large that they are the true ones."""
    question: dict[str, Any] = {"item": "film", "person": "viewer", "k": 2, "domain": ["Heat", "Up"], "where": where}
    release = dps.top(path, **question, epsilon=1000.0, values=0.5)
    return dict(zip(release.items, release.values, strict=True))


def test_one_row_decides_about_a_hundred_others_through_the_statistics_of_a_file(tmp_path: Path) -> None:
    """Without Ann the largest amount in the statistics is 3, so that the engine skips the rows with NaN as well."""
    without, with_ann = (naive_counts(payments(tmp_path, with_ann=each), "amount > 5") for each in (False, True))
    assert without == {}
    assert with_ann == {"Heat": 100, "Up": 1}


def test_one_row_moves_a_published_count_by_one_whatever_the_statistics_say(tmp_path: Path) -> None:
    without, with_ann = (private_counts(payments(tmp_path, with_ann=each), "amount > 5") for each in (False, True))
    assert without == {"Heat": 100, "Up": 0}
    assert with_ann == {"Heat": 100, "Up": 1}


def test_one_row_on_which_a_condition_fails_ends_a_naive_query_with_its_text(tmp_path: Path) -> None:
    condition = "CAST(note AS INTEGER) > 0"
    assert naive_counts(payments(tmp_path, with_ann=False), condition) == {"Heat": 100, "Up": 3}
    with pytest.raises(duckdb.ConversionException, match="'one'"):
        naive_counts(payments(tmp_path, with_ann=True), condition)


def test_one_row_on_which_a_condition_fails_is_left_out_of_a_release(tmp_path: Path) -> None:
    for with_ann in (False, True):
        counts = private_counts(payments(tmp_path, with_ann=with_ann), "CAST(note AS INTEGER) > 0")
        assert counts == {"Heat": 100, "Up": 3}
