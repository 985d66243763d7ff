"""The ring: what the best noise costs against Laplace noise with its best answers (multi-selection, appendix A.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpselect._pictures import greys, set_title
from dpselect.multiselect import laplace_ring, optimal_ring
from dpselect.reproduce.drawing import legend, line, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "a ring of circumference 2π: expected distance to the best of k answers, and peaks of the best noise"
NEEDS_DATA = False
RESULTS = (1, 2, 3, 4)
EPSILONS = (0.1, 0.2, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5, 2.0, 3.0)
PLACES = 120


def peaks(heights: tuple[int, ...]) -> int:
    """Return the number of peaks of the noise: runs of places with smaller heights than on both sides."""
    steps = [after - before for before, after in zip(heights, [*heights[1:], heights[0]], strict=True)]
    turns = [step for step in steps if step]
    return sum(before < 0 < after for before, after in zip(turns, [*turns[1:], *turns[:1]], strict=True))


def rows(
    data: Path | None, results: tuple[int, ...] = RESULTS, epsilons: tuple[float, ...] = EPSILONS, places: int = PLACES
) -> Iterator[dict[str, Any]]:
    """Yield for each k and ε both costs and how much more Laplace noise costs, in percent."""
    for k in results:
        for epsilon in epsilons:
            best, laplace = (make(k, epsilon, places=places) for make in (optimal_ring, laplace_ring))
            yield {
                "data": "ring",
                "k": k,
                "ε": epsilon,
                "best noise": best.cost,
                "Laplace": laplace.cost,
                "more, %": max(0.0, 100 * (laplace.cost / best.cost - 1)),
                "peaks": peaks(best.heights),
            }


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw how much more Laplace noise costs, a line for each k."""
    drawn, axes = panels(1, 1, width=6.8, height=3.4)
    lengths = sorted({row["k"] for row in rows})
    for k, style in zip(lengths, greys(len(lengths)), strict=True):
        own = [row for row in rows if row["k"] == k]
        line(axes[0, 0], [row["ε"] for row in own], [row["more, %"] for row in own], style, f"k = {k}")
    axes[0, 0].set_xlabel("epsilon per unit of distance", fontsize=9)
    axes[0, 0].set_ylabel("Laplace noise costs more, %", fontsize=9)
    most = max(rows, key=lambda row: float(row["more, %"]))
    set_title(drawn, f"Laplace noise costs at most {most['more, %']:.2g}% more than the best, for k = {most['k']}")
    legend(drawn, axes[0, 0], columns=4)
    return drawn
