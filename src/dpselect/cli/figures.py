"""How forecasts are shown: a table of mechanisms, and a figure in a cell."""

from __future__ import annotations

from typing import Any

from rich.table import Table

import dpselect
from dpselect._format import shown_probability, three_digits


def mechanism_table(*columns: str) -> Table:
    """Return a table with a column of mechanisms and right-aligned columns of numbers."""
    table = Table(pad_edge=False)
    table.add_column("mechanism")
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def cell(name: str, figure: Any) -> str:
    """Return a figure for the table: empty if unknown, marked with ≈ if simulated."""
    if figure is None:
        return ""
    if not figure.exact:
        return f"≈{three_digits(figure.value)}"
    return shown_probability(figure.value) if name in dpselect.forecast.PROBABILITIES else three_digits(figure.value)
