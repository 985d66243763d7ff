"""Unknown domains in every engine: pool + 1 rows cross the wire, and the answers are the same for the same seed."""

from __future__ import annotations

from typing import Any

import pytest
from engine_places import Place, rows_fetched, rows_of

import dpselect as dps

pytestmark = pytest.mark.slow

COUNTS = {"weather": 300, "news": 250, "football": 200} | {f"tied {number}": 20 for number in range(30)}
ROWS = rows_of(
    item=[item for item, count in COUNTS.items() for _ in range(count)] + [f"rare {number}" for number in range(400)],
    person=[person for count in COUNTS.values() for person in range(count)] + list(range(400)),
)


def ask(source: dict[str, Any], **options: Any) -> dps.Release:
    arguments = {"item": "item", "person": "person", "k": 5, "epsilon": 4.0, "delta": 1e-3, "domain": dps.UNKNOWN}
    arguments |= {**source, **options}
    return dps.top(arguments.pop("table"), **arguments)


def test_every_engine_gives_the_pool_in_the_same_order(place: Place) -> None:
    """Ties at the edge of the pool go by a hash of the text, so a seed leads to the same items everywhere."""
    place.put("queries", ROWS)
    source, embedded = place.source("queries"), {"table": ROWS}
    for seed in range(3):
        release = ask(source, seed=seed)
        assert release.to_dict() == ask(embedded, seed=seed).to_dict()
        assert release.items[:3] == ["weather", "news", "football"]
    limited = {"mechanism": "limited", "epsilon": 40.0, "delta": 0.5, "pool": 12, "k": 12, "seed": 5}
    assert ask(source, **limited).items == ask(embedded, **limited).items


def test_the_pool_and_one_more_row_cross_the_wire(place: Place) -> None:
    place.put("queries", ROWS)
    with rows_fetched() as counted:
        ask(place.source("queries"), pool=20)
    assert 0 < sum(counted) <= 21


def test_a_table_without_rows_is_answered_with_nothing(place: Place) -> None:
    place.put("queries", ROWS.slice(0, 0))
    release = ask(place.source("queries"))
    assert release.items == []
    assert release.stopped
