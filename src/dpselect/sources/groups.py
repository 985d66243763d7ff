"""The groups of `top`: the public list of them, and in which of them each person counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.sources.contributions import placed_at_random
from dpselect.sources.domain import Domain
from dpselect.sources.duckdb import EmbeddedEngine
from dpselect.sources.engine import Engine
from dpselect.sources.files import FileTable
from dpselect.sources.frames import is_null
from dpselect.sources.identity import check_not_origin
from dpselect.sources.listing import (
    GroupKeys,
    Listing,
    converted,
    in_engine_of_rows,
    keys_in_engine,
    public_columns,
    uploaded_list,
)
from dpselect.sources.rows import Source

MOST_GROUPS = 100_000
"""Maximum number of groups; each of them is answered by a draw of its own."""


@dataclass(frozen=True)
class Groups:
    """The column of the groups, the public list of them, and how many of them one person counts in.

    Attributes
    ----------
    by : str
        The column of the rows.
    listed : Domain
        The list: the groups themselves, or a file or table with a column of them.
    most : int
        The number of groups that are kept of each person.

    Examples
    --------
    >>> Groups.of("country", ["DE", "FR"], 1).listed.labels
    ['DE', 'FR']
    """

    by: str
    listed: Domain
    most: int

    @classmethod
    def of(cls, by: Any, groups: Any, max_groups_per_person: Any) -> Groups | None:
        """Check the arguments `by`, `groups` and `max_groups_per_person` of `dpselect.top`; None without groups."""
        most = positive_integer("max_groups_per_person", max_groups_per_person)
        if by is None:
            for argument, given, is_given in (
                ("groups", groups, groups is not None),
                ("max_groups_per_person", most, most != 1),
            ):
                if is_given:
                    raise InvalidInput(argument, given, "must be left out without by (--by), the column of groups")
            return None
        if not isinstance(by, str) or not by:
            raise InvalidInput("by", by, "must be the name of a column")
        if groups is None:
            raise InvalidInput(
                "groups", None, "must list the groups, which are public; give a list, a file or table:NAME"
            )
        listed = Domain.of(groups, argument="groups")
        if listed.unknown or listed.number is not None:
            raise InvalidInput(
                "groups",
                plain("unknown") if listed.unknown else listed.number,
                "must list the groups, since which of them exist may be private; if nobody can list them, publish them "
                f"first with dpselect domain --item {by} (in Python, dpselect.discover)",
            )
        return cls(by, listed, most)

    def describe(self) -> dict[str, Any]:
        """Return what a ledger records, which excludes the names of the column and of the groups."""
        return {"max_groups_per_person": self.most}


def listed_groups(
    stack: contextlib.ExitStack, embedded: Callable[[], EmbeddedEngine], source: Source, groups: Groups, kind: Any
) -> tuple[GroupKeys, list[Any]]:
    """Return the distinct groups as a table, positions counted from 0, and as Python objects in the order of the list.

    A table in an engine has no order; its groups are in the order of their text. `kind` is the type of the column.
    """
    given = _values(stack, embedded, source, groups)
    converting = embedded()
    table = converted(stack, converting, Domain(labels=given, argument="groups"), groups.by, kind)
    rows = converting.columns(table).sort_by("position")
    labels = [given[place] for place in rows["position"].to_pylist()]
    _check(groups, labels)
    rows = rows.set_column(rows.column_names.index("position"), "position", [list(range(len(labels)))])
    rows = rows.select(["key", "text", "position"])
    return GroupKeys(groups.by, uploaded_list(stack, source.engine, rows, kind), rows), labels


def _values(
    stack: contextlib.ExitStack, embedded: Callable[[], EmbeddedEngine], source: Source, groups: Groups
) -> list[Any]:
    """Return the list as Python objects without nulls."""
    domain, by = groups.listed, groups.by
    there = in_engine_of_rows(stack, source, domain)
    check_not_origin(source, domain, there)
    if domain.labels is not None:
        return domain.labels
    if there is not None:
        keys = keys_in_engine(source.engine, there, domain, by)
        values = sorted((row["key"] for row in source.engine.fetch(keys.distinct())), key=str)
    else:
        table = _in_file(embedded(), domain, by) if domain.path is not None else public_columns(embedded(), domain, by)
        values = embedded().columns(table)[table.columns[0]].to_pylist()
    found = [value for value in values if not is_null(value)]
    if not found:
        raise InvalidInput("groups", plain("an empty list"), "must have at least one group")
    return found


def _in_file(embedded: EmbeddedEngine, domain: Domain, by: str) -> Any:
    assert domain.path is not None
    advice = f"call the column of groups {by!r}, as in the table of rows"
    bound = FileTable.at("groups", domain.path, public=True, advice=advice).bind(embedded, [by])
    bound.load()
    return bound.table


def _check(groups: Groups, labels: list[Any]) -> None:
    """Refuse groups that cannot be the keys of the answer, or are too many or too few."""
    try:
        distinct = len(set(labels))
    except TypeError:
        distinct = 0
    if distinct < len(labels):
        raise InvalidInput("groups", plain("a list"), "must have groups that are distinct, hashable Python objects")
    if len(labels) > MOST_GROUPS:
        raise InvalidInput("groups", plain(f"{len(labels):,} groups"), f"must be at most {MOST_GROUPS:,}")
    if groups.most > len(labels):
        raise InvalidInput(
            "max_groups_per_person", groups.most, f"must be at most {len(labels)} (the number of groups)"
        )


def in_groups(rows: Any, keys: GroupKeys) -> Any:
    """Return the rows of listed groups, with the position of the group in place of the group."""
    listed = keys.table.select(listed=keys.table.key, place=keys.table.position)
    placed = rows.inner_join(listed, rows.group == listed.listed)
    return placed.drop("group", "listed").rename(group="place")


def in_few_groups(engine: Engine, rows: Any, most: int, key: str, listing: Listing | None) -> Any:
    """Return the rows without those of surplus groups: each person keeps `most` of their groups, chosen at random.

    Groups in which a person has no item of the list do not compete. The rows of other people have no part in the
    choice. Most people are in few groups, and only for the others is anything hashed or joined.
    """
    if not engine.has_digest:
        raise InvalidInput(
            "max_groups_per_person", most, "must be the number of groups on this engine, which has no function md5"
        )
    pairs = rows.select("person", "group").distinct()
    several = pairs.group_by("person").aggregate(groups=pairs.count())
    several = several.filter(several.groups > most).select(member="person")
    if listing is not None:
        of_several = rows.inner_join(several, rows.person == several.member).drop("member")
        pairs = of_several.semi_join(listing.table, listing.matches(of_several)).select("person", "group").distinct()
    else:
        pairs = pairs.inner_join(several, pairs.person == several.member).drop("member")
    # Another key than for items, so that the choice of items does not depend on that of groups.
    placed = placed_at_random(engine, pairs, f"{key}groups", choose="group", within=("person",))
    surplus = placed.filter(placed.place >= most).select(member="person", surplus="group")
    # Not an anti-join: next to a semi-join, Ibis writes it in a form that PostgreSQL does not have.
    joined = rows.left_join(surplus, [rows.person == surplus.member, rows.group == surplus.surplus])
    return joined.filter(joined.surplus.isnull()).drop("member", "surplus")
