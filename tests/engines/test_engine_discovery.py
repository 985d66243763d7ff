"""Discovery in every engine: the weights of plain Python, the same list for the same seed, and few rows on the wire."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from engine_cases import BUYERS, CASES, LOOKALIKES, is_missing
from engine_places import Place, PostgreSqlDatabase, rows_of

import dpselect as dps
from dpselect.sources import open_weights

pytestmark = pytest.mark.slow

COUNTS = {"weather": 300, "news": 250, "football": 200}
NEAR = [f"near {number}" for number in range(60) for _ in range(4)]
ROWS = rows_of(
    item=[item for item, count in COUNTS.items() for _ in range(count)] + [f"rare {n}" for n in range(400)] + NEAR,
    person=[person for count in COUNTS.values() for person in range(count)] + list(range(400 + len(NEAR))),
)


def ask(source: dict[str, Any], **options: Any) -> dps.DomainRelease:
    arguments = {"item": "item", "person": "person", "epsilon": 4.0, "delta": 1e-3, "max_items_per_person": 3}
    arguments |= {**source, **options}
    return dps.discover(arguments.pop("table"), **arguments)


def plain_counts(rows: Any) -> dict[Any, int]:
    """Return how many people have each item."""
    return dict(Counter(item for items in held_items(rows).values() for item in items))


def held_items(rows: Any) -> dict[Any, set[Any]]:
    """Return the items of each person."""
    held: dict[Any, set[Any]] = defaultdict(set)
    for row in rows.to_pylist():
        if not (is_missing(row["item"]) or is_missing(row["person"])):
            held[row["person"]].add(row["item"])
    return held


def plain_weights(rows: Any, units: int) -> dict[Any, int]:
    """Return the weight of every item as the manual says, if nobody has too many items."""
    weights: Counter[Any] = Counter()
    for items in held_items(rows).values():
        weights.update(dict.fromkeys(items, int(units / len(items) ** 0.5)))
    return dict(weights)


def test_weights_are_those_of_plain_python(place: Place) -> None:
    lookalikes = next(case for group in CASES.values() for case in group if case.name == "lookalike texts")
    units, most = 1 << 13, len(LOOKALIKES) + 10
    asked: dict[str, Any] = {
        "item": "item",
        "person": "person",
        "max_items_per_person": most,
        "units": units,
        "key": "",
    }
    for rows in (BUYERS, lookalikes.rows, rows_of(item=list(range(40)) * 2, person=[1] * 40 + list(range(40)))):
        place.put("orders", rows)
        expected, source = plain_weights(rows, units), place.source("orders")
        with open_weights(source.pop("table"), **asked, **source) as weights:
            values, sizes = weights.histogram()
            assert dict(zip(values.tolist(), sizes.tolist(), strict=True)) == Counter(expected.values())
            indexes = np.concatenate([np.arange(size) for size in sizes])
            fetched = weights.fetch(np.repeat(values, sizes), indexes)
            assert dict(fetched) == plain_counts(rows)
            [(highest, _)] = weights.fetch(values[:1], np.array([0]))
            assert expected[highest] == values[0]


def test_every_engine_lists_the_same_items_for_the_same_seed(place: Place) -> None:
    """People keep 3 of up to 4 items by a keyed hash that all engines share."""
    place.put("queries", ROWS)
    source, lengths = place.source("queries"), set()
    for seed in range(3):
        release = ask(source, seed=seed)
        assert release.to_dict() == ask({"table": ROWS}, seed=seed).to_dict()
        lengths.add(len(release.items))
    assert len(lengths) > 1, "the noise decides for some of the items"


def test_the_top_of_discovered_items_is_the_same_in_every_engine(place: Place) -> None:
    place.put("queries", ROWS)
    asked: dict[str, Any] = {"item": "item", "person": "person", "k": 9, "epsilon": 4.0, "delta": 1e-3, "seed": 3}
    asked |= {"domain": dps.UNKNOWN, "max_items_per_person": 3, "values": 0.4}
    source = place.source("queries")
    release = dps.top(source.pop("table"), **asked, **source)
    assert release.mechanism.name == "discovered"
    assert {"weather", "news", "football"} <= set(release.items)
    assert release.to_dict() == dps.top(ROWS, **asked).to_dict()


def test_rows_of_one_weight_are_fetched_only_if_they_are_listed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpselect.sources.engine import Engine

    fetched: list[int] = []
    fetch, columns = Engine.fetch, Engine.columns
    monkeypatch.setattr(Engine, "fetch", lambda *given: counted(fetch(*given)))
    monkeypatch.setattr(Engine, "columns", lambda *given: counted(columns(*given)))

    def counted(rows: Any) -> Any:
        fetched.append(len(rows))
        return rows

    place.put("queries", ROWS)
    release = ask(place.source("queries"))
    *_, histogram, listed = fetched
    assert listed == len(release.items)
    assert histogram < 30, "items of equal weight are one row"


def test_a_table_without_rows_has_an_empty_list(place: Place) -> None:
    place.put("queries", ROWS.slice(0, 0))
    assert ask(place.source("queries")).items == []


def test_an_account_that_may_only_read_can_discover_in_postgresql(
    fresh_database: PostgreSqlDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    fresh_database.put("queries", ROWS)
    with fresh_database.connect() as connection:
        connection.execute(f"REVOKE TEMP ON DATABASE {fresh_database.database} FROM PUBLIC")
        connection.execute("DROP ROLE IF EXISTS finder")
        connection.execute("CREATE ROLE finder LOGIN")
        connection.execute("GRANT SELECT ON queries TO finder")
    source = {"table": fresh_database.url.replace("postgres:@", "finder:@"), "table_name": "queries"}
    try:
        with caplog.at_level(logging.WARNING):
            assert ask(source, seed=2).items == ask({"table": ROWS}, seed=2).items
        assert "may not make temporary tables" in caplog.text
    finally:
        with fresh_database.connect() as connection:
            connection.execute("DROP OWNED BY finder")
            connection.execute("DROP ROLE finder")
