"""Every engine groups comparisons alike, and the same seed gives the same ranking everywhere."""

from __future__ import annotations

from typing import Any

import pytest
from engine_places import Place, rows_of

from dpselect.ranking import rank

pytestmark = pytest.mark.slow

PLAYERS = ["ann", "Ann", "bob", "cem", "dan"]
ROWS: dict[str, list[Any]] = {
    "winner": ["ann", "ann", "bob", "Ann", "cem", None, "bob", "zoe", "dan", "dan", "dan"],
    "loser": ["bob", "cem", "cem", "ann", "ann", "ann", "bob", "ann", "ann", "bob", "cem"],
    "voter": ["p", "p", "q", "q", "r", "r", "s", "s", "t", "t", "t"],
    "draw": [False, True, None, False, False, False, False, False, True, False, False],
}


def test_the_same_rows_give_the_same_ranking(place: Place) -> None:
    rows = rows_of(**ROWS)
    place.put("games", rows)
    source = place.source("games")
    options: dict[str, Any] = {
        "comparisons_per_pair": 2,
        "max_degree": 4,
        "tie": "draw",
        "person": "voter",
        "max_votes_per_person": 2,
        "seed": 5,
    }
    for more in (
        {"k": 5, "epsilon": 1e9, "values": 0.5, "domain": PLAYERS},
        {"k": 2, "epsilon": 1.0, "domain": PLAYERS},
        {"k": 2, "epsilon": 1.0},
    ):
        here = rank(source["table"], table_name=source.get("table_name"), **options, **more)
        assert here.to_dict() == rank(rows, **options, **more).to_dict()
