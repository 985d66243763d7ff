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
from dpselect.sources import Domain, check_not_rows, read_columns, read_counts, would_read

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


def test_csv_reads_every_field_as_the_text_it_is(tmp_path: Path) -> None:
    texts = ["NULL", "null", "NA", "nan", "None", "\\N", " ", "007", "1e3"]
    path = csv_file(tmp_path, HEADER + b"".join(text.encode() + b",ann\n" for text in texts))
    assert members(path, len(texts)) == {1: sorted(texts)}


UNUSABLE_LINES = {
    "too few fields": b"Heat\n",
    "too many fields": b"Heat,zed,more\n",
    "not UTF-8": b"\xff\xfe,zed\n",
    "blank": b"\n",
    "too long": b'Heat,"' + b"z" * 3_000_000 + b'"\n',
    "binary": b"\x00\x00\n",
}


@pytest.mark.slow
def test_a_csv_row_that_cannot_be_parsed_is_dropped_and_no_other(tmp_path: Path) -> None:
    for kind, line in UNUSABLE_LINES.items():
        path = csv_file(tmp_path, HEADER + GOOD + line + b"Heat,cat\n")
        assert members(path, ["Heat", "Up"]) == {2: ["Heat"], 1: ["Up"]}, kind


def test_csv_line_ends_and_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        path = csv_file(tmp_path, b"\xef\xbb\xbf" + (HEADER + GOOD).replace(b"\n", end))
        assert members(path, ["Heat", "Her"]) == {1: ["Heat"], 0: ["Her"]}, end


def test_the_delimiter_comes_from_the_first_line_alone(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b"film|viewer\n" + b"a,b;c\td|ann\n")
    assert members(path, 1) == {1: ["a,b;c\td"]}


def test_columns_may_stand_anywhere_and_be_quoted(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b'"who, exactly","x""y",film\nann,Heat,z\n')
    assert members(path, 1, item='x"y', person="who, exactly") == {1: ["Heat"]}


UNUSABLE_RECORDS = {
    "brace": b"{\n",
    "cut off": b'{"film": "Heat", "viewer": \n',
    "number": b"17\n",
    "array": b'["Heat", "zed"]\n',
    "text": b'"film"\n',
    "not UTF-8": b'{"film": "\xff", "viewer": "zed"}\n',
    "null": b'{"film": null, "viewer": "zed"}\n',
    "no viewer": b'{"film": "Heat"}\n',
    "blank": b"\n",
    "more": b'{"film": "Heat", "viewer": "zed"} and more\n',
    "long": b'{"film": "' + b"x" * 40_000_000 + b'", "viewer": "zed"}\n',
}


@pytest.mark.slow
def test_a_json_line_that_cannot_be_used_is_dropped_and_no_other(tmp_path: Path) -> None:
    good = b'{"film": "Heat", "viewer": 1}\n'
    for kind, line in UNUSABLE_RECORDS.items():
        path = csv_file(tmp_path, good + line + good.replace(b"1", b"2"), "rows.jsonl")
        assert members(path, ["Heat", "Up"]) == {2: ["Heat"], 0: ["Up"]}, kind


def test_json_values_are_read_as_text_and_field_names_as_they_are(tmp_path: Path) -> None:
    path = csv_file(
        tmp_path, b'{"a/b~c": 7, "it\'s \\"who\\"": true}\n{"a/b~c": "7", "it\'s \\"who\\"": 1.5}\n', "r.jsonl"
    )
    assert members(path, [7, 8], item="a/b~c", person='it\'s "who"') == {2: [7], 0: [8]}


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["od[d] *na?me's", "viewer=1"])
def test_the_path_of_a_file_is_neither_a_pattern_nor_a_column(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    for write in (write_csv, write_json, write_parquet):
        assert histogram(str(write(tmp_path / folder, ROWS)), FILMS) == {2: 1, 1: 3, 0: 2}
    assert histogram(tmp_path / folder, FILMS) == {2: 1, 1: 3, 0: 2}


def test_a_folder_or_a_pattern_stands_for_its_csv_files(tmp_path: Path) -> None:
    write_csv(tmp_path, ROWS[:3], "a.csv")
    write_csv(tmp_path, ROWS[3:5], "b.csv", delimiter=";")
    csv_file(tmp_path, b"viewer,minutes,film\r\n" + b"bob,90,\xc3\x86r\xc3\xb8 \xe2\x98\x83\r\n", "c.csv")
    csv_file(tmp_path, b'film,viewer\n"Say ""when"", twice",ann', "d.csv")
    csv_file(tmp_path, b"film,viewer", "e.csv")
    csv_file(tmp_path, b"not read", "notes.txt")
    for path in (tmp_path, tmp_path / "*.csv", f"{tmp_path}/[a-e].csv"):
        assert histogram(path, FILMS) == {2: 1, 1: 3, 0: 2}
    assert histogram(tmp_path / "[bc].csv", FILMS) == {1: 2, 0: 4}
    for part in ("a.csv.gz", "b.csv.gz"):
        write_csv(tmp_path, ROWS, part)
    assert histogram(tmp_path / "*.csv.gz", FILMS) == {2: 1, 1: 3, 0: 2}


def test_every_csv_file_needs_the_columns(tmp_path: Path) -> None:
    write_csv(tmp_path, ROWS, "a.csv")
    csv_file(tmp_path, b"film,secret\nHeat,mallory\n", "b.csv")
    with pytest.raises(InvalidInput, match=r"table 'b\.csv': the header has no column 'viewer'") as refused:
        histogram(tmp_path, 10)
    assert "secret" not in str(refused.value)


def test_a_list_of_items_may_be_in_several_files(tmp_path: Path) -> None:
    csv_file(tmp_path, b"film\nHeat\nUp\n", "list-1.csv")
    csv_file(tmp_path, b"film\nHer\nUp\n", "list-2.csv")
    assert histogram(arrow(ROWS), tmp_path / "list-*.csv") == {2: 1, 1: 1, 0: 1}
    write_csv(tmp_path, ROWS)
    with pytest.raises(InvalidInput, match="it is the table of private rows"):
        check_not_rows(tmp_path, None, Domain.of(tmp_path / "list-1.csv"))


def test_an_output_that_a_folder_or_pattern_would_read_is_recognised(tmp_path: Path) -> None:
    write_csv(tmp_path, ROWS)
    for source in (tmp_path, tmp_path / "*.csv", f"{tmp_path}/r*s.csv"):
        assert would_read(source, tmp_path / "rows2s.csv")
        assert not would_read(source, tmp_path / "rows.json")
        assert not would_read(source, tmp_path.parent / "rows.csv")
    for source in (tmp_path / "rows.csv", tmp_path / "none.csv", "duckdb://rows.duckdb"):
        assert not would_read(source, tmp_path / "answer.csv")


def test_a_folder_or_a_pattern_stands_for_its_parquet_files(tmp_path: Path) -> None:
    write_parquet(tmp_path, ROWS[:3], "a.parquet")
    write_parquet(tmp_path, ROWS[3:], "b.parquet")
    for path in (tmp_path, tmp_path / "*.parquet", f"{tmp_path}/[ab].parquet"):
        assert histogram(path, FILMS) == {2: 1, 1: 3, 0: 2}


@pytest.mark.slow
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


def test_nested_and_binary_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "nested.parquet"
    for column in (pyarrow.array([["a"], ["b"]]), pyarrow.array([{"x": 1}, {"x": 2}]), pyarrow.array([b"a", b"b"])):
        for place in ("film", "viewer"):
            columns = {"film": pyarrow.array(["a", "b"]), "viewer": pyarrow.array(["a", "b"]), place: column}
            pyarrow.parquet.write_table(pyarrow.table(columns), path)
            with pytest.raises(InvalidInput, match="must be text, numbers, dates, times or booleans"):
                histogram(path, 5)


def test_missing_parquet_column_names_the_columns_and_the_closest(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"column 'flim'.*the columns are 'film', 'viewer'; did you mean 'film'"):
        histogram(write_parquet(tmp_path, ROWS), 5, item="flim")


def test_missing_csv_column_never_quotes_the_first_line(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b"Secret Film,mallory\nHeat,ann\n")
    with pytest.raises(InvalidInput, match="the header has no column 'film'") as caught:
        histogram(path, 5)
    assert "Secret" not in str(caught.value)
    assert "mallory" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_json_without_the_field_is_read_as_rows_without_an_item(name: str, tmp_path: Path) -> None:
    for content in (b"", b'{"movie": "Heat", "viewer": "mallory"}\n', b"17\n", b"{\n"):
        assert members(csv_file(tmp_path, content, name), ["Heat"]) == {0: ["Heat"]}, content


@pytest.mark.parametrize("name", ["films.jsonl", "films.json"])
def test_a_public_list_without_the_field_is_refused(name: str, tmp_path: Path) -> None:
    path = csv_file(tmp_path, b'{"movie": "Heat"}\n', name)
    with pytest.raises(InvalidInput, match="no record has a field 'film'"):
        histogram(arrow(ROWS), path)


def test_a_column_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="several columns of this name"):
        histogram(csv_file(tmp_path, b"film,film,viewer\nHeat,Up,ann\n"), 5)


BAD_FILES = {
    "empty.csv": b"",
    "empty.parquet": b"",
    "text.parquet": b"Secret Film,mallory\n" * 100,
    "notgzip.csv.gz": b"Secret Film,mallory\n",
    "rows.xlsx": b"Secret",
    "rows": b"Secret",
    "utf16.csv": "film,viewer\nSecret,mallory\n".encode("utf-16"),
}


def test_unusable_files_are_refused_without_their_content(tmp_path: Path) -> None:
    for name, content in BAD_FILES.items():
        with pytest.raises(InvalidInput) as caught:
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


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet", "*.parquet", "a\0b.csv", "https://example.org/a.csv"):
        with pytest.raises(InvalidInput, match="there is no such file"):
            histogram(f"{tmp_path}/{name}", 5)


def test_json_cannot_be_read_by_pattern(tmp_path: Path) -> None:
    write_json(tmp_path, ROWS)
    with pytest.raises(InvalidInput, match="only Parquet and CSV files can be read by a pattern"):
        histogram(tmp_path / "*.jsonl", 5)


def test_a_folder_without_parquet_or_csv_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_json(tmp_path, ROWS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"'\.'.*the folder has no file that ends in \.parquet or \.csv"):
        histogram(".", 10)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "abfss", "S3"])
def test_an_object_store_is_refused_with_the_way_out(scheme: str) -> None:
    """Spark reads rows; lists and counts are files."""
    url = f"{scheme}://bucket/key?token=secret/rows.csv"
    asks = {
        "table": lambda: histogram(url, 5),
        "domain": lambda: histogram(arrow(ROWS), url),
        "file": lambda: read_counts(url),
    }
    for argument, ask in asks.items():
        with pytest.raises(InvalidInput, match=rf"{argument} {scheme.lower()}://….*copy the files") as refused:
            ask()
        assert "secret" not in str(refused.value)
        assert ("Spark" in str(refused.value)) == (argument == "table")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://example.org/rows.csv?token=secret", "table https://….*files are not downloaded; fetch it first"),
        ("file:///secret/rows.csv", "table must be a path.*leave out file://"),
        ("mysql://me:secret@host/rows", "table must be duckdb://FILE"),
    ],
)
def test_other_urls_are_refused_with_the_way_out(url: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        histogram(url, 5)
    assert "secret" not in str(refused.value)


def test_a_database_is_not_a_file_and_its_password_is_not_quoted() -> None:
    for read in (lambda url: read_columns(url, ["count"]), read_counts):
        with pytest.raises(InvalidInput, match=r"postgresql://….*read by top and rank") as refused:
            read("postgresql://me:secret@host/shop")
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["rows.xlsx", "rows.XLS", "rows.ods"])
def test_a_spreadsheet_is_refused_with_the_way_out(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"spreadsheets are not read; save the sheet as CSV.*pandas\.read_excel"):
        histogram(csv_file(tmp_path, b"PK", name), 5)


def test_an_empty_path_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path, ROWS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="must be the path of a file"):
        histogram("", 10)


def test_a_folder_with_a_damaged_file_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    csv_file(tmp_path, b"Secret", "bad.parquet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"'\.'.*cannot be read as Parquet"):
        histogram(".", 10)


def test_a_column_that_one_file_of_a_folder_lacks_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path, ROWS, "a.parquet")
    pyarrow.parquet.write_table(arrow(ROWS).select(["film"]), tmp_path / "b.parquet")
    with pytest.raises(InvalidInput, match="one of its files has no column 'viewer'"):
        histogram(tmp_path, 10)


def test_a_header_in_another_encoding_is_told_from_one_that_is_misspelt(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no column 'viewer' and is not UTF-8"):
        histogram(csv_file(tmp_path, "film,Zuschäuer\nSecret,mallory\n".encode("latin-1")), 10)


def test_utf_16_is_told_from_a_missing_header(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-be"):
        with pytest.raises(InvalidInput, match="it is not UTF-8"):
            histogram(csv_file(tmp_path, "film,viewer\nSecret,mallory\n".encode(encoding)), 10)
        with pytest.raises(InvalidInput, match=r"domain.*'list\.txt'.*it is not UTF-8"):
            histogram(arrow(ROWS), csv_file(tmp_path, "film\nHeat\n".encode(encoding), "list.txt"))
