"""The scores of items, computed where the rows are.

Two queries, as Ibis expressions that any backend can run: how many items have which score, and which is the i-th item
among those tied at a score. Indexes are drawn by the exact sampler, so the engine needs no randomness.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpselect.errors import InvalidInput, SourceError
from dpselect.items import Unseen
from dpselect.sources.contributions import Contribution, contributions, in_numbers, numeric_rows
from dpselect.sources.domain import Domain
from dpselect.sources.duckdb import embedded_when_needed
from dpselect.sources.engine import Engine, Progress
from dpselect.sources.frames import is_pandas, neutral_name
from dpselect.sources.listing import items_digest, listed_items
from dpselect.sources.rows import open_rows
from dpselect.sources.values import check_type, with_items, without_nulls

PEOPLE = Contribution()

CHANGED = (
    "table: it changed between two queries, so nothing is released; a ledger keeps the charge, because whether an "
    "answer is missing can depend on the rows"
)


class Counts:
    """The score of each item of a domain; private until a mechanism has chosen.

    No row is read before the first call of `histogram` or `highest`: charge the release before that call.

    Attributes
    ----------
    size : int or None
        The number of items that was stated or listed, which is public; None for an unknown domain.
    """

    def __init__(
        self,
        engine: Engine,
        read: Callable[[], Any],
        domain: Domain,
        *,
        size: int | None = None,
        listed: Any = None,
        unit: Fraction = Fraction(1),
        shows_whole_floats_as_integers: bool = False,
    ) -> None:
        self.size = size
        self._engine = engine
        self._read = read
        self._domain = domain
        self._listed = listed
        self._unit = unit
        self._shows_whole_floats_as_integers = shows_whole_floats_as_integers
        self._seen_at_zero = 0

    @cached_property
    def _scored(self) -> Any:
        """The table (item, text, position, score), computed from the rows on first use."""
        return self._read()

    def domain_digest(self) -> str:
        """Return a hash of what is public about the items: their list, their number, or that they are unknown."""
        if self._listed is not None:
            return items_digest(self._engine, self._listed)
        return "unknown" if self._domain.unknown else f"{self._domain.number} items"

    def histogram(self) -> tuple[list[Any], list[int]]:
        """Return the distinct scores, highest first, and how many items of the domain have each, score 0 included."""
        scored = self._scored
        rows = self._engine.fetch(scored.group_by("score").aggregate(items=scored.count()))
        items = {int(row["score"]): int(row["items"]) for row in rows}
        if self._domain.number is not None:
            self._seen_at_zero = items.get(0, 0)
            items[0] = self._seen_at_zero + self._domain.number - sum(items.values())
            if items[0] < self._seen_at_zero:
                raise InvalidInput(
                    "domain",
                    self._domain.number,
                    "must be at least the number of distinct items in the table, or the guarantee would not hold; "
                    "state how many items are possible, not how many are expected",
                )
        scores = sorted((score for score in items if items[score]), reverse=True)
        return in_numbers(scores, self._unit), [items[score] for score in scores]

    def highest(self, number: int) -> tuple[list[Any], list[Any]]:
        """Return the items with the highest scores above 0, at most `number`, and their scores, highest first.

        Nothing else leaves the engine. Tied items are ranked by a hash of their text, an order that no row can change.
        """
        scored = self._scored.filter(self._scored.score > 0)
        scores = scored.order_by(scored.score.desc()).limit(number)
        # Hashing every item would take long, so only items that can be among the highest are hashed.
        near = scored.cross_join(scores.aggregate(edge=scores.score.min())).filter(lambda pair: pair.score >= pair.edge)
        name = near.item.cast("string")
        ranked = near.order_by([near.score.desc(), self._engine.digest(name), name]).limit(number)
        rows = self._engine.fetch(ranked)
        rows.sort(key=lambda row: -int(row["score"]))
        return [self._label(row) for row in rows], in_numbers([int(row["score"]) for row in rows], self._unit)

    def fetch(self, scores: Sequence[Any], indexes: Sequence[int]) -> list[Any]:
        """Return, in the order asked, the indexes[i]-th item (from 0) among those tied at scores[i].

        Tied items are ranked by a hash of their text, which all engines agree on; their collations differ. Either all
        items are returned, or an error is raised.
        """
        places = [(int(Fraction(score) / self._unit), int(index)) for score, index in zip(scores, indexes, strict=True)]
        asked = {place for place in places if not self._is_unseen(*place)}
        found = {(int(row["score"]), int(row["index"])): self._label(row) for row in self._members(asked)}
        if found.keys() != asked:
            raise SourceError(CHANGED)
        numbers = iter(range(1, len(places) + 1))
        return [found[place] if place in found else Unseen(next(numbers)) for place in places]

    def _members(self, asked: set[tuple[int, int]]) -> list[dict[str, Any]]:
        import ibis

        if not asked:
            return []
        tied = self._scored.filter(self._scored.score.isin(sorted({score for score, _ in asked})))
        # An item that the column cannot hold has its name in `text`.
        name = ibis.coalesce(tied.item.cast("string"), tied.text)
        tied = tied.mutate(name=name, mixed=self._engine.digest(name))
        window = ibis.window(group_by=tied.score, order_by=[tied.mixed, tied.name, tied.text])
        tied = tied.mutate(index=ibis.row_number().over(window).cast("int64"))
        place = tied.score.cast("string") + ":" + tied.index.cast("string")
        chosen = tied.filter(place.isin([f"{score}:{index}" for score, index in sorted(asked)]))
        return self._engine.fetch(chosen.select("score", "index", "item", "text", "position"))

    def _is_unseen(self, score: int, index: int) -> bool:
        return self._domain.number is not None and score == 0 and index >= self._seen_at_zero

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
    key: str = "",
    table_name: str | None = None,
    where: str | None = None,
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
    k : int
        The number of items to choose, which the domain must have.
    contribution : Contribution
        What one person adds to the score of one item; by default 1.
    key : str
        Random bits, from `fresh_key`, that decide which of a person's items are kept.

    Yields
    ------
    Counts
        The scores, until the end of the block.

    Raises
    ------
    InvalidInput
        If the table, a column, the domain or the condition cannot be used.
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
    check_names(item, person)
    columns = list(dict.fromkeys([item, person, *contribution.columns]))
    with contextlib.ExitStack() as stack:
        embedded = embedded_when_needed(stack, progress)
        source = open_rows(stack, embedded, table, columns, table_name=table_name, where=where, progress=progress)
        engine, given = source.engine, source.table
        of = {name: given[neutral_name(place)] for place, name in enumerate(columns)}
        check_type("item", item, of[item].type())
        check_type("person", person, of[person].type())
        used = {"item": item, "person": person, "value": contribution.value, "weight": contribution.weight}
        rows = given.select(**{role: of[name] for role, name in used.items() if name is not None})
        rows = with_items(engine, without_nulls(rows, "item", "person"), "item")
        rows = numeric_rows(engine, rows, contribution)
        listed, size = None, domain.number
        if domain.number is None and not domain.unknown:
            listed, size = listed_items(stack, embedded, source, domain, item, of[item].type())
        if size is not None and k > size:
            raise InvalidInput("k", k, f"must be at most {size} (the number of items in the domain)")
        scored = _scored(contributions(engine, rows, contribution, listed, key), listed, contribution)
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
            size=size,
            listed=listed,
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


def _kept(engine: Engine, scored: Any, domain: Domain) -> contextlib.AbstractContextManager[Any]:
    """Return the scores as they are kept between queries; an unknown domain needs one query only."""
    if domain.unknown and engine.computes_shared_parts_once:
        return contextlib.nullcontext(scored)
    return engine.materialised(scored)


def _scored(pairs: Any, listed: Any, contribution: Contribution) -> Any:
    """Return the expression (item, text, position, score), with every listed item if there is a list."""
    import ibis

    score = pairs.person.nunique() if contribution.counts_rows else pairs.amount.sum()
    totals = pairs.group_by("item").aggregate(score=score)
    if listed is None:
        return totals.mutate(text=ibis.literal(""), position=ibis.literal(0, "int64"))
    joined = listed.left_join(totals, listed.key == totals.item)
    score = ibis.coalesce(joined.score, ibis.literal(0, "int64"))
    return joined.select(item=joined.key, text=joined.text, position=joined.position, score=score)


def check_names(item: Any, person: Any) -> None:
    """Refuse columns of items and people that are not named, or are the same."""
    for argument, name in (("item", item), ("person", person)):
        if not isinstance(name, str) or not name:
            raise InvalidInput(argument, name, "must be the name of a column")
    if item == person:
        raise InvalidInput("person", person, "must be another column than the item's")
