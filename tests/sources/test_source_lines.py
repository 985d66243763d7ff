"""What one line of a text file holds never changes how another line is read: tested on the rows themselves."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from source_files import ROWS, arrow, histogram

from dpselect.errors import InvalidInput
from dpselect.sources.duckdb import EmbeddedEngine, embedded_engine
from dpselect.sources.files import FileTable
from dpselect.sources.text import LONGEST_LINE

# The engine lasts for the module here, but pytest forgets between tests which warnings it asked to ignore.
pytestmark = [pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"), pytest.mark.slow]

Pair = tuple[str | None, ...]

PIECES = [
    '"',
    '""',
    '","',
    ",",
    ";",
    "\r",
    "\0",
    "\x01",
    "\x02",
    "\\",
    "'",
    " ",
    "\t",
    "a",
    "Heat",
    "é",
    "😀",
    "\ufeff",
]
HEADERS = {"rows.csv": b"film,viewer\n", "rows.txt": b"film;viewer\n", "rows.tsv": b"film\tviewer\n", "rows.jsonl": b""}

csv_lines = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=9).map(lambda pieces: "".join(pieces).encode()),
    st.sampled_from(
        [b"Heat,ann", b'"Heat, too","a""b"', b"Heat;ann", b"Heat\tann", b"\xff,ann", b"", b"a,b,c", b"film,viewer"]
    ),
)
RECORDS = [
    b'{"film": "Heat", "viewer": "ann"}',
    b'{"film": 1.50, "viewer": 1e3}',
    b'{"film": 12345678901234567890123, "viewer": -0}',
    b'{"film": {"b": [1, 2.50,  "x"] }, "viewer": [true]}',
    b'{"film": true, "viewer": null}',
    b'{"film": "a", "film": "b", "viewer": ""}',
    b'{"film": "\\u00e9\\n", "viewer": "\xc3\xa9"}',
    b'{"film": "\\ud800", "viewer": "ann"}',
    b'{"film": "\xff", "viewer": "ann"}',
    b'{"film": NaN, "viewer": "ann"}',
    b'{"film": "a\x02b", "viewer": "ann"}',
    b'{"film": ' + b"9" * 5000 + b', "viewer": "ann"}',
    b'{"viewer": "ann"}',
    b"{}",
    b"17",
    b"null",
    b'"film"',
    b'["Heat", "ann"]',
]


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedEngine]:
    with embedded_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines")


def pairs(engine: EmbeddedEngine, path: Path, content: bytes) -> Counter[Pair]:
    """Return the rows (film, viewer) that are read from a file of this content, nulls included."""
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    bound = FileTable.at("table", path).bind(engine, ["film", "viewer"])
    bound.load()
    rows = engine.fetch(bound.table)
    return Counter(tuple(row.values()) for row in rows)


def union(parts: list[Counter[Pair]]) -> Counter[Pair]:
    return sum(parts, Counter())


@pytest.mark.parametrize("name", ["rows.csv", "rows.txt"])
@settings(max_examples=25)
@example(lines=[b"A,p", b'"never closed,mallory', b"B,q", b'C,"', b"D,r"])
@example(lines=[b"A;p", b'"', b"B;q", b"\r", b'"'])
@given(lines=st.lists(csv_lines, max_size=8))
def test_the_rows_of_a_csv_are_those_of_its_lines(
    name: str, lines: list[bytes], engine: EmbeddedEngine, folder: Path
) -> None:
    header = HEADERS[name]
    alone = [pairs(engine, folder / name, header + line) for line in lines]
    for end in (b"\n", b"\r\n"):
        assert pairs(engine, folder / name, header + end.join(lines)) == union(alone)
        assert pairs(engine, folder / name, header + end.join([*reversed(lines), b""])) == union(alone)


@settings(max_examples=25)
@given(files=st.lists(st.lists(csv_lines, max_size=4), min_size=1, max_size=4), ends=st.sampled_from([b"\n", b"\r\n"]))
def test_the_rows_of_several_csv_files_are_those_of_each(
    files: list[list[bytes]], ends: bytes, engine: EmbeddedEngine, folder: Path
) -> None:
    several = folder / "several"
    several.mkdir(exist_ok=True)
    headers = [b"film,viewer", b"viewer;film", b"more|film|viewer"]
    alone = []
    for place, lines in enumerate(files):
        content = ends.join([headers[place % 3], *lines])
        alone.append(pairs(engine, several / f"{place}.csv", content))
    bound = FileTable.at("table", several).bind(engine, ["film", "viewer"])
    together = Counter(tuple(row.values()) for row in engine.fetch(bound.table))
    for file in several.iterdir():
        file.unlink()
    assert together == union(alone)


@settings(max_examples=25)
@given(
    lines=st.lists(
        st.one_of(
            st.sampled_from([*RECORDS, b"[", b"]", b"{", b"}", b'{"film": "', b'", "viewer": "zed"}', b",", b""]),
            st.lists(st.sampled_from([*PIECES, "{", "}", "[", "]", ":"]), max_size=6).map(
                lambda one: "".join(one).encode()
            ),
        ),
        max_size=8,
    )
)
def test_the_rows_of_json_lines_are_those_of_each_line(
    lines: list[bytes], engine: EmbeddedEngine, folder: Path
) -> None:
    alone = [pairs(engine, folder / "rows.jsonl", line) for line in lines]
    assert pairs(engine, folder / "rows.jsonl", b"\n".join(lines)) == union(alone)


def test_a_reader_that_knows_quotes_fails_the_union(tmp_path: Path) -> None:
    """The broken twin: one stray quote takes other people's rows with it, as in most CSV readers."""

    def quote_aware(lines: list[str]) -> Counter[Pair]:
        path = tmp_path / "rows.csv"
        path.write_text("film,viewer\n" + "\n".join(lines) + "\n")
        query = (
            "SELECT * FROM read_csv(?, auto_detect = false, header = true, parallel = false, delim = ',', "
            "quote = '\"', escape = '\"', columns = {'film': 'VARCHAR', 'viewer': 'VARCHAR'}, null_padding = true, "
            "strict_mode = false, ignore_errors = true)"
        )
        with duckdb.connect() as connection:
            return Counter(connection.execute(query, [str(path)]).fetchall())

    lines = ["A,p", '"never closed,mallory', "B,q", "C,r"]
    together = quote_aware(lines)
    assert together != union([quote_aware([line]) for line in lines])
    assert ("B", "q") not in together


def fields_of(line: str, delimiter: str) -> list[str | None] | None:
    """Take a line apart as the manual says, character by character; None if it does not follow the rule."""
    fields: list[str | None] = []
    while True:
        if line.startswith('"'):
            end = 1
            while (quote := line.find('"', end)) >= 0 and line[quote + 1 : quote + 2] == '"':
                end = quote + 2
            if quote < 0 or line[quote + 1 : quote + 2] not in ("", delimiter):
                return None
            fields.append(line[1:quote].replace('""', '"'))
            found, line = line[quote + 1 : quote + 2], line[quote + 2 :]
        else:
            field, found, line = line.partition(delimiter)
            fields.append(field or None)
        if not found:
            return fields


@settings(max_examples=100)
@given(line=st.lists(st.sampled_from([one for one in PIECES if one not in ("\r", "\x01")]), min_size=1, max_size=9))
def test_a_line_is_taken_apart_as_the_manual_says(line: list[str], engine: EmbeddedEngine, folder: Path) -> None:
    text = "".join(line)
    fields = fields_of(text, ",")
    fits = text != "\x02" and fields is not None and len(fields) <= 2
    expected = Counter([(*fields, None)[:2]]) if fits and fields is not None else Counter()
    assert pairs(engine, folder / "rows.csv", b"film,viewer\n" + text.encode()) == expected


ordinary = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x01"), max_size=5)


@pytest.mark.parametrize(("name", "delimiter"), [("rows.csv", ","), ("rows.txt.gz", "|")])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL], ids=["few quotes", "all quoted"])
@settings(max_examples=15)
@given(rows=st.lists(st.tuples(ordinary, st.sampled_from(['a "note", 1|2\t3', "", "x"]), ordinary), max_size=6))
def test_what_the_csv_module_writes_is_read_as_it_was(
    name: str, delimiter: str, quoting: Any, rows: list[tuple[str, str, str]], engine: EmbeddedEngine, folder: Path
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting)
    writer.writerows([("film", "note", "viewer"), *rows])
    empty = None if quoting == csv.QUOTE_MINIMAL else ""
    expected = Counter((film or empty, viewer or empty) for film, _, viewer in rows)
    assert pairs(engine, folder / name, text.getvalue().encode()) == expected


@pytest.mark.parametrize("name", ["long.csv", "long.csv.gz", "long.jsonl"])
def test_a_long_line_is_dropped_wherever_in_the_file_it_stands(name: str, engine: EmbeddedEngine, folder: Path) -> None:
    """Parts of a line that crosses the border of a read buffer must not count, nor take other lines with them."""
    header, long_line, short_line = (
        (b"film,viewer,note\n", b"Long,z%d,%s", b"Heat,%d")
        if ".csv" in name
        else (b"", b'{"film": "Long", "viewer": "z%d", "note": "%s"}', b'{"film": "Heat", "viewer": "%d"}')
    )
    limit = LONGEST_LINE
    sizes = [limit, limit + 1, limit + 99_999, limit + 100_001, 3_000_000, 5_000_000] * 3
    lines = []
    for number, size in enumerate(sizes):
        padding = b"x" * (size - len(long_line % (number, b"")))
        lines += [long_line % (number, padding), short_line % number]
    found = pairs(engine, folder / name, header + b"\n".join(lines))
    kept = [("Long", f"z{number}") for number, size in enumerate(sizes) if size == limit]
    assert found == Counter([*kept, *(("Heat", str(number)) for number in range(len(sizes)))])


@settings(max_examples=25)
@example(records=RECORDS, gap=b"\n ")
@given(records=st.lists(st.sampled_from(RECORDS), max_size=8), gap=st.sampled_from([b"", b" ", b"\n\t", b"\r\n"]))
def test_an_array_holds_the_same_records_as_lines_do(
    records: list[bytes], gap: bytes, engine: EmbeddedEngine, folder: Path
) -> None:
    array = gap + b"[" + gap + (gap + b"," + gap).join(records) + gap + b"]" + gap
    expected = pairs(engine, folder / "rows.jsonl", b"\n".join(records))
    for name in ("rows.json", "rows.json.gz"):
        for mark in (b"", b"\xef\xbb\xbf"):
            assert pairs(engine, folder / name, mark + array) == expected


def test_an_array_need_not_be_valid_as_a_whole(engine: EmbeddedEngine, folder: Path) -> None:
    record = b'{"film": "Heat", "viewer": "ann"}'
    for content in (b"[\n" + record + b"\n", b"[1, 2]\n" + record + b"\n[", b"[]\n" + record):
        assert pairs(engine, folder / "rows.json", content) == Counter([("Heat", "ann")])


@pytest.mark.parametrize("depth", [995, 200_000])
def test_a_deeply_nested_record_leaves_the_others_alone(depth: int, engine: EmbeddedEngine, folder: Path) -> None:
    deep = b'{"film": "Up", "viewer": "bob", "more": ' + b"[" * depth + b"]" * depth + b"}"
    content = b'[{"film": "Heat", "viewer": "ann"}, ' + deep + b', {"film": "Heat", "viewer": "cy"}]'
    assert pairs(engine, folder / "rows.json", content) >= Counter([("Heat", "ann"), ("Heat", "cy")])


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_a_number_in_json_is_its_text(name: str, engine: EmbeddedEngine, folder: Path) -> None:
    numbers = ["1.10", "1.1", "1E2", "-0", "-0.0", "12345678901234567890123", "1e400", "7"]
    records = [
        f'{{"text": "1.10 \\" 2.50", "film": {number}, "viewer": {place}}}' for place, number in enumerate(numbers)
    ]
    content = "\n".join(records) if name == "rows.jsonl" else f"[{','.join(records)}]"
    found = pairs(engine, folder / name, content.encode())
    assert found == Counter((number, str(place)) for place, number in enumerate(numbers))


def test_a_bare_nan_in_json_is_a_null(engine: EmbeddedEngine, folder: Path) -> None:
    content = b'{"film": NaN, "viewer": "ann"}\n{"film": "NaN", "viewer": "bob"}'
    assert pairs(engine, folder / "rows.jsonl", content) == Counter([(None, "ann"), ("NaN", "bob")])


def test_an_indented_array_is_read(engine: EmbeddedEngine, folder: Path) -> None:
    records = [{"film": "Heat [x], {y}", "viewer": i} for i in range(3)]
    found = pairs(engine, folder / "rows.json", json.dumps(records, indent=2).encode())
    assert found == Counter(("Heat [x], {y}", str(i)) for i in range(3))


UNREADABLE = [
    ("films.csv", b'"never closed,x'),
    ("films.csv", b'"closed" too early,x'),
    ("films.csv", b"Up"),
    ("films.csv", b"Up,x,y"),
    ("films.csv", b"Up\x01,x"),
    ("films.csv", b"\xff,x"),
    ("films.csv", b"Up," + b"x" * LONGEST_LINE),
    ("films.jsonl", b'{"film": '),
    ("films.jsonl", b'{"film": "Up"}\x01'),
    ("films.json", b"[{"),
]


def test_a_line_of_a_public_list_that_cannot_be_parsed_is_an_error(tmp_path: Path) -> None:
    for name, line in UNREADABLE:
        path = tmp_path / name
        path.write_bytes(b"film,note\nHeat,x\n" if name == "films.csv" else b'{"film": "Heat"}\n')
        assert histogram(arrow(ROWS), path) == {2: 1}
        path.write_bytes(path.read_bytes() + line + b"\n")
        with pytest.raises(InvalidInput, match=r"domain.*it (cannot be read|is not a valid JSON)"):
            histogram(arrow(ROWS), path)
