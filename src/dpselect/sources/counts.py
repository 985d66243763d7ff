"""How many people have which item, counted where the rows are.

Two questions, as Ibis expressions that any backend can run: how many items have which score, and which is the i-th item
among those tied at a score. Indexes are drawn by the exact sampler, so the engine needs no randomness.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.sources.domain import Domain, Unseen
from dpselect.sources.engine import EmbeddedEngine, Engine, Progress, embedded_engine
from dpselect.sources.files import FileTable
from dpselect.sources.frames import arrow_table, check_columns, is_frame, is_pandas, neutral_name, renamed
from dpselect.sources.listing import is_single_value, listed_items

ITEM, PERSON = neutral_name(0), neutral_name(1)


class Counts:
    """The number of distinct people for each item of a domain; private until a mechanism has chosen."""

    def __init__(self, engine: Engine, scored: Any, domain: Domain, *, shows_whole_floats_as_integers: bool) -> None:
        self._engine = engine
        self._scored = scored
        self._domain = domain
        self._shows_whole_floats_as_integers = shows_whole_floats_as_integers

    def histogram(self) -> tuple[list[int], list[int]]:
        """Return the distinct scores and how many items of the domain have each, those of score 0 included."""
        scored = self._scored
        rows = self._engine.fetch(scored.group_by("score").aggregate(items=scored.count()))
        items = {int(row["score"]): int(row["items"]) for row in rows}
        if self._domain.number is not None:
            items[0] = self._domain.number - sum(items.values())
            if items[0] < 0:
                raise InvalidInput(
                    "domain",
                    self._domain.number,
                    "the table holds more distinct items than that, so the stated number is wrong and the guarantee "
                    "would not hold; state how many items are possible, not how many are expected",
                )
        scores = sorted((score for score in items if items[score]), reverse=True)
        return scores, [items[score] for score in scores]

    def fetch(self, scores: Sequence[int], indexes: Sequence[int]) -> list[Any]:
        """Return, in the order asked, the indexes[i]-th item (from 0) among those tied at scores[i]."""
        import ibis
        import pyarrow

        unseen = self._domain.number is not None
        asked = [place for place, score in enumerate(scores) if score or not unseen]
        answer: dict[int, Any] = {}
        if asked:
            pairs = {
                "score": [int(scores[place]) for place in asked],
                "index": [int(indexes[place]) for place in asked],
            }
            wanted = ibis.memtable(pyarrow.table({"place": asked, **pairs}))
            tied = self._scored.semi_join(wanted, "score")
            window = ibis.window(group_by=tied.score, order_by=[tied.item, tied.text])
            tied = tied.mutate(index=ibis.row_number().over(window).cast("int64"))
            found = tied.join(wanted, ["score", "index"]).select("place", "item", "text", "position")
            answer = {row["place"]: self._label(row) for row in self._engine.fetch(found)}
        numbers = iter(range(1, len(scores) + 1))
        return [answer[place] if place in answer else Unseen(next(numbers)) for place in range(len(scores))]

    def _label(self, row: dict[str, Any]) -> Any:
        """Return the caller's own object for an item of a list, and otherwise what the engine holds."""
        if self._domain.labels is not None:
            return self._domain.labels[row["position"]]
        item = row["text"] if row["item"] is None else row["item"]
        is_whole = self._shows_whole_floats_as_integers and isinstance(item, float) and item.is_integer()
        return int(item) if is_whole else item


@contextlib.contextmanager
def open_counts(
    table: Any,
    *,
    item: str,
    person: str,
    domain: Domain,
    k: int,
    progress: Progress | None = None,
    before_reading: Callable[[], None] | None = None,
) -> Iterator[Counts]:
    """Count each person at most once per item of the domain, and keep the counts until the end of the block.

    score(i) = number of distinct persons with a row (i, person); rows with a null in either column are dropped. The
    domain is checked against k before any row is read, and so is all else that can be told without the rows; then
    `before_reading` is called.
    """
    _check_names(item, person)
    with contextlib.ExitStack() as stack:
        embedded = stack.enter_context(embedded_engine(progress))
        source = FileTable.at("table", table) if isinstance(table, str | os.PathLike) else table
        engine, rows = _bind(embedded, source, [item, person])
        _check_type("item", item, rows[ITEM].type())
        _check_type("person", person, rows[PERSON].type())
        if domain.number is None:
            listed, size = listed_items(stack, embedded, engine, domain, item, rows[ITEM].type())
        else:
            listed, size = None, domain.number
        if k > size:
            raise InvalidInput("k", k, f"a number from 1 to {size}, the number of items in the domain, is needed")
        if before_reading is not None:
            before_reading()
        scored = stack.enter_context(engine.materialised(_scored(rows, listed)))
        # pandas turns whole numbers into floats where one is missing; 1.0 in place of 1 would tell that it is.
        yield Counts(engine, scored, domain, shows_whole_floats_as_integers=is_pandas(table))


def _bind(embedded: EmbeddedEngine, table: Any, columns: list[str]) -> tuple[Engine, Any]:
    """Return the engine that holds the rows, and the rows as an Ibis table with neutral names."""
    import ibis

    if isinstance(table, FileTable):
        return embedded, table.bind(embedded, columns)
    if isinstance(table, ibis.Table):
        check_columns("table", columns, list(table.columns))
        if not any(True for _ in table.op().find(ibis.expr.operations.DatabaseTable)):
            return embedded, renamed(table, columns)
        return Engine(table.get_backend()), renamed(table, columns)
    if is_frame(table):
        return embedded, ibis.memtable(arrow_table("table", table, columns))
    raise InvalidInput(
        "table",
        plain(f"an object of type {type(table).__name__}"),
        "the path of a file, an Ibis table, or a pandas, polars or Arrow table is needed",
    )


def _scored(rows: Any, listed: Any) -> Any:
    """Return the expression (item, text, position, score), with every listed item when there is a list."""
    import ibis

    rows = rows.select(item=rows[ITEM], person=rows[PERSON])
    for column in ("item", "person"):
        rows = rows.filter(rows[column].notnull())
        if rows[column].type().is_floating():
            rows = rows.filter(~rows[column].isnan())
    pairs = rows.distinct()
    counted = pairs.group_by("item").aggregate(score=pairs.count())
    if listed is None:
        return counted.mutate(text=ibis.literal(""), position=ibis.literal(0, "int64"))
    joined = listed.left_join(counted, listed.key == counted.item)
    score = ibis.coalesce(joined.score, ibis.literal(0, "int64"))
    return joined.select(item=joined.key, text=joined.text, position=joined.position, score=score)


def _check_names(item: Any, person: Any) -> None:
    for argument, name in (("item", item), ("person", person)):
        if not isinstance(name, str) or not name:
            raise InvalidInput(argument, name, "the name of a column is needed")
    if item == person:
        raise InvalidInput("person", person, "another column than the item's is needed: who, beside what")


def _check_type(argument: str, name: str, kind: Any) -> None:
    if not is_single_value(kind):
        raise InvalidInput(
            argument, plain(f"column {name!r} of type {kind}"), "text, numbers, dates, times or booleans are needed"
        )
