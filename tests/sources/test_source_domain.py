"""The public domain: what is accepted, how it is matched, and what is refused."""

from __future__ import annotations

import copy
import json
import os
import pickle
from datetime import date, datetime
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from source_files import FILMS, ROWS, arrow, histogram, members, write_csv, write_json, write_parquet

from dpselect.errors import InvalidInput, SourceError
from dpselect.sources import UNKNOWN, Domain, Unseen, open_counts

LISTS: dict[str, Any] = {
    "list": FILMS,
    "tuple": tuple(FILMS),
    "set": set(FILMS),
    "dict": dict.fromkeys(FILMS, 1),
    "array": np.array(FILMS),
    "object array": np.array(FILMS, dtype=object),
    "Series": pandas.Series(FILMS),
    "Index": pandas.Index(FILMS),
    "polars Series": polars.Series(FILMS),
    "Arrow array": pyarrow.array(FILMS),
    "frame": pandas.DataFrame({"film": FILMS, "year": range(6)}),
    "frame with one column": pandas.DataFrame({"title": FILMS}),
    "polars frame": polars.DataFrame({"film": FILMS}),
    "Arrow table": pyarrow.table({"film": FILMS}),
    "Ibis table": ibis.memtable(pyarrow.table({"film": FILMS})),
    "duplicates and nulls": [*FILMS, None, *FILMS, float("nan"), pandas.NA, pandas.NaT],
}


@pytest.mark.parametrize("kind", LISTS)
def test_every_kind_of_list_is_the_same_domain(kind: str) -> None:
    found = members(arrow(ROWS), LISTS[kind])
    assert found == {2: ["Heat"], 1: ['Say "when", twice', "Up", "Ærø ☃"], 0: ["Alien", "Her"]}


@pytest.mark.parametrize("table", ["csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("listed", ["csv", "jsonl", "parquet"])
def test_a_file_can_list_the_domain(table: str, listed: str, tmp_path: Path) -> None:
    write = {"csv": write_csv, "jsonl": write_json, "parquet": write_parquet, "arrow": lambda _, rows: arrow(rows)}
    (tmp_path / "list").mkdir()
    domain = write[listed](tmp_path / "list", [(film, "x") for film in [*FILMS, *FILMS, None]])
    assert histogram(write[table](tmp_path, ROWS), domain) == {2: 1, 1: 3, 0: 2}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("title,year\nHeat,1995\n", "a column 'film', as in the table, or a single column is needed"),
        ("film\nGood, bad and ugly\n", "every line needs as many fields as the first"),
        ("film\n", "at least one possible item is needed"),
        ("", "a single column is needed"),
    ],
)
def test_a_list_that_cannot_be_understood_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(InvalidInput, match=complaint) as caught:
        histogram(arrow(ROWS), tmp_path / "list.csv")
    assert caught.value.argument == "domain"


def test_numbers_in_a_list_are_matched_with_text_by_their_text_form(tmp_path: Path) -> None:
    path = write_csv(tmp_path, [("1", "ann"), ("2.5", "ann"), ("1", "bob"), ("2020-02-29", "ann")])
    domain = [1, 2.5, date(2020, 2, 29), 3]
    assert members(path, domain) == {2: [1], 1: [2.5, date(2020, 2, 29)], 0: [3]}


def test_text_in_a_list_is_matched_with_numbers_by_their_value() -> None:
    table = pyarrow.table({"film": [1, 1, 20], "viewer": ["ann", "bob", "ann"]})
    assert members(table, ["1", "20", "300"]) == {2: ["1"], 1: ["20"], 0: ["300"]}
    assert members(table, [1.0, 20.0]) == {2: [1.0], 1: [20.0]}
    assert members(table, ["1", 1, "01"]) == {2: ["1"]}


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
def test_times_in_an_array_are_matched_as_times(unit: str) -> None:
    times = np.array(["2020-02-29T12:30", "2021-01-01", "NaT"], dtype=f"datetime64[{unit}]")
    table = pyarrow.table({"film": times, "viewer": [1, 2, 3]})
    found = members(table, times)
    assert found == {1: [datetime(2020, 2, 29, 12, 30), datetime(2021, 1, 1)]}


def test_times_that_microseconds_would_round_stay_as_they_are() -> None:
    times = np.array(["2020-02-29T12:30:00.000000001", "2020-02-29T12:30:00.000000002"], dtype="datetime64[ns]")
    assert members(pyarrow.table({"film": times[:1], "viewer": [1]}), times) == {1: [times[0]], 0: [times[1]]}


def test_a_list_without_a_common_type_is_called_a_list() -> None:
    table = pyarrow.table({"film": [1, 1, 20], "viewer": ["ann", "bob", "ann"]})
    with pytest.raises(InvalidInput, match="domain: a list was given; 1 of its items cannot be read as int64"):
        histogram(table, [1, 2**70])


@pytest.mark.parametrize("stranger", ["Heat", 3.7, "3.7", 10**30, "1e400"])
def test_an_item_that_the_column_cannot_hold_is_refused(stranger: Any) -> None:
    table = pyarrow.table({"film": [1, 1, 20], "viewer": ["ann", "bob", "ann"]})
    with pytest.raises(
        InvalidInput, match="1 of its items cannot be read as int64, the type of the table's column 'film'"
    ):
        histogram(table, [1, stranger] if not isinstance(stranger, str) else ["1", stranger])


@pytest.mark.parametrize(
    "given",
    [[], [None, float("nan")], 0, -3, True, 2.5, None, b"films", np.zeros((2, 2)), object()],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_domain_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        Domain.of(given)
    assert caught.value.argument == "domain"


def test_an_unknown_domain_is_a_thing_of_its_own() -> None:
    assert Domain.of(UNKNOWN) == Domain(unknown=True)
    assert copy.deepcopy(UNKNOWN) is UNKNOWN
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN


def test_numpy_integers_state_a_number() -> None:
    assert Domain.of(np.int64(12)).number == 12
    assert Domain.of(np.array(12)).number == 12


def test_a_stated_number_below_what_is_observed_is_refused_without_saying_how_many() -> None:
    with pytest.raises(InvalidInput, match="4 was given; the table holds more distinct items than that") as caught:
        histogram(arrow(ROWS), 4)
    assert "5" not in str(caught.value)


def test_k_is_compared_with_the_distinct_items_of_the_list_before_any_row_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    write_csv(tmp_path, [(os.urandom(30).hex(), "ann") for _ in range(10_000)], "rows.csv.gz")
    path.write_bytes(path.read_bytes()[:-12])
    domain = Domain.of(["Heat", "Heat", "Up", None])
    with pytest.raises(SourceError):
        histogram(path, 10**6)
    with (
        pytest.raises(InvalidInput, match="k: 3 was given; a number from 1 to 2"),
        open_counts(path, item="film", person="viewer", domain=domain, k=3),
    ):
        pass


def test_an_unseen_item_reads_well_and_is_plain_in_json() -> None:
    assert str(Unseen(2)) == "(unseen item 2)"
    assert json.dumps(Unseen(2).to_json_value()) == '{"unseen": 2}'
