"""Rows written in every format, and what plain Python counts in them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pyarrow.parquet

from dpselect.sources import Domain, open_counts

Row = tuple[str | None, str | None]

ROWS: list[Row] = [
    ("Heat", "ann"),
    ("Heat", "ann"),
    ("Heat", "bob"),
    ("Up", "cat"),
    ("Up", None),
    (None, "dan"),
    (None, None),
    ('Say "when", twice', "ann"),
    ("Ærø ☃", "bob"),
    ("Outside", "eve"),
]
FILMS = ["Her", "Heat", "Up", 'Say "when", twice', "Ærø ☃", "Alien"]


def write_csv(folder: Path, rows: Iterable[Row], name: str = "rows.csv", delimiter: str = ",") -> Path:
    """Write a CSV in which null is nothing at all and every text is in quotes."""
    text = io.StringIO(newline="")
    text.write(f"film{delimiter}viewer\n")
    for row in rows:
        text.write(delimiter.join("" if cell is None else '"' + cell.replace('"', '""') + '"' for cell in row) + "\n")
    path = folder / name
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else zstd(data) if name.endswith(".zst") else data)
    return path


def write_json(folder: Path, rows: Iterable[Row], name: str = "rows.jsonl") -> Path:
    records = [{"film": film, "viewer": viewer, "minutes": 90} for film, viewer in rows]
    text = json.dumps(records) if name.endswith(".json") else "".join(json.dumps(one) + "\n" for one in records)
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else zstd(data) if name.endswith(".zst") else data)
    return path


def write_parquet(folder: Path, rows: Iterable[Row], name: str = "rows.parquet") -> Path:
    path = folder / name
    pyarrow.parquet.write_table(arrow(rows), path)
    return path


def zstd(data: bytes) -> bytes:
    return bytes(pyarrow.Codec("zstd").compress(data))


def arrow(rows: Iterable[Row]) -> Any:
    rows = list(rows)
    text = pyarrow.string()
    return pyarrow.table(
        {"film": pyarrow.array([row[0] for row in rows], text), "viewer": pyarrow.array([row[1] for row in rows], text)}
    )


def write_quoted_minimally(folder: Path, rows: Iterable[Row]) -> Path:
    path = folder / "minimal.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(["note", "viewer", "film"])
        writer.writerows([("x, y", viewer, film) for film, viewer in rows])
    return path


TABLES: dict[str, Callable[[Path, list[Row]], Any]] = {
    "csv": write_csv,
    "csv, minimal quotes": write_quoted_minimally,
    "csv.gz": lambda folder, rows: write_csv(folder, rows, "rows.csv.gz"),
    "csv.zst": lambda folder, rows: write_csv(folder, rows, "rows.CSV.zst"),
    "tsv": lambda folder, rows: write_csv(folder, rows, "rows.tsv", "\t"),
    "txt; semicolons": lambda folder, rows: write_csv(folder, rows, "rows.txt", ";"),
    "jsonl": write_json,
    "ndjson.gz": lambda folder, rows: write_json(folder, rows, "rows.ndjson.gz"),
    "jsonl.zst": lambda folder, rows: write_json(folder, rows, "rows.jsonl.zst"),
    "json array": lambda folder, rows: write_json(folder, rows, "rows.json"),
    "parquet": write_parquet,
    "arrow": lambda folder, rows: arrow(rows),
    "arrow dictionary": lambda folder, rows: pyarrow.table(
        {name: arrow(rows).column(name).dictionary_encode() for name in ("film", "viewer")}
    ),
    "pandas": lambda folder, rows: pandas.DataFrame(rows, columns=["film", "viewer"]),
    "pandas objects": lambda folder, rows: pandas.DataFrame(rows, columns=["film", "viewer"], dtype=object),
    "pandas categories": lambda folder, rows: pandas.DataFrame(rows, columns=["film", "viewer"]).astype("category"),
    "polars": lambda folder, rows: polars.from_arrow(arrow(rows)),
    "polars lazy": lambda folder, rows: polars.from_arrow(arrow(rows)).lazy(),
}


def plain_histogram(rows: Iterable[Row], domain: list[str]) -> dict[int, int]:
    """Count as the manual says, in plain Python."""
    pairs = {(film, viewer) for film, viewer in rows if film is not None and viewer is not None}
    people = Counter(film for film, _ in pairs)
    return dict(Counter(people[film] for film in set(domain)))


def histogram(table: Any, domain: Any, item: str = "film", person: str = "viewer") -> dict[int, int]:
    with open_counts(table, item=item, person=person, domain=Domain.of(domain), k=1) as counts:
        scores, items = counts.histogram()
    return dict(zip(scores, items, strict=True))


def members(table: Any, domain: Any, item: str = "film", person: str = "viewer") -> dict[int, list[Any]]:
    """Return every item by its score, fetched in one go; tied items in the order of their text."""
    with open_counts(table, item=item, person=person, domain=Domain.of(domain), k=1) as counts:
        pairs = [(score, index) for score, number in zip(*counts.histogram(), strict=True) for index in range(number)]
        found = counts.fetch([score for score, _ in pairs], [index for _, index in pairs])
    groups: dict[int, list[Any]] = {}
    for (score, _), one in zip(pairs, found, strict=True):
        groups.setdefault(score, []).append(one)
    return {score: sorted(group, key=str) for score, group in groups.items()}
