"""Pictures of the joint paper's figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpselect.reproduce.drawing import STYLES, legend, line, log_axis, panels
from dpselect.reproduce.sequences import ALL, CORE, METRICS, REAL, SETS
from dpselect.reproduce.study import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = dict(zip(ALL, [*STYLES, {"color": "#7f6000", "linestyle": (0, (1, 1)), "marker": "x"}], strict=True))


PUBLISHED = ("Joint", "PNF-PEEL", "CDP-PEEL")
"""The lines of Figure 1, where exponential noise would lie on top of Joint."""


def title_of(name: str) -> str:
    """Say which sets are generated."""
    return name if name in REAL else f"{name} (generated)"


def draw_errors(rows: list[Row]) -> Figure:
    """Draw Figure 1: gaps, ℓ∞ and ℓ1 errors of the six sets."""
    figure, axes = panels(len(SETS), 3, height=2.0, sharex=True)
    for place, name in zip(axes[:, 0], SETS, strict=True):
        gaps = [row for row in rows if row["data"] == name and "gap" in row]
        # One bar for two ranks, as high as the smaller gap, which decides how hard both are.
        bars = [min(row["gap"] for row in gaps[start : start + 2]) + 1 for start in range(0, len(gaps), 2)]
        place.stairs(bars, [0.5 + 2 * step for step in range(len(bars) + 1)], fill=True, color="0.45", baseline=0.8)
        place.set_ylim(bottom=0.8)
        log_axis(place, "y")
        place.set_ylabel(title_of(name), fontsize=9)
    for column, metric in ((1, "linf"), (2, "l1")):
        _draw_metric(axes[:, column], rows, metric, PUBLISHED)
    for place, title in zip(axes[0], ("least gap of two ranks, + 1", "ℓ∞ error, + 1", "ℓ1 error, + 1"), strict=True):
        place.set_title(title, fontsize=10)
    for place in axes.flat:
        place.grid(False, axis="x")
    for place in axes[-1]:
        place.set_xlabel("k", fontsize=9)
    legend(figure, axes[0, 1])
    return figure


def _draw_metric(
    axes: Any, rows: list[Row], metric: str, mechanisms: tuple[str, ...], sets: tuple[str, ...] = SETS
) -> None:
    for place, name in zip(axes, sets, strict=True):
        for mechanism in mechanisms:
            own = [row for row in rows if row["data"] == name and row.get("mechanism") == mechanism]
            places = [row["k"] for row in own]
            low, middle, high = ([row[f"{metric}_{part}"] + 1 for row in own] for part in ("low", "median", "high"))
            place.fill_between(places, low, high, color=STYLE[mechanism]["color"], alpha=0.12, linewidth=0)
            line(place, places, middle, STYLE[mechanism], mechanism)
        log_axis(place, "y")
        place.set_ylim(0.8, max(place.get_ylim()[1], 10.0))


def draw_each_set(metric: str) -> Callable[[list[Row]], Figure]:
    """Return a drawing of one metric on the six sets."""

    def draw(rows: list[Row]) -> Figure:
        figure, axes = panels(2, 3, sharex=True)
        _draw_metric(axes.flat, rows, metric, CORE)
        for place, name in zip(axes.flat, SETS, strict=True):
            place.set_title(title_of(name), fontsize=10)
        for place in axes[:, 0]:
            place.set_ylabel(f"{METRICS[metric]}, + 1", fontsize=9)
        for place in axes[-1]:
            place.set_xlabel("k", fontsize=9)
        legend(figure, axes[0, 0], columns=4)
        return figure

    return draw


def draw_baselines(rows: list[Row]) -> Figure:
    """Draw Figure 6: every error of every mechanism on the look-alike of Movies."""
    figure, axes = panels(1, 3, height=3.0)
    for place, metric in zip(axes.flat, ("linf", "l1", "k_relative"), strict=True):
        _draw_metric([place], rows, metric, ALL, ("Movies",))
        place.set_title(f"{METRICS[metric]}, + 1", fontsize=10)
        place.set_xlabel("k", fontsize=9)
    legend(figure, axes[0, 0])
    return figure
