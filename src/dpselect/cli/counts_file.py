"""Counts from a file with a count for each item, or from rows counted as `top` does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dpselect
from dpselect.cli.options import domain_of
from dpselect.cli.unknown import UNKNOWN
from dpselect.errors import plain
from dpselect.sources import (
    Contribution,
    Counts,
    Domain,
    Groups,
    PeriodFilter,
    check_not_rows,
    open_counts,
    read_columns,
    read_counts,
)


def counts_in_file(argument: str, path: str, column: str, *, negative: bool = False) -> dpselect.Scores:
    """Return the counts in a column of a file; no message quotes a row. Other scores may be `negative`."""
    advice = "name another column with --count" + (
        ", or give --item and --person for rows" if argument == "file" else ""
    )
    values = read_columns(path, [column], numbers=[column], argument=argument, advice=advice)[column]
    return dpselect.Scores.of(checked_counts(argument, values, negative=negative))


def checked_counts(argument: str, values: Any, *, negative: bool) -> Any:
    """Return an Arrow column of counts as an array; refuse one with a value that is not a count."""
    if values.null_count or not len(values):
        given = plain("a row without a count" if len(values) else "a file without rows")
        raise dpselect.InvalidInput(argument, given, "must have a count for each item")
    counts = values.to_numpy()
    if not np.isfinite(counts).all():
        raise dpselect.InvalidInput(argument, plain("a count that is not finite"), "must have finite counts")
    if not negative and (counts < 0).any():
        raise dpselect.InvalidInput(argument, plain("a count below 0"), "must have counts of at least 0")
    if (counts == np.round(counts)).all() and (abs(counts) < 2.0**53).all():
        counts = counts.astype(np.int64)
    return counts


def counts_by_group(
    argument: str, path: str, by: str, item: str | None, count: str, *, negative: bool = False
) -> dict[Any, Any]:
    """Return the counts of each group of a file; with a column of items, those without a row in a group count 0."""
    advice = "name the columns with --by, --item and --count"
    columns = [by, count, *([] if item is None else [item])]
    table = read_columns(path, columns, numbers=[count], argument=argument, advice=advice)
    counts, groups = checked_counts(argument, table[count], negative=negative), table[by].to_pylist()
    pairs = list(zip(groups, range(len(groups)) if item is None else table[item].to_pylist(), strict=True))
    if len(set(pairs)) < len(pairs):
        raise dpselect.InvalidInput(argument, plain("an item twice in a group"), "must have one row per group and item")
    places: dict[Any, list[int]] = {}
    for place, group in enumerate(groups):
        if group is not None:
            places.setdefault(group, []).append(place)
    size = 0 if item is None else len({listed for _, listed in pairs})
    return {group: np.pad(counts[found], (0, max(size - len(found), 0))) for group, found in places.items()}


def counts_of_items(
    file: str, item: str, count: str, domain: Domain | None, *, negative: bool = False
) -> dpselect.Scores:
    """Return the counts of the listed items, as `select` reads them, for the curator: no cell may be unreadable."""
    scores = read_counts(file, item=item, count=count, domain=domain, negative=negative, curator=True)
    if not scores:
        raise dpselect.InvalidInput("file", plain("a file without rows"), "must have a count for each item")
    return dpselect.Scores.of(scores)


@dataclass(frozen=True)
class PeoplesRows:
    """People's rows that a forecast counts as `top` does: where they are, which of them count, and the domain."""

    table: str
    item: str
    person: str
    domain: str
    contribution: Contribution
    domain_column: str | None = None
    domain_header: bool = True
    table_name: str | None = None
    where: str | None = None
    during: PeriodFilter | None = None


def counts_of_rows(rows: PeoplesRows, k: int, progress: Any) -> dpselect.Scores:
    """Return the scores of the items of the domain, as `top`; of an unknown one, those above 0 of the items seen."""
    with _counted(rows, k, progress) as counts:
        levels = list(zip(*counts.histogram(), strict=True))
    if rows.domain == UNKNOWN:
        levels = [(score, items) for score, items in levels if score > 0] or [(0, 1)]
    return dpselect.Scores.from_histogram(*zip(*levels, strict=True))


def counts_of_groups(rows: PeoplesRows, k: int, progress: Any, *, groups: Groups) -> dict[Any, dpselect.Scores]:
    """Return the scores of the items of the domain in each group, as `top` with --by."""
    with _counted(rows, k, progress, groups=groups) as counts:
        histograms = [dpselect.Scores.from_histogram(*histogram) for histogram in counts.histograms()]
        return dict(zip(counts.groups or [], histograms, strict=True))


@contextlib.contextmanager
def _counted(rows: PeoplesRows, k: int, progress: Any, *, groups: Groups | None = None) -> Iterator[Counts]:
    """Yield the counts of people's rows; an error names FILE as the source."""
    domain = rows.domain
    given = dpselect.UNKNOWN if domain == UNKNOWN else int(domain) if domain.isdecimal() else domain_of(domain)
    possible = Domain.of(given, column=rows.domain_column, header=rows.domain_header)
    try:
        check_not_rows(rows.table, rows.table_name, possible)
    except dpselect.InvalidInput:
        raise dpselect.InvalidInput(
            "domain",
            domain,
            "it is the file of the rows; name the list that top will be given, or state the number of items",
        ) from None
    try:
        # The forecast is not private, so it needs no random key to choose a person's groups and items by.
        with open_counts(
            rows.table,
            item=rows.item,
            person=rows.person,
            domain=possible,
            k=k,
            contribution=rows.contribution,
            groups=groups,
            key="forecast",
            table_name=rows.table_name,
            where=rows.where,
            during=rows.during,
            progress=progress,
        ) as counts:
            yield counts
    except dpselect.InvalidInput as error:
        if error.argument != "table":
            raise
        raise dpselect.InvalidInput("file", error.given, error.accepted) from None


def private_counts(
    file: str,
    item: str,
    count: str,
    domain: str | None,
    possible: Domain | None,
    *,
    k: int,
    negative: bool = False,
    header_only: bool = False,
) -> Any:
    """Return the scores of `select`: those of a list of items, of the file's own items, or of an unknown domain.

    With `header_only`, which reads no row, the scores are 0, and without a list there are k of them.
    """
    scores = read_counts(file, item=item, count=count, domain=possible, negative=negative, header_only=header_only)
    if not scores and header_only:
        return dpselect.Scores.from_histogram([0], [k if isinstance(k, int) and k > 0 else 1])
    if not scores and domain == UNKNOWN:
        return {None: 0}  # an item that nobody has is never released
    if not scores:
        raise dpselect.InvalidInput("file", file, "it lists no item; check the file and its columns")
    return scores


def stated_list(
    domain: str | None, file: str, *, items_are_public: bool, domain_column: str | None, domain_header: bool
) -> Domain | None:
    """Return the list of items that the options of `select` name, None if there is none; refuse contradictions."""
    if items_are_public and domain is not None:
        raise dpselect.InvalidInput("domain", domain, "must be left out with --items-are-public; state one of the two")
    if domain is None and not items_are_public:
        raise dpselect.InvalidInput(
            "domain",
            plain(""),
            "a file of counts lists the items that somebody has, so say what is public: name a file that lists the "
            "possible items, or state --items-are-public if those in the file are public; if nobody may know which "
            "items exist, state --domain unknown with a --delta",
        )
    return list_of_items(domain, file, domain_column, domain_header)


def list_of_items(domain: str | None, file: str, column: str | None, header: bool) -> Domain | None:
    """Return the list that --domain names for a file of counts, or None if it is unknown or left out."""
    if domain is None or domain == UNKNOWN:
        if column is not None or not header:
            raise dpselect.InvalidInput(
                "domain",
                plain("nothing") if domain is None else domain,
                "must name the file to which --domain-column and --domain-no-header apply",
            )
        return None
    if domain.isdecimal():
        raise dpselect.InvalidInput(
            "domain", domain, "must be a file or unknown for a file of counts; list the items in a file"
        )
    possible = Domain.of(Path(domain), column=column, header=header)
    try:
        check_not_rows(file, None, possible)
    except dpselect.InvalidInput:
        raise dpselect.InvalidInput(
            "domain",
            domain,
            "it is the file of counts; state --items-are-public if the items in it are public, and otherwise name "
            "a list that does not depend on who is in the data",
        ) from None
    return possible
