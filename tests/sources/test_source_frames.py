"""Frames: types that are stated are kept, types that are not are text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from source_files import histogram, members

from dpselect.errors import InvalidInput


class Unprintable:
    """A value whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("Secret")


def test_a_column_of_python_objects_is_text_whatever_one_person_puts_in() -> None:
    films = ["1", 1, "Heat", "\ud800", Unprintable(), [1, 2], np.nan, None, pandas.NA, b"Heat"]
    table = pandas.DataFrame({"film": pandas.Series(films, dtype=object), "viewer": range(10)})
    assert members(table, ["1", "Heat", "[1, 2]"]) == {2: ["1"], 1: ["Heat", "[1, 2]"]}


def test_the_same_person_written_as_number_and_text_counts_once() -> None:
    table = pandas.DataFrame({"film": ["Heat", "Heat"], "viewer": pandas.Series([7, "7"], dtype=object)})
    assert histogram(table, ["Heat"]) == {1: 1}


def test_missing_numbers_are_nulls() -> None:
    for kind in ("float64", "Int64", "float64[pyarrow]", "int64[pyarrow]", "category"):
        table = pandas.DataFrame({"film": [1, None, 2], "viewer": [1, 1, None]}, dtype="Float64").astype(kind)
        assert members(table, [1, 2]) == {1: [1], 0: [2]}, kind


def test_nan_is_a_null_in_columns_that_can_hold_it() -> None:
    for table in (
        polars.DataFrame({"film": [1.0, float("nan"), None], "viewer": [1.0, 2.0, 3.0]}),
        pyarrow.table({"film": [1.0, float("nan"), 2.0], "viewer": [1.0, 2.0, float("nan")]}),
    ):
        assert histogram(table, 2) == {1: 1, 0: 1}


def test_text_listed_for_a_column_of_floats_is_an_item_nobody_has() -> None:
    table = pandas.DataFrame({"film": [1.0, 2.0, 2.0], "viewer": [1, 1, 2]})
    assert members(table, ["2", "x", "1", "b", "x"]) == {2: ["2"], 1: ["1"], 0: ["b", "x"]}


def test_a_missing_number_does_not_show_in_how_the_others_are_written() -> None:
    for films in ([1, 1, 2], [1, 1, None, 2]):
        found = members(pandas.DataFrame({"film": films, "viewer": range(len(films))}), 2)
        assert found == {2: [1], 1: [2]}
        assert [type(item) for items in found.values() for item in items] == [int, int]
    halves = pandas.DataFrame({"film": [1.5, 2.0], "viewer": [1, 1]})
    assert members(halves, 2) == {1: [1.5, 2]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [polars.Categorical, polars.Enum(["Heat", "Up", "Her"])], ids=str)
@pytest.mark.parametrize("is_lazy", [False, True])
def test_categories_of_polars_are_read_as_their_text(kind: Any, is_lazy: bool) -> None:
    films = polars.Series(["Heat", "Heat", None, "Up"], dtype=kind)
    table = polars.DataFrame({"film": films, "viewer": polars.Series(["Up", "Her", "Her", "Up"], dtype=kind)})
    rows = table.lazy() if is_lazy else table
    assert members(rows, ["Heat", "Up", "Her"]) == {2: ["Heat"], 1: ["Up"], 0: ["Her"]}
    assert members(pandas.DataFrame({"film": ["Up"], "viewer": [1]}), table.select("film")) == {1: ["Up"], 0: ["Heat"]}


@pytest.mark.parametrize("kind", [polars.Int128, polars.Object], ids=str)
def test_types_of_polars_that_arrow_lacks_are_refused_by_name(kind: Any) -> None:
    films = polars.Series([41, 42], dtype=kind)
    table = polars.DataFrame({"film": films, "viewer": [41, 42]})
    for one in (table, table.lazy(), table.clear()):
        with pytest.raises(InvalidInput, match=rf"column 'film' of type {kind}.*; convert it first") as caught:
            histogram(one, 3)
        assert "41" not in str(caught.value)


def test_half_precision_is_read() -> None:
    films = np.array([1.5, 1.5, 2.0], dtype=np.float16)
    for make in (pandas.DataFrame, pyarrow.table, polars.DataFrame):
        assert members(make({"film": films, "viewer": [1, 2, 2]}), [1.5, 2.0]) == {2: [1.5], 1: [2.0]}


STRANGE: dict[str, Any] = {
    "fixed_size_binary[2]": pyarrow.array([b"S1", b"S2"], pyarrow.binary(2)),
    "binary_view": pyarrow.array([b"S1", b"S2"], pyarrow.binary_view()),
    "month_day_nano_interval": pyarrow.array([(1, 2, 3)] * 2, pyarrow.month_day_nano_interval()),
    "run_end_encoded": pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([1, 2], pyarrow.int32()), ["S1", "S2"]),
    "dictionary<values=list": pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1]), pyarrow.array([["S1"], []])),
    "decimal256(60, 2)": pyarrow.array([1, 2], pyarrow.decimal256(60, 2)),
    "Sparse": pandas.Series(pandas.arrays.SparseArray([1, 0])),
}


@pytest.mark.slow
def test_types_that_the_engine_does_not_know_are_refused_by_name() -> None:
    for kind, strange in STRANGE.items():
        make = pandas.DataFrame if isinstance(strange, pandas.Series) else pyarrow.table
        for item, person in (("strange", "other"), ("other", "strange")):
            with pytest.raises(InvalidInput, match=rf"^table.*column 'strange' of type {re.escape(kind)}") as caught:
                histogram(make({"strange": strange, "other": [1, 2]}), 3, item=item, person=person)
            assert caught.value.__context__ is None
        with pytest.raises(InvalidInput, match=r"^domain.*column 'strange'"):
            histogram(pyarrow.table({"film": ["x"], "viewer": [1]}), make({"strange": strange}))


@pytest.mark.slow
def test_a_frame_without_rows_or_types_is_fine() -> None:
    for table in (
        pandas.DataFrame({"film": [], "viewer": []}),
        pandas.DataFrame(columns=["film", "viewer"]),
        polars.DataFrame({"film": [], "viewer": []}),
        pyarrow.table({"film": [], "viewer": []}),
        pandas.DataFrame({"film": [None, None], "viewer": [None, None]}),
        polars.DataFrame({"film": [None], "viewer": [None]}),
    ):
        assert members(table, ["Heat", "Up"]) == {0: ["Heat", "Up"]}, table


@pytest.mark.parametrize(
    "table",
    [
        pandas.DataFrame({"film": [1], "who": [1]}),
        polars.DataFrame({"film": [1], "who": [1]}),
        pyarrow.table({"who": [1]}),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_a_missing_column_is_named_with_those_there_are(table: Any) -> None:
    with pytest.raises(InvalidInput, match=r"column '(viewer|film)'.*there is no such column; the columns are .*'who'"):
        histogram(table, 3)


def test_only_the_first_of_many_columns_are_listed() -> None:
    with pytest.raises(InvalidInput, match=r"'c19' and 80 more$"):
        histogram(pandas.DataFrame({f"c{i}": [1] for i in range(100)}), 3, item="zzz")


def test_two_columns_of_one_name_are_refused() -> None:
    table = pandas.DataFrame([[1, 2, 3]], columns=["film", "film", "viewer"])
    with pytest.raises(InvalidInput, match="several columns of this name"):
        histogram(table, 3)


def test_what_is_no_table_is_refused() -> None:
    for table in (None, 3, [("Heat", "ann")], {"film": ["Heat"]}, pandas.Series(["Heat"]), b"rows.csv"):
        with pytest.raises(InvalidInput, match="must be the path of a file, the URL of an engine, an Ibis table, or a"):
            histogram(table, 3)


def test_column_names_are_two_different_texts() -> None:
    wrong: list[tuple[Any, Any]] = [("film", "film"), ("", "viewer"), ("film", None), (3, "viewer")]
    for item, person in wrong:
        with pytest.raises(InvalidInput):
            histogram(pandas.DataFrame({"film": ["Heat"], "viewer": ["ann"]}), 3, item=item, person=person)
