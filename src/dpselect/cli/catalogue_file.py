"""A catalogue from a file: a position for each result, and what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpselect
from dpselect.multiselect import Catalogue

_ENDINGS = "a name that ends in .csv, .jsonl or .parquet is needed"


def catalogue_in_file(path: str, position: str, item: str) -> Catalogue:
    """Return the results in a file; without a column of items they are numbered."""
    file = Path(path)
    if not file.is_file():
        raise dpselect.InvalidInput("catalogue", path, "there is no such file; check the path")
    table = _table(file)
    if position not in table.column_names:
        raise dpselect.InvalidInput(
            "catalogue", file.name, f"a column {position!r} is needed; name another with --position"
        )
    items = table[item].to_pylist() if item in table.column_names else None
    return Catalogue(table[position].to_numpy(), items)


def _table(file: Path) -> Any:
    import pyarrow
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet

    readers = {
        ".csv": pyarrow.csv.read_csv,
        ".jsonl": pyarrow.json.read_json,
        ".ndjson": pyarrow.json.read_json,
        ".parquet": pyarrow.parquet.read_table,
    }
    if file.suffix.lower() not in readers:
        raise dpselect.InvalidInput("catalogue", file.name, _ENDINGS)
    try:
        return readers[file.suffix.lower()](str(file))
    except (pyarrow.ArrowException, OSError):
        raise dpselect.InvalidInput("catalogue", file.name, "it cannot be read; check that it is such a file") from None
