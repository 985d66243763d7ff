"""Counts to look at: a file with a count for each item, or people's rows that are counted as `top` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import dpselect
from dpselect.errors import plain

_ENDINGS = "a name that ends in .csv, .tsv, .jsonl or .parquet is needed; .gz may follow the first three"


def counts_in_file(argument: str, path: str, column: str) -> dpselect.Scores:
    """Return the counts in a column of a CSV, JSON lines or Parquet file; no message quotes a row."""
    file = Path(path)
    if not file.is_file():
        raise dpselect.InvalidInput(argument, path, "there is no such file; check the path")
    if not file.stat().st_size:
        raise dpselect.InvalidInput(argument, plain("an empty file"), "a count for each item is needed")
    values = _column(argument, file, column)
    if values.null_count or not len(values):
        given = plain("a file without rows" if not len(values) else "a row without a count")
        raise dpselect.InvalidInput(argument, given, "a count for each item is needed")
    counts = values.to_numpy(zero_copy_only=False)
    if not np.isfinite(counts).all():
        raise dpselect.InvalidInput(argument, plain("a count that is not finite"), "finite numbers are needed")
    if (counts < 0).any():
        raise dpselect.InvalidInput(argument, plain("a count below 0"), "counts of 0 or more are needed")
    if (counts == np.round(counts)).all() and (counts < 2.0**53).all():
        counts = counts.astype(np.int64)
    return dpselect.Scores.of(counts)


def _column(argument: str, file: Path, column: str) -> Any:
    """Return the column as an Arrow array of floats."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet

    ending = file.suffixes[-2] if file.suffix.lower() == ".gz" and len(file.suffixes) > 1 else file.suffix
    refused = ""
    try:
        if ending in (".csv", ".tsv", ".txt"):
            types = pyarrow.csv.ConvertOptions(include_columns=[column], column_types={column: pyarrow.float64()})
            parsing = pyarrow.csv.ParseOptions(delimiter="\t" if ending == ".tsv" else ",")
            table = pyarrow.csv.read_csv(str(file), convert_options=types, parse_options=parsing)
        elif ending in (".jsonl", ".ndjson"):
            with pyarrow.input_stream(str(file), compression="detect") as stream:
                table = pyarrow.json.read_json(stream)
        elif ending in (".parquet", ".pq"):
            table = pyarrow.parquet.read_table(str(file))
        else:
            raise dpselect.InvalidInput(argument, file.name, _ENDINGS)
        if column not in table.column_names:
            rows = ", or give --item and --person for rows" if argument == "file" else ""
            refused = f"a column {column!r} is needed; name another with --count{rows}"
        else:
            return table[column].combine_chunks().cast(pyarrow.float64())
    except KeyError:
        refused = f"a column {column!r} is needed; name another with --count, or give --item and --person for rows"
    except (pyarrow.ArrowException, OSError):
        refused = f"it cannot be read as numbers in a column {column!r}; check the file and the name of the column"
    raise dpselect.InvalidInput(argument, file.name, refused)


def counts_of_rows(
    table: str,
    item: str,
    person: str,
    domain: str,
    k: int,
    progress: Any,
    *,
    domain_column: str | None = None,
    domain_header: bool = True,
) -> dpselect.Scores:
    """Return how many people have each item of the domain, counted as `top` counts them."""
    from dpselect.sources import Domain, check_not_rows, open_counts

    given = int(domain) if domain.isdecimal() else Path(domain)
    possible = Domain.of(given, column=domain_column, header=domain_header)
    try:
        check_not_rows(table, None, possible)
    except dpselect.InvalidInput:
        raise dpselect.InvalidInput(
            "domain",
            domain,
            "it is the file of the rows; name the list that top will be given, or state the number of items",
        ) from None
    try:
        with open_counts(table, item=item, person=person, domain=possible, k=k, progress=progress) as counts:
            return dpselect.Scores.from_histogram(*counts.histogram())
    except dpselect.InvalidInput as error:
        if error.argument != "table":
            raise
        raise dpselect.InvalidInput("file", error.given, error.accepted) from None
