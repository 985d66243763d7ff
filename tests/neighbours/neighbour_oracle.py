"""The scores of a table in plain Python, slowly, as docs/files.md and docs/engines.md describe them.

Nothing here knows how dpselect works: only what a cell means (`Source.read`), and how people count.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from neighbour_tables import Beyond, Case, Question

from dpselect.periods import Period

if TYPE_CHECKING:
    from neighbour_sources import Source

KEY = "0123456789abcdef" * 2
"""The random bits that decide which of a person's items stay."""

NUMBERS_OF_ITEMS = {"number": 10**6, "number too small": 2}

Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What comes of a question: the score of every item that is listed or seen, or a refusal and its words.

    Scores are by place of the group and item; without groups the place is 0.

    `charges`: 1 if a release that is refused was charged: the error came while rows were read.
    """

    scores: dict[tuple[int, Any], Fraction] | None
    refusal: str = ""
    charges: int = 0


TOO_MANY_ITEMS = "must be at least the number of distinct items in the table"


def expected(source: Source, case: Case) -> Outcome:
    """Return the outcome as documented."""
    question = case.question
    groups = listed_groups(source, case) or [None]
    labels = listed(source, case)
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in usable_rows(source, case):
        group = _place(groups, row.get("group"))
        if group is not None and (labels is None or row["item"] in labels[group]):
            found[row["person"], group, row["item"]].append(row)
    kept = _in_few_groups(list(found), question.max_groups_per_person or len(groups))
    scores = {(group, item): Fraction(0) for group in range(len(groups)) for item in (labels or {}).get(group, [])}
    for person, group, item in _bounded(kept, question.max_items_per_person):
        amount = _contribution(found[person, group, item], question)
        scores[group, item] = scores.get((group, item), Fraction(0)) + amount
    held = Counter(group for group, _ in scores)
    if max(held.values(), default=0) > NUMBERS_OF_ITEMS.get(question.domain, math.inf):
        return Outcome(None, TOO_MANY_ITEMS)
    if question.domain == "unknown":
        scores = {place: score for place, score in scores.items() if score > 0}
    return Outcome(scores)


def listed(source: Source, case: Case) -> dict[int, list[Any]] | None:
    """Return the distinct items that are listed for each group, in the type of the column, or None without a list."""
    question, kinds = case.question, case.table.kinds
    if not question.listed:
        return None
    groups = listed_groups(source, case) or [None]
    items = [_item(source.read(kinds["item"], cell)) for cell in question.listed]
    of_groups: list[Any] = [None] * len(items)
    if question.of_groups:
        of_groups = [_place(groups, _item(source.read(kinds["group"], cell))) for cell in question.of_groups]
    return {
        place: list(
            dict.fromkeys(
                item
                for item, group in zip(items, of_groups, strict=True)
                if item is not None and (not question.of_groups or group == place)
            )
        )
        for place in range(len(groups))
    }


def listed_groups(source: Source, case: Case) -> list[Any]:
    """Return the distinct groups that are listed, in the type of the column; none if there are no groups."""
    groups = [_item(source.read(case.table.kinds["group"], cell)) for cell in case.question.groups]
    return list(dict.fromkeys(group for group in groups if group is not None))


def _place(groups: list[Any], group: Any) -> int | None:
    """Return the place of a group in the list, or None if it is not listed; without groups there is only one place."""
    if groups == [None]:
        return 0
    return groups.index(group) if group is not None and group in groups else None


def people(source: Source, case: Case) -> list[Any]:
    """Return everybody who stands in the table, with or without a row that counts."""
    kind = case.table.kinds["person"]
    read = [single(source.read(kind, cell)) for cell in case.table.cells("person")]
    return list(dict.fromkeys(person for person in read if person is not None))


def without(source: Source, case: Case, person: Any) -> Case:
    """Return the case without a person's rows."""
    kind = case.table.kinds["person"]
    rows = zip(case.table.rows, case.table.cells("person"), strict=True)
    return case.with_rows([row for row, cell in rows if single(source.read(kind, cell)) != person])


def bounds(question: Question) -> tuple[Fraction, Fraction]:
    """Return by how much adding a person can move a score, as stated."""
    low, high = question.clip or (0, 1)
    return Fraction(min(0, low)), Fraction(max(0, high))


def usable_rows(source: Source, case: Case) -> list[Row]:
    """Return the rows that count, with whatever is asked for."""
    table, question = case.table, case.question
    where = None if question.where is None else source.conditions[question.where]
    rows = []
    for cells in table.rows:
        if not source.is_readable(cells):
            continue
        row = {role: source.read(kind, cell) for (role, kind), cell in zip(table.kinds.items(), cells, strict=True)}
        if where is not None:
            seen = {**row, "amount": number(row.get("amount")) if source.as_text else row.get("amount")}
            if where.keeps(seen, source.dialect) is not True:
                continue
        if question.period is not None and not within(row["day"], Period.of(question.period)):
            continue
        row = {**row, "item": _item(row["item"]), "person": single(row["person"])}
        if "group" in row:
            row["group"] = _item(row["group"])
        numbers = {"amount": question.clip is not None, "share": question.weighted}
        row |= {role: _countable(row[role]) for role, needed in numbers.items() if needed}
        if all(row[role] is not None for role in ("item", "person", *(role for role in numbers if numbers[role]))):
            rows.append(row)
    return rows


def within(value: Any, period: Period) -> bool:
    """Return whether a cell is a time in a period: a date, a time (in UTC if without a zone), or ISO text of these."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value) if _ISO_TEXT.fullmatch(value) else None
        except ValueError:
            return False
    if isinstance(value, datetime.datetime):
        value = (value if value.tzinfo is None else value.astimezone(datetime.UTC)).date()
    return isinstance(value, datetime.date) and period.start <= value < period.end


_ISO_TEXT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?(Z|[+-](0[0-9]|1[0-7])(:?[0-5][0-9])?)?)?)?"
)


def single(value: Any) -> Any:
    """Return what an item or person is: NaN is a null, and zero has no sign."""
    if value is None or value != value:
        return None
    return 0.0 if isinstance(value, float) and value == 0 else value


def _item(value: Any) -> Any:
    return None if isinstance(value, Beyond) else single(value)


def number(value: Any) -> float | None:
    """Return the number that a text stands for, or None."""
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None


def _countable(value: Any) -> float | None:
    found = number(value)
    return None if found is None or math.isnan(found) else found


def _bounded(kept: list[tuple[Any, ...]], most: int | None) -> list[tuple[Any, ...]]:
    """Return the triples (person, group, item) that stay: in each group of a person the first by the hash."""
    if most is None:
        return kept
    return _first(kept, most, lambda person, group, item: (person, group), lambda triple: _text(triple[2]), KEY)


def _in_few_groups(found: list[tuple[Any, ...]], most: int) -> list[tuple[Any, ...]]:
    """Return the triples (person, group, item) whose group stays: of each person those that come first by the hash."""
    pairs = list(dict.fromkeys((person, group) for person, group, _ in found))
    if len({group for _, group in pairs}) <= most:
        return found
    kept = set(_first(pairs, most, lambda person, group: person, lambda pair: str(pair[1]), f"{KEY}groups"))
    return [triple for triple in found if triple[:2] in kept]


def _first(
    parts: list[tuple[Any, ...]],
    most: int,
    within: Callable[..., Any],
    text: Callable[[tuple[Any, ...]], str],
    key: str,
) -> list[tuple[Any, ...]]:
    """Return at most `most` parts of each person, or person and group, in the order of the hash."""
    places: Counter[Any] = Counter()
    kept = []
    for part in sorted(parts, key=lambda part: (_mixed(key, part[0], text(part)), text(part))):
        places[within(*part)] += 1
        if places[within(*part)] <= most:
            kept.append(part)
    return kept


def _mixed(key: str, person: Any, text: str) -> str:
    text = f"{key}{len(_text(person))}:{_text(person)}{text}"
    return hashlib.md5(text.encode()).hexdigest()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _contribution(rows: list[Row], question: Question) -> Fraction:
    """Return what one person adds to one item: the sum in whole units, clipped, times the largest weight."""
    if question.clip is None and not question.weighted:
        return Fraction(1)
    low, high = (Fraction(bound) for bound in question.clip or (0, 1))
    unit = Fraction(2) ** (math.ceil(math.log2(max(abs(low), abs(high)))) - 28)
    units = math.floor(high / unit)
    if question.clip is not None:
        total = sum(_in_units(row["amount"], float(unit)) for row in rows)
        units = max(math.ceil(low / unit), min(units, total))
    if question.weighted:
        units = math.floor(units * max(min(max(row["share"], 0.0), 1.0) for row in rows) + 0.5)
    return units * unit


def _in_units(amount: float, unit: float) -> int:
    """Round to whole units as floats do, cutting off what is beyond 2^62 of them."""
    return math.floor(min(max(amount, -unit * 2**62), unit * 2**62) / unit + 0.5)


def shown(item: Any) -> str:
    """Return how an item looks in a text file, to compare sources that have types with those that have none."""
    if isinstance(item, float) and item.is_integer():
        return str(int(item))
    return format(item, "f") if isinstance(item, Decimal) else _text(item)
