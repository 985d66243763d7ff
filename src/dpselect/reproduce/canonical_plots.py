"""Pictures of the canonical paper's figures: chances against ε, one panel for each k and each kind of answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dpselect.reproduce.drawing import STYLES, legend, line, log_axis, panels
from dpselect.reproduce.study import Row
from dpselect.reproduce.subset_curves import MECHANISMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = dict(zip(MECHANISMS, STYLES, strict=True))
KINDS = {"top": "P[exactly the top k]", "great": "P[great]", "good": "P[good]"}


def against_epsilon(kinds: Sequence[str]) -> Callable[[list[Row]], Figure]:
    """Return a drawing with one row of panels for each kind of answer and one column for each k."""
    return lambda rows: _grid([row for row in rows if "epsilon" in row], kinds, "epsilon", "epsilon", STYLE)


def against_exponent(rows: list[Row]) -> Figure:
    """Draw Figure 2: chances at ε = 1 against the exponent of Zipf's law."""
    return _grid(rows, ("top", "good"), "exponent", "exponent s of Zipf's law", STYLE)


def noises(rows: list[Row]) -> Figure:
    """Draw Figure 4: the five noises of the one-shot mechanism."""
    curves = [row for row in rows if "epsilon" in row]
    names = list(dict.fromkeys(row["mechanism"] for row in curves))
    return _grid(curves, ("top",), "epsilon", "epsilon", dict(zip(names, STYLES, strict=True)), width=2.7)


def _grid(
    rows: list[Row], kinds: Sequence[str], across: str, label: str, styles: dict[str, Any], width: float = 3.4
) -> Figure:
    lengths = sorted({row["k"] for row in rows})
    height = 2.2 if len(kinds) > 1 else 2.9
    figure, axes = panels(len(kinds), len(lengths), width=width, height=height, sharex="col", sharey=True)
    for column, k in enumerate(lengths):
        here = [row for row in rows if row["k"] == k]
        ends = min(row[across] for row in here), max(row[across] for row in here)
        for line_of, kind in enumerate(kinds):
            place = axes[line_of, column]
            for name, style in styles.items():
                own = [row for row in here if row["mechanism"] == name]
                places, values = [row[across] for row in own], [row[kind] for row in own]
                # Beyond its ends a curve stays within a hair of 0, and of the most that it reaches.
                line(place, [ends[0], *places, ends[1]], [values[0], *values, values[-1]], style, name)
            log_axis(place)
        axes[0, column].set_title(f"k = {k:,}", fontsize=10)
        axes[-1, column].set_xlabel(label, fontsize=9)
    for line_of, kind in enumerate(kinds):
        axes[line_of, 0].set_ylabel(KINDS[kind], fontsize=9)
    legend(figure, axes[0, 0])
    return figure
