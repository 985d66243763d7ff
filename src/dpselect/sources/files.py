"""Files as tables: CSV, JSON lines, JSON arrays and Parquet, plain or compressed.

No type, delimiter or name is inferred from private rows: one person's row must never change how the rows of others
are read. A CSV's first line and a Parquet file's schema are public. Every value of a CSV or JSON file is text.
"""

from __future__ import annotations

import csv
import glob
import json
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.duckdb import Bound, EmbeddedEngine, behind_barrier, embedded_engine
from dpselect.sources.frames import check_columns, neutral_name, refused_column
from dpselect.sources.paths import DELIMITERS, LINES, PARQUET, Located
from dpselect.sources.text import (
    LONGEST_LINE,
    array_elements,
    field_value,
    fields_query,
    lines_query,
    record_value,
    records_query,
)

_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
_LINE = re.compile(rb"\s*+[^\r\n]+[\r\n]")
_LONGEST_SHOWN = 60


def read_columns(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    numbers: Collection[str] = (),
    optional: Collection[str] = (),
    argument: str = "table",
    advice: str = "",
) -> Any:
    r"""Read columns of a file that is not private, such as a list of counts or a catalogue.

    The file is read as `top` reads one: CSV, JSON lines, a JSON array or Parquet, by the end of its name. Unlike
    in `top`, a line that cannot be parsed is an error.

    Parameters
    ----------
    path : str or PathLike
        The file; a folder or a pattern with * stands for its Parquet or CSV files.
    columns : sequence of str
        The columns to read.
    numbers : collection of str
        Columns whose values are converted to floats.
    optional : collection of str
        Columns that are left out of the result if the file does not have them.
    argument : str
        The name of the argument in error messages.
    advice : str
        What to do if a column is missing, for the error message.

    Returns
    -------
    pyarrow.Table
        One column for each name. The other columns of a CSV or JSON file are text; those of a Parquet file keep
        their types.

    Raises
    ------
    InvalidInput
        If the file or one of the columns is missing or cannot be read, or a value in `numbers` is not a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "counts.csv")
    >>> _ = file.write_text("film;count\nHeat;3\nUp;1\n")
    >>> read_columns(file, ["film", "count"], numbers=["count"]).to_pydict()
    {'film': ['Heat', 'Up'], 'count': [3.0, 1.0]}
    """
    file = FileTable.at(argument, path, public=True, advice=advice)
    with embedded_engine() as engine:
        wanted = [name for name in columns if name not in optional or file.may_have(name)]
        bound = file.bind(engine, wanted)
        bound.load()
        found = bound.table
        for place, name in enumerate(wanted):
            if name in numbers:
                found = found.mutate(**{f"number_{place}": as_number(argument, name, found[neutral_name(place)])})
        try:
            table = engine.columns(found)
        except SourceError:
            table = None
    if table is None:
        raise file.unreadable()
    result = {}
    for place, name in enumerate(wanted):
        column = table.column(neutral_name(place))
        if file.is_json and len(column) and column.null_count == len(column):
            if name in optional:
                continue
            raise file.missing(name, "no record has a field")
        if name in numbers:
            given, column = column, table.column(f"number_{place}")
            if column.null_count > given.null_count:
                raise InvalidInput(argument, file.path.name, f"column {name!r} has a value that is not a number")
        result[name] = column
    return type(table).from_pydict(result)


def as_number(argument: str, name: str, column: Any) -> Any:
    """Return a column of numbers or text as floats, null where the text is no number; refuse other types."""
    kind = column.type()
    if not (kind.is_numeric() or kind.is_string()):
        raise InvalidInput(argument, plain(f"column {name!r} of type {kind}"), "must be numbers")
    return column.try_cast("float64")


def column_names(path: str | os.PathLike[str]) -> list[str] | None:
    """Return the columns that the schema or header of a file names; None for JSON, which has neither."""
    file = FileTable.at("source", path)
    # A header is split by each possible delimiter; the right one finds the most names.
    return None if file.is_json else max((list(names) for names in file._names()), key=len)


@dataclass(frozen=True)
class FileTable:
    """An existing file of a known format.

    `argument` names it in error messages, and `advice` says what to do if a column is missing. If its rows are public,
    a line that cannot be parsed is an error, and is otherwise dropped.
    """

    argument: str
    path: Path
    ending: str
    compression: str
    parts: tuple[str, ...]
    public: bool
    advice: str

    @classmethod
    def at(cls, argument: str, path: str | os.PathLike[str], *, public: bool = False, advice: str = "") -> FileTable:
        """Recognise a file by the end of its name; a folder or a pattern with * stands for its Parquet or CSV files."""
        found = Located.at(argument, path)
        return cls(argument, found.path, found.ending, found.compression, found.parts, public, advice)

    @property
    def is_json(self) -> bool:
        """Whether the records name their fields, so that there is no header."""
        return self.ending in LINES

    @property
    def is_text(self) -> bool:
        """Whether the file is a CSV of some kind, whose first line names the columns."""
        return self.ending in DELIMITERS

    def bind_lines(self, engine: EmbeddedEngine) -> Any:
        """Return an Ibis table with one column of the lines of a text file without a header."""
        fields = fields_query(self._lines(self.parts, skip=0), DELIMITERS[self.ending][0], 1, public=self.public)
        return engine.view(f"SELECT {field_value(0)} AS {neutral_name(0)} FROM ({fields})")

    def bind(self, engine: EmbeddedEngine, columns: list[str]) -> Bound:
        """Return the named columns under neutral names, without reading a row."""
        if self.ending in PARQUET:
            return Bound(self._bind_parquet(engine, columns))
        if self.is_json:
            return self._bind_json(engine, columns)
        return Bound(self._bind_csv(engine, columns))

    def may_have(self, column: str) -> bool:
        """Whether the header or schema has a column; always true of JSON, which has neither."""
        return self.is_json or any(column in names for names in self._names())

    def only_column(self, preferred: str) -> str:
        """Return the column of a public list: the one of that name, or the only one there is."""
        if self.may_have(preferred):
            return preferred
        names = self._names()
        if all(len(header) == 1 for header in names):
            return str(names[0][0])
        if self.is_text and not self._first_line():
            raise InvalidInput(self.argument, self.path.name, "it is empty; write one item per line")
        first = f"its first line, {shown_line(self._first_line())}, has" if self.is_text else "it has"
        raise InvalidInput(
            self.argument,
            self.path.name,
            f"{first} several columns and none is called {preferred!r} as in the table; name the column of items with "
            "--domain-column (in Python, domain_column)",
        )

    def _names(self) -> list[list[str]]:
        """Return the possible lists of column names: one for each Parquet file, or for each delimiter of each CSV."""
        if self.ending in PARQUET:
            return [schema.names for schema in self._parquet_schemas()]
        return [header for file in self._each() for _, header in file._headers()]

    def missing(self, column: str, where: str) -> InvalidInput:
        """Return the error for a column that the file does not have."""
        advice = self.advice or "if the first line is not a header, add one"
        return InvalidInput(self.argument, self.path.name, f"{where} {column!r}; {advice}")

    def unreadable(self) -> InvalidInput:
        """Return the error for a public file with a line that cannot be parsed."""
        return InvalidInput(
            self.argument,
            str(self.path),
            "it cannot be read; check that a CSV is in UTF-8 and has as many fields in every line as in the header, "
            "with quotes around values that contain the delimiter and no line break within quotes",
        )

    def _bind_parquet(self, engine: EmbeddedEngine, columns: list[str]) -> Any:
        """Return the columns by their places in the schema: DuckDB ignores case in names, and renames duplicates.

        Files are grouped by schema. The schemas decide the common type of a column; a value that does not fit is null.
        """
        groups: dict[Any, list[str]] = {}
        for part, schema in zip(self.parts, self._parquet_schemas(), strict=True):
            self._check_schema(schema, columns)
            stored = _stored_types(part, columns) if len(self.parts) > 1 else ()
            groups.setdefault((tuple(schema.names), stored), []).append(part)
        selects = [
            f"SELECT {{}} FROM read_parquet([{', '.join(_literal(_exactly(part)) for part in parts)}], "
            "hive_partitioning = false)"
            for parts in groups.values()
        ]
        places = [[names.index(name) + 1 for name in columns] for names, *_ in groups]
        try:
            return engine.view(" UNION ALL ".join(self._in_common_types(engine, selects, places)))
        except SourceError:
            pass
        raise self._damaged()

    def _in_common_types(self, engine: EmbeddedEngine, selects: list[str], places: list[list[int]]) -> list[str]:
        """Return the queries of the groups of files, with each column in the type that the groups have in common."""
        plain_columns = [", ".join(f"#{place} AS {neutral_name(i)}" for i, place in enumerate(row)) for row in places]
        union = " UNION ALL ".join(select.format(row) for select, row in zip(selects, plain_columns, strict=True))
        described = engine.run(lambda: engine.connection.execute(f"DESCRIBE {union}").fetchall())
        # Writers give the type null to a column without values; one person's value must not decide if it is usable.
        kinds = ["VARCHAR" if kind == '"NULL"' else kind for _, kind, *_ in described]
        return [
            select.format(
                ", ".join(
                    f"{behind_barrier(f'TRY_CAST(#{place} AS {kind})')} AS {neutral_name(i)}"
                    for i, (place, kind) in enumerate(zip(row, kinds, strict=True))
                )
            )
            for select, row in zip(selects, places, strict=True)
        ]

    def _check_schema(self, schema: Any, columns: list[str]) -> None:
        import pyarrow

        absent = [name for name in columns if name not in schema.names]
        if absent and len(self.parts) > 1:
            raise InvalidInput(
                self.argument,
                str(self.path),
                f"one of its files has no column {absent[0]!r}; add the column or name the other files",
            )
        if absent and self.advice:
            raise self.missing(absent[0], "the file has no column")
        check_columns(self.argument, columns, schema.names)
        for name in columns:
            if pyarrow.types.is_decimal256(schema.field(name).type):
                raise refused_column(self.argument, name, schema.field(name).type)

    def _parquet_schemas(self) -> list[Any]:
        import pyarrow
        import pyarrow.parquet

        try:
            return [pyarrow.parquet.read_schema(part) for part in self.parts]
        except (pyarrow.ArrowException, OSError):
            pass
        raise self._damaged()

    def _damaged(self) -> InvalidInput:
        return InvalidInput(self.argument, str(self.path), "it cannot be read as Parquet; check that it is complete")

    def _bind_csv(self, engine: EmbeddedEngine, columns: list[str]) -> Any:
        """Return the columns of each file by its own header; files with the same header are read together."""
        groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for file in self._each():
            groups.setdefault(file._header_with(columns), []).extend(file.parts)
        queries = []
        for (delimiter, header), parts in groups.items():
            fields = fields_query(self._lines(parts, skip=1), delimiter, len(header), public=self.public)
            values = [f"{field_value(header.index(name))} AS {neutral_name(i)}" for i, name in enumerate(columns)]
            queries.append(f"SELECT {', '.join(values)} FROM ({fields})")
        return engine.view(" UNION ALL ".join(queries))

    def _each(self) -> list[FileTable]:
        """Return a table for each file."""
        return [replace(self, path=Path(part), parts=(part,)) for part in self.parts] if self.parts[1:] else [self]

    def _header_with(self, columns: list[str]) -> tuple[str, tuple[str, ...]]:
        """Return the first delimiter with which the first line names the columns, and the names."""
        headers = self._headers()
        fitting = [(mark, header) for mark, header in headers if all(name in header for name in columns)]
        if not fitting:
            headers = sorted(headers, key=lambda found: -sum(name in found[1] for name in columns))
            missing = next(name for name in columns if name not in headers[0][1])
            if "\ufffd" in self._first_line():
                problem = f"the header has no column {missing!r} and is not UTF-8; save the file as CSV in UTF-8"
                raise InvalidInput(self.argument, self.path.name, problem)
            raise self.missing(missing, "the header has no column")
        delimiter, header = fitting[0]
        check_columns(self.argument, columns, header)
        return delimiter, tuple(header)

    def _headers(self) -> list[tuple[str, list[str]]]:
        """Return each delimiter that the ending allows, with the column names that the first line then has."""
        line = self._first_line()
        if "\0" in line:
            raise InvalidInput(self.argument, self.path.name, "it is not UTF-8 but perhaps UTF-16; convert it first")
        headers = []
        for delimiter in DELIMITERS[self.ending]:
            try:
                header = next(csv.reader([line], delimiter=delimiter), [])
            except csv.Error:
                header = []
            headers.append((delimiter, header))
        return headers

    def _first_line(self) -> str:
        return re.split("[\r\n]", self._beginning(), maxsplit=1)[0]

    def _beginning(self) -> str:
        """Return the beginning of the file, up to and including its first line that is not blank."""
        data = self._read(lambda data: len(data) > LONGEST_LINE or _LINE.match(data) is not None)
        if len(data) > LONGEST_LINE and _LINE.match(data) is None:
            raise InvalidInput(
                self.argument, self.path.name, f"its first line is longer than {LONGEST_LINE:,} bytes; check the file"
            )
        return data.decode("utf-8-sig", errors="replace")

    def _read(self, enough: Callable[[bytearray], bool]) -> bytearray:
        """Read the file from its beginning until `enough` is true."""
        import pyarrow

        compression = None if self.compression == "none" else self.compression
        data = bytearray()
        try:
            with pyarrow.input_stream(self.parts[0], compression=compression) as stream:
                while not enough(data) and (more := stream.read(1 << 16)):
                    data += more
                return data
        except OSError:
            pass
        raise InvalidInput(
            self.argument,
            self.path.name,
            "it cannot be read; check that it is complete and compressed as its name says",
        )

    def _bind_json(self, engine: EmbeddedEngine, columns: list[str]) -> Bound:
        fields = ", ".join(
            f"{record_value(_literal(_pointer(name)))} AS {neutral_name(i)}" for i, name in enumerate(columns)
        )
        if not self._is_array():
            lines = Bound(self._lines(self.parts, skip=0))
        else:
            lines = engine.registered(_elements_table([]), lambda: _elements_table(self._elements()))
            lines = Bound(f"SELECT line FROM {lines.table.get_name()}", lines.load)
        query = f"SELECT {fields} FROM ({records_query(lines.table, public=self.public)})"
        return Bound(engine.view(query), lines.load)

    def _is_array(self) -> bool:
        """Whether a .json file is one array of records, which its first character decides."""
        if self.ending != ".json":
            return False
        beginning = self._read(lambda data: bool(data.strip(_BEFORE_JSON)))
        return beginning.lstrip(_BEFORE_JSON).startswith(b"[")

    def _elements(self) -> list[str]:
        text = self._read(lambda data: False).decode("utf-8-sig", errors="surrogateescape")
        if self.public and not _is_json(text):
            raise InvalidInput(
                self.argument, self.path.name, "it is not a valid JSON array; correct it, or write one record per line"
            )
        return array_elements(text)

    def _lines(self, parts: Sequence[str], *, skip: int) -> str:
        """Return the SQL of the lines of some of the files; `skip` lines at the beginning of each are left out."""
        files = f"[{', '.join(_literal(_exactly(part)) for part in parts)}]"
        return lines_query(files, self.compression, skip=skip, public=self.public)


def shown_line(text: str) -> str:
    """Return a line of a public list for a message, shortened."""
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


def _stored_types(part: str, columns: list[str]) -> tuple[str, ...]:
    """Return the physical types of columns in a Parquet file; two of them can have the same Arrow type."""
    import pyarrow.parquet

    metadata = pyarrow.parquet.read_metadata(part)
    leaves = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    wanted = [leaf for leaf in leaves if leaf.path.split(".")[0] in columns or leaf.path in columns]
    return tuple(f"{leaf.path} {leaf.physical_type} {leaf.logical_type} {leaf.length}" for leaf in wanted)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _elements_table(elements: list[str]) -> Any:
    import pyarrow

    return pyarrow.table({"line": pyarrow.array(elements, pyarrow.large_string())})


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _pointer(name: str) -> str:
    """Return the JSON pointer (RFC 6901) of a field."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _exactly(path: str) -> str:
    """Return the pattern that matches this one path: DuckDB reads *, ? and [ in a path as a pattern."""
    return glob.escape(os.path.abspath(path))
