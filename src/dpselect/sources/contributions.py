"""What one person adds to the score of one item, as expressions that every engine can run.

All sums are sums of integers, which do not depend on the order in which an engine adds: one person's row must never
change how another person's rows are rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpselect._numbers import INTEGER_LIMIT, finite_number, positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.sampling import BitSource
from dpselect.sources.engine import Engine
from dpselect.sources.values import type_name, without_nulls

_FINENESS = 28
"""A contribution is an integer number of units, at most 2²⁸, so that the sum over 2³⁴ people fits into int64."""

_LARGEST_ROW = 2**62
"""The most units of one row. Larger values are cut off, far beyond what clipping leaves."""

_DECIMAL_DIGITS = 38
"""Decimals of up to this many digits can be cast to float without failing; PostgreSQL has longer ones."""

_LARGEST_BOUND = Fraction(10) ** 250


@dataclass(frozen=True)
class Contribution:
    """What one person adds to the score of one item, settled before any row is read.

    Each person has at most one contribution per item: 1, or with `value` the sum of the person's values for the item,
    clipped to [low, high]; times, with `weight`, the largest of the person's weights for the item, each clipped to
    [0, 1].

    Attributes
    ----------
    value : str or None
        The column of values.
    clip : tuple of Fraction or None
        The bounds (low, high) of the sum of a person's values for an item.
    weight : str or None
        The column of weights.
    max_items_per_person : int or None
        How many of each person's items are kept.

    Examples
    --------
    >>> Contribution.of("minutes", (0, 300), None, None).sensitivity.spread
    300.0
    """

    value: str | None = None
    clip: tuple[Fraction, Fraction] | None = None
    weight: str | None = None
    max_items_per_person: int | None = None

    @classmethod
    def of(cls, value: Any, clip: Any, weight: Any, max_items_per_person: Any) -> Contribution:
        """Check the arguments of `dpselect.top`."""
        for argument, name in (("value", value), ("weight", weight)):
            if name is not None and (not isinstance(name, str) or not name):
                raise InvalidInput(argument, name, "must be the name of a column of numbers")
        if (value is None) != (clip is None):
            missing, other = ("clip", "value") if clip is None else ("value", "clip")
            raise InvalidInput(
                missing, None, f"must be given together with {other}: the column and its bounds (low, high)"
            )
        if max_items_per_person is not None:
            max_items_per_person = positive_integer("max_items_per_person", max_items_per_person)
        found = cls(value, None if clip is None else _bounds(clip), weight, max_items_per_person)
        if clip is not None and not found.low < found.high:
            raise InvalidInput(
                "clip", tuple(clip), "must be two bounds that differ by more than 2⁻²⁸ of the larger one"
            )
        return found

    @property
    def columns(self) -> list[str]:
        """The columns that are used besides item and person."""
        return [name for name in (self.value, self.weight) if name is not None]

    @property
    def counts(self) -> bool:
        """Whether each person adds 1."""
        return self.value is None and self.weight is None

    @property
    def counts_rows(self) -> bool:
        """Whether the engine can count the people of an item without their other items."""
        return self.counts and self.max_items_per_person is None

    @property
    def unit(self) -> Fraction:
        """The public unit of contributions: 1 for counts, else the power of two near 2⁻²⁸ of the larger bound."""
        if self.counts:
            return Fraction(1)
        reach = max(abs(bound) for bound in self.clip) if self.clip else Fraction(1)
        exponent = reach.numerator.bit_length() - reach.denominator.bit_length()
        power = Fraction(2) ** exponent
        return Fraction(power if power >= reach else 2 * power, 2**_FINENESS)

    @property
    def low(self) -> int:
        """The least contribution in units, rounded inwards so that nobody moves a score beyond the bounds."""
        return 0 if self.clip is None else -((-self.clip[0]) // self.unit)

    @property
    def high(self) -> int:
        """The greatest contribution in units, rounded inwards."""
        return int((Fraction(1) if self.clip is None else self.clip[1]) // self.unit)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far adding a person moves a score: min(0, low) to max(0, high), since it does not move every item."""
        if self.clip is None:
            return COUNTS
        low, high = (float_if_exact(bound) for bound in self.clip)
        return Sensitivity(min(low, 0), max(high, 0))  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        """Return what a ledger records, which excludes the names of columns."""
        described: dict[str, Any] = {}
        if not self.counts:
            described["score"] = ("people" if self.clip is None else "sum") + (" by weight" if self.weight else "")
        if self.clip is not None:
            described["clip"] = [float(bound) for bound in self.clip]
        if self.max_items_per_person is not None:
            described["max_items_per_person"] = self.max_items_per_person
        return described


def _bounds(clip: Any) -> tuple[Fraction, Fraction]:
    if not isinstance(clip, Sequence) or isinstance(clip, str | bytes) or len(clip) != 2:
        raise InvalidInput("clip", clip, "must be two numbers (low, high)")
    low, high = clip
    bounds = Fraction(finite_number("clip", low)), Fraction(finite_number("clip", high))
    reach = max(abs(bound) for bound in bounds)
    if not (bounds[0] < bounds[1] and 1 / _LARGEST_BOUND <= reach <= _LARGEST_BOUND):
        raise InvalidInput(
            "clip", (low, high), "must be two numbers with low < high and sizes from 1e-250 to 1e250, such as (0, 5)"
        )
    return bounds


def float_if_exact(number: Fraction) -> int | float | Fraction:
    """Return an equal int or float if one exists, else the Fraction."""
    if number.denominator == 1:
        return int(number)
    return float(number) if Fraction(float(number)) == number else number


def fresh_key(bits: BitSource) -> str:
    """Return 128 random bits as 32 hexadecimal digits, for the argument `key` of `open_counts`.

    Parameters
    ----------
    bits : BitSource
        The source of random bits.

    Returns
    -------
    str
        The key.

    Examples
    --------
    >>> from dpselect.sampling import bit_source
    >>> len(fresh_key(bit_source(1)))
    32
    """
    return "".join(f"{int(word):016x}" for word in bits.integers(2, 64))


def contributions(engine: Engine, rows: Any, kind: Contribution, key: str) -> Any:
    """Return (item, person, amount), one row for each person and item, from rows (item, person[, value][, weight]).

    If people are just counted, the rows are returned unchanged: engines are fastest at counting distinct people.

    A person with more items than allowed keeps a random subset of them. Rows with a column `group` are treated so
    within each group, and the result has that column, too.
    """
    import ibis

    if kind.counts_rows:
        return rows
    within = ["person", "group"] if "group" in rows.columns else ["person"]
    if kind.counts:
        pairs = rows.distinct()
    else:
        sums = {}
        if kind.value is not None:
            sums["total"] = rows.value.sum()
        if kind.weight is not None:
            sums["weight"] = rows.weight.max()
        pairs = rows.group_by("item", *within).aggregate(**sums)
        amount = ibis.literal(kind.high, "int64")
        if kind.value is not None:
            amount = ibis.ifelse(
                pairs.total > kind.high, kind.high, ibis.ifelse(pairs.total < kind.low, kind.low, pairs.total)
            ).cast("int64")
        if kind.weight is not None:
            amount = (amount.cast("float64") * pairs.weight + 0.5).floor().cast("int64")
        pairs = pairs.mutate(amount=amount)
    if kind.max_items_per_person is not None:
        pairs = kept_at_random(engine, pairs, kind.max_items_per_person, key, within=within)
    if kind.counts:
        pairs = pairs.mutate(amount=ibis.literal(1, "int64"))
    return pairs.select("item", *within, "amount")


def kept_at_random(
    engine: Engine, rows: Any, most: int, key: str, *, choose: str = "item", within: Sequence[str] = ("person",)
) -> Any:
    """Keep at most `most` rows for each value of the columns `within`, one of which is the person.

    Kept are the rows that come first by the MD5 hash of (key, person, choose): a uniformly random subset that depends
    on the key and the person's own rows alone. Rows with the same `within` and `choose` must be interchangeable.
    """
    if not engine.has_digest:
        raise InvalidInput(
            f"max_{choose}s_per_person", most, "must be left out on this engine, which has no function md5"
        )
    rows = placed_at_random(engine, rows, key, choose=choose, within=within)
    return rows.filter(rows.place < min(most, INTEGER_LIMIT)).drop("place")


def placed_at_random(engine: Engine, rows: Any, key: str, *, choose: str, within: Sequence[str]) -> Any:
    """Return the rows with `place`, from 0 for each value of the columns `within`, in the order of `kept_at_random`."""
    import ibis

    person = rows.person.cast("string")
    # One hash of one block, because hashing takes a third of the time. The length tells where the person's text ends.
    text = person.length().cast("string") + ":" + person + rows[choose].cast("string")
    rows = rows.mutate(mixed=engine.digest(ibis.literal(key) + text))
    window = ibis.window(group_by=[rows[name] for name in within], order_by=[rows.mixed, rows[choose]])
    return rows.mutate(place=ibis.row_number().over(window)).drop("mixed")


def numeric_rows(engine: Engine, rows: Any, kind: Contribution) -> Any:
    """Return the rows with `value` in units and `weight` in [0, 1]; rows without a number there are dropped."""
    for column, name in (("value", kind.value), ("weight", kind.weight)):
        if name is None:
            continue
        rows = rows.mutate(**{column: _number(engine, rows[column], column, name)})
        rows = without_nulls(rows, column)
        if rows[column].type().is_decimal():
            rows = rows.filter(rows[column].cast("string") != "NaN")
        unit = kind.unit if column == "value" else None
        rows = rows.mutate(**{column: _units(rows[column], unit) if unit else _share(rows[column])})
    return rows


def _number(engine: Engine, column: Any, argument: str, name: str) -> Any:
    kind = column.type()
    if kind.is_boolean():
        return column.cast("int32")  # PostgreSQL casts booleans to no other integers
    if kind.is_decimal() and kind.precision is not None and kind.precision <= _DECIMAL_DIGITS:
        return column.cast("float64")
    if kind.is_numeric():
        return column
    if kind.is_string() and engine.casts_text_safely:
        return column.try_cast("float64")
    raise InvalidInput(argument, plain(f"column {name!r} of type {type_name(kind)}"), "must be a column of numbers")


def _units(column: Any, unit: Fraction) -> Any:
    """Return ⌊x / unit + ½⌋ as an integer.

    Some engines fail if a product or cast overflows or underflows, so huge values are cut off and tiny ones set to 0
    first. Division by a power of two is exact.
    """
    limit = unit * _LARGEST_ROW
    number = _between(column, -limit, limit)
    tiny = _literal(column, unit / 4)
    number = ((number < tiny) & (number > -tiny)).ifelse(_literal(column, Fraction(0)), number)
    whole = (number.cast("float64") * float(1 / unit) + 0.5).floor()
    # Through int64, because PostgreSQL keeps only 15 digits when it casts a float to a decimal.
    return whole.cast("int64").cast("decimal(38, 0)")


def _share(column: Any) -> Any:
    """Return a weight clipped to [0, 1] as a float; tiny weights are 0, because PostgreSQL fails on them."""
    tiny = _literal(column, Fraction(1, 2**60))
    return (column < tiny).ifelse(_literal(column, Fraction(0)), _between(column, 0, 1)).cast("float64")


def _between(column: Any, low: Any, high: Any) -> Any:
    low, high = (_literal(column, Fraction(bound)) for bound in (low, high))
    return (column > high).ifelse(high, (column < low).ifelse(low, column))


def _literal(column: Any, number: Fraction) -> Any:
    """Return a bound in the column's kind of number: a decimal for a decimal, which a float could not represent."""
    import ibis

    if column.type().is_decimal():
        return ibis.literal(Decimal(number.numerator) / Decimal(number.denominator))
    return ibis.literal(float(number), "float64")


def in_numbers(units: list[int], unit: Fraction) -> list[Any]:
    """Return numbers of units as exact numbers."""
    if unit == 1:
        return list(units)
    step = float(unit)
    if all(-(2**53) < number < 2**53 for number in units) and Fraction(step) == unit:
        return [number * step for number in units]
    return [number * unit for number in units]
