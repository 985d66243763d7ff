"""Files: what is read, what is dropped, and what is refused with a clear error."""

from __future__ import annotations

import gzip
import os
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from source_files import FILMS, ROWS, arrow, histogram, members, write_csv, write_json, write_parquet

from dpselect.errors import DpSelectError, InvalidInput

HEADER = b"film,viewer\n"
GOOD = b"Heat,ann\nUp,bob\n"


def csv_file(folder: Path, body: bytes, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_bytes(body)
    return path


@pytest.mark.parametrize(
    ("field", "counts"),
    [(b"", {0: 2}), (b'""', {1: 1, 0: 1})],
    ids=["an empty field is a null", "an empty text in quotes is a value"],
)
def test_csv_tells_null_from_empty_text_as_postgresql_does(
    field: bytes, counts: dict[int, int], tmp_path: Path
) -> None:
    assert histogram(csv_file(tmp_path, HEADER + field + b",ann\n"), ["", "Heat"]) == counts


@pytest.mark.parametrize("text", ["NULL", "null", "NA", "nan", "None", "\\N", " ", "007", "1e3"])
def test_csv_reads_every_field_as_the_text_it_is(text: str, tmp_path: Path) -> None:
    path = csv_file(tmp_path, HEADER + text.encode() + b",ann\n")
    assert members(path, 1) == {1: [text]}


@pytest.mark.parametrize(
    "line",
    [b"Heat\n", b"Heat,zed,more\n", b"\xff\xfe,zed\n", b"\n", b'Heat,"' + b"z" * 3_000_000 + b'"\n', b"\x00\x00\n"],
    ids=["too few fields", "too many fields", "not UTF-8", "blank", "too long", "binary"],
)
def test_a_csv_row_that_cannot_be_parsed_is_dropped_and_no_other(line: bytes, tmp_path: Path) -> None:
    path = csv_file(tmp_path, HEADER + GOOD + line + b"Heat,cat\n")
    assert members(path, ["Heat", "Up"]) == {2: ["Heat"], 1: ["Up"]}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_csv_line_ends_and_byte_order_mark_do_not_matter(end: bytes, mark: bytes, tmp_path: Path) -> None:
    path = csv_file(tmp_path, mark + (HEADER + GOOD).replace(b"\n", end))
    assert members(path, ["Heat", "Her"]) == {1: ["Heat"], 0: ["Her"]}


def test_the_delimiter_comes_from_the_first_line_alone(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b"film|viewer\n" + b"a,b;c\td|ann\n")
    assert members(path, 1) == {1: ["a,b;c\td"]}


def test_columns_may_stand_anywhere_and_be_quoted(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b'"who, exactly","x""y",film\nann,Heat,z\n')
    assert members(path, 1, item='x"y', person="who, exactly") == {1: ["Heat"]}


@pytest.mark.parametrize(
    "line",
    [
        b"{\n",
        b'{"film": "Heat", "viewer": \n',
        b"17\n",
        b'["Heat", "zed"]\n',
        b'"film"\n',
        b'{"film": "\xff", "viewer": "zed"}\n',
        b'{"film": null, "viewer": "zed"}\n',
        b'{"film": "Heat"}\n',
        b"\n",
        b'{"film": "Heat", "viewer": "zed"} and more\n',
        b'{"film": "' + b"x" * 40_000_000 + b'", "viewer": "zed"}\n',
    ],
    ids=["brace", "cut off", "number", "array", "text", "not UTF-8", "null", "no viewer", "blank", "more", "long"],
)
def test_a_json_line_that_cannot_be_used_is_dropped_and_no_other(line: bytes, tmp_path: Path) -> None:
    good = b'{"film": "Heat", "viewer": 1}\n'
    path = csv_file(tmp_path, good + line + good.replace(b"1", b"2"), "rows.jsonl")
    assert members(path, ["Heat", "Up"]) == {2: ["Heat"], 0: ["Up"]}


def test_json_values_are_read_as_text_and_field_names_as_they_are(tmp_path: Path) -> None:
    path = csv_file(
        tmp_path, b'{"a/b~c": 7, "it\'s \\"who\\"": true}\n{"a/b~c": "7", "it\'s \\"who\\"": 1.5}\n', "r.jsonl"
    )
    assert members(path, [7, 8], item="a/b~c", person='it\'s "who"') == {2: [7], 0: [8]}


@pytest.mark.parametrize("folder", ["plain", "od[d] *na?me's"])
def test_paths_are_taken_literally(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    for write in (write_csv, write_json, write_parquet):
        assert histogram(str(write(tmp_path / folder, ROWS)), FILMS) == {2: 1, 1: 3, 0: 2}


def test_a_folder_or_a_pattern_stands_for_its_parquet_files(tmp_path: Path) -> None:
    write_parquet(tmp_path, ROWS[:3], "a.parquet")
    write_parquet(tmp_path, ROWS[3:], "b.parquet")
    for path in (tmp_path, tmp_path / "*.parquet", f"{tmp_path}/[ab].parquet"):
        assert histogram(path, FILMS) == {2: 1, 1: 3, 0: 2}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], pyarrow.int8()),
        ([2**63, 2**64 - 1], pyarrow.uint64()),
        ([1.5, -0.25], pyarrow.float32()),
        ([0.1, 1e300], pyarrow.float64()),
        ([Decimal("1.10"), Decimal("-7.00")], pyarrow.decimal128(10, 2)),
        ([date(2020, 2, 29), date(1, 1, 1)], pyarrow.date32()),
        ([True, False], pyarrow.bool_()),
        (["a", "b"], pyarrow.large_string()),
    ],
    ids=str,
)
def test_parquet_items_of_any_single_type_come_back_as_they_are(values: list[Any], kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "typed.parquet"
    items = pyarrow.array([values[0], values[0], values[1], None], kind)
    pyarrow.parquet.write_table(pyarrow.table({"film": items, "viewer": [1, 2, 1, 3]}), path)
    texts = [str(value) for value in values]
    assert members(path, values) == members(path, path) == {2: [values[0]], 1: [values[1]]}
    assert members(path, texts) == {2: [texts[0]], 1: [texts[1]]}
    assert members(path, 2) == {2: [values[0]], 1: [values[1]]}


@pytest.mark.parametrize(
    "column", [pyarrow.array([["a"], ["b"]]), pyarrow.array([{"x": 1}, {"x": 2}]), pyarrow.array([b"a", b"b"])], ids=str
)
@pytest.mark.parametrize("place", ["film", "viewer"])
def test_nested_and_binary_columns_are_refused(column: Any, place: str, tmp_path: Path) -> None:
    path = tmp_path / "nested.parquet"
    columns = {"film": pyarrow.array(["a", "b"]), "viewer": pyarrow.array(["a", "b"]), place: column}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(InvalidInput, match="text, numbers, dates, times or booleans are needed"):
        histogram(path, 5)


def test_missing_parquet_column_names_the_columns_and_the_closest(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"no column 'flim' was given; the columns are 'film', 'viewer'; did you mean 'film'"
    ):
        histogram(write_parquet(tmp_path, ROWS), 5, item="flim")


def test_missing_csv_column_never_quotes_the_first_line(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b"Secret Film,mallory\nHeat,ann\n")
    with pytest.raises(InvalidInput, match="first line must name the columns, and names none 'film'") as caught:
        histogram(path, 5)
    assert "Secret" not in str(caught.value)
    assert "mallory" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b'{"movie": "Heat", "viewer": "mallory"}\n', b"17\n", b"{\n"])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_json_without_the_field_is_read_as_rows_without_an_item(content: bytes, name: str, tmp_path: Path) -> None:
    assert members(csv_file(tmp_path, content, name), ["Heat"]) == {0: ["Heat"]}


@pytest.mark.parametrize("name", ["films.jsonl", "films.json"])
def test_a_public_list_without_the_field_is_refused(name: str, tmp_path: Path) -> None:
    path = csv_file(tmp_path, b'{"movie": "Heat"}\n', name)
    with pytest.raises(InvalidInput, match="records with a field 'film' are needed"):
        histogram(arrow(ROWS), path)


def test_a_column_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="several columns 'film'"):
        histogram(csv_file(tmp_path, b"film,film,viewer\nHeat,Up,ann\n"), 5)


BAD_FILES: dict[str, tuple[bytes, type[DpSelectError]]] = {
    "empty.csv": (b"", InvalidInput),
    "empty.parquet": (b"", InvalidInput),
    "text.parquet": (b"Secret Film,mallory\n" * 100, InvalidInput),
    "notgzip.csv.gz": (b"Secret Film,mallory\n", InvalidInput),
    "rows.xlsx": (b"Secret", InvalidInput),
    "rows": (b"Secret", InvalidInput),
    "utf16.csv": ("film,viewer\nSecret,mallory\n".encode("utf-16"), InvalidInput),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_unusable_files_are_refused_without_their_content(name: str, tmp_path: Path) -> None:
    content, kind = BAD_FILES[name]
    with pytest.raises(kind) as caught:
        histogram(csv_file(tmp_path, content, name), 5)
    assert "Secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_files_cut_off_in_the_middle_are_refused_without_their_content(tmp_path: Path) -> None:
    packed = gzip.compress(b"film,viewer\n" + os.urandom(200_000).hex().encode() + b",Secret\n" * 100_000)
    whole = write_parquet(tmp_path, [(f"Secret {i}", str(i)) for i in range(20_000)]).read_bytes()
    spoilt = bytearray(whole)
    spoilt[200:4000] = os.urandom(3800)
    for name, content in (("cut.csv.gz", packed[: len(packed) // 2]), ("spoilt.parquet", bytes(spoilt))):
        with pytest.raises(DpSelectError) as caught:
            histogram(csv_file(tmp_path, content, name), 10**9)
        assert "Secret" not in str(caught.value)
        assert caught.value.__context__ is None


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "*.parquet", "a\0b.csv", "https://example.org/a.csv"])
def test_a_missing_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no such file"):
        histogram(f"{tmp_path}/{name}", 5)


def test_only_parquet_can_be_read_by_pattern(tmp_path: Path) -> None:
    write_csv(tmp_path, ROWS)
    with pytest.raises(InvalidInput, match="only Parquet files can be read several at once"):
        histogram(tmp_path / "*.csv", 5)


def test_a_folder_without_parquet_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(tmp_path, ROWS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"table: '\.' was given; no file in this folder ends in \.parquet"):
        histogram(".", 10)


def test_an_empty_path_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path, ROWS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="the path of a file is needed"):
        histogram("", 10)


def test_a_folder_with_a_damaged_file_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    csv_file(tmp_path, b"Secret", "bad.parquet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"table: '\.' was given; it cannot be read as Parquet"):
        histogram(".", 10)


def test_a_column_that_one_file_of_a_folder_lacks_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path, ROWS, "a.parquet")
    pyarrow.parquet.write_table(arrow(ROWS).select(["film"]), tmp_path / "b.parquet")
    with pytest.raises(InvalidInput, match="every file needs a column 'viewer'"):
        histogram(tmp_path, 10)


def test_utf_16_is_told_from_a_missing_header(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-be"):
        with pytest.raises(InvalidInput, match="it is not text in UTF-8"):
            histogram(csv_file(tmp_path, "film,viewer\nSecret,mallory\n".encode(encoding)), 10)
        with pytest.raises(InvalidInput, match=r"domain: 'list\.txt' was given; it is not text in UTF-8"):
            histogram(arrow(ROWS), csv_file(tmp_path, "film\nHeat\n".encode(encoding), "list.txt"))


def test_the_name_of_a_folder_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "rows[1]").mkdir()
    write_parquet(tmp_path / "rows[1]", ROWS)
    assert histogram(tmp_path / "rows[1]", 10) == histogram(arrow(ROWS), 10)
