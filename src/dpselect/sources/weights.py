"""The weights of items for a discovery, computed where the rows are.

Each person's items get the same weight, which is smaller the more items the person has. As for scores, two queries are
enough: how many items have which weight, and which is the i-th item among those tied at a weight. Only the items that
are listed in the end leave the engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.errors import SourceError
from dpselect.sources.contributions import kept_at_random
from dpselect.sources.counts import CHANGED, check_names
from dpselect.sources.duckdb import embedded_when_needed
from dpselect.sources.engine import Engine, Progress
from dpselect.sources.frames import is_pandas, neutral_name
from dpselect.sources.rows import open_rows
from dpselect.sources.times import PeriodFilter
from dpselect.sources.values import check_person, check_type, with_items, without_nulls


class Weights:
    """The weight of each item that somebody has, in whole units; private until a mechanism has chosen.

    No row is read before the first call of `histogram`: charge the release before that call.
    """

    def __init__(self, engine: Engine, read: Callable[[], Any], *, shows_whole_floats_as_integers: bool) -> None:
        self._engine = engine
        self._read = read
        self._shows_whole_floats_as_integers = shows_whole_floats_as_integers

    @cached_property
    def _weighted(self) -> Any:
        """The table (item, weight, people), computed from the rows on first use."""
        return self._read()

    def histogram(self) -> tuple[Array, Array]:
        """Return the distinct weights, highest first, and how many items have each."""
        weighted = self._weighted
        found = self._engine.columns(weighted.group_by("weight").aggregate(items=weighted.count()))
        weights, items = (np.array(found.column(name).to_numpy(), dtype=np.int64) for name in ("weight", "items"))
        order = np.argsort(-weights)
        return weights[order], items[order]

    def fetch(self, weights: Array, indexes: Array) -> list[tuple[Any, int]]:
        """Return, in any order, the indexes[i]-th item (from 0) among those tied at weights[i], and who kept it.

        Tied items are ranked by a hash of their text. Either all items are returned, or an error is raised. The number
        of people who kept an item is private.
        """
        import ibis
        import pyarrow

        if not len(weights):
            return []
        near = self._weighted.filter(self._weighted.weight >= int(weights.min()))
        name = near.item.cast("string")
        near = near.mutate(name=name, mixed=self._engine.digest(name))
        window = ibis.window(group_by=near.weight, order_by=[near.mixed, near.name])
        near = near.mutate(index=ibis.row_number().over(window).cast("int64"))
        near = near.select("item", "people", place=near.weight.cast("string") + ":" + near.index.cast("string"))
        places = [f"{weight}:{index}" for weight, index in zip(weights.tolist(), indexes.tolist(), strict=True)]
        asked = {"key": places, "text": [""] * len(places), "position": pyarrow.array([0] * len(places), "int64")}
        with self._engine.uploaded(pyarrow.table(asked)) as chosen:
            rows = self._engine.fetch(near.semi_join(chosen, near.place == chosen.key).select("item", "people"))
        if len(rows) != len(places):
            raise SourceError(CHANGED)
        return [(self._shown(row["item"]), int(row["people"])) for row in rows]

    def _shown(self, item: Any) -> Any:
        is_whole = self._shows_whole_floats_as_integers and isinstance(item, float) and item.is_integer()
        return int(item) if is_whole else item


@contextlib.contextmanager
def open_weights(
    table: Any,
    *,
    item: str,
    person: str,
    max_items_per_person: int,
    units: int,
    key: str,
    table_name: str | None = None,
    where: str | None = None,
    during: PeriodFilter | None = None,
    progress: Progress | None = None,
) -> Iterator[Weights]:
    """Open a table, and yield the weights of its items after every check that needs no row.

    A person with n items adds ⌊units/√n⌋ to the weight of each. Of a person with more than `max_items_per_person`
    items that many are kept, chosen at random. Rows with a null in a column that is used are dropped.

    Parameters
    ----------
    table, item, person, table_name, where, progress
        As in `dpselect.discover`.
    during : PeriodFilter or None
        The period whose rows are read; by default all are.
    max_items_per_person : int
        How many of each person's items are kept.
    units : int
        The units of a weight of 1, at most 2³⁰.
    key : str
        Random bits, from `fresh_key`, that decide which of a person's items are kept.

    Yields
    ------
    Weights
        The weights, until the end of the block.

    Raises
    ------
    InvalidInput
        If the table, a column or the condition cannot be used.
    SourceError
        If the engine fails.

    Examples
    --------
    >>> import pandas
    >>> rows = pandas.DataFrame({"film": ["Heat", "Heat", "Up"], "viewer": ["ann", "bob", "ann"]})
    >>> with open_weights(rows, item="film", person="viewer", max_items_per_person=2, units=256, key="") as weights:
    ...     [numbers.tolist() for numbers in weights.histogram()]
    [[437, 181], [1, 1]]
    """
    check_names(item, person)
    with contextlib.ExitStack() as stack:
        embedded = embedded_when_needed(stack, progress)
        source = open_rows(
            stack,
            embedded,
            table,
            [item, person],
            table_name=table_name,
            where=where,
            during=during,
            progress=progress,
        )
        engine, given = source.engine, source.table
        rows = given.select(item=given[neutral_name(0)], person=given[neutral_name(1)])
        check_type("item", item, rows.item.type())
        check_person(engine, person, rows, "person")
        rows = with_items(engine, without_nulls(rows, "item", "person"), "item")
        weighted = _weighted(engine, rows.distinct(), max_items_per_person, units, key)
        # An engine refuses types that it cannot work with here, before the release is charged.
        engine.check(weighted)

        def read() -> Any:
            source.load()
            return stack.enter_context(engine.materialised(weighted))

        # pandas turns integers into floats if one is missing; 1.0 instead of 1 in an answer would reveal that.
        yield Weights(engine, read, shows_whole_floats_as_integers=is_pandas(table))


def _weighted(engine: Engine, pairs: Any, most: int, units: int, key: str) -> Any:
    """Return the expression (item, weight, people) of distinct pairs (item, person)."""
    import ibis

    kept = kept_at_random(engine, pairs, most, key).select("item", "person")
    kept = kept.mutate(held=kept.count().over(ibis.window(group_by=kept.person)).cast("int64"))
    amount = (units / kept.held.cast("float64").sqrt()).floor().cast("int64")
    # In whole numbers, so that no weight is above units/√n however an engine rounds.
    amount = amount - (amount * amount * kept.held > units * units).ifelse(1, 0)
    kept = kept.mutate(amount=amount)
    return kept.group_by("item").aggregate(weight=kept.amount.sum().cast("int64"), people=kept.count())
