"""The scores of items, computed where the rows are.

Two questions, as Ibis expressions that any backend can run: how many items have which score, and which is the i-th item
among those tied at a score. Indexes are drawn by the exact sampler, so the engine needs no randomness.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.calendar import in_calendar
from dpselect.sources.contributions import Contribution, contributions, in_numbers, numeric_rows
from dpselect.sources.domain import Domain, Unseen
from dpselect.sources.embedded import embedded_when_needed
from dpselect.sources.engine import Engine, Progress
from dpselect.sources.forms import in_one_form, is_shown, type_name
from dpselect.sources.frames import is_pandas, neutral_name
from dpselect.sources.listing import is_single_value, listed_items
from dpselect.sources.rows import open_rows

PEOPLE = Contribution()


class Counts:
    """The score of each item of a domain; private until a mechanism has chosen.

    No row is read before the first call of `histogram` or `highest`: charge the release before that call. `size` is the
    number of items that was stated or listed, which is public; it is None for an unknown domain.
    """

    def __init__(
        self,
        engine: Engine,
        read: Callable[[], Any],
        domain: Domain,
        *,
        size: int | None = None,
        unit: Fraction = Fraction(1),
        shows_whole_floats_as_integers: bool = False,
    ) -> None:
        self.size = size
        self._engine = engine
        self._read = read
        self._domain = domain
        self._unit = unit
        self._shows_whole_floats_as_integers = shows_whole_floats_as_integers
        self._seen_at_zero = 0

    @cached_property
    def _scored(self) -> Any:
        """The table (item, text, position, score), computed from the rows on first use."""
        return self._read()

    def histogram(self) -> tuple[list[Any], list[int]]:
        """Return the distinct scores and how many items of the domain have each, those of score 0 included."""
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
                    "the table holds more distinct items than that, so the stated number is wrong and the guarantee "
                    "would not hold; state how many items are possible, not how many are expected",
                )
        scores = sorted((score for score in items if items[score]), reverse=True)
        return in_numbers(scores, self._unit), [items[score] for score in scores]

    def highest(self, number: int) -> tuple[list[Any], list[Any]]:
        """Return the items with the highest scores above 0, at most so many, and their scores, highest first.

        Nothing else leaves the engine. Tied items are ranked by a hash of their text, an order that no row can change.
        """
        scored = self._scored.filter(self._scored.score > 0)
        scores = scored.order_by(scored.score.desc()).limit(number)
        # Hashing every item would cost a good part of the time of counting; only those that can be among them are.
        near = scored.cross_join(scores.aggregate(edge=scores.score.min())).filter(lambda pair: pair.score >= pair.edge)
        name = near.item.cast("string")
        ranked = near.order_by([near.score.desc(), self._engine.digest(name), name]).limit(number)
        rows = self._engine.fetch(ranked)
        rows.sort(key=lambda row: -int(row["score"]))
        return [self._label(row) for row in rows], in_numbers([int(row["score"]) for row in rows], self._unit)

    def fetch(self, scores: Sequence[Any], indexes: Sequence[int]) -> list[Any]:
        """Return, in the order asked, the indexes[i]-th item (from 0) among those tied at scores[i].

        Tied items are ranked by a hash of their text, which all engines agree on; their alphabets differ. All that is
        asked for comes back, or nothing does.
        """
        places = [(int(Fraction(score) / self._unit), int(index)) for score, index in zip(scores, indexes, strict=True)]
        asked = {place for place in places if not self._is_unseen(*place)}
        found = {(int(row["score"]), int(row["index"])): self._label(row) for row in self._members(asked)}
        if found.keys() != asked:
            raise SourceError(
                "table: it changed between the two queries, so nothing is released; a ledger has recorded the "
                "release, and it stays charged, because that an answer is missing can depend on the rows"
            )
        numbers = iter(range(1, len(places) + 1))
        return [found[place] if place in found else Unseen(next(numbers)) for place in places]

    def _members(self, asked: set[tuple[int, int]]) -> list[dict[str, Any]]:
        import ibis

        if not asked:
            return []
        tied = self._scored.filter(self._scored.score.isin(sorted({score for score, _ in asked})))
        # The name of an item that the column cannot hold is in `text`.
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
    """Yield the scores of a domain's items, after every check that needs no row; the first query reads the rows.

    score(i) = sum over people of their contribution to i, at most one each; rows with a null in a column that is needed
    are dropped. `key`: the random bits that decide which of a person's items stay.
    """
    _check_names(item, person)
    columns = list(dict.fromkeys([item, person, *contribution.columns]))
    with contextlib.ExitStack() as stack:
        embedded = embedded_when_needed(stack, progress)
        source = open_rows(stack, embedded, table, columns, table_name=table_name, where=where, progress=progress)
        engine, given = source.engine, source.table
        of = {name: given[neutral_name(place)] for place, name in enumerate(columns)}
        check_type("item", item, of[item].type())
        check_type("person", person, of[person].type())
        rows = _usable(
            engine, given.select(item=of[item], person=of[person], **_numbers(contribution, of)), contribution
        )
        listed, size = None, domain.number
        if domain.number is None and not domain.unknown:
            listed, size = listed_items(stack, embedded, source, domain, item, of[item].type())
        if size is not None and k > size:
            raise InvalidInput("k", k, f"a number from 1 to {size}, the number of items in the domain, is needed")
        scored = _scored(contributions(engine, rows, contribution, listed, key), listed, contribution)
        # An engine refuses types that it cannot work with here, before the release is charged.
        engine.check(scored)

        def read() -> Any:
            source.load()
            return stack.enter_context(_kept(engine, scored, domain))

        yield Counts(
            engine,
            read,
            domain,
            size=size,
            unit=contribution.unit,
            # pandas turns whole numbers into floats where one is missing; 1.0 in place of 1 would tell that it is.
            shows_whole_floats_as_integers=is_pandas(table),
        )


def shown_item(row: dict[str, Any], domain: Domain, whole_floats_as_integers: bool) -> Any:
    """Return the caller's own object for an item of a list, and otherwise what the engine holds."""
    if domain.labels is not None:
        return domain.labels[row["position"]]
    item = row["text"] if row["item"] is None else row["item"]
    is_whole = whole_floats_as_integers and isinstance(item, float) and item.is_integer()
    return int(item) if is_whole else item


def _kept(engine: Engine, scored: Any, domain: Domain) -> contextlib.AbstractContextManager[Any]:
    """Return the scores as they are kept between queries: of an unknown domain there is but one query."""
    if domain.unknown and engine.computes_shared_parts_once:
        return contextlib.nullcontext(scored)
    return engine.materialised(scored)


def _numbers(contribution: Contribution, of: dict[str, Any]) -> dict[str, Any]:
    named = {"value": contribution.value, "weight": contribution.weight}
    return {column: of[name] for column, name in named.items() if name is not None}


def _usable(engine: Engine, rows: Any, contribution: Contribution) -> Any:
    """Return the rows without those that lack something."""
    for column in ("item", "person"):
        rows = rows.filter(rows[column].notnull())
        if rows[column].type().is_floating():
            rows = rows.filter(~rows[column].isnan())
    for condition in (in_calendar(rows.item), is_shown(engine, rows.item)):
        if condition is not None:
            rows = rows.filter(condition)
    rows = rows.mutate(item=in_one_form(engine, rows.item))
    return numeric_rows(engine, rows, contribution)


def _scored(pairs: Any, listed: Any, contribution: Contribution) -> Any:
    """Return the expression (item, text, position, score), with every listed item when there is a list."""
    import ibis

    score = pairs.person.nunique() if contribution.counts_rows else pairs.amount.sum()
    totals = pairs.group_by("item").aggregate(score=score)
    if listed is None:
        return totals.mutate(text=ibis.literal(""), position=ibis.literal(0, "int64"))
    joined = listed.left_join(totals, listed.key == totals.item)
    score = ibis.coalesce(joined.score, ibis.literal(0, "int64"))
    return joined.select(item=joined.key, text=joined.text, position=joined.position, score=score)


def _check_names(item: Any, person: Any) -> None:
    for argument, name in (("item", item), ("person", person)):
        if not isinstance(name, str) or not name:
            raise InvalidInput(argument, name, "the name of a column is needed")
    if item == person:
        raise InvalidInput("person", person, "another column than the item's is needed: who, beside what")


def check_type(argument: str, name: str, kind: Any) -> None:
    """Refuse a column whose type has no single values that can be compared and shown."""
    if not is_single_value(kind):
        raise InvalidInput(
            argument,
            plain(f"column {name!r} of type {type_name(kind)}"),
            "text, numbers, dates, times or booleans are needed; convert it first",
        )
