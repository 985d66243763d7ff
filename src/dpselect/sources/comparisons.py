"""Pairwise comparisons, grouped where the rows are: how often each item of a pair won, and how often they tied.

Three queries, as Ibis expressions that any backend can run: the numbered items, one row for each pair of items, and the
names of the chosen items.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import IntArray
from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.contributions import kept_at_random
from dpselect.sources.counts import CHANGED, shown_item
from dpselect.sources.domain import Domain
from dpselect.sources.duckdb import embedded_when_needed
from dpselect.sources.engine import Engine, Progress
from dpselect.sources.frames import is_pandas, neutral_name
from dpselect.sources.listing import Listing, listed_items
from dpselect.sources.rows import open_rows
from dpselect.sources.times import PeriodFilter
from dpselect.sources.values import check_person, check_type, type_name, with_exact_text, with_items, without_nulls

YES = ("true", "t", "yes", "y", "1")
"""What a text column of ties says for a comparison without a winner, in upper or lower case."""


@dataclass(frozen=True)
class Columns:
    """The columns of the winner, the loser, the person who compared them, and whether it was a tie."""

    winner: str
    loser: str
    person: str | None = None
    tie: str | None = None

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for argument in ("winner", "loser", "person", "tie"):
            name = getattr(self, argument)
            if name is None and argument in ("person", "tie"):
                continue
            if not isinstance(name, str) or not name:
                raise InvalidInput(argument, name, "must be the name of a column")
            if name in seen:
                raise InvalidInput(argument, name, f"must be another column than {seen[name]}")
            seen[name] = argument

    def named(self) -> dict[str, str]:
        """Return the columns that are given, by argument."""
        every = {"winner": self.winner, "loser": self.loser, "person": self.person, "tie": self.tie}
        return {argument: name for argument, name in every.items() if name is not None}


class Comparisons:
    """Comparisons between the items of a domain, numbered from 0; private until a mechanism has chosen.

    No row is read before the first call of `pairs`, if the items are listed: charge the release before that call.
    `domain_digest` returns a hash of the list.
    """

    def __init__(
        self,
        engine: Engine,
        read: Callable[[], Any],
        pairs_between: Callable[[Any], Any],
        domain: Domain | None,
        listed: int | None,
        pandas: bool,
        domain_digest: Callable[[], str],
    ) -> None:
        self.domain_digest = domain_digest
        self._engine = engine
        self._read = read
        self._pairs_between = pairs_between
        self._domain = Domain(unknown=True) if domain is None else domain
        self._listed = listed
        self._pandas = pandas

    @cached_property
    def _items(self) -> Any:
        """The numbered items, computed from the list or the rows on first use."""
        return self._read()

    @cached_property
    def size(self) -> int:
        """The number of items: known without a row if they are listed; otherwise the rows are read to count them."""
        return self._engine.scalar(self._items.count()) if self._listed is None else self._listed

    def pairs(self) -> list[IntArray]:
        """Return, for each pair that was compared, both items, the wins of the first and the second, and the ties."""
        table = self._engine.columns(self._pairs_between(self._items))
        names = ("low", "high", "low_won", "high_won", "tied")
        return [table.column(name).to_numpy().astype(np.int64, copy=False) for name in names]

    def fetch(self, places: Sequence[int]) -> list[Any]:
        """Return the names of the items with these numbers, in the order asked."""
        wanted = self._items.filter(self._items.place.isin(sorted(set(places))))
        rows = self._engine.fetch(wanted.select("place", "item", "text", "position"))
        found = {int(row["place"]): shown_item(row, self._domain, self._pandas) for row in rows}
        if found.keys() != set(places):
            raise SourceError(CHANGED)
        return [found[place] for place in places]


@contextlib.contextmanager
def open_comparisons(
    table: Any,
    columns: Columns,
    *,
    domain: Domain | None,
    max_votes_per_person: int | None = None,
    key: str = "",
    table_name: str | None = None,
    where: str | None = None,
    during: PeriodFilter | None = None,
    progress: Progress | None = None,
) -> Iterator[Comparisons]:
    """Yield comparisons grouped by pair of items, after every check that needs no row; the first query reads the rows.

    Dropped are rows without a winner, a loser or, if that column is named, a person; rows with an item outside the
    domain; and rows with the same item twice. `key` are the random bits that decide which of a person's votes are kept.
    """
    named = columns.named()
    with contextlib.ExitStack() as stack:
        embedded = embedded_when_needed(stack, progress)
        source = open_rows(
            stack,
            embedded,
            table,
            list(named.values()),
            table_name=table_name,
            where=where,
            during=during,
            progress=progress,
        )
        engine = source.engine
        given = source.table
        if source.named is not None:
            # Winners are compared byte by byte already, and so is all text of files and frames.
            given = with_exact_text(engine, given, neutral_name(1))
        rows = given.select(**{argument: given[neutral_name(place)] for place, argument in enumerate(named)})
        for argument in set(named) - {"tie", "person"}:
            check_type(argument, named[argument], rows[argument].type())
        if columns.person is not None:
            check_person(engine, columns.person, rows, "person")
        rows = _usable(engine, _of_one_type(rows, columns), columns)
        size: int | None = None
        if domain is None:
            listed = _seen(rows)
        else:
            listed, size = listed_items(stack, embedded, source, domain, columns.winner, rows.winner.type())

        def pairs_between(items: Any) -> Any:
            return _pairs(_votes(engine, rows, items, max_votes_per_person, key))

        def read() -> Any:
            source.load()
            return stack.enter_context(engine.materialised(_numbered(engine, listed)))

        if domain is not None:
            # An engine refuses types that it cannot work with here, before the release is charged.
            engine.check(pairs_between(_numbered(engine, listed)))
        # pandas turns integers into floats if one is missing; 1.0 instead of 1 in an answer would reveal that.
        yield Comparisons(
            engine, read, pairs_between, domain, size, is_pandas(table), lambda: Listing(listed).digest(engine)
        )


def _of_one_type(rows: Any, columns: Columns) -> Any:
    """Return the rows with winners and losers of one type; refuse types that cannot be compared."""
    winner, loser = (rows[column].type().copy(nullable=True) for column in ("winner", "loser"))
    if winner == loser or (winner.is_string() and loser.is_string()):
        return rows
    whole = winner.is_integer() and loser.is_integer()
    # No type holds both signed and unsigned integers of 64 bits, and a value that does not fit would be an error.
    fits = not (winner.is_decimal() or loser.is_decimal() or (whole and (winner.is_uint64() or loser.is_uint64())))
    if winner.is_numeric() and loser.is_numeric() and fits:
        kind = "int64" if whole else "float64"
        return rows.mutate(winner=rows.winner.cast(kind), loser=rows.loser.cast(kind))
    raise InvalidInput(
        "loser",
        plain(f"column {columns.loser!r} of type {type_name(loser)}"),
        f"must have the type of the column of winners ({type_name(winner)})",
    )


def _usable(engine: Engine, rows: Any, columns: Columns) -> Any:
    """Return the rows (winner, loser, tied[, person]) that compare two different items."""
    import ibis

    asked = ["winner", "loser"] + (["person"] if columns.person is not None else [])
    rows = without_nulls(rows, *asked)
    for column in ("winner", "loser"):
        rows = with_items(engine, rows, column)
    rows = rows.filter(rows.winner != rows.loser)
    tied = ibis.literal(False) if columns.tie is None else ibis.coalesce(_says_yes(rows.tie, columns.tie), False)
    return rows.mutate(tied=tied).select(*asked, "tied")


def _says_yes(column: Any, name: str) -> Any:
    kind = column.type()
    if kind.is_boolean():
        return column
    if kind.is_floating():
        return (column != 0) & ~column.isnan()
    if kind.is_numeric():
        return column != 0
    if kind.is_string():
        return column.strip().lower().isin(YES)
    raise InvalidInput("tie", plain(f"column {name!r} of type {type_name(kind)}"), "must be booleans, numbers or text")


def _seen(rows: Any) -> Any:
    """Return the items in the rows, in the form of `listed_items`."""
    import ibis

    both = ibis.union(rows.select(key=rows.winner), rows.select(key=rows.loser), distinct=True)
    return both.mutate(text=ibis.literal(""), position=ibis.literal(0, "int64"))


def _numbered(engine: Engine, listed: Any) -> Any:
    """Return the items numbered by a hash of their text, an order that all engines agree on."""
    import ibis

    name = ibis.coalesce(listed.key.cast("string"), listed.text)
    named = listed.mutate(name=name, mixed=engine.digest(name))
    window = ibis.window(order_by=[named.mixed, named.name, named.text])
    numbered = named.mutate(place=ibis.row_number().over(window).cast("int64"))
    return numbered.select("place", "text", "position", item=numbered.key)


def _votes(engine: Engine, rows: Any, items: Any, most: int | None, key: str) -> Any:
    """Return (winner, loser, tied) with the numbers of items, and at most `most` rows of each person.

    Equal votes of one person share a hash; which of them is kept makes no difference.
    """
    import ibis

    winners = items.select(winner_item=items.item, winner_place=items.place)
    losers = items.select(loser_item=items.item, loser_place=items.place)
    joined = rows.inner_join(winners, rows.winner == winners.winner_item)
    joined = joined.inner_join(losers, joined.loser == losers.loser_item)
    votes = joined.select(
        winner=joined.winner_place,
        loser=joined.loser_place,
        tied=joined.tied,
        **({} if most is None else {"person": joined.person}),
    )
    if most is None:
        return votes
    # In a tie either item can be named as the winner, so the hash must not depend on that.
    vote = (
        ibis.least(votes.winner, votes.loser).cast("string")
        + ":"
        + ibis.greatest(votes.winner, votes.loser).cast("string")
        + votes.tied.ifelse("=", (votes.winner < votes.loser).ifelse("<", ">"))
    )
    votes = kept_at_random(engine, votes.mutate(vote=vote), most, key, choose="vote")
    return votes.select("winner", "loser", "tied")


def _pairs(votes: Any) -> Any:
    """Return one row for each pair of items that was compared: (low, high, low_won, high_won, tied)."""
    import ibis

    rows = votes.mutate(
        low=ibis.least(votes.winner, votes.loser),
        high=ibis.greatest(votes.winner, votes.loser),
        is_tied=votes.tied.ifelse(1, 0).cast("int64"),
        is_won_by_low=(~votes.tied & (votes.winner < votes.loser)).ifelse(1, 0).cast("int64"),
    )
    groups = rows.group_by("low", "high").aggregate(
        compared=rows.count().cast("int64"),
        low_won=rows.is_won_by_low.sum().cast("int64"),
        tied=rows.is_tied.sum().cast("int64"),
    )
    return groups.mutate(high_won=groups.compared - groups.low_won - groups.tied)
