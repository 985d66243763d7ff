"""Panels with lines, and one legend for all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpselect._pictures import Look, lighten
from dpselect.errors import DpSelectError, how_to_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def check_plotting() -> None:
    """Raise an error if Matplotlib is missing, before any long computation."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise DpSelectError(f"pictures need Matplotlib: {how_to_install('plot')}") from None


def panels(rows: int, columns: int, width: float = 3.4, height: float = 2.5, **options: Any) -> tuple[Figure, Any]:
    """Return a figure with a grid of axes, without using pyplot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows + 1.0), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for place in axes.flat:
        lighten(place)
        place.tick_params(labelsize=8)
    return figure, axes


def log_axis(axes: Axes, which: str = "x") -> None:
    """Make an axis logarithmic, with plain numbers at powers of ten, and between them if the axis is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set(**{f"{which}scale": "log"})
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 120 * low else (1.0, 2.0, 5.0), numticks=5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axis.set_minor_locator(NullLocator())


def tick(value: float) -> str:
    """Return a short label for a number: 0.001, 10,000, 100M."""
    return f"{value / 1e6:,.10g}M" if value >= 1e6 else f"{value:,.10g}"


def line(axes: Axes, places: Sequence[float], values: Sequence[float], style: Look, label: str) -> None:
    """Draw one line with about six markers."""
    step = max(1, len(places) // 6)
    axes.plot(places, values, **style.options(), label=label, markevery=step, zorder=3 if style.thick else 2)


def bars(
    axes: Axes, places: Sequence[float], values: Sequence[float], deviations: Sequence[float], style: Look
) -> None:
    """Draw thin vertical bars of one standard deviation on either side of each value."""
    # One broken line instead of a line per bar, which keeps the file small.
    across = [part for place in places for part in (place, place, math.nan)]
    along = [
        part for value, one in zip(values, deviations, strict=True) for part in (value - one, value + one, math.nan)
    ]
    axes.plot(across, along, color=style.color, linewidth=0.8, alpha=0.4)


def legend(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """Put one legend below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9, handlelength=3.6
    )
