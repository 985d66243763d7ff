"""Files as tables: CSV, JSON lines and Parquet, plain or compressed.

No type, delimiter or name is read off private rows: one person's row must never change how the rows of others
are read. A CSV's first line and a Parquet file's schema are public; everything in a CSV or JSON file is text.
"""

from __future__ import annotations

import csv
import glob
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpselect.errors import InvalidInput
from dpselect.sources.engine import EmbeddedEngine
from dpselect.sources.frames import check_columns, neutral_name, renamed

_DELIMITERS = {".csv": ",;\t|", ".txt": ",;\t|", ".tsv": "\t"}
_LINES = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".parq", ".pq")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_LONGEST_HEADER = 1 << 20
_ENDINGS = (
    "a name that ends in .csv, .tsv, .txt, .jsonl, .ndjson or .json (also with .gz or .zst after it) or in .parquet "
    "is needed"
)


@dataclass(frozen=True)
class FileTable:
    """An existing file of a known format; `argument` is what error messages call it."""

    argument: str
    path: Path
    ending: str
    compression: str
    parts: tuple[str, ...]

    @classmethod
    def at(cls, argument: str, path: str | os.PathLike[str]) -> FileTable:
        """Recognise a file by the end of its name; a folder or a pattern with * stands for its Parquet files."""
        path = Path(path)
        try:
            is_file, is_folder = path.is_file(), path.is_dir()
        except (OSError, ValueError):
            is_file = is_folder = False
        if is_folder and not (parts := _matches(Path(glob.escape(str(path)), "*.parquet"))):
            raise InvalidInput(argument, str(path), "no file in this folder ends in .parquet; name a file")
        if is_folder:
            path = path / "*.parquet"
        else:
            parts = [str(path)] if is_file else _matches(path)
        if not parts:
            instead = ", or state the number of possible items" if argument == "domain" else ""
            raise InvalidInput(argument, str(path), f"there is no such file; check the path{instead}")
        ending, compression = _format(path)
        if ending not in (*_DELIMITERS, *_LINES, *_PARQUET):
            raise InvalidInput(argument, path.name, _ENDINGS)
        if not is_file and ending not in _PARQUET:
            raise InvalidInput(argument, str(path), "only Parquet files can be read several at once; name one file")
        if not all(os.access(part, os.R_OK) for part in parts):
            raise InvalidInput(argument, str(path), "permission to read it is needed")
        return cls(argument, path, ending, compression, tuple(parts))

    @property
    def public(self) -> bool:
        """Whether the rows are public, so that one that cannot be parsed is an error and not dropped in silence."""
        return self.argument == "domain"

    @property
    def is_json(self) -> bool:
        """Whether the names of the fields stand in the records themselves."""
        return self.ending in _LINES

    def bind(self, engine: EmbeddedEngine, columns: list[str]) -> Any:
        """Return an Ibis table of the named columns, under neutral names, without reading any row."""
        if self.ending in _PARQUET:
            return self._bind_parquet(engine, columns)
        if self.is_json:
            return self._bind_json(engine, columns)
        return self._bind_csv(engine, columns)

    def only_column(self, preferred: str, engine: EmbeddedEngine) -> str:
        """Return the column of a public list: the one of that name, or the only one there is."""
        if self.is_json:
            return preferred
        if self.ending in _PARQUET:
            names = [list(self._parquet(engine).columns)]
        else:
            names = [header for _, header in self._headers()]
        if any(preferred in header for header in names):
            return preferred
        if all(len(header) == 1 for header in names):
            return str(names[0][0])
        raise InvalidInput(
            self.argument, self.path.name, f"a column {preferred!r}, as in the table, or a single column is needed"
        )

    def _bind_parquet(self, engine: EmbeddedEngine, columns: list[str]) -> Any:
        table = self._parquet(engine)
        check_columns(self.argument, columns, list(table.columns))
        return renamed(table, columns)

    def _parquet(self, engine: EmbeddedEngine) -> Any:
        files = ", ".join(_literal(_exactly(part)) for part in self.parts)
        try:
            return _view(engine, f"SELECT * FROM read_parquet([{files}], hive_partitioning = false)")
        except Exception:
            pass
        raise InvalidInput(
            self.argument, self.path.name, "it cannot be read as Parquet; it may be damaged or incomplete"
        )

    def _bind_csv(self, engine: EmbeddedEngine, columns: list[str]) -> Any:
        headers = self._headers()
        fitting = [(mark, header) for mark, header in headers if all(name in header for name in columns)]
        if not fitting:
            headers = sorted(headers, key=lambda found: -sum(name in found[1] for name in columns))
            missing = next(name for name in columns if name not in headers[0][1])
            raise InvalidInput(
                self.argument,
                self.path.name,
                f"its first line must name the columns, and names none {missing!r}; if it has no such line, add one",
            )
        delimiter, header = fitting[0]
        check_columns(self.argument, columns, header)
        names = [f"c{place}" for place in range(len(header) + 1)]
        fields = ", ".join(f"{names[header.index(name)]} AS {neutral_name(i)}" for i, name in enumerate(columns))
        # One thread: DuckDB's parallel reader can split a quoted line break and then makes rows that are not there.
        # Lines end at a line feed alone: a stray carriage return would otherwise take the next row with it.
        source = (
            f"SELECT {fields} FROM read_csv({self._file()}, auto_detect = false, header = true, parallel = false, "
            f"delim = {_literal(delimiter)}, quote = '\"', escape = '\"', allow_quoted_nulls = false, "
            f"new_line = '\\n', hive_partitioning = false, compression = '{self.compression}', "
        )
        if self.public:
            return _view(engine, f"{source} columns = {_text_columns(names[:-1])})")
        # A row with more fields than the header shows in one column more.
        return _view(
            engine,
            f"{source} columns = {_text_columns(names)}, null_padding = true, strict_mode = false, "
            f"ignore_errors = true) WHERE {names[-1]} IS NULL",
        )

    def _headers(self) -> list[tuple[str, list[str]]]:
        """Return the names in the first line for each delimiter that the ending allows."""
        text = self._beginning()
        headers = []
        for delimiter in _DELIMITERS[self.ending]:
            try:
                header = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
            except csv.Error:
                header = []
            headers.append((delimiter, header))
        return headers

    def _beginning(self) -> str:
        """Return enough of the file to hold its first line."""
        import pyarrow

        compression = None if self.compression == "none" else self.compression
        data = b""
        try:
            with pyarrow.input_stream(self.parts[0], compression=compression) as stream:
                while len(data) < _LONGEST_HEADER and not set(b"\r\n") & set(data) and (more := stream.read(1 << 16)):
                    data += more
            return data.decode("utf-8-sig", errors="replace")
        except OSError:
            pass
        raise InvalidInput(
            self.argument,
            self.path.name,
            "it cannot be read; check that it is complete and compressed as its name says",
        )

    def _bind_json(self, engine: EmbeddedEngine, columns: list[str]) -> Any:
        fields = ", ".join(
            f"json_extract_string(record, {_literal(_pointer(name))}) AS {neutral_name(i)}"
            for i, name in enumerate(columns)
        )
        return _view(engine, f"SELECT {fields} FROM ({self._records()})")

    def _records(self) -> str:
        if self.ending == ".json" and self._beginning().lstrip()[:1] == "[":
            return (
                "SELECT json AS record FROM "
                f"read_json_objects({self._file()}, format = 'array', compression = '{self.compression}')"
            )
        # Line by line, because DuckDB's JSON reader stops at a record that is too long; here it is one more
        # row that cannot be parsed. A raw control character cannot occur in JSON, so it separates nothing.
        return (
            f"SELECT try_cast(line AS JSON) AS record FROM read_csv({self._file()}, auto_detect = false, "
            f"header = false, delim = '\x01', quote = '', escape = '', columns = {_text_columns(['line'])}, "
            f"strict_mode = false, ignore_errors = true, parallel = false, new_line = '\\n', "
            f"hive_partitioning = false, compression = '{self.compression}')"
        )

    def _file(self) -> str:
        return _literal(_exactly(self.parts[0]))


def _format(path: Path) -> tuple[str, str]:
    """Return the ending that names the format, and the compression, of a file name."""
    endings = [suffix.lower() for suffix in path.suffixes[-2:]] or [""]
    if endings[-1] in _COMPRESSIONS and len(endings) == 2 and endings[0] not in _PARQUET:
        return endings[0], _COMPRESSIONS[endings[-1]]
    return endings[-1], "none"


def _matches(path: Path) -> list[str]:
    pattern = str(path)
    if not glob.has_magic(pattern) or "\0" in pattern:
        return []
    return sorted(match for match in glob.glob(pattern) if os.path.isfile(match))


def _view(engine: EmbeddedEngine, query: str) -> Any:
    """Name a query in the engine and return it as an Ibis table."""
    import ibis

    name = ibis.util.gen_name("dpselect")

    def work() -> Any:
        engine.connection.execute(f"CREATE TEMPORARY VIEW {name} AS {query}")
        return engine.backend.table(name)

    return engine.run(work)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _text_columns(names: list[str]) -> str:
    return "{" + ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in names) + "}"


def _pointer(name: str) -> str:
    """Return the JSON pointer (RFC 6901) of a field."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _exactly(path: str) -> str:
    """Return the pattern that matches this one path: DuckDB reads *, ? and [ in a path as a pattern."""
    return glob.escape(os.path.abspath(path))
