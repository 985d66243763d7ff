"""Every engine reports a mistake in the same words, and before anything is charged."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from engine_cases import BUYERS, GOODS
from engine_places import Place, rows_of

import dpselect as dps

pytestmark = pytest.mark.slow

ROWS = BUYERS.append_column("tags", rows_of(tags=[["new"]] * BUYERS.num_rows).column("tags")).append_column(
    "day", rows_of(day=["2024-01-01"] * BUYERS.num_rows).column("day").cast("date32")
)

MISTAKES: dict[str, dict[str, Any]] = {
    "no such item": {"item": "itme"},
    "no such person": {"person": "nobody"},
    "a list as item": {"item": "tags"},
    "a list as person": {"person": "tags"},
    "k beyond the domain": {"k": 6},
    "a domain of another type": {"item": "year"},
    "no such value": {"value": "pad", "clip": (0, 1)},
    "a list as value": {"value": "tags", "clip": (0, 1)},
    "a day as value": {"value": "day", "clip": (0, 1)},
    "no such weight": {"weight": "wait"},
    "a day as weight": {"weight": "day"},
    "a filter without end": {"where": "year >="},
    "an empty filter": {"where": " "},
    "a filter on no column": {"where": "yaer > 2000"},
    "a second statement": {"where": "true; DROP TABLE orders"},
    "a filter that closes brackets": {"where": "true) OR (true"},
    "a filter with a subquery": {"where": "year > (SELECT min(year) FROM orders)"},
    "a filter with a total": {"where": "year > min(year)"},
}


def refused(source: dict[str, Any], **options: Any) -> dps.DpSelectError:
    arguments = {"item": "item", "person": "person", "k": 2, "epsilon": 1.0, "domain": GOODS, **source, **options}
    with pytest.raises(dps.DpSelectError) as caught:
        dps.top(arguments.pop("table"), seed=1, **arguments)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value


def test_a_mistake_is_told_in_the_same_words_and_costs_nothing(place: Place, tmp_path: Path) -> None:
    place.put("orders", ROWS)
    source = place.source("orders")
    with dps.privacy.Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("shop", epsilon=9.0)
        for mistake, options in MISTAKES.items():
            error = refused(source, ledger=ledger, dataset="shop", **options)
            assert isinstance(error, dps.InvalidInput), mistake
            assert "ham" not in str(error)
            argument, text = embedded_error(mistake)
            assert (error.argument, str(error)) == (argument, text)
        assert ledger.remaining("shop").epsilon == 9.0


@cache
def embedded_error(mistake: str) -> tuple[str, str]:
    """Return the argument and the text of the embedded engine's error."""
    error = refused({"table": ROWS}, **MISTAKES[mistake])
    assert isinstance(error, dps.InvalidInput)
    return error.argument, str(error)


def test_a_number_of_items_that_is_too_small(place: Place) -> None:
    place.put("orders", ROWS)
    error = refused(place.source("orders"), domain=3)
    assert isinstance(error, dps.InvalidInput)
    assert str(error) == str(refused({"table": ROWS}, domain=3))


def test_a_table_of_items_that_is_not_there(place: Place) -> None:
    place.put("orders", ROWS)
    error = refused(place.source("orders"), domain="table:nothing")
    assert isinstance(error, dps.InvalidInput)
    assert error.argument == "domain"


def test_a_table_that_is_not_there(quick_place: Place) -> None:
    quick_place.put("orders", ROWS)
    told = [str(refused({**quick_place.source("orders"), "table_name": name})) for name in ("nothing", "no.thing")]
    assert ["table_name 'nothing':" in told[0], "table_name 'no.thing':" in told[1]] == [True, True]


def test_a_table_without_a_name(quick_place: Place) -> None:
    quick_place.put("orders", ROWS)
    error = refused({**quick_place.source("orders"), "table_name": None})
    assert isinstance(error, dps.InvalidInput)
    assert str(error) == "table_name must name the table if the table is given by a URL, got nothing"


def test_a_name_beside_a_table_that_needs_none() -> None:
    error = refused({"table": ROWS, "table_name": "orders"})
    assert isinstance(error, dps.InvalidInput)
    assert error.argument == "table_name"
