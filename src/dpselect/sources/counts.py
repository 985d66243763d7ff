"""The scores of items, in each group if there are groups, computed where the rows are.

Two queries, as Ibis expressions that any backend can run: how many items have which score, and which is the i-th item
among those tied at a score. Indexes are drawn by the exact sampler, so the engine needs no randomness.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect.errors import InvalidInput, SourceError
from dpselect.items import Unseen, digest_of, plain_item
from dpselect.sources.contributions import Contribution, contributions, in_numbers, numeric_rows
from dpselect.sources.domain import Domain
from dpselect.sources.duckdb import embedded_when_needed
from dpselect.sources.engine import Engine, Progress
from dpselect.sources.frames import is_pandas, neutral_name
from dpselect.sources.groups import Groups, in_few_groups, in_groups, listed_groups
from dpselect.sources.listing import Listing, listed_items
from dpselect.sources.rows import open_rows
from dpselect.sources.times import PeriodFilter
from dpselect.sources.values import check_person, check_type, with_exact_text, with_items, without_nulls

PEOPLE = Contribution()

CHANGED = (
    "table: it changed between two queries, so nothing is released; a ledger keeps the charge, because whether an "
    "answer is missing can depend on the rows"
)

Histogram = tuple[list[Any], list[int]]
"""Distinct scores, highest first, and how many items have each."""

Place = tuple[int, int, int]
"""A group, a score in units, and an index among the items of the group with that score."""


class Counts:
    """The score of each item of a domain, in each group if there are groups; private until a mechanism has chosen.

    No row is read before the first call of a method: charge the release before that call. `histograms`, `pools` and
    `chosen` have one entry for each group, in the order of the public list, and a single entry if there are no groups.

    Attributes
    ----------
    groups : list or None
        The groups, which are public.
    sizes : list of int or None
        The number of items that was stated or listed for each group, which is public; None for an unknown domain.
    unit : Fraction
        The unit of the scores, which is public.
    """

    def __init__(
        self,
        engine: Engine,
        read: Callable[[], Any],
        domain: Domain,
        *,
        groups: list[Any] | None,
        sizes: Sequence[int | None],
        listing: Listing | None,
        unit: Fraction = Fraction(1),
        shows_whole_floats_as_integers: bool = False,
    ) -> None:
        self.groups = groups
        self.sizes = sizes
        self._engine = engine
        self._read = read
        self._domain = domain
        self._listing = listing
        self.unit = unit
        self._shows_whole_floats_as_integers = shows_whole_floats_as_integers
        self._seen_at_zero = [0] * len(sizes)

    @property
    def size(self) -> int | None:
        """The number of items without groups."""
        [size] = self.sizes
        return size

    @cached_property
    def _scored(self) -> Any:
        """The table (group, item, position, score) of the items that somebody has, computed on first use."""
        return self._read()

    def domain_digest(self) -> str:
        """Return a hash of what is public about the items: their list, their number, or that they are unknown."""
        if self._listing is not None:
            return self._listing.digest(self._engine)
        return "unknown" if self._domain.unknown else f"{self._domain.number} items"

    def groups_digest(self) -> str | None:
        """Return a hash of the groups in their order, or None without groups."""
        if self.groups is None:
            return None
        return digest_of(f"{place} {plain_item(group)}" for place, group in enumerate(self.groups))

    def histogram(self) -> Histogram:
        """Return the distinct scores, highest first, and how many items of the domain have each, score 0 included.

        Of an unknown domain, only the items that somebody has are counted.
        """
        [histogram] = self.histograms()
        return histogram

    def histograms(self) -> list[Histogram]:
        """Return the histogram of each group."""
        scored = self._scored
        counted = scored.group_by("group", "score").aggregate(items=scored.count())
        columns = self._engine.columns(counted.cast(dict.fromkeys(counted.columns, "int64")))
        # Arrow's own `to_numpy` would import pandas, which takes 0.2 s.
        group, score, items = (np.from_dlpack(columns[name].combine_chunks()) for name in ("group", "score", "items"))
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(1, len(self.sizes)))
        return [
            self._with_unseen(place, dict(zip(score[part].tolist(), items[part].tolist(), strict=True)))
            for place, part in enumerate(np.split(order, starts))
        ]

    def _with_unseen(self, group: int, items: dict[int, int]) -> Histogram:
        """Return the histogram of a group, with the items that nobody has there at score 0."""
        size = self.sizes[group]
        unseen = 0 if size is None else size - sum(items.values())
        if unseen < 0:
            raise InvalidInput(
                "domain",
                self._domain.number,
                "must be at least the number of distinct items in the table, or the guarantee would not hold; "
                "state how many items are possible, not how many are expected",
            )
        self._seen_at_zero[group] = items.get(0, 0)
        items[0] = self._seen_at_zero[group] + unseen
        scores = sorted((score for score in items if items[score]), reverse=True)
        return in_numbers(scores, self.unit), [items[score] for score in scores]

    def ranked(self) -> Any:
        """Return an Arrow table (item, text, score) of all listed items, group by group, highest score first.

        Scores are in units. Tied items are in the order in which `chosen` counts them.
        """
        import ibis
        import pyarrow

        assert self._listing is not None
        listed = self._listing.table
        with self._engine.uploaded(pyarrow.table({"place": range(len(self.sizes))})) as places:
            if not self._listing.by_group:
                listed = listed.cross_join(places.select(group=places.place))
            scored = self._scored.select(in_group="group", seen="item", score="score")
            every = listed.left_join(scored, [listed.group == scored.in_group, listed.key == scored.seen])
            name = ibis.coalesce(every.key.cast("string"), every.text)
            every = every.mutate(score=ibis.coalesce(every.score, 0), unseen=every.score.isnull(), name=name)
            order = [every.group, every.score.desc(), every.unseen, self._engine.digest(every.name), every.name]
            ranked = every.order_by([*order, every.text])
            return self._engine.columns(ranked.select("text", item="key", score=ranked.score.cast("int64")))

    def highest(self, number: int) -> tuple[list[Any], list[Any]]:
        """Return the items with the highest scores above 0, at most `number`, and their scores, highest first.

        Nothing else leaves the engine. Tied items are ranked by a hash of their text, an order that no row can change.
        """
        [pool] = self.pools(number)
        return pool

    def pools(self, number: int) -> list[tuple[list[Any], list[Any]]]:
        """Return the highest items of each group, and their scores."""
        import ibis

        near = self._near(self._scored.filter(self._scored.score > 0), number)
        near = near.mutate(name=near.item.cast("string"))
        order = [near.score.desc(), self._engine.digest(near.name), near.name]
        near = near.mutate(place=ibis.row_number().over(ibis.window(group_by=near.group, order_by=order)))
        rows = self._engine.fetch(near.filter(near.place < number).drop("name", "place"))
        rows.sort(key=lambda row: -int(row["score"]))
        found: list[list[dict[str, Any]]] = [[] for _ in self.sizes]
        for row in rows:
            found[int(row["group"])].append(row)
        return [
            ([self._label(row) for row in part], in_numbers([int(row["score"]) for row in part], self.unit))
            for part in found
        ]

    def _near(self, scored: Any, number: int) -> Any:
        """Return the items that can be among the highest of their group; hashing every item would take long."""
        import ibis

        if self.groups is None:
            highest = scored.order_by(scored.score.desc()).limit(number)
            edges = highest.aggregate(edge=highest.score.min())
            return scored.cross_join(edges).filter(lambda pair: pair.score >= pair.edge).drop("edge")
        window = ibis.window(group_by=scored.group, order_by=scored.score.desc())
        highest = scored.mutate(place=ibis.row_number().over(window))
        highest = highest.filter(highest.place < number)
        edges = highest.group_by(edge_of=highest.group).aggregate(edge=highest.score.min())
        near = scored.inner_join(edges, [scored.group == edges.edge_of, scored.score >= edges.edge])
        return near.drop("edge", "edge_of")

    def fetch(self, scores: Sequence[Any], indexes: Sequence[int]) -> list[Any]:
        """Return, in the order asked, the indexes[i]-th item (from 0) among those tied at scores[i].

        Tied items are ranked by a hash of their text, which all engines agree on; their collations differ. Items that
        nobody has come after the others with a score of 0. Either all items are returned, or an error is raised.
        """
        [items] = self.chosen([(scores, indexes)])
        return items

    def chosen(self, asked: Sequence[tuple[Sequence[Any], Sequence[int]]]) -> list[list[Any]]:
        """Return the items at the scores and indexes asked for in each group."""
        places = [
            [(group, int(Fraction(score) / self.unit), int(index)) for score, index in zip(*part, strict=True)]
            for group, part in enumerate(asked)
        ]
        every = {place for part in places for place in part}
        unseen = {place for place in every if self._is_unseen(*place)}
        nameless = unseen if self._listing is None else set()
        found = self._seen_items(every - unseen) | self._unseen_items(unseen - nameless)
        if found.keys() != every - nameless:
            raise SourceError(CHANGED)
        items = []
        for part in places:
            numbers = iter(range(1, len(part) + 1))
            items.append([Unseen(next(numbers)) if place in nameless else found[place] for place in part])
        return items

    def _is_unseen(self, group: int, score: int, index: int) -> bool:
        return score == 0 and index >= self._seen_at_zero[group]

    def _seen_items(self, asked: set[Place]) -> dict[Place, Any]:
        """Return the items that somebody has."""
        import ibis

        if not asked:
            return {}
        scored = self._scored
        groups, scores = (sorted({place[part] for place in asked}) for part in (0, 1))
        tied = scored.filter(scored.score.isin(scores), scored.group.isin(groups))
        tied = tied.mutate(level=tied.group.cast("string") + ":" + tied.score.cast("string"))
        tied = tied.filter(tied.level.isin(sorted({f"{group}:{score}" for group, score, _ in asked})))
        tied = tied.mutate(name=tied.item.cast("string"))
        window = ibis.window(group_by=tied.level, order_by=[self._engine.digest(tied.name), tied.name])
        tied = tied.mutate(index=ibis.row_number().over(window).cast("int64"))
        place = tied.level + ":" + tied.index.cast("string")
        chosen = tied.filter(place.isin([f"{group}:{score}:{index}" for group, score, index in sorted(asked)]))
        rows = self._engine.fetch(chosen.select("group", "score", "index", "item", "position"))
        return {(int(row["group"]), int(row["score"]), int(row["index"])): self._label(row) for row in rows}

    def _unseen_items(self, asked: set[Place]) -> dict[Place, Any]:
        """Return listed items that nobody has."""
        if not asked:
            return {}
        assert self._listing is not None
        places = [(group, index - self._seen_at_zero[group]) for group, _, index in sorted(asked)]
        rows = self._listing.unseen(self._engine, self._scored, places)
        return {
            (int(row["group"]), 0, int(row["index"]) + self._seen_at_zero[int(row["group"])]): self._label(row)
            for row in rows
        }

    def _label(self, row: dict[str, Any]) -> Any:
        return shown_item(row, self._domain, self._shows_whole_floats_as_integers)


@contextlib.contextmanager
def open_counts(
    table: Any,
    *,
    item: str,
    person: str,
    domain: Domain,
    k: int,
    contribution: Contribution = PEOPLE,
    groups: Groups | None = None,
    key: str = "",
    table_name: str | None = None,
    where: str | None = None,
    during: PeriodFilter | None = None,
    progress: Progress | None = None,
) -> Iterator[Counts]:
    """Open a table, and yield the scores of the domain's items after every check that needs no row.

    The score of an item is the sum over people of their contribution to it, at most one each. Rows with a null in a
    column that is used are dropped. The first query of the result reads the rows.

    Parameters
    ----------
    table, item, person, table_name, where, progress
        As in `dpselect.top`.
    domain : Domain
        The items that are possible.
    during : PeriodFilter or None
        The period whose rows are read; by default all are.
    k : int
        The number of items to choose, which the domain must have.
    contribution : Contribution
        What one person adds to the score of one item; by default 1.
    groups : Groups or None
        The groups in which items are scored, if there are any.
    key : str
        Random bits, from `fresh_key`, that decide which of a person's groups and items are kept.

    Yields
    ------
    Counts
        The scores, until the end of the block.

    Raises
    ------
    InvalidInput
        If the table, a column, the domain, the groups or the condition cannot be used.
    SourceError
        If the engine fails.

    Examples
    --------
    >>> import pandas
    >>> rows = pandas.DataFrame({"film": ["Heat", "Heat", "Up"], "viewer": ["ann", "bob", "ann"]})
    >>> with open_counts(rows, item="film", person="viewer", domain=Domain.of(["Heat", "Up", "Her"]), k=1) as counts:
    ...     counts.histogram()
    ([2, 1, 0], [1, 1, 1])
    """
    by = None if groups is None else groups.by
    check_names(item, person, by)
    used = {"item": item, "person": person, "group": by, "value": contribution.value, "weight": contribution.weight}
    columns = list(dict.fromkeys(name for name in used.values() if name is not None))
    with contextlib.ExitStack() as stack:
        embedded = embedded_when_needed(stack, progress)
        source = open_rows(
            stack,
            embedded,
            table,
            columns,
            table_name=table_name,
            where=where,
            during=during,
            progress=progress,
        )
        engine, given = source.engine, source.table
        if by is not None and source.named is not None:
            # Items are compared byte by byte already, and so is all text of files and frames.
            given = with_exact_text(engine, given, neutral_name(columns.index(by)))
        of = {name: given[neutral_name(place)] for place, name in enumerate(columns)}
        for argument, column in (("item", item), ("by", by)):
            if column is not None:
                check_type(argument, column, of[column].type())
        check_person(engine, person, given, neutral_name(columns.index(person)))
        rows = given.select(**{role: of[name] for role, name in used.items() if name is not None})
        rows = with_items(engine, without_nulls(rows, "item", "person"), "item")
        rows = numeric_rows(engine, rows, contribution)
        keys, labels = None, None
        if groups is not None:
            keys, labels = listed_groups(stack, embedded, source, groups, rows.group.type())
            rows = in_groups(rows, keys)
        number = 1 if labels is None else len(labels)
        listing, sizes = None, [domain.number] * number
        if domain.number is None and not domain.unknown:
            listed, size = listed_items(stack, embedded, source, domain, item, of[item].type(), keys)
            listing = Listing(listed)
            sizes = _sizes(engine, listed, number) if listing.by_group else [size] * number
        check_k(k, sizes, labels)
        if listing is not None and contribution.max_items_per_person is not None:
            # Items outside the list are dropped before some of a person's items are kept.
            rows = rows.semi_join(listing.table, listing.matches(rows))
        if groups is not None and groups.most < number:
            rows = in_few_groups(engine, rows, groups.most, key, listing)
        scored = _scored(contributions(engine, rows, contribution, key), listing, contribution)
        # An engine refuses types that it cannot work with here, before the release is charged.
        engine.check(scored)

        def read() -> Any:
            source.load()
            return stack.enter_context(_kept(engine, scored, domain))

        # pandas turns integers into floats if one is missing; 1.0 instead of 1 in an answer would reveal that.
        yield Counts(
            engine,
            read,
            domain,
            groups=labels,
            sizes=sizes,
            listing=listing,
            unit=contribution.unit,
            shows_whole_floats_as_integers=is_pandas(table),
        )


def shown_item(row: dict[str, Any], domain: Domain, whole_floats_as_integers: bool) -> Any:
    """Return the caller's own object for an item of a list, and otherwise the engine's value."""
    if domain.labels is not None:
        return domain.labels[row["position"]]
    item = row["text"] if row["item"] is None else row["item"]
    is_whole = whole_floats_as_integers and isinstance(item, float) and item.is_integer()
    return int(item) if is_whole else item


def _sizes(engine: Engine, listed: Any, groups: int) -> list[int | None]:
    """Return how many items are listed for each group."""
    counted = engine.fetch(listed.group_by("group").aggregate(items=listed.count()))
    found = {int(row["group"]): int(row["items"]) for row in counted}
    return [found.get(group, 0) for group in range(groups)]


def check_k(k: int, sizes: Sequence[int | None], groups: list[Any] | None) -> None:
    """Refuse a domain, or a group, with fewer than k items; their number is public."""
    for group, size in enumerate(sizes):
        if size is not None and k > size:
            domain = "the domain" if groups is None else f"the domain of group {groups[group]}"
            raise InvalidInput("k", k, f"must be at most {size} (the number of items in {domain})")


def _kept(engine: Engine, scored: Any, domain: Domain) -> contextlib.AbstractContextManager[Any]:
    """Return the scores as they are kept between queries; an unknown domain needs one query only."""
    if domain.unknown and engine.computes_shared_parts_once:
        return contextlib.nullcontext(scored)
    return engine.materialised(scored)


def _scored(pairs: Any, listing: Listing | None, contribution: Contribution) -> Any:
    """Return the expression (group, item, position, score) of the items that somebody has; if listed, of those only."""
    import ibis

    is_grouped = "group" in pairs.columns
    score = pairs.person.nunique() if contribution.counts_rows else pairs.amount.sum()
    totals = pairs.group_by("item", *(["group"] if is_grouped else [])).aggregate(score=score)
    if not is_grouped:
        totals = totals.mutate(group=ibis.literal(0, "int64"))
    if listing is None:
        return totals.select("group", "item", "score", position=ibis.literal(0, "int64"))
    listed = listing.table
    found = totals.inner_join(listed, listing.matches(totals))
    return found.select("item", "score", "position", group=totals.group)


def check_names(item: Any, person: Any, by: Any = None) -> None:
    """Refuse columns of items, people and groups that are not named, or are the same."""
    for argument, name in (("item", item), ("person", person)):
        if not isinstance(name, str) or not name:
            raise InvalidInput(argument, name, "must be the name of a column")
    if item == person:
        raise InvalidInput("person", person, "must be another column than the item's")
    if by is not None and by in (item, person):
        raise InvalidInput("by", by, "must be another column than those of items and people")
