"""Small tables of nasty cells, and questions about them, for Hypothesis to draw.

A table is public by its kinds and names, and private by its rows. Text, integers, floats, decimals and booleans are
Python's own values. Dates are days from 1970; timestamps, instants (with a time zone) and times are microseconds from
1970 or midnight, so that there is room beyond Python's calendar. A mixed column has whatever can be a Python object or
a JSON value.

To add a nasty cell, put it into `CELLS` under its kind: every source whose `holds` allows it is then asked to read it,
and its `read` says what it means.
"""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

import pandas
from hypothesis import strategies as st

nan, inf = float("nan"), float("inf")


class Mark(enum.Enum):
    """What stands for a cell that Python has no value for."""

    INVALID = "text that is not UTF-8"
    BROKEN = "a quote that is not closed"
    NA = "pandas.NA"
    NAT = "pandas.NaT"

    def __repr__(self) -> str:
        """Show what reproduces it."""
        return f"Mark.{self.name}"


class Genre(str, enum.Enum):  # noqa: UP042 (a StrEnum is shown by its text anyway)
    """Members that are text, and that `str` shows as Genre.DRAMA."""

    DRAMA = "a"
    NOIR = "noir"

    def __repr__(self) -> str:
        """Show what reproduces it."""
        return f"Genre.{self.name}"


@dataclass(frozen=True)
class Json:
    """A JSON value by its text."""

    text: str


@dataclass(frozen=True)
class Nested:
    """A JSON array of arrays, so many deep."""

    depth: int

    @property
    def text(self) -> str:
        """The JSON text."""
        return "[" * self.depth + "]" * self.depth


@dataclass(frozen=True)
class Beyond:
    """A date or time outside the years 1 to 9999: a person like any other, but no item, since Python cannot show it."""

    number: int


OBJECTS = {Mark.NA: pandas.NA, Mark.NAT: pandas.NaT, Mark.INVALID: "\ud800"}
"""The Python objects that are meant."""

_TEXTS = ["a", "b", "A", "", " ", "a ", "nan", "NULL", "1", "1.0", "-0.0", "true", "é", "e\u0301", "\u0430", "ﬁ", "fi"]
_TEXTS += ['say "a", twice', "'", "\\", "a;b|c\td", "\u200b", "\ufeff", "😀", "\x01", "a\nb", "a\0b", "x" * 300]
_NUMBERS = [0.0, -0.0, 1.0, 3.0, 5.0, 10.0, -2.5, 0.1, nan, inf, -inf, 1e308, -1e308, 5e-324, 1e16, 2.0**53, 1e-9]
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY = 86_400_000_000

CELLS: dict[str, list[Any]] = {
    "text": [None, *_TEXTS, "1e400", " 3 ", Mark.INVALID, Mark.BROKEN],
    "integer": [None, 0, 1, -1, 3, 7, 10, 127, 128, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)],
    "float": [None, *_NUMBERS],
    "decimal": [None, *map(Decimal, ("0.00", "1.00", "1.10", "-2.50", "3.00", "10.00", "9999999999.99"))],
    "boolean": [None, True, False],
    "date": [None, 0, -1, 19_000, _FIRST_DAY, _FIRST_DAY - 1, _LAST_DAY, _LAST_DAY + 1, -(10**7), 10**7],
    "timestamp": [None, 0, -1, 10**15, _FIRST_DAY * _DAY, _FIRST_DAY * _DAY - 1, -(2**61), 2**61],
    "mixed": [None, "a", "1", "", "é", "True", "noir", 1, 0, 1.0, 1.5, nan, True, False, Mark.INVALID, Mark.NA],
}
CELLS["instant"] = [None, 0, -1, 10**15, -(2**61), 2**61]
CELLS["time"] = [None, 0, 1, _DAY // 2, _DAY - 1]
CELLS["timestamp"] += [(_LAST_DAY + 1) * _DAY - 1, (_LAST_DAY + 1) * _DAY]
CELLS["mixed"] += [Genre.DRAMA, Genre.NOIR, Decimal("1.10"), Decimal("NaN"), datetime.date(2024, 2, 29), Mark.NAT]
CELLS["mixed"] += map(Json, ("1.10", "1.1", "1e2", "100", "-0", "0", "1E400", "12345678901234567890123", "[]"))
CELLS["mixed"] += [Json('{"a":"b"}'), Nested(3), Nested(995), Nested(3000)]
"""Of each kind, the cells to draw from."""

UNHEARD = {"text": "never", "mixed": "never", "integer": 42, "float": 42.5, "decimal": Decimal("42.00")}
UNHEARD |= {"boolean": False, "date": 42, "timestamp": 42, "instant": 42, "time": 42}
"""Of each kind, what a list of items can always hold."""

NAMES: list[dict[str, str]] = [
    {},
    {"item": "Film", "person": "viewer"},
    {"item": "film_1", "amount": "select", "note": "Note"},
    {"item": 'say "film"', "person": "a b", "amount": "ünï"},
]
"""What columns are called."""

DECOYS = {"Film": ["film"], "film_1": ["Film", "film"]}
"""Beside a column of items of that name, columns that some engines take for it, with `DECOY` in every cell."""

DECOY = "decoy"
NUMBERS = ("float", "integer", "decimal")
"""The kinds whose amounts can be compared."""

PERIODS = ["1970-01-01", "1970-W01", "1970-01", "1969-12-31", "2022-01"]
DAY_TEXTS = [None, "1970-01-01", "1969-12-31T23:59:59Z", "1970-01-01T00:30:00+01:00", "1970-01-01 00:00", "1970-01-04"]
DAY_TEXTS += ["1970-01-01T24:00:00", "1970-02-30", "1970-1-1", " 1970-01-01", "epoch", "today", "infinity", "0", ""]
"""Texts for the column of times: what a period has, what it just has not, and what is no time."""

CLIPS = [None, (0, 5), (-2, 5), (-4, -1), (1, 4), (-0.75, 2.25), (-0.001, 0.001), (0, 2.0**40)]
DOMAINS = ["list", "file", "table", "number", "number too small", "unknown"]


@dataclass(frozen=True)
class Table:
    """Rows of cells, one for each role; kind and name of the column of a role.

    Roles are item, person, group, amount, share, note and day.
    """

    kinds: dict[str, str]
    rows: list[tuple[Any, ...]]
    names: dict[str, str] = field(default_factory=dict)

    def name(self, role: str) -> str:
        """Return what the column of a role is called."""
        return self.names.get(role, role)

    @property
    def decoys(self) -> list[str]:
        """The names of the columns of decoys."""
        return DECOYS.get(self.name("item"), [])

    def cells(self, role: str) -> list[Any]:
        """Return the column of a role."""
        place = list(self.kinds).index(role)
        return [row[place] for row in self.rows]


@dataclass(frozen=True)
class Question:
    """What is asked: which items are possible, how people are scored, and for which rows.

    Rows are chosen by the SQL of a condition, and by the period in which the time in the column `day` is.
    `groups`: the listed groups, if an answer for each is asked for; `of_groups`: for each listed item the group
    that it is listed for, if they differ; `max_groups_per_person`: 0 for all groups.
    """

    domain: str = "list"
    listed: tuple[Any, ...] = ()
    clip: tuple[float, float] | None = None
    weighted: bool = False
    max_items_per_person: int | None = None
    where: str | None = None
    groups: tuple[Any, ...] = ()
    of_groups: tuple[Any, ...] = ()
    max_groups_per_person: int = 1
    period: str | None = None


@dataclass(frozen=True)
class Case:
    """A table and a question; `variant` chooses among the ways in which a source writes the same rows."""

    table: Table
    question: Question = Question()
    variant: int = 0

    def with_rows(self, rows: list[tuple[Any, ...]]) -> Case:
        """Return the same question about other rows."""
        return replace(self, table=replace(self.table, rows=rows))


class Holder(Protocol):
    """As much of a source as decides which tables it can hold."""

    kinds: frozenset[str]
    hashes: frozenset[str]
    numbers: frozenset[str]
    times: frozenset[str]
    tells_case: bool

    @property
    def conditions(self) -> dict[str, Any]:
        """The conditions that can be asked for, by their SQL."""

    def holds(self, kind: str, cell: Any) -> bool:
        """Tell whether a column of that kind can have that cell."""


@st.composite
def cases(draw: st.DrawFn, source: Holder) -> Case:
    """Draw a case that a source can hold."""
    where = draw(st.one_of(st.none(), st.sampled_from(list(source.conditions.values()))))
    clip = draw(st.sampled_from([*CLIPS, None, None]))
    weighted = draw(st.sampled_from([False, False, True]))
    grouped = draw(st.sampled_from([False, False, True]))
    kinds = draw(_kinds(source, where, clip is not None, weighted, grouped))
    period = draw(st.sampled_from([None, None, None, *PERIODS]))
    if period is not None:
        kinds["day"] = draw(st.sampled_from(sorted(source.times & source.kinds)))
    pools = [_pool(source, role, kind) for role, kind in kinds.items()]
    # Few cells of each column, so that rows meet; one of them a plain one, so that some count.
    few = [[pool[1], *draw(st.lists(st.sampled_from(pool), min_size=2, max_size=3, unique_by=repr))] for pool in pools]
    rows = draw(st.lists(st.tuples(*map(st.sampled_from, few)), min_size=1, max_size=12))
    names = draw(st.sampled_from([names for names in NAMES if source.tells_case or names.get("item") not in DECOYS]))
    domain = draw(st.sampled_from(DOMAINS))
    listed: tuple[Any, ...] = ()
    if domain in ("list", "file", "table"):
        listed = (*draw(st.lists(st.sampled_from([*few[0] * 4, *pools[0]]), max_size=5)), UNHEARD[kinds["item"]])
    # Beyond Python's calendar the text of a person is not known.
    is_hashed = {kinds["item"], kinds["person"]} <= source.hashes and kinds["person"] != "date"
    most = draw(st.sampled_from([None, None, 1, 2])) if is_hashed else None
    sql = None if where is None else where.sql
    question = Question(domain, listed, clip, weighted, most, sql, period=period)
    if grouped:
        cells = few[list(kinds).index("group")]
        question = draw(
            _with_groups(question, cells, UNHEARD[kinds["group"]], kinds["person"] in source.hashes - {"date"})
        )
    return Case(Table(kinds, rows, names), question, draw(st.integers(0, 5)))


@st.composite
def _with_groups(draw: st.DrawFn, question: Question, cells: list[Any], unheard: Any, is_hashed: bool) -> Question:
    """Draw which groups are listed, whether they have items of their own, and how many of them a person counts in."""
    groups = (unheard, *draw(st.lists(st.sampled_from(cells), max_size=3)))
    most = draw(st.sampled_from([0, 1, 1, 2])) if is_hashed else 0
    listed, of_groups = question.listed, ()
    if question.domain in ("file", "table") and draw(st.booleans()):
        *items, last = listed
        pairs = [(item, draw(st.sampled_from([*groups, *cells]))) for item in items]
        # Every group has at least one item.
        listed, of_groups = zip(*pairs, *((last, group) for group in groups), strict=True)
    return replace(question, listed=listed, groups=groups, of_groups=of_groups, max_groups_per_person=most)


@st.composite
def _kinds(draw: st.DrawFn, source: Holder, where: Any, valued: bool, weighted: bool, grouped: bool) -> dict[str, str]:
    """Draw the kind of every column that is needed."""
    held = sorted(source.kinds)
    often = [*held, *(kind for kind in ("text", "mixed") if kind in held for _ in range(len(held) // 3))]
    kinds = {role: draw(st.sampled_from(often)) for role in ("item", "person")}
    if grouped:
        kinds["group"] = draw(st.sampled_from(often))
    columns = [] if where is None else where.columns
    if valued or "amount" in columns:
        allowed = where.kinds if "amount" in columns else (*NUMBERS, *sorted(source.numbers))
        kinds["amount"] = draw(st.sampled_from([kind for kind in allowed if kind in held] or ["integer"]))
    if weighted:
        kinds["share"] = "float" if "float" in held else "integer"
    if "note" in columns or draw(st.booleans()):
        kinds["note"] = "mixed" if "mixed" in held and "note" not in columns else "text"
    return kinds


def _pool(source: Holder, role: str, kind: str) -> list[Any]:
    """Return the cells that a column can have."""
    shares = [None, 0.0, 0.25, 0.5, 1.0, 1.5, -0.5, nan, inf, -inf, 1e-300]
    cells = {("share", "float"): shares, ("day", "text"): DAY_TEXTS}.get((role, kind), CELLS[kind])
    return [cell for cell in cells if source.holds(kind, cell)]
