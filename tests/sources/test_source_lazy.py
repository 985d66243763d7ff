"""Lazy tables are read like any engine's: after the release is charged, and without a word of what they say."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest

import dpselect as dps

SECRET = "rare-disease"
ASKED: dict[str, Any] = {"item": "film", "person": "viewer", "k": 1, "epsilon": 1.0}


def polars_frame() -> Any:
    rows = polars.LazyFrame({"film": ["1", SECRET], "viewer": [1, 2]})
    return rows.with_columns(polars.col("film").cast(polars.Int64))


def duckdb_relation() -> Any:
    return duckdb.sql(
        f"SELECT film::INTEGER AS film, viewer FROM (VALUES ('1', 1), ('{SECRET}', 2)) AS t (film, viewer)"
    )


def arrow_reader() -> Any:
    def batches() -> Iterator[pyarrow.RecordBatch]:
        yield pyarrow.record_batch({"film": [1], "viewer": [1]})
        raise ValueError(SECRET)

    schema = pyarrow.schema([("film", pyarrow.int64()), ("viewer", pyarrow.int64())])
    return pyarrow.RecordBatchReader.from_batches(schema, batches())


@pytest.mark.parametrize("failing", [polars_frame, duckdb_relation, arrow_reader])
def test_one_that_fails_on_a_row_is_charged_and_quotes_nothing(failing: Callable[[], Any], tmp_path: Path) -> None:
    with dps.privacy.Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("films", epsilon=2.0)
        with pytest.raises(dps.errors.SourceError) as caught:
            dps.top(failing(), domain=[1, 2], ledger=ledger, dataset="films", **ASKED)
        assert ledger.remaining("films").epsilon == 1.0
    assert SECRET not in str(caught.value) + repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("failing", [polars_frame, duckdb_relation, arrow_reader])
def test_what_is_wrong_with_its_columns_costs_nothing(failing: Callable[[], Any], tmp_path: Path) -> None:
    with dps.privacy.Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("films", epsilon=2.0)
        for wrong in ({"item": "Film"}, {"where": "year > 2020"}, {"where": "no_such_function(viewer)"}):
            with pytest.raises(dps.InvalidInput):
                dps.top(failing(), domain=[1, 2], ledger=ledger, dataset="films", **{**ASKED, **wrong})
        assert ledger.remaining("films").epsilon == 2.0


CHARGEABLE: dict[str, dict[str, Any]] = {
    "list": {"domain": ["Heat", "Up"]},
    "number": {"domain": 9, "max_items_per_person": 1, "delta": 0.4},
    "unknown": {"domain": dps.UNKNOWN, "delta": 1e-3},
    "filter": {"domain": ["Heat", "Up"], "where": "viewer <> 'cem'"},
}


@pytest.mark.parametrize("kind", CHARGEABLE)
def test_the_record_is_there_when_the_first_row_is_read(kind: str, tmp_path: Path) -> None:
    with dps.ledger.Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("films", epsilon=2.0, delta=0.5)
        entries_at_reading: list[int] = []

        def batches() -> Iterator[pyarrow.RecordBatch]:
            entries_at_reading.append(len(ledger.entries("films")))
            yield pyarrow.record_batch({"film": ["Heat"], "viewer": ["ann"]})

        schema = pyarrow.schema([("film", pyarrow.string()), ("viewer", pyarrow.string())])
        reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
        dps.top(reader, ledger=ledger, dataset="films", **ASKED, **CHARGEABLE[kind])
        assert entries_at_reading == [1]


def test_a_reader_is_read_once_also_with_a_filter() -> None:
    rows = pyarrow.table({"film": ["Heat"] * 9 + ["Up"], "viewer": range(10)})
    release = dps.top(rows.to_reader(), domain=["Heat", "Up"], where="viewer < 9", **{**ASKED, "epsilon": 100.0})
    assert release.items == ["Heat"]


class OnceOnly:
    """A stream of Arrow data that is none of the known libraries' and can be opened once."""

    columns = ("film", "viewer")

    def __init__(self, rows: pyarrow.Table) -> None:
        self.rows: pyarrow.Table | None = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        rows, self.rows = self.rows, None
        assert rows is not None
        return rows.to_reader().__arrow_c_stream__(requested_schema)


def test_a_stream_of_another_library_is_opened_once() -> None:
    rows = OnceOnly(pyarrow.table({"film": ["Heat"] * 9 + ["Up"], "viewer": range(10)}))
    release = dps.top(rows, domain=["Heat", "Up"], where="viewer < 9", **{**ASKED, "epsilon": 100.0})
    assert release.items == ["Heat"]


def test_a_column_of_a_relation_that_duckdb_cannot_tell_from_another_is_refused() -> None:
    rows = duckdb.sql("SELECT 'Heat' AS film, 'Up' AS \"Film\", 1 AS viewer")
    with pytest.raises(dps.InvalidInput, match="differs in case only"):
        dps.top(rows, domain=["Heat", "Up"], **ASKED)


def test_a_member_of_an_enumeration_is_its_text_whatever_else_the_column_holds() -> None:
    class Film(str, enum.Enum):  # noqa: UP042 (a StrEnum shows its text by itself)
        HEAT = "Heat"

    rows = pandas.DataFrame({"film": pandas.Series([Film.HEAT] * 9 + [3], dtype=object), "viewer": range(10)})
    for table in (rows, rows[:9]):
        assert dps.top(table, domain=["Heat", "Up"], **{**ASKED, "epsilon": 100.0}).items == ["Heat"]
