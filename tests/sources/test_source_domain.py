"""The public domain: what is accepted, how it is matched, and what is refused."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections.abc import Callable
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


@pytest.mark.slow
def test_every_kind_of_list_is_the_same_domain() -> None:
    for kind, domain in LISTS.items():
        found = members(arrow(ROWS), domain)
        assert found == {2: ["Heat"], 1: ['Say "when", twice', "Up", "Ærø ☃"], 0: ["Alien", "Her"]}, kind


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_csv, write_json, write_parquet], ids=["csv", "jsonl", "parquet"])
def test_a_file_can_list_the_domain(write: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "list").mkdir()
    domain = write(tmp_path / "list", [(film, "x") for film in [*FILMS, *FILMS, None]])
    for table in (write_csv(tmp_path, ROWS), arrow(ROWS)):
        assert histogram(table, domain) == {2: 1, 1: 3, 0: 2}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("title,year\nHeat,1995\n", "several columns and none is called 'film'"),
        ("film\nGood, bad and ugly\n", "as many fields in every line as in the header"),
        ('film\n"Good,\nbad"\n', "no line break within quotes"),
        ("film\n", "must have at least one item"),
        ("", "it is empty"),
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


def test_times_in_an_array_are_matched_as_times() -> None:
    for unit in ("ns", "us", "s"):
        times = np.array(["2020-02-29T12:30", "2021-01-01", "NaT"], dtype=f"datetime64[{unit}]")
        table = pyarrow.table({"film": times, "viewer": [1, 2, 3]})
        assert members(table, times) == {1: [datetime(2020, 2, 29, 12, 30), datetime(2021, 1, 1)]}, unit


def test_times_that_microseconds_would_round_stay_as_they_are() -> None:
    times = np.array(["2020-02-29T12:30:00.000000001", "2020-02-29T12:30:00.000000002"], dtype="datetime64[ns]")
    assert members(pyarrow.table({"film": times[:1], "viewer": [1]}), times) == {1: [times[0]], 0: [times[1]]}


def test_a_list_without_a_common_type_is_called_a_list() -> None:
    table = pyarrow.table({"film": [1, 1, 20], "viewer": ["ann", "bob", "ann"]})
    with pytest.raises(InvalidInput, match=r"domain must have items of type int64.*got a list; 1 of them"):
        histogram(table, [1, 2**70])


def test_an_item_that_the_column_cannot_hold_is_refused() -> None:
    table = pyarrow.table({"film": [1, 1, 20], "viewer": ["ann", "bob", "ann"]})
    for stranger in ("Heat", 3.7, "3.7", 10**30, "1e400"):
        with pytest.raises(InvalidInput, match="must have items of type int64, as the table's column 'film' has"):
            histogram(table, [1, stranger] if not isinstance(stranger, str) else ["1", stranger])


def test_what_is_no_domain_is_refused() -> None:
    for given in ([], [None, float("nan")], 0, -3, True, 2.5, None, b"films", np.zeros((2, 2)), object()):
        with pytest.raises(InvalidInput) as caught:
            Domain.of(given)
        assert caught.value.argument == "domain", type(given)


def test_an_unknown_domain_is_a_thing_of_its_own() -> None:
    assert Domain.of(UNKNOWN) == Domain(unknown=True)
    assert copy.deepcopy(UNKNOWN) is UNKNOWN
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN


def test_numpy_integers_state_a_number() -> None:
    assert Domain.of(np.int64(12)).number == 12
    assert Domain.of(np.array(12)).number == 12


def test_a_stated_number_below_what_is_observed_is_refused_without_saying_how_many() -> None:
    with pytest.raises(
        InvalidInput, match=r"must be at least the number of distinct items in the table.* got 4"
    ) as caught:
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
        pytest.raises(InvalidInput, match=r"k must be at most 2 .the number of items in the domain., got 3"),
        open_counts(path, item="film", person="viewer", domain=domain, k=3),
    ):
        pass


def test_an_unseen_item_reads_well_and_is_plain_in_json() -> None:
    assert str(Unseen(2)) == "(unseen item 2)"
    assert json.dumps(Unseen(2).to_json_value()) == '{"unseen": 2}'
