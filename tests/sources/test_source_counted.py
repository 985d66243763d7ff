"""read_counts: private counts in a file, a rule for every cell, and no error that depends on one."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpselect as dps
from dpselect.sources import Domain, read_counts


def written(folder: Path, text: str) -> Path:
    file = folder / "counts.csv"
    file.write_text(text)
    return file


def test_every_kind_of_file_gives_the_same_scores(tmp_path: Path) -> None:
    counts = {"Heat": 3, "Up, up": 12, "Her": 0}
    rows = [{"item": item, "count": count} for item, count in counts.items()]
    written(tmp_path, 'item,count\nHeat,3\n"Up, up",12\nHer,0\n')
    (tmp_path / "counts.tsv").write_text("count\titem\n3\tHeat\n12\tUp, up\n0\tHer\n")
    (tmp_path / "counts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "counts.json").write_text(json.dumps(rows))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "counts.parquet")
    files = list(tmp_path.iterdir())
    assert len(files) == 5
    for file in files:
        assert read_counts(file) == counts, file.name


CELLS = {
    "7": 7,
    "007": 7,
    " 7 ": 7,
    "7.0": 7,
    "2.5": 2.5,
    "1e3": 1000,
    "": 0,
    "-3": 0,
    "-0": 0,
    "many": 0,
    "<5": 0,
    "nan": 0,
    "inf": 0,
    "-inf": 0,
    "1e999": 0,
    "1,000": 0,
    str(2**53): 2**53,
    str(2**53 + 9): 2**53,
    "1e300": 2**53,
}


@pytest.mark.parametrize("cell", CELLS)
def test_each_cell_is_read_by_a_rule_of_its_own(cell: str, tmp_path: Path) -> None:
    file = written(tmp_path, f'item,count\nother,5\nodd,"{cell}"\n')
    assert read_counts(file) == {"other": 5, "odd": CELLS[cell]}


def test_scores_that_are_not_counts_may_be_negative(tmp_path: Path) -> None:
    file = written(tmp_path, "item,count\na,-3\nb,-1e300\nc,x\n")
    assert read_counts(file, negative=True) == {"a": -3, "b": -(2**53), "c": 0}


def test_a_list_decides_which_items_there_are(tmp_path: Path) -> None:
    file = written(tmp_path, "film,viewers\nHeat,3\nUp,12\nHeat,9\n,4\n")
    (tmp_path / "films.csv").write_text("film\nHeat\nBig\n")
    for domain in (["Heat", "Big"], tmp_path / "films.csv"):
        assert read_counts(file, item="film", count="viewers", domain=Domain.of(domain)) == {"Heat": 9, "Big": 0}
    assert read_counts(file, item="film", count="viewers") == {"Heat": 9, "Up": 12}


def test_items_keep_the_type_of_the_column(tmp_path: Path) -> None:
    days = [date(2026, 11, 15), date(2026, 11, 16)]
    file = tmp_path / "counts.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"item": days, "count": [4, 5]}), file)
    assert read_counts(file, domain=Domain.of(["2026-11-16", "2026-11-17"])) == {"2026-11-16": 5, "2026-11-17": 0}
    assert read_counts(file) == dict(zip(days, [4, 5], strict=True))
    pyarrow.parquet.write_table(pyarrow.table({"item": [1, 2], "count": [4.5, None]}), file)
    assert read_counts(file) == {1: 4.5, 2: 0}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": "film"}, "no column 'film'; name the columns with --item and --count"),
        ({"count": "n"}, "no column 'n'; name the columns"),
        ({"item": "count"}, "count must be another column"),
        ({"count": "flag"}, "count must be numbers, got column 'flag' of type boolean"),
        ({"item": "nested"}, "item must be text, numbers"),
    ],
)
def test_columns_that_cannot_be_used_are_refused_by_name_and_type(
    columns: dict[str, str], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "counts.parquet"
    table = pyarrow.table({"item": ["a"], "count": [1], "flag": [True], "nested": [[1]]})
    pyarrow.parquet.write_table(table, file)
    with pytest.raises(dps.InvalidInput, match=message):
        read_counts(file, **columns)


@pytest.mark.parametrize("line", ["odd,many", "odd,-1", "odd,", "odd,nan", "odd", "odd,1,2"])
def test_only_the_curator_is_told_of_a_cell_and_never_which_one(line: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"item,count\nother,5\n{line}\n")
    assert read_counts(file)["other"] == 5
    with pytest.raises(dps.InvalidInput) as refused:
        read_counts(file, curator=True)
    assert "odd" not in str(refused.value)
    assert "other" not in str(refused.value)


def test_a_file_without_rows_lists_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, "item,count\n")
    assert read_counts(file) == {}
    assert read_counts(file, domain=Domain.of(["a"])) == {"a": 0}


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x01"), min_size=1, max_size=5)
CELL = st.one_of(
    st.integers(-3, 40).map(str),
    st.floats(-2.0, 40.0).map(str),
    st.sampled_from(["nan", "inf", "-inf", "", "<5", "1e400"]),
    TEXT,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.sampled_from("abcdef"), CELL), max_size=8), listed=st.booleans())
def test_any_file_is_read_and_every_item_gets_its_highest_readable_count(
    rows: list[tuple[str, str]], listed: bool, tmp_path: Path
) -> None:
    lines = io.StringIO()
    csv.writer(lines, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("item", "count"), *rows])
    file = tmp_path / "counts.csv"
    file.write_text(lines.getvalue())
    wanted: dict[str, Any] = dict.fromkeys("abcxy", 0) if listed else {}
    for item, cell in rows:
        if not listed or item in wanted:
            wanted[item] = max(wanted.get(item, 0), _expected(cell))
    assert read_counts(file, domain=Domain.of(list("abcxy")) if listed else None) == wanted


def _expected(cell: str) -> float:
    """Return the rule for one cell; Python and DuckDB agree on ASCII numbers."""
    try:
        number = float(cell) if cell.isascii() else 0.0
    except ValueError:
        return 0.0
    return min(max(number, 0.0), 2.0**53) if math.isfinite(number) else 0.0


@pytest.mark.slow
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 9), st.integers(0, 1)), min_size=1, max_size=6),
    negative=st.booleans(),
)
def test_the_promise_on_the_rows_holds_for_the_scores(
    rows: list[tuple[str, int, int]], negative: bool, tmp_path: Path
) -> None:
    """If a person moves every count of the file by 0 to 1, they move every score by 0 to 1, also of repeated items."""
    file, listed = tmp_path / "counts.csv", Domain.of(list("abc"))
    found = []
    for present in (0, 1):
        file.write_text("item,count\n" + "".join(f"{item},{count + present * more}\n" for item, count, more in rows))
        found.append(read_counts(file, domain=listed, negative=negative))
    assert all(0 <= found[1][item] - found[0][item] <= 1 for item in found[0])
