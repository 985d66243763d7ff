"""Every way into `dpselect.top`: which tables it can hold, how they are written, and what a cell means there.

To add a source, put one more `Source` into `EMBEDDED`, or derive a class if a cell means something else there: `kinds`
and `holds` say which tables it can hold, `write` makes what `top` is given, `read` is what the manual says of a cell.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import gzip
import io
import itertools
import json
from collections.abc import Callable
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
from neighbour_conditions import Condition, conditions_of
from neighbour_tables import DECOY, OBJECTS, Beyond, Case, Genre, Json, Mark, Nested, Table

TYPES = {"text": pyarrow.string(), "integer": pyarrow.int64(), "float": pyarrow.float64(), "boolean": pyarrow.bool_()}
TYPES |= {"instant": pyarrow.timestamp("us", "UTC"), "time": pyarrow.time64("us")}
TYPES |= {"decimal": pyarrow.decimal128(12, 2), "date": pyarrow.date32(), "timestamp": pyarrow.timestamp("us")}
SQL_TYPES = {"text": "text", "integer": "bigint", "float": "double precision", "boolean": "boolean"}
SQL_TYPES |= {"decimal": "numeric", "date": "date", "timestamp": "timestamp", "instant": "timestamptz", "time": "time"}
MOMENTS = frozenset({"date", "timestamp", "instant", "time"})
EPOCH, DAY = datetime.datetime(1970, 1, 1), 86_400_000_000

Write = Callable[[Path, Case], Any]


class Source:
    """A way in. Columns have types, unless `as_text`; `hashes`: the kinds whose text the manual fixes;
    `numbers`: those that are not numbers, but can be read as such; `times`: those that can be read as times.

    `beside`: how a table of public items is put where the rows are; otherwise it is a frame.
    """

    dialect, as_text, tells_case = "duckdb", False, True
    kinds = frozenset(TYPES)
    hashes = frozenset({"text", "integer", "boolean", "date"})
    numbers = frozenset({"text", "boolean", "mixed"})
    times = frozenset({"date", "timestamp", "instant", "text"})
    beside: Callable[[Path, Any], str] | None = None

    def __init__(self, name: str, write: Write | None = None, **attributes: Any) -> None:
        self.name = name
        self.__dict__.update(attributes if write is None else {"write": write, **attributes})

    def __repr__(self) -> str:
        """Show the name."""
        return self.name

    @property
    def conditions(self) -> dict[str, Condition]:
        """The conditions that can be asked for, by their SQL."""
        return conditions_of(self.dialect)

    def holds(self, kind: str, cell: Any) -> bool:
        """Tell whether a column of that kind can have that cell."""
        return cell not in (Mark.INVALID, Mark.BROKEN)

    def read(self, kind: str, cell: Any) -> Any:
        """Return what a cell means; None is a null."""
        if cell is None or isinstance(cell, Mark):
            return None
        return _moment(kind, cell) if kind in MOMENTS else cell

    def is_readable(self, cells: tuple[Any, ...]) -> bool:
        """Tell whether a row can be parsed at all."""
        return True

    def write(self, folder: Path, case: Case) -> Any:
        """Return the argument `table`, or a dictionary of arguments, after writing the rows somewhere."""
        raise NotImplementedError

    def where(self, case: Case) -> str | None:
        """Return the condition in SQL."""
        if case.question.where is None:
            return None
        quote = "`" if self.dialect == "spark" else '"'
        roles = ("amount", "note", "item")
        names = {role: quote + case.table.name(role).replace(quote, 2 * quote) + quote for role in roles}
        if self.as_text:
            names["amount"] = f"TRY_CAST({names['amount']} AS DOUBLE)"
        return case.question.where.format(**names)


def _moment(kind: str, cell: int) -> Any:
    try:
        if kind == "date":
            return EPOCH.date() + datetime.timedelta(days=cell)
        moment = EPOCH + datetime.timedelta(microseconds=cell)
        return moment.time() if kind == "time" else moment.replace(tzinfo=datetime.UTC if kind == "instant" else None)
    except OverflowError:
        return Beyond(cell)


def arrow(case: Case) -> Any:
    """Return the rows as an Arrow table in the plain type of each kind."""
    table = case.table
    columns = {name: pyarrow.array([DECOY] * len(table.rows), pyarrow.string()) for name in table.decoys}
    return pyarrow.table(columns | {table.name(role): _array(table, role) for role in table.kinds})


def _array(table: Table, role: str) -> Any:
    kind, cells = table.kinds[role], table.cells(role)
    if kind in MOMENTS:
        return pyarrow.array(cells, pyarrow.int32() if kind == "date" else pyarrow.int64()).cast(TYPES[kind])
    if kind != "text":
        return pyarrow.array(cells, TYPES[kind], from_pandas=False)
    # Nobody checks that what is called text in Arrow is UTF-8.
    data = [b"\xff" if cell is Mark.INVALID else None if cell is None else cell.encode() for cell in cells]
    buffers = pyarrow.array(data, pyarrow.binary()).buffers()
    return pyarrow.Array.from_buffers(TYPES[kind], len(data), buffers, null_count=data.count(None))


class TextFile(Source):
    """A file in which everything is text."""

    as_text = True
    kinds = frozenset(TYPES) - MOMENTS | {"date"}
    hashes = frozenset({*TYPES, "mixed"})
    endings: tuple[str, ...]

    def read(self, kind: str, cell: Any) -> Any:
        """Return the text as written."""
        cell = super().read(kind, cell)
        if cell is None or isinstance(cell, str):
            return cell
        return (
            cell.text if isinstance(cell, Json | Nested) else str(cell).lower() if cell in (True, False) else str(cell)
        )

    def holds(self, kind: str, cell: Any) -> bool:
        """Leave out what can only be a Python object, and dates that have no text."""
        is_object = isinstance(cell, Genre | datetime.date) or cell in (Mark.NA, Mark.NAT)
        return not is_object and not (kind == "date" and isinstance(Source.read(self, kind, cell), Beyond))

    def write(self, folder: Path, case: Case) -> Path:
        """Write the file."""
        path = folder / f"rows.{self.endings[case.variant]}"
        data = self.file(case)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    def file(self, case: Case) -> bytes:
        """Return what is in the file."""
        raise NotImplementedError


class Csv(TextFile):
    """Fields in quotes, between one delimiter or another."""

    endings = ("csv", "csv", "tsv", "txt", "csv.gz", "csv")

    def holds(self, kind: str, cell: Any) -> bool:
        """Leave out line breaks, which begin another row."""
        return super().holds(kind, cell) and "\n" not in str(cell)

    def is_readable(self, cells: tuple[Any, ...]) -> bool:
        """Tell whether every cell is UTF-8 without the control character 1."""
        return not any(cell in (Mark.INVALID, Mark.BROKEN) or "\x01" in str(cell) for cell in cells)

    def file(self, case: Case) -> bytes:
        """Return a header and a line for each row."""
        table, delimiter = case.table, ",;\t|,,"[case.variant]
        header = io.StringIO()
        writer = csv.writer(header, delimiter=delimiter, lineterminator="")
        writer.writerow([*table.decoys, *map(table.name, table.kinds)])
        lines = [header.getvalue().encode()]
        for row in table.rows:
            fields = [self._field(kind, cell) for kind, cell in zip(table.kinds.values(), row, strict=True)]
            lines.append(delimiter.encode().join([DECOY.encode()] * len(table.decoys) + fields))
        return b"".join(line + (b"\r\n" if case.variant == 5 else b"\n") for line in lines)

    def _field(self, kind: str, cell: Any) -> bytes:
        text = self.read(kind, cell)
        quoted = b"" if text is None else b'"' + text.replace('"', '""').encode() + b'"'
        return {Mark.INVALID: b"\xff", Mark.BROKEN: b'"open'}.get(cell, quoted)


class JsonFile(TextFile):
    """Records, of which some lack fields and some have one twice; `around`: what stands before, between and after."""

    kinds = TextFile.kinds | {"mixed"}
    around = (b"", b"\n", b"\n")

    def is_readable(self, cells: tuple[Any, ...]) -> bool:
        """Tell whether every cell is UTF-8."""
        return Mark.INVALID not in cells and Mark.BROKEN not in cells

    def file(self, case: Case) -> bytes:
        """Return the records."""
        before, between, after = self.around
        return before + between.join(self._record(case, row) for row in case.table.rows) + after

    def _record(self, case: Case, row: tuple[Any, ...]) -> bytes:
        table, variant, decoy = case.table, case.variant, json.dumps(DECOY).encode()
        fields = [(name, decoy) for name in table.decoys]
        for (role, kind), cell in zip(table.kinds.items(), row, strict=True):
            if cell is not None or variant in (1, 3, 4):
                fields.append((table.name(role), self._value(kind, cell, variant)))
        fields += [(table.name("item"), decoy)] * (variant == 4)
        return b"{" + b", ".join(json.dumps(name).encode() + b": " + value for name, value in fields) + b"}"

    def _value(self, kind: str, cell: Any, variant: int) -> bytes:
        if cell in (None, Mark.BROKEN, Mark.INVALID):
            invalid = b'"\xff"' if variant % 2 else b'"\\ud800"'
            return {None: b"null", Mark.BROKEN: b'"open', Mark.INVALID: invalid}[cell]
        text = self.read(kind, cell)
        is_text = isinstance(cell, str | Decimal) or kind == "date" or text in ("nan", "inf", "-inf")
        return json.dumps(text, ensure_ascii=variant % 2 == 0).encode() if is_text else text.encode()


class JsonArray(JsonFile):
    """An array of records, which a JSON writer has made: nothing in it is broken."""

    endings = (*["json"] * 5, "json.gz")
    around = (b" [", b",\n", b"]\n")

    def holds(self, kind: str, cell: Any) -> bool:
        return super().holds(kind, cell) and cell is not Mark.BROKEN


def _parquet(folder: Path, case: Case, name: str = "rows.parquet", rows: Any = None, **options: Any) -> Path:
    """Write by Arrow, with statistics, or by DuckDB, with Bloom filters too; DuckDB's names do not differ by case."""
    path, rows = folder / name, arrow(case) if rows is None else rows
    if case.variant < 3 or options or case.table.decoys:
        pyarrow.parquet.write_table(rows, path, **options)
        return path
    with contextlib.closing(duckdb.connect()) as connection:
        connection.register("given", rows)
        connection.execute(f"COPY given TO '{path}' (FORMAT parquet)")
    return path


def _parquet_groups(folder: Path, case: Case) -> Path:
    return _parquet(folder, case, row_group_size=1 + case.variant % 3, use_dictionary=case.variant < 3)


def _parquet_files(folder: Path, case: Case) -> Path:
    rows = arrow(case)
    for number in range(3):
        part = rows.take(pyarrow.array(range(number, len(rows), 3), pyarrow.int64()))
        _parquet(folder, case, f"part{number}.parquet", part)
    return folder if case.variant % 2 else folder / "*.parquet"


class Pandas(Source):
    """NumPy's types, where NaN is what pandas takes for missing, and whole numbers become floats beside it."""

    kinds = frozenset({"text", "integer", "float", "timestamp"})
    hashes = frozenset({"text"})
    types = {"text": "str", "float": "float64", "integer": "int64"}  # noqa: RUF012

    def holds(self, kind: str, cell: Any) -> bool:
        """Leave out whole numbers that floats merge."""
        return super().holds(kind, cell) and (kind != "integer" or cell is None or abs(cell) <= 2**53)

    def read(self, kind: str, cell: Any) -> Any:
        """Return the value; NaN is a null."""
        found = super().read(kind, cell)
        return None if found != found else found

    def write(self, folder: Path, case: Case) -> Any:
        """Return the frame."""
        table = case.table
        columns = {name: pandas.Series([DECOY] * len(table.rows)) for name in table.decoys}
        columns |= {table.name(role): self.series(kind, table.cells(role)) for role, kind in table.kinds.items()}
        return pandas.DataFrame(columns)

    def series(self, kind: str, cells: list[Any]) -> Any:
        """Return a column as pandas makes it."""
        if kind == "timestamp":
            ticks = [numpy.iinfo("int64").min if cell is None else cell for cell in cells]
            return pandas.Series(numpy.array(ticks, "int64").view("datetime64[us]"))
        is_float = kind == "integer" and (not cells or None in cells)
        return pandas.Series(cells, dtype="float64" if is_float else self.types[kind])


class PandasObjects(Pandas):
    """Columns of Python objects: text, each value by its `str`."""

    as_text = True
    kinds = hashes = frozenset({"text", "integer", "float", "decimal", "boolean", "mixed"})

    def holds(self, kind: str, cell: Any) -> bool:
        """Hold whatever is a Python object."""
        return not isinstance(cell, Json | Nested) and cell is not Mark.BROKEN

    def read(self, kind: str, cell: Any) -> Any:
        """Return the text of a cell by itself."""
        if cell is None or isinstance(cell, Mark) or cell != cell:
            return None
        return str.__str__(cell) if isinstance(cell, str) else str(cell)

    def series(self, kind: str, cells: list[Any]) -> Any:
        """Return the objects themselves."""
        return pandas.Series([OBJECTS.get(cell, cell) for cell in cells], dtype=object)


class PandasCategories(Pandas):
    """Categories, one of which nobody has."""

    kinds = frozenset({"text", "integer", "float"})

    def holds(self, kind: str, cell: Any) -> bool:
        # pandas makes one category of both zeros, the one that comes first.
        return super().holds(kind, cell) and str(cell) != "-0.0"

    def series(self, kind: str, cells: list[Any]) -> Any:
        """Return categories in the type of the values."""
        series = super().series(kind, cells).astype("category")
        return series.cat.add_categories(["nobody's"]) if kind == "text" else series.cat.as_ordered()


class PandasNullable(Pandas):
    """Columns that have room for nulls, and so for whole numbers of any size."""

    kinds = frozenset({"text", "integer", "float", "boolean"})
    hashes = kinds - {"float"}
    types = {"text": "string", "integer": "Int64", "float": "Float64", "boolean": "boolean"}  # noqa: RUF012
    holds = Source.holds

    def series(self, kind: str, cells: list[Any]) -> Any:
        """Return a column that has room for nulls."""
        return pandas.Series(cells, dtype=self.types[kind])


def arrow_backed(table: Any) -> Any:
    """Return a pandas frame that keeps the columns of an Arrow table."""
    backed = {name: pandas.arrays.ArrowExtensionArray(table.column(name)) for name in table.column_names}
    return pandas.DataFrame({name: pandas.Series(column) for name, column in backed.items()})


def _polars_categories(folder: Path, case: Case) -> Any:
    frame = polars.from_arrow(arrow(case))
    for name in [name for name, kind in frame.schema.items() if kind == polars.String]:
        known = sorted({*frame[name].drop_nulls().to_list(), "nobody's"})
        kind = polars.Enum(known) if case.variant % 2 else polars.Categorical
        frame = frame.with_columns(polars.col(name).cast(kind))
    return frame.lazy() if case.variant % 3 else frame


def _arrow_texts(folder: Path, case: Case) -> Any:
    """Return an Arrow table with its text in one type or another, and in one chunk or two."""
    table, variant = arrow(case), case.variant
    kinds = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view(), None]
    for place, field in enumerate(table.schema):
        # Arrow converts nothing that is not UTF-8.
        if field.type == pyarrow.string() and not any(Mark.INVALID in row for row in case.table.rows):
            kind, column = kinds[variant % 4], table.column(place)
            table = table.set_column(place, field.name, column.cast(kind) if kind else column.dictionary_encode())
    return pyarrow.concat_tables([table.slice(0, 2), table.slice(2)]) if variant > 3 else table


def _relation(folder: Path, case: Case) -> Any:
    relation = duckdb.connect().from_arrow(arrow(case))
    return relation if case.variant % 2 else relation.filter("true")


def _put(folder: Path, rows: Any, name: str = "films") -> str:
    """Put a table into a DuckDB file."""
    with contextlib.closing(duckdb.connect(str(folder / "rows.duckdb"))) as connection:
        connection.from_arrow(rows).create(name)
    return f"table:{name}"


def _duckdb_file(folder: Path, case: Case) -> dict[str, Any]:
    _put(folder, arrow(case), "rows")
    return {"table": f"duckdb://{folder / 'rows.duckdb'}", "table_name": "rows"}


def _ibis(folder: Path, case: Case) -> Any:
    rows = arrow(case)
    return ibis.memtable(rows) if case.variant % 2 else ibis.duckdb.connect().create_table("rows", rows)


class Postgres(Source):
    """A PostgreSQL database, in which decimals have no scale."""

    dialect = "postgres"
    numbers = frozenset({"boolean"})
    times = Source.times - {"text"}

    def __init__(self, url: str) -> None:
        super().__init__("postgresql")
        self._url, self._numbers = url, itertools.count()

    def holds(self, kind: str, cell: Any) -> bool:
        """Leave out characters 0, and what comes before PostgreSQL's calendar."""
        if kind in MOMENTS:
            return cell is None or cell >= -2_000_000 * (1 if kind == "date" else DAY)
        return super().holds(kind, cell) and "\0" not in str(cell)

    def write(self, folder: Path, case: Case) -> dict[str, Any]:
        """Make a table, which stays until the server ends."""
        import psycopg

        table, name = case.table, f"rows_{next(self._numbers)}"
        kinds = dict.fromkeys(table.decoys, "text")
        kinds |= {table.name(role): SQL_TYPES[kind] for role, kind in table.kinds.items()}
        columns = ", ".join('"' + column.replace('"', '""') + f'" {kind}' for column, kind in kinds.items())
        with psycopg.connect(self._url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({columns})")
            with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for row in table.rows:
                    cells = [_in_sql(kind, cell) for kind, cell in zip(table.kinds.values(), row, strict=True)]
                    copy.write_row([DECOY] * len(table.decoys) + cells)
        return {"table": self._url, "table_name": name}


def _in_sql(kind: str, cell: Any) -> Any:
    """Return a cell as PostgreSQL reads it: dates also outside the years 1 to 9999."""
    if cell is None or kind not in MOMENTS:
        return cell
    if kind == "time":
        return _moment(kind, cell)
    day, time = divmod(cell, 1 if kind == "date" else DAY)
    cycle, rest = divmod(day + 719_162, 146_097)  # the calendar repeats itself every 400 years
    moment = datetime.datetime(1, 1, 1) + datetime.timedelta(days=rest, microseconds=time)
    year = moment.year + 400 * cycle
    return (
        f"{year if year > 0 else 1 - year:04}-{moment:%m-%d %H:%M:%S.%f}"
        + "+00" * (kind == "instant")
        + " BC" * (year <= 0)
    )


class Spark(Source):
    """DataFrames of Parquet files; no times of day, and listed timestamps are answered with a time zone."""

    dialect, tells_case = "spark", False
    kinds = frozenset(TYPES) - {"time", "timestamp"}

    def __init__(self, session: Any) -> None:
        super().__init__("spark", lambda folder, case: session.read.parquet(str(_parquet(folder, case))))

    def read(self, kind: str, cell: Any) -> Any:
        """Return the value; dates and times outside the calendar are nulls in every column."""
        found = super().read(kind, cell)
        return None if isinstance(found, Beyond) else found


CSV, JSON_LINES = Csv("csv"), JsonFile("json lines", endings=("jsonl", "ndjson", "json", "jsonl.gz", "jsonl", "json"))
JSON_ARRAY = JsonArray("json array")
PARQUET = [
    Source("parquet", _parquet),
    Source("parquet, several row groups", _parquet_groups),
    Source("parquet, several files", _parquet_files),
]
PANDAS_OBJECTS = PandasObjects("pandas, objects")
POLARS_LAZY = Source("polars, lazy", lambda folder, case: polars.from_arrow(arrow(case)).lazy().filter(True))
ARROW = [
    Source("arrow", _arrow_texts, holds=lambda kind, cell: cell is not Mark.BROKEN),
    Source(
        "arrow reader",
        lambda folder, case: arrow(case).to_reader(1 + case.variant),
        holds=lambda kind, cell: cell is not Mark.BROKEN,
    ),
]
RELATION = Source("duckdb relation", _relation, tells_case=False)
EMBEDDED = [
    *(CSV, JSON_LINES, JSON_ARRAY, *PARQUET, *ARROW, Pandas("pandas"), PANDAS_OBJECTS),
    *(PandasCategories("pandas, categories"), PandasNullable("pandas, nullable"), POLARS_LAZY, RELATION),
    Source("pandas, Arrow-backed", lambda folder, case: arrow_backed(arrow(case))),
    Source("polars", lambda folder, case: polars.from_arrow(arrow(case))),
    Source("polars, categories", _polars_categories, kinds=frozenset({"text", "integer", "float"})),
    Source("duckdb file", _duckdb_file, tells_case=False, beside=_put),
    Source("ibis", _ibis, tells_case=False),
]
