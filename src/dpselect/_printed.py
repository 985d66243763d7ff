"""What `print`, notebooks and pandas show of releases and ledger statements; loads Rich and pandas on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpselect.errors import InvalidInput, plain

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType

PRINTED_WIDTH = 80


class Printed:
    """Prints the tables that the command line prints, as text of 80 columns and as HTML."""

    def _tables(self) -> list[RenderableType]:
        """Return what is printed, from top to bottom."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the tables that the command line prints."""
        from dpselect._text import as_text

        return as_text(*self._tables(), width=PRINTED_WIDTH).removesuffix("\n")

    def _repr_html_(self) -> str:
        from dpselect._text import as_html

        return as_html(*self._tables())


def frame_of(rows: list[dict[str, Any]], columns: list[str]) -> pandas.DataFrame:
    """Return rows as a pandas DataFrame with these columns."""
    try:
        import pandas
    except ImportError:
        requirement = "must have pandas; install it with pip install 'dpselect[pandas]'"
        raise InvalidInput("to_frame", plain("no such package"), requirement) from None
    return pandas.DataFrame(rows, columns=columns)
