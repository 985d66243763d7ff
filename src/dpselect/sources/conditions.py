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


def kinds(names: str) -> frozenset[str]:
    """Return the names of kinds of sqlglot's expressions."""
    return frozenset(names.split())


COMPARISONS = kinds(
    "And Or Not Paren EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Is In Between Tuple Column Identifier"
)
"""What fails for no value, where each comparison is of one column with constants."""


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
        text = where.strip().removesuffix(";") if isinstance(where, str) else ""
        found = cls(text, dialect) if text else None
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
        return list(dict.fromkeys(_folded(column) for column in self._columns()))

    def check_known(self, columns: list[str]) -> None:
        """Name a column that the table does not have, if there is one; databases ignore the case of names."""
        known = {column.lower() for column in columns}
        check_columns("where", [name for name in self.columns if name.lower() not in known], columns)

    def with_names(self, names: dict[str, str], *, folded: bool = False) -> str:
        """Return the text with other names for its columns; everything else stays to the letter."""
        text = self.text
        for column in sorted(self._columns(), key=lambda column: -column.this.meta["start"]):
            if column.table:
                raise InvalidInput("where", plain(column.sql(self.dialect)), "the name of a column alone is needed")
            name = names[_folded(column) if folded else column.name]
            text = text[: column.this.meta["start"]] + name + text[column.this.meta["end"] + 1 :]
        return text

    def outside(self, allowed: frozenset[str]) -> str | None:
        """Return the first part of the condition that is none of the allowed expressions, or None.

        What looks at no column is a constant: it fails for all rows or for none, and so before any is read.
        """
        for part in self.tree.walk(prune=self._is_constant):
            if not self._is_constant(part) and type(part).__name__ not in allowed:
                return str(part.sql(self.dialect))
        return None

    def parts(self, wanted: frozenset[str]) -> list[Any]:
        """Return the parts of these kinds that look at columns."""
        return [part for part in self.tree.walk() if type(part).__name__ in wanted and not self._is_constant(part)]

    def _is_constant(self, part: Any) -> bool:
        from sqlglot import expressions

        inside_column = isinstance(part, expressions.Identifier) and isinstance(part.parent, expressions.Column)
        return not inside_column and part.find(expressions.Column) is None

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


def _folded(column: Any) -> str:
    return str(column.name if column.this.quoted else column.name.lower())
