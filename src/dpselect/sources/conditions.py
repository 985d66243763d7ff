"""Conditions on one row, as a user writes them in SQL: what they look at, and whether they can fail on a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.sources.frames import check_columns

_ACCEPTED = (
    "one condition on the columns of a row is needed, in the SQL of the engine, such as year >= 2020; without "
    "aggregates, windows and queries, since those look at the rows of other people"
)

COMPARISONS = (
    "And Or Not Paren EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Is In Between Like ILike Tuple "
    "Column Identifier Literal Boolean Null Neg Lower Upper Length"
)
"""The names of sqlglot's expressions that no value makes fail, on any engine."""


@dataclass(frozen=True)
class Condition:
    """The text of a condition and the dialect in which it is written; what it says of a row follows from that row."""

    text: str
    dialect: Any

    @classmethod
    def of(cls, where: Any, dialect: Any) -> Condition:
        """Understand `where`; refuse what looks at other rows: one person could then decide whether another counts."""
        from sqlglot import expressions

        forbidden = (expressions.Query, expressions.AggFunc, expressions.Window, expressions.Exists, expressions.Star)
        found = cls(where, dialect) if isinstance(where, str) and where.strip() else None
        if found is None or found.tree is None or any(True for _ in found.tree.find_all(*forbidden)):
            raise InvalidInput("where", where, _ACCEPTED)
        return found

    @cached_property
    def tree(self) -> Any:
        """The syntax tree, or None if the text is not one condition."""
        import sqlglot
        from sqlglot import expressions

        try:
            statements = sqlglot.parse(self.text, read=self.dialect)
        except (sqlglot.errors.SqlglotError, RecursionError):
            return None
        is_condition = len(statements) == 1 and isinstance(statements[0], expressions.Condition)
        return statements[0] if is_condition else None

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns that the condition looks at."""
        return list(dict.fromkeys(column.name for column in self._columns()))

    @cached_property
    def folded_columns(self) -> list[str]:
        """The names of the columns as PostgreSQL understands them: without quotes, case does not count."""
        names = (column.name if column.this.quoted else column.name.lower() for column in self._columns())
        return list(dict.fromkeys(names))

    def check_known(self, columns: list[str]) -> None:
        """Name a column that the table does not have, if there is one; databases ignore the case of names."""
        known = {column.lower() for column in columns}
        check_columns("where", [name for name in self.columns if name.lower() not in known], columns)

    def with_names(self, names: dict[str, str]) -> str:
        """Return the text with other names for its columns; everything else stays to the letter."""
        text = self.text
        for column in sorted(self._columns(), key=lambda column: -column.this.meta["start"]):
            if column.table:
                raise InvalidInput("where", plain(column.sql(self.dialect)), "the name of a column alone is needed")
            text = text[: column.this.meta["start"]] + names[column.name] + text[column.this.meta["end"] + 1 :]
        return text

    def outside(self, allowed: str) -> str | None:
        """Return the first part of the condition that is none of the allowed expressions, or None."""
        from sqlglot import expressions

        names = frozenset(allowed.split())
        for part in self.tree.walk():
            pattern = part.expression if isinstance(part, expressions.Like | expressions.ILike) else None
            # A pattern that is read off a row can be an invalid one.
            is_fixed = pattern is None or (isinstance(pattern, expressions.Literal) and "\\" not in pattern.name)
            if type(part).__name__ not in names or not is_fixed:
                return str(part.sql(self.dialect))
        return None

    @property
    def compares_with_constants(self) -> bool:
        """Whether it is made of comparisons of one column with constants: these never fail, whatever is in a row.

        Two columns of different types are brought into one type first, and that can fail.
        """
        from sqlglot import expressions

        if self.outside(COMPARISONS) is not None:
            return False
        logic = (expressions.And, expressions.Or, expressions.Not, expressions.Paren)
        parts = list(self.tree.walk(prune=lambda part: not isinstance(part, logic)))
        return all(len(list(part.find_all(expressions.Column))) <= 1 for part in parts if not isinstance(part, logic))

    def _columns(self) -> list[Any]:
        from sqlglot import expressions

        return list(self.tree.find_all(expressions.Column))
