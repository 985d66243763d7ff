"""Every way into `dpselect.top`: which tables it can hold, how they are written, and what a cell means there.

To add a source, derive from `Source`, say in `kinds` and `holds` what it can hold, write a table in `opened`, override
`read` where the manual says that a cell means something else there, and put it into `EMBEDDED`.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import gzip
import io
import itertools
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
from neighbour_conditions import conditions_of
from neighbour_oracle import Beyond
from neighbour_tables import DECOY, OBJECTS, Case, Genre, Json, Mark, Nested, Table

TYPES = {
    "text": pyarrow.string(),
    "integer": pyarrow.int64(),
    "float": pyarrow.float64(),
    "decimal": pyarrow.decimal128(12, 2),
    "boolean": pyarrow.bool_(),
    "date": pyarrow.date32(),
    "timestamp": pyarrow.timestamp("us"),
}
EPOCH = datetime.datetime(1970, 1, 1)

Opened = Iterator[dict[str, Any]]


class Source:
    """A way in. Columns have types, unless `as_text`; `hashes`: the kinds whose text the manual fixes."""

    name: str
    kinds = frozenset(TYPES)
    dialect = "duckdb"
    as_text = False
    tells_case = True
    hashes = frozenset({"text", "integer", "boolean", "date"})

    @property
    def conditions(self) -> dict[str, Any]:
        """The conditions that can be asked for, by their SQL."""
        return conditions_of(self.dialect)

    def holds(self, kind: str, cell: Any) -> bool:
        """Tell whether a column of that kind can have that cell."""
        return cell is not Mark.INVALID

    def read(self, kind: str, cell: Any) -> Any:
        """Return what a cell means; None is a null."""
        if cell is None or cell is Mark.INVALID:
            return None
        if kind in ("date", "timestamp"):
            return _moment(kind, cell)
        return cell

    def is_readable(self, cells: tuple[Any, ...]) -> bool:
        """Tell whether a row can be parsed at all."""
        return True

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Write the table and yield the arguments with which `top` reads it."""
        raise NotImplementedError

    def listing(self, folder: Path, items: pyarrow.Table, variant: int) -> Any:
        """Return a public table of items as the argument `domain`."""
        frames: list[Callable[[Any], Any]] = [lambda table: table, polars.from_arrow, _arrow_backed]
        return frames[variant % 3](items)

    def where(self, case: Case) -> str | None:
        """Return the condition in SQL."""
        if case.question.where is None:
            return None
        quote = "`" if self.dialect == "spark" else '"'
        names = {
            role: quote + case.table.name(role).replace(quote, 2 * quote) + quote for role in ("amount", "note", "item")
        }
        if self.as_text:
            names["amount"] = f"TRY_CAST({names['amount']} AS DOUBLE)"
        return case.question.where.format(**names)


def _moment(kind: str, cell: int) -> Any:
    try:
        if kind == "date":
            return EPOCH.date() + datetime.timedelta(days=cell)
        return EPOCH + datetime.timedelta(microseconds=cell)
    except OverflowError:
        return Beyond(cell)


def arrow(table: Table) -> Any:
    """Return the table as an Arrow table in the plain type of each kind."""
    columns = {table.name(role): _array(kind, table.cells(role)) for role, kind in table.kinds.items()}
    if table.decoy is not None:
        columns = {table.decoy: pyarrow.array([DECOY] * len(table.rows), pyarrow.string()), **columns}
    return pyarrow.table(columns)


def _array(kind: str, cells: list[Any]) -> Any:
    if kind == "date":
        return pyarrow.array(cells, pyarrow.int32()).cast(TYPES[kind])
    if kind == "timestamp":
        return pyarrow.array(cells, pyarrow.int64()).cast(TYPES[kind])
    if kind != "text":
        return pyarrow.array(cells, TYPES[kind], from_pandas=False)
    # Nobody checks that what is called text in Arrow is UTF-8.
    data = [b"\xff" if cell is Mark.INVALID else cell.encode() if cell is not None else None for cell in cells]
    return pyarrow.Array.from_buffers(
        TYPES[kind], len(data), pyarrow.array(data, pyarrow.binary()).buffers(), null_count=data.count(None)
    )


class TextFile(Source):
    """A file in which everything is text."""

    as_text = True
    hashes = frozenset({*TYPES, "mixed"})

    def read(self, kind: str, cell: Any) -> Any:
        """Return the text as written."""
        if cell is None or cell is Mark.INVALID:
            return None
        if kind in ("date", "timestamp"):
            return _moment(kind, cell).isoformat()
        if isinstance(cell, Json | Nested):
            return cell.text
        if isinstance(cell, bool):
            return str(cell).lower()
        return str(cell)

    def holds(self, kind: str, cell: Any) -> bool:
        """Leave out what can only be a Python object, and moments that have no text."""
        if isinstance(cell, Genre | datetime.date) or cell in (Mark.NA, Mark.NAT) or kind == "timestamp":
            return False
        return kind != "date" or cell is None or not isinstance(_moment(kind, cell), Beyond)


class Csv(TextFile):
    name = "csv"
    kinds = frozenset(TYPES) - {"timestamp"}

    def holds(self, kind: str, cell: Any) -> bool:
        """Leave out line breaks, which begin another row."""
        return super().holds(kind, cell) and not (isinstance(cell, str) and "\n" in cell)

    def is_readable(self, cells: tuple[Any, ...]) -> bool:
        """Tell whether every cell is UTF-8 without the control character 1."""
        return not any(cell is Mark.INVALID or (isinstance(cell, str) and "\x01" in cell) for cell in cells)

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Write the file with one of the delimiters and one of the line ends, plain or compressed."""
        table, variant = case.table, case.variant
        ending, delimiter = [("csv", ","), ("csv", ";"), ("tsv", "\t"), ("txt", "|"), ("csv.gz", ","), ("csv", ",")][
            variant
        ]
        header = io.StringIO()
        names = [*([] if table.decoy is None else [table.decoy]), *(table.name(role) for role in table.kinds)]
        csv.writer(header, delimiter=delimiter, lineterminator="").writerow(names)
        lines = [header.getvalue().encode()]
        for row in table.rows:
            fields = [self._field(kind, cell) for kind, cell in zip(table.kinds.values(), row, strict=True)]
            lines.append(delimiter.encode().join([*([] if table.decoy is None else [DECOY.encode()]), *fields]))
        data = b"".join(line + (b"\r\n" if variant == 5 else b"\n") for line in lines)
        path = folder / f"rows.{ending}"
        path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
        yield {"table": path}

    def _field(self, kind: str, cell: Any) -> bytes:
        if cell is Mark.INVALID:
            return b"\xff"
        text = self.read(kind, cell)
        return b"" if text is None else b'"' + text.replace('"', '""').encode() + b'"'


class JsonLines(TextFile):
    name = "json lines"
    kinds = frozenset(TYPES) - {"timestamp"} | {"mixed"}
    endings = ("jsonl", "ndjson", "json", "jsonl.gz", "jsonl", "json")

    def is_readable(self, cells: tuple[Any, ...]) -> bool:
        """Tell whether every cell is UTF-8."""
        return not any(cell is Mark.INVALID for cell in cells)

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Write the file: missing fields for nulls in some, keys that come twice in others."""
        records = [self._record(case, row) for row in case.table.rows]
        path = folder / f"rows.{self.endings[case.variant]}"
        data = self.file(records)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        yield {"table": path}

    def file(self, records: list[bytes]) -> bytes:
        """Return the text of the file."""
        return b"".join(record + b"\n" for record in records)

    def _record(self, case: Case, row: tuple[Any, ...]) -> bytes:
        table, variant = case.table, case.variant
        fields = [] if table.decoy is None else [(table.decoy, json.dumps(DECOY).encode())]
        for (role, kind), cell in zip(table.kinds.items(), row, strict=True):
            if cell is not None or variant % 2:
                fields.append((table.name(role), self._value(kind, cell, variant)))
        if variant == 4:
            fields.append((table.name("item"), json.dumps(DECOY).encode()))
        return b"{" + b", ".join(json.dumps(name).encode() + b": " + value for name, value in fields) + b"}"

    def _value(self, kind: str, cell: Any, variant: int) -> bytes:
        if cell is Mark.INVALID:
            return b'"\xff"' if variant % 2 else b'"\\ud800"'
        text = self.read(kind, cell)
        if text is None:
            return b"null"
        is_text = isinstance(cell, str | Decimal) or text in ("nan", "inf", "-inf") or kind == "date"
        return json.dumps(text, ensure_ascii=variant % 2 == 0).encode() if is_text else text.encode()


class JsonArray(JsonLines):
    name = "json array"
    endings = ("json", "json", "json", "json.gz", "json", "json")

    def file(self, records: list[bytes]) -> bytes:
        """Return the text of the file."""
        return b" [" + b",\n".join(records) + b"]\n"


class Parquet(Source):
    name = "parquet"

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Write one file, by either of two writers."""
        path = folder / "rows.parquet"
        _write_parquet(path, arrow(case.table), case.variant)
        yield {"table": path}


class ParquetGroups(Source):
    name = "parquet, several row groups"

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Write one file in groups of few rows."""
        path = folder / "rows.parquet"
        pyarrow.parquet.write_table(
            arrow(case.table), path, row_group_size=1 + case.variant % 3, use_dictionary=case.variant < 3
        )
        yield {"table": path}


class ParquetFolder(Source):
    name = "parquet, several files"

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Write three files, of which some may have no rows."""
        rows = arrow(case.table)
        for number in range(3):
            part = rows.take(pyarrow.array(range(number, len(rows), 3), pyarrow.int64()))
            _write_parquet(folder / f"part{number}.parquet", part, case.variant)
        yield {"table": folder if case.variant % 2 else folder / "*.parquet"}


def _write_parquet(path: Path, rows: Any, variant: int) -> None:
    """Write by Arrow, with statistics, or by DuckDB, with Bloom filters too; DuckDB's columns do not differ by case."""
    names = [name.lower() for name in rows.column_names]
    if variant < 3 or len(set(names)) < len(names):
        pyarrow.parquet.write_table(rows, path)
        return
    with contextlib.closing(duckdb.connect()) as connection:
        connection.register("given", rows)
        connection.execute(f"COPY given TO '{path}' (FORMAT parquet)")


class Pandas(Source):
    """Columns of NumPy's types, where NaN is what pandas takes for missing; whole numbers may become floats."""

    name = "pandas"
    kinds = frozenset({"text", "integer", "float", "timestamp"})
    hashes = frozenset({"text"})

    def holds(self, kind: str, cell: Any) -> bool:
        """Leave out whole numbers that floats merge, and text that Arrow, which pandas keeps text in, cannot hold."""
        return super().holds(kind, cell) and not (kind == "integer" and cell is not None and abs(cell) > 2**53)

    def read(self, kind: str, cell: Any) -> Any:
        """Return the value; NaN is a null."""
        found = super().read(kind, cell)
        return None if found != found else found

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Yield the frame."""
        yield {"table": self.frame(case)}

    def frame(self, case: Case) -> Any:
        """Return the frame, with the decoy if there is one."""
        table = case.table
        columns = {} if table.decoy is None else {table.decoy: pandas.Series([DECOY] * len(table.rows))}
        for role, kind in table.kinds.items():
            columns[table.name(role)] = self.series(kind, table.cells(role), case.variant)
        return pandas.DataFrame(columns)

    def series(self, kind: str, cells: list[Any], variant: int) -> Any:
        """Return a column as pandas makes it."""
        if kind == "timestamp":
            ticks = numpy.array([numpy.iinfo("int64").min if cell is None else cell for cell in cells], "int64")
            return pandas.Series(ticks.view("datetime64[us]"))
        kinds = {"text": "str", "float": "float64", "integer": "float64" if None in cells or not cells else "int64"}
        return pandas.Series(cells, dtype=kinds[kind])


class PandasObjects(Pandas):
    """Columns of Python objects: text, each value by its `str`."""

    name = "pandas, objects"
    as_text = True
    kinds = frozenset({"text", "integer", "float", "decimal", "boolean", "mixed"})
    hashes = kinds

    def holds(self, kind: str, cell: Any) -> bool:
        """Hold whatever is a Python object."""
        return not isinstance(cell, Json | Nested)

    def read(self, kind: str, cell: Any) -> Any:
        """Return the text of a cell by itself."""
        if cell is None or isinstance(cell, Mark) or cell != cell:
            return None
        return str.__str__(cell) if isinstance(cell, str) else str(cell)

    def series(self, kind: str, cells: list[Any], variant: int) -> Any:
        """Return the objects themselves."""
        return pandas.Series([OBJECTS.get(cell, cell) for cell in cells], dtype=object)


class PandasCategories(Pandas):
    name = "pandas, categories"
    kinds = frozenset({"text", "integer", "float"})

    def series(self, kind: str, cells: list[Any], variant: int) -> Any:
        """Return categories, with one that nobody has in some."""
        series = super().series(kind, cells, variant).astype("category")
        if variant % 2 and kind == "text":
            return series.cat.add_categories([category for category in ["nobody's"] if category not in cells])
        return series if kind == "text" or variant % 2 else series.cat.as_ordered()


class PandasNullable(Pandas):
    name = "pandas, nullable"
    kinds = frozenset({"text", "integer", "float", "boolean"})
    hashes = kinds - {"float"}

    def holds(self, kind: str, cell: Any) -> bool:
        """Hold whole numbers of any size."""
        return cell is not Mark.INVALID

    def series(self, kind: str, cells: list[Any], variant: int) -> Any:
        """Return a column that has room for nulls."""
        kinds = {"text": "string", "integer": "Int64", "float": "Float64", "boolean": "boolean"}
        return pandas.Series(cells, dtype=kinds[kind])


class PandasArrow(Source):
    name = "pandas, Arrow-backed"

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Yield the frame."""
        yield {"table": _arrow_backed(arrow(case.table))}


def _arrow_backed(table: Any) -> Any:
    return pandas.DataFrame(
        {
            name: pandas.Series(pandas.arrays.ArrowExtensionArray(column))
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


class Polars(Source):
    name = "polars"

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Yield the frame."""
        yield {"table": polars.from_arrow(arrow(case.table))}


class PolarsLazy(Source):
    name = "polars, lazy"

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Yield a plan for the frame."""
        yield {"table": polars.from_arrow(arrow(case.table)).lazy().filter(polars.lit(True))}


class PolarsCategories(Source):
    name = "polars, categories"
    kinds = frozenset({"text", "integer", "float"})

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Yield a frame whose texts are an Enum or Categorical."""
        frame = polars.from_arrow(arrow(case.table))
        texts = [name for name, kind in frame.schema.items() if kind == polars.String]
        for name in texts:
            known = sorted({*frame[name].drop_nulls().to_list(), "nobody's"})
            frame = frame.with_columns(
                polars.col(name).cast(polars.Enum(known) if case.variant % 2 else polars.Categorical)
            )
        yield {"table": frame.lazy() if case.variant % 3 else frame}


class Arrow(Source):
    """Arrow tables, in which text may be anything."""

    name = "arrow"

    def holds(self, kind: str, cell: Any) -> bool:
        """Hold everything."""
        return True

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Yield the table, in one chunk or several, its text as one type or another."""
        yield {"table": _with_texts(arrow(case.table), case)}


def _with_texts(table: Any, case: Case) -> Any:
    """Return the table with its text in another of Arrow's types, if it is all UTF-8, and in chunks."""
    kinds = [None, pyarrow.large_string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), pyarrow.string_view()]
    kind = kinds[case.variant % 4]
    broken = any(cell is Mark.INVALID for row in case.table.rows for cell in row)
    for place, field in enumerate(table.schema):
        if field.type == pyarrow.string() and kind is not None and not broken:
            column = table.column(place)
            column = column.dictionary_encode() if case.variant % 4 == 2 else column.cast(kind)
            table = table.set_column(place, field.name, column)
    return pyarrow.concat_tables([table.slice(0, 2), table.slice(2)]) if case.variant > 3 else table


class ArrowReader(Arrow):
    name = "arrow reader"

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Yield a reader, which can be read once."""
        yield {"table": arrow(case.table).to_reader(max_chunksize=1 + case.variant)}


class DuckDbRelation(Source):
    name = "duckdb relation"
    tells_case = False

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Yield a relation over a table or over Arrow's memory."""
        with contextlib.closing(duckdb.connect()) as connection:
            relation = connection.from_arrow(arrow(case.table))
            if case.variant % 2:
                relation.create("kept")
                relation = connection.table("kept")
            yield {"table": relation}


class DuckDbFile(Source):
    name = "duckdb file"
    tells_case = False

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Write a database."""
        self._put(folder, "rows", arrow(case.table))
        yield {"table": f"duckdb://{folder / 'rows.duckdb'}", "table_name": "rows"}

    def listing(self, folder: Path, items: pyarrow.Table, variant: int) -> Any:
        """Put the list beside the rows."""
        self._put(folder, "films", items)
        return "table:films"

    def _put(self, folder: Path, name: str, rows: Any) -> None:
        with contextlib.closing(duckdb.connect(str(folder / "rows.duckdb"))) as connection:
            connection.from_arrow(rows).create(name)


class IbisTable(Source):
    """A table of Ibis, in memory or in a DuckDB of the caller's own."""

    name = "ibis"
    tells_case = False

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Yield the table."""
        if case.variant % 2:
            yield {"table": ibis.memtable(arrow(case.table))}
            return
        backend = ibis.duckdb.connect()
        try:
            yield {"table": backend.create_table("rows", arrow(case.table))}
        finally:
            backend.disconnect()


class Postgres(Source):
    """A PostgreSQL database, whose columns of decimals have no scale."""

    name = "postgresql"
    dialect = "postgres"
    sql = {"text": "text", "integer": "bigint", "float": "double precision", "decimal": "numeric", "boolean": "boolean"}
    sql |= {"date": "date", "timestamp": "timestamp"}

    def __init__(self, url: str) -> None:
        self._url = url
        self._numbers = itertools.count()

    def holds(self, kind: str, cell: Any) -> bool:
        """Leave out characters 0, and what comes before PostgreSQL's calendar."""
        if kind in ("date", "timestamp") and cell is not None:
            return cell >= (-2_000_000 if kind == "date" else -(2**57))
        return super().holds(kind, cell) and not (isinstance(cell, str) and "\0" in cell)

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Write the table, which is dropped at the end."""
        import psycopg

        table, name = case.table, f"rows_{next(self._numbers)}"
        kinds = {} if table.decoy is None else {table.decoy: "text"}
        kinds |= {table.name(role): self.sql[kind] for role, kind in table.kinds.items()}
        columns = ", ".join(f'"{column.replace(chr(34), 2 * chr(34))}" {kind}' for column, kind in kinds.items())
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLE {name} ({columns})")
            with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for row in table.rows:
                    cells = [self._written(kind, cell) for kind, cell in zip(table.kinds.values(), row, strict=True)]
                    copy.write_row([*([] if table.decoy is None else [DECOY]), *cells])
            try:
                yield {"table": self._url, "table_name": name}
            finally:
                connection.execute(f"DROP TABLE {name}")

    def _written(self, kind: str, cell: Any) -> Any:
        if cell is None or kind not in ("date", "timestamp"):
            return cell
        return _ancient(cell if kind == "date" else cell // 86_400_000_000, None if kind == "date" else cell)


def _ancient(day: int, microseconds: int | None) -> str:
    """Return a date, or time, as PostgreSQL writes it, also outside the years 1 to 9999."""
    cycle, rest = divmod(day + 719_162, 146_097)
    year_one = datetime.date(1, 1, 1) + datetime.timedelta(days=rest)
    year = year_one.year + 400 * cycle
    text = f"{year if year > 0 else 1 - year:04}-{year_one.month:02}-{year_one.day:02}"
    if microseconds is not None:
        text += f" {(EPOCH + datetime.timedelta(microseconds=microseconds % 86_400_000_000)).time().isoformat()}"
    return text + (" BC" if year <= 0 else "")


class Spark(Source):
    """A Spark DataFrame of a Parquet file."""

    name = "spark"
    dialect = "spark"
    tells_case = False

    def __init__(self, session: Any) -> None:
        self._session = session

    @contextlib.contextmanager
    def opened(self, folder: Path, case: Case) -> Opened:
        """Write a Parquet file and yield a DataFrame of it."""
        path = folder / "rows.parquet"
        pyarrow.parquet.write_table(arrow(case.table), path)
        yield {"table": self._session.read.parquet(str(path))}


EMBEDDED: list[Source] = [
    Csv(),
    JsonLines(),
    JsonArray(),
    Parquet(),
    ParquetGroups(),
    ParquetFolder(),
    Pandas(),
    PandasObjects(),
    PandasCategories(),
    PandasNullable(),
    PandasArrow(),
    Polars(),
    PolarsLazy(),
    PolarsCategories(),
    Arrow(),
    ArrowReader(),
    DuckDbRelation(),
    DuckDbFile(),
    IbisTable(),
]
