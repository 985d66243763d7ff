"""Conditions on one row, written in SQL by the user: which columns they use, and whether they can fail on a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.sources.frames import check_columns

_REQUIREMENT = (
    "must be one condition on the columns of a row in the engine's SQL, such as year >= 2020; aggregates, windows and "
    "queries are refused, since they use the rows of other people"
)


def kinds(names: str) -> frozenset[str]:
    """Return the names of sqlglot's expression classes as a set."""
    return frozenset(names.split())


COMPARISONS = kinds(
    "And Or Not Paren EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Is In Between Tuple Column Identifier"
)
"""Expressions that fail for no value, provided that each comparison is of one column with constants."""

TIMELESS = COMPARISONS | kinds(
    "Literal Boolean Null Neg Add Sub Mul Div IntDiv Mod Cast TryCast DataType DataTypeParam Like ILike Lower Upper "
    "Length Substring StartsWith RegexpLike Coalesce Year Month Day Extract TimestampTrunc Interval Var"
)
"""Expressions whose value for a row is the same at any time, as those of current_date and today() are not."""


@dataclass(frozen=True)
class Condition:
    """The text of a condition and its SQL dialect; whether it holds for a row depends on that row alone."""

    text: str
    dialect: Any

    @classmethod
    def of(cls, where: Any, dialect: Any) -> Condition:
        """Parse `where`; refuse what uses other rows, since one person could then decide whether another counts."""
        from sqlglot import expressions

        forbidden = (expressions.Query, expressions.AggFunc, expressions.Window, expressions.Exists, expressions.Star)
        text = where.strip().removesuffix(";") if isinstance(where, str) else ""
        found = cls(text, dialect) if text else None
        if found is None or found.tree is None or any(True for _ in found.tree.find_all(*forbidden)):
            raise InvalidInput("where", where, _REQUIREMENT)
        for part in found.joined:
            text_in_it = next(filter(_is_text, part.find_all(expressions.Literal)), None)
            if text_in_it is not None and part.find(expressions.Column) is None:
                # 'age' >= 18 is true of all rows or of none: whoever writes it means the column.
                column = expressions.to_identifier(text_in_it.this, quoted=True).sql(dialect)
                raise InvalidInput("where", where, f"must use a column; these quotes make a text: write {column}")
        return found

    @cached_property
    def tree(self) -> Any:
        """The syntax tree, or None if the text is not one condition."""
        import sqlglot
        from sqlglot import expressions

        try:
            statements = sqlglot.parse(self.text, read=self.dialect)
        except (sqlglot.errors.SqlglotError, RecursionError) as error:
            # A frame of its traceback refers to it, and that cycle would keep the connection open until exit.
            error.__traceback__ = None
            return None
        is_condition = len(statements) == 1 and isinstance(statements[0], expressions.Condition)
        return statements[0] if is_condition else None

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns that the condition uses."""
        return list(dict.fromkeys(column.name for column in self._columns()))

    @cached_property
    def folded_columns(self) -> list[str]:
        """The names of the columns as PostgreSQL reads them: in lower case unless quoted."""
        return list(dict.fromkeys(_folded(column) for column in self._columns()))

    def check_known(self, columns: list[str]) -> None:
        """Refuse a condition on a column that the table does not have; databases ignore the case of names."""
        known = {column.lower() for column in columns}
        check_columns("where", [name for name in self.columns if name.lower() not in known], columns)

    def with_names(self, names: dict[str, str], *, folded: bool = False) -> str:
        """Return the text with its columns renamed and nothing else changed."""
        text = self.text
        for column in sorted(self._columns(), key=lambda column: -column.this.meta["start"]):
            if column.table:
                raise InvalidInput("where", plain(column.sql(self.dialect)), "must name columns without their table")
            name = names[_folded(column) if folded else column.name]
            text = text[: column.this.meta["start"]] + name + text[column.this.meta["end"] + 1 :]
        return text

    @property
    def is_timeless(self) -> bool:
        """Whether it is certain to hold for the same rows at any time."""
        return all(type(part).__name__ in TIMELESS for part in self.tree.walk())

    def outside(self, allowed: frozenset[str]) -> str | None:
        """Return the first part of the condition that is not an allowed expression, or None.

        A part without columns is a constant: it fails for all rows or none, and so before any row is read.
        """
        for part in self.tree.walk(prune=self._is_constant):
            if not self._is_constant(part) and type(part).__name__ not in allowed:
                return str(part.sql(self.dialect))
        return None

    @cached_property
    def joined(self) -> list[Any]:
        """The conditions that AND, OR and NOT join."""
        from sqlglot import expressions

        logic = (expressions.And, expressions.Or, expressions.Not, expressions.Paren)
        parts = self.tree.walk(prune=lambda part: not isinstance(part, logic))
        return [part for part in parts if not isinstance(part, logic)]

    def parts(self, wanted: frozenset[str]) -> list[Any]:
        """Return the expressions of these classes that use columns."""
        return [part for part in self.tree.walk() if type(part).__name__ in wanted and not self._is_constant(part)]

    def _is_constant(self, part: Any) -> bool:
        from sqlglot import expressions

        inside_column = isinstance(part, expressions.Identifier) and isinstance(part.parent, expressions.Column)
        return not inside_column and part.find(expressions.Column) is None

    @property
    def compares_with_constants(self) -> bool:
        """Whether it only compares single columns with constants, which never fails on any row.

        Two columns of different types are converted to one type first, and that can fail.
        """
        from sqlglot import expressions

        if self.outside(COMPARISONS) is not None:
            return False
        return all(len(list(part.find_all(expressions.Column))) <= 1 for part in self.joined)

    def _columns(self) -> list[Any]:
        from sqlglot import expressions

        return list(self.tree.find_all(expressions.Column))


def _is_text(literal: Any) -> bool:
    """Whether a constant is a text, which those in DATE '2020-01-01' and INTERVAL '3' DAY are not."""
    from sqlglot import expressions

    times = expressions.DataType.TEMPORAL_TYPES
    is_time = isinstance(literal.parent, expressions.Interval) or (
        isinstance(literal.parent, expressions.Cast) and literal.parent.is_type(*times)
    )
    return literal.is_string and not is_time


def _folded(column: Any) -> str:
    return str(column.name if column.this.quoted else column.name.lower())
