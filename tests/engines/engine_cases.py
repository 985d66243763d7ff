"""Rows of every awkward kind, and what plain Python makes of them."""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow
from engine_places import rows_of

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Rows with an item and a person, the possible items, further arguments of `top`, and its condition in Python."""

    name: str
    rows: pyarrow.Table
    domain: list[Any]
    options: dict[str, Any] = field(default_factory=dict)
    keeps: Callable[[Row], bool] = lambda row: True


def plain_scores(case: Case) -> dict[Any, float]:
    """Return the score of every possible item as the manual says, in plain Python.

    A person's contribution to an item is 1, or the sum of their values cut to the limits, times their largest weight.
    """
    value, weight = case.options.get("value"), case.options.get("weight")
    needed = ["item", "person", *(column for column in (value, weight) if column)]
    found: dict[tuple[Any, Any], list[Row]] = defaultdict(list)
    for row in case.rows.to_pylist():
        if case.keeps(row) and not any(is_missing(row[column]) for column in needed):
            found[row["person"], row["item"]].append(row)
    scores: dict[Any, float] = dict.fromkeys(case.domain, 0)
    for (_, item), rows in found.items():
        if item in scores:
            contribution = 1 if value is None else cut(sum(row[value] for row in rows), *case.options["clip"])
            scores[item] += contribution * (1 if weight is None else max(cut(row[weight], 0, 1) for row in rows))
    return scores


def is_missing(value: Any) -> bool:
    """Tell whether there is no value: null, or not a number."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def cut(value: Any, low: float, high: float) -> float:
    """Return the value within its limits."""
    return float(min(max(value, low), high))


NAN, INFINITE = math.nan, math.inf
LOOKALIKES = [
    *("\u00e9", "e\u0301", "e", "E", "\u00c9", "a", "a ", " a", "A", "ß", "ss", "SS", "İ", "i", "ı", "", " "),
    *(
        "👩\u200d👩\u200d👧",
        "👩",
        "\u03a9",
        "\u2126",
        "\ufb01",
        "fi",
        "10",
        "1e1",
        "010",
        "'",
        '"',
        "\\",
        "%",
        "a\tb\nc",
    ),
]
DAYS = [datetime.date(1969, 12, 31), datetime.date(2000, 2, 29), datetime.date(2024, 1, 1)]
TIMES = [
    datetime.datetime(1969, 12, 31, 23, 59, 59, 1),
    datetime.datetime(2024, 3, 31, 2, 30),
    datetime.datetime(2038, 1, 19),
]

BUYERS = rows_of(
    item=["ham", "ham", "ham", "jam", "jam", "tea", "tea", "tea", "rye", None, "ham", "ham"],
    person=["ann", "ann", "bob", "ann", "bob", "ann", "bob", "cat", "dan", "ann", None, "cat"],
    paid=[2.5, 1.5, 9.0, -1.0, -7.5, 0.25, 0.5, None, NAN, 3.0, 3.0, INFINITE],
    cents=[250, 150, 900, -100, -750, 25, 50, None, None, 300, 300, 2**62],
    price=[
        *map(Decimal, ("2.50", "1.25", "9.00", "-1", "-7.5", "0.25", "0.5")),
        *(None, None, Decimal(3), Decimal(3), Decimal("9999999999.75")),
    ],
    share=[0.5, 0.25, 1.0, 0.75, 1.5, -0.5, 0.0, 1.0, 1.0, 1.0, 1.0, None],
    year=[2023, 2024, 2024, 2023, 2023, 2024, 2024, 2024, 2024, 2024, 2024, 2023],
)
GOODS = ["ham", "jam", "tea", "rye", "fig"]

_CASES = [
    Case("text with nulls and duplicates", BUYERS, GOODS),
    Case("items outside the domain", BUYERS, ["ham", "fig"]),
    Case(
        "lookalike texts",
        rows_of(
            item=[text for place, text in enumerate(LOOKALIKES) for _ in range(place + 1)],
            person=[person for place in range(len(LOOKALIKES)) for person in range(place + 1)],
        ),
        LOOKALIKES,
    ),
    Case("lookalike people", rows_of(item=["ham"] * len(LOOKALIKES) * 2, person=LOOKALIKES * 2), ["ham", "fig"]),
    Case(
        "large and negative integers",
        rows_of(
            item=[2**53, 2**53 + 1, 2**53 + 1, -7, -7, -7, None, 2**63 - 1], person=[1, 1, 2, 1, 2, 3, 4, -(2**63)]
        ),
        [2**53, 2**53 + 1, -7, 2**63 - 1, 0],
    ),
    Case(
        "floats",
        rows_of(
            item=[0.1, 0.1, 1.5, -2.25, -2.25, NAN, 1e6, None, 0.5],
            person=[1.0, 2.0, 1.0, 1.0, NAN, 2.0, 3.0, 3.0, None],
        ),
        [0.1, 1.5, -2.25, 1e6, 0.5],
    ),
    Case("dates", rows_of(item=[DAYS[0], DAYS[0], DAYS[1], None], person=[1, 2, 1, 2]), DAYS),
    Case("times", rows_of(item=[TIMES[0], TIMES[0], TIMES[1], None], person=[1, 2, 1, 2]), TIMES),
    Case("truth values", rows_of(item=[True, True, False, None], person=[1, 2, 1, 2]), [True, False]),
    Case("no usable row", rows_of(item=[None, "ham", None], person=[None, None, "ann"]), GOODS),
    Case("values", BUYERS, GOODS, {"value": "paid", "clip": (-2, 5)}),
    Case("values of one sign", BUYERS, GOODS, {"value": "paid", "clip": (1, 4)}),
    Case("values never above zero", BUYERS, GOODS, {"value": "paid", "clip": (-4, -1)}),
    Case("values in fractions", BUYERS, GOODS, {"value": "paid", "clip": (-0.75, 2.25)}),
    Case("whole values", BUYERS, GOODS, {"value": "cents", "clip": (-200, 500)}),
    Case("decimal values", BUYERS, GOODS, {"value": "price", "clip": (-2, 5)}),
    Case(
        "values whose sum has no room in 64 bits",
        rows_of(
            item=["ham"] * 5 + ["jam"] * 3, person=[1] * 4 + [2] + [1, 1, 2], cents=[2**63 - 1] * 5 + [-(2**63)] * 3
        ),
        ["ham", "jam"],
        {"value": "cents", "clip": (-3, 2)},
    ),
    Case(
        "values whose sum is infinite",
        rows_of(
            item=["ham"] * 4 + ["jam"] * 2,
            person=[1, 1, 2, 3, 1, 1],
            paid=[1.7e308, 1.7e308, INFINITE, 1.0, -1.7e308, -1.7e308],
        ),
        ["ham", "jam"],
        {"value": "paid", "clip": (-3, 2)},
    ),
    Case("wide limits", BUYERS, GOODS, {"value": "cents", "clip": (-(2.0**40), 2.0**40)}),
    Case("weights", BUYERS, GOODS, {"weight": "share"}),
    Case("values and weights", BUYERS, GOODS, {"value": "paid", "clip": (-2, 5), "weight": "share"}),
    Case("a filter", BUYERS, GOODS, {"where": "year >= 2024"}, lambda row: row["year"] >= 2024),
    Case(
        "a filter on text and null",
        BUYERS,
        GOODS,
        {"where": "person <> 'bob' AND (paid IS NULL OR paid > 0)"},
        lambda row: (
            row["person"] not in (None, "bob") and (row["paid"] is None or math.isnan(row["paid"]) or row["paid"] > 0)
        ),
    ),
    Case(
        "a filter and values",
        BUYERS,
        GOODS,
        {"where": "year = 2023 OR share < 0.6", "value": "paid", "clip": (-2, 5)},
        lambda row: row["year"] == 2023 or (row["share"] is not None and row["share"] < 0.6),
    ),
    Case("a limit that nobody reaches", BUYERS, GOODS, {"max_items_per_person": 4}),
]


def _group(case: Case) -> str:
    if "where" in case.options:
        return "conditions"
    return "values and weights" if {"value", "weight"} & case.options.keys() else "items and people"


CASES = {group: [case for case in _CASES if _group(case) == group] for group in dict.fromkeys(map(_group, _CASES))}
"""The cases by what they are about."""
