"""The catalogue of `serve` from a file: a position for each result, and what it is."""

from __future__ import annotations

from dpselect.multiselect import Catalogue
from dpselect.sources import read_columns


def catalogue_in_file(path: str, position: str, item: str) -> Catalogue:
    """Return the results in a file; without a column of items they are numbered."""
    table = read_columns(
        path,
        [position, item],
        numbers=[position],
        optional=[item],
        argument="catalogue",
        advice="name another column with --position",
    )
    items = table[item].to_pylist() if item in table.column_names else None
    return Catalogue(table[position].to_numpy(), items)
