"""Tables as text of a terminal and as HTML, from the same parts of Rich."""

from __future__ import annotations

import io
import sys
import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text


def item_text(item: Any) -> Text:
    """Return an item for a terminal, without interpreting markup and with control characters escaped."""
    text = "".join(repr(mark)[1:-1] if unicodedata.category(mark)[0] == "C" else mark for mark in str(item))
    return Text(text or "(empty text)", style="" if text else "dim")


def facts_table(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """Return a table of facts: a bold name and a text each."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, fact in rows:
        table.add_row(Text(name), Text(fact) if isinstance(fact, str) else fact)
    return table


class _Buffer(io.StringIO):
    """A buffer with the encoding of standard output, so that Rich falls back to ASCII where needed."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of standard output."""
        return getattr(sys.stdout, "encoding", None) or "utf-8"


def as_text(*parts: RenderableType, width: int, colour: bool = False) -> str:
    """Return what Rich prints in that many columns."""
    buffer = _Buffer()
    console = Console(file=buffer, force_terminal=colour, force_jupyter=False, width=width)
    for part in parts:
        console.print(part)
    return buffer.getvalue()


def as_html(*parts: RenderableType) -> str:
    """Return texts and tables as HTML."""
    return "\n".join(_table_html(part) if isinstance(part, Table) else _text_html(part) for part in parts if part)


def _text_html(part: Any) -> str:
    text = part if isinstance(part, Text) else Text.from_markup(str(part))
    return f"<p><strong>{escape(text.plain)}</strong></p>" if text.style == "bold" else f"<p>{escape(text.plain)}</p>"


def _table_html(table: Table) -> str:
    rows = [list(cells) for cells in zip(*(column.cells for column in table.columns), strict=True)]
    styles = [f' style="text-align:{column.justify}"' for column in table.columns]
    head = _row_html("th", styles, [column.header for column in table.columns]) if table.show_header else ""
    body = "".join(_row_html("td", styles, row) for row in rows)
    return f"<table>{head and f'<thead>{head}</thead>'}<tbody>{body}</tbody></table>"


def _row_html(tag: str, styles: list[str], cells: list[Any]) -> str:
    shown = [f"<{tag}{style}>{escape(str(cell))}</{tag}>" for style, cell in zip(styles, cells, strict=True)]
    return f"<tr>{''.join(shown)}</tr>"
