"""Counts for `forecast` and `plan`: from a file with a count for each item, or from rows counted as `top` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import dpselect
from dpselect.cli.unknown import UNKNOWN
from dpselect.errors import plain
from dpselect.sources import Domain, check_not_rows, open_counts, read_columns


def counts_in_file(argument: str, path: str, column: str) -> dpselect.Scores:
    """Return the counts in a column of a file; no message quotes a row."""
    advice = "name another column with --count" + (
        ", or give --item and --person for rows" if argument == "file" else ""
    )
    values = read_columns(path, [column], numbers=[column], argument=argument, advice=advice)[column]
    if values.null_count or not len(values):
        given = plain("a row without a count" if len(values) else "a file without rows")
        raise dpselect.InvalidInput(argument, given, "must have a count for each item")
    counts = values.to_numpy()
    if not np.isfinite(counts).all():
        raise dpselect.InvalidInput(argument, plain("a count that is not finite"), "must have finite counts")
    if (counts < 0).any():
        raise dpselect.InvalidInput(argument, plain("a count below 0"), "must have counts of at least 0")
    if (counts == np.round(counts)).all() and (counts < 2.0**53).all():
        counts = counts.astype(np.int64)
    return dpselect.Scores.of(counts)


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
    pool: int | None = None,
) -> dpselect.Scores:
    """Return how many people have each item of the domain, or of the pool and one more if it is unknown, as `top`."""
    given = dpselect.UNKNOWN if domain == UNKNOWN else int(domain) if domain.isdecimal() else Path(domain)
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
            if possible.unknown:
                highest = counts.highest((pool or 10 * k) + 1)[1]
                return dpselect.Scores.of(highest or [0])
            return dpselect.Scores.from_histogram(*counts.histogram())
    except dpselect.InvalidInput as error:
        if error.argument != "table":
            raise
        raise dpselect.InvalidInput("file", error.given, error.accepted) from None
