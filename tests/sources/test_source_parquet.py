"""Parquet: no condition is answered from statistics, columns are found by their exact names, types are the schema's."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow
import pyarrow.parquet
import pytest

import dpselect as dps
from dpselect.sources import Contribution, Domain, open_counts

NAN = float("nan")


def scores(table: Any, *, items: list[Any], **options: Any) -> dict[Any, Any]:
    """Return the score of each item."""
    arguments = {"item": "film", "person": "viewer", "domain": Domain.of(items), "k": 1, **options}
    with open_counts(table, **arguments) as counts:
        values, numbers = counts.histogram()
        places = [(value, index) for value, number in zip(values, numbers, strict=True) for index in range(number)]
        found = counts.fetch([value for value, _ in places], [index for _, index in places])
    return {item: value for item, (value, _) in zip(found, places, strict=True)}


def write(folder: Path, name: str, **columns: Any) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / name)
    return folder / name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_one_row_does_not_decide_whether_those_beside_it_are_read(tmp_path: Path) -> None:
    """All people of Heat have NaN. One more person of Up must not change whether DuckDB skips them."""
    kept = {"amount > 5": 100, "isnan(amount)": 100, "amount IN (4, 'NaN'::DOUBLE)": 100, "amount IS NULL": 0}
    for more in (0, 1):
        films = ["Heat"] * 100 + ["Up"] * (100 + more)
        amounts = [NAN] * 100 + [3.0] * 100 + [10.0] * more
        path = write(tmp_path, f"{more}.parquet", film=films, amount=amounts, viewer=range(200 + more))
        backend = ibis.duckdb.connect()
        for table in (path, backend.read_parquet(str(path))):
            for where, people in kept.items():
                assert scores(table, items=["Heat", "Up"], where=where)["Heat"] == people, where
        backend.disconnect()


def test_nan_is_dropped_like_a_null(tmp_path: Path) -> None:
    rows = write(tmp_path, "rows.parquet", film=["Heat", "Heat", "Up"], amount=[NAN, 1.0, NAN], viewer=[1, 2, 3])
    for options in (("amount", (0, 5), None), ("amount", (-5, 5), None), (None, None, "amount")):
        contribution = Contribution.of(*options, None)
        assert scores(rows, items=["Heat", "Up"], contribution=contribution) == {"Heat": 1, "Up": 0}
    floats = write(tmp_path, "floats.parquet", film=[1.0, NAN, 1.0, 2.0], viewer=[1.0, 2.0, NAN, 4.0])
    assert scores(floats, items=[1.0, 2.0]) == {1.0: 1, 2.0: 1}


def test_names_that_differ_in_case_or_look_like_a_duplicate_are_columns_of_their_own(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.parquet", Film=["x"], film=["y"], film_1=["z"], viewer=[1])
    for name, item in (("Film", "x"), ("film", "y"), ("film_1", "z")):
        assert scores(path, item=name, items=["x", "y", "z"])[item] == 1
    assert scores(path, items=["y"], where="Film = 'x' AND film_1 = 'z'") == {"y": 1}
    with pytest.raises(dps.InvalidInput, match=r"column 'FILM'.*no such column"):
        scores(path, items=["y"], where="FILM = 'x'")


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    rows = pyarrow.table([["x"], ["y"], [1]], names=["film", "film", "viewer"])
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet")
    with pytest.raises(dps.InvalidInput, match="several columns of this name"):
        scores(tmp_path / "rows.parquet", items=["x"])


def test_files_with_other_columns_beside_and_in_another_order_are_one_table(tmp_path: Path) -> None:
    write(tmp_path, "1.parquet", film=["x"], FILM=["a"], viewer=[1])
    write(tmp_path, "2.parquet", FILM=["b"], viewer=[2], more=[0], film=["x"])
    write(tmp_path, "3.parquet", viewer=["three"], film=["y"])
    assert scores(tmp_path, items=["x", "y", "a"]) == {"x": 2, "y": 1, "a": 0}


def test_decimals_of_more_digits_than_the_engine_has_are_refused_by_their_type(tmp_path: Path) -> None:
    long = pyarrow.array([decimal.Decimal(10) ** 39, decimal.Decimal(10) ** 39 + 1], pyarrow.decimal256(45, 0))
    for column in ("film", "viewer"):
        columns = {"film": ["x", "x"], "viewer": [1, 2], column: long}
        with pytest.raises(dps.InvalidInput, match="decimal256"):
            scores(write(tmp_path, "rows.parquet", **columns), items=["x"])


def test_a_header_of_a_megabyte_is_read(tmp_path: Path) -> None:
    names = ",".join(f"column{i}" for i in range(100_000))
    (tmp_path / "rows.csv").write_text(f"{names},film,viewer\n" + "," * 100_000 + "x,1\n")
    assert scores(tmp_path / "rows.csv", items=["x"]) == {"x": 1}


def test_a_header_of_more_than_two_megabytes_is_refused(tmp_path: Path) -> None:
    names = ",".join(f"column{i}" for i in range(200_000))
    (tmp_path / "rows.csv").write_text(f"{names},film,viewer\n" + "," * 200_000 + "x,1\n")
    with pytest.raises(dps.InvalidInput, match="its first line is longer than"):
        scores(tmp_path / "rows.csv", items=["x"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_conditions_inside_views_and_expressions_of_the_caller_are_not_answered_from_statistics(tmp_path: Path) -> None:
    for more in (0, 1):
        films, amounts = ["Heat"] * 3 + ["Up"] * (2 + more), [NAN] * 3 + [3.0] * 2 + [10.0] * more
        path = write(tmp_path, f"{more}.parquet", film=films, amount=amounts, viewer=range(5 + more))
        backend = ibis.duckdb.connect()
        table = backend.read_parquet(str(path))
        view = f"CREATE VIEW kept AS SELECT * FROM read_parquet('{path}') WHERE amount > 5"
        backend.con.execute(view)
        with duckdb.connect(str(tmp_path / f"{more}.duckdb")) as connection:
            connection.execute(view)
        expected = {"Heat": 3, "Up": more}
        assert scores(table.filter(table.amount > 5), items=["Heat", "Up"]) == expected
        assert scores(backend.table("kept"), items=["Heat", "Up"]) == expected
        url = f"duckdb://{tmp_path / f'{more}.duckdb'}"
        assert scores(url, table_name="kept", items=["Heat", "Up"]) == expected
        assert backend.con.execute("SELECT current_setting('disabled_optimizers')").fetchone() == ("",)
        backend.disconnect()


def test_times_that_files_store_in_other_ways_are_converted_row_by_row(tmp_path: Path) -> None:
    near = pyarrow.array([datetime.datetime(2020, 1, 1)], pyarrow.timestamp("ns"))
    far = pyarrow.array([datetime.datetime(9999, 1, 1)], pyarrow.timestamp("us"))
    write(tmp_path, "1.parquet", film=["x"], viewer=[1], seen=near)
    rows = pyarrow.table({"film": ["y"], "viewer": [2], "seen": far})
    pyarrow.parquet.write_table(rows, tmp_path / "2.parquet", use_deprecated_int96_timestamps=True)
    assert scores(tmp_path, items=["x", "y"], where="seen > '2019-01-01'")["x"] == 1


def test_only_the_columns_that_are_asked_for_become_known_to_the_engine(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.parquet", **{f"c{i}": [i] for i in range(3000)}, film=["x"], viewer=[1])
    with open_counts(path, item="film", person="viewer", domain=Domain.of(["x"]), k=1) as counts:
        views = counts._engine.connection.execute(
            "SELECT column_count FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    assert max(number for (number,) in views) <= 2


@pytest.mark.slow
def test_three_thousand_conditions_are_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlglot

    parsed: list[int] = []
    original = sqlglot.parser.Parser.parse

    def counting(self: Any, tokens: Any, sql: Any = None) -> Any:
        parsed.append(len(tokens))
        return original(self, tokens, sql)

    monkeypatch.setattr(sqlglot.parser.Parser, "parse", counting)
    path = write(tmp_path, "rows.parquet", film=["x"], viewer=[1], n=[1])
    assert scores(path, items=["x"], where=" AND ".join(f"n <> {-i}" for i in range(3000))) == {"x": 1}
    assert sum(number > 9000 for number in parsed) <= 2
