"""Plots of answers and their costs, readable without colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._show import new_axes

if TYPE_CHECKING:
    from dpselect.multiselect.comparison import RingComparison
    from dpselect.multiselect.offsets import Answers
    from dpselect.multiselect.quantiles import QuantileAnswers
    from dpselect.multiselect.simulation import Simulation


Density = Callable[[Any], Any]


def draw_answers(answers: Answers | QuantileAnswers, axes: Any = None, *, density: Density, reach: float) -> Any:
    """Draw the density of the user's position around the signal, with the answers as dots on it."""
    axes = _light_axes() if axes is None else axes
    offsets = np.array(answers.offsets)
    reach = max(1.15 * offsets[-1], reach)
    places = np.linspace(-reach, reach, 801)
    axes.plot(places, density(places), color="black", linewidth=1.4)
    axes.vlines(offsets, 0, density(offsets), color="0.6", linewidth=0.8, linestyle=":")
    axes.plot(offsets, density(offsets), "o", color="black", markersize=6)
    axes.set(xlabel="position, counted from the signal", ylabel="density of the user's position")
    axes.set_ylim(0, None)
    shown = f"expected cost {answers.cost:.3g}\nwith one answer {answers.single:.3g}"
    axes.text(0.98, 0.95, shown, transform=axes.transAxes, ha="right", va="top")
    return axes


def draw_rings(comparison: RingComparison, axes: Any = None) -> Any:
    """Draw the density of the user's position around the signal for both noises, with the answers as marks on it."""
    axes = _light_axes() if axes is None else axes
    styles = ({"color": "black", "linestyle": "-", "marker": "o"}, {"color": "0.45", "linestyle": "--", "marker": "s"})
    for (name, ring), style in zip(comparison.rings.items(), styles, strict=True):
        half = ring.places // 2
        turned = np.arange(-half, ring.places - half + 1)
        density = ring.noise / ring.step
        marker = style.pop("marker")
        axes.plot(turned * ring.step, density[turned % ring.places], **style, linewidth=1.4)
        answers = (np.array(ring.answers) + half) % ring.places - half
        label = f"{name} noise: expected cost {ring.cost:.3g}"
        heights = density[answers % ring.places]
        axes.plot(answers * ring.step, heights, marker, color=style["color"], markersize=7, markerfacecolor="white")
        axes.plot([], [], **style, marker=marker, markerfacecolor="white", label=label)
    axes.set(xlabel="position along the ring, counted from the signal; marks: answers")
    axes.set_ylabel("density of the user's position")
    axes.set_ylim(0, None)
    axes.legend(frameon=False, loc="lower center")
    return axes


def draw_costs(simulations: Sequence[Simulation], axes: Any = None) -> Any:
    """Draw the cost against k on logarithmic axes: simulated, expected, and a line proportional to 1/k."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes = _light_axes() if axes is None else axes
    answers = np.array([part.k for part in simulations])
    costs = np.array([part.cost for part in simulations])
    below = costs - [part.low for part in simulations]
    above = [part.high for part in simulations] - costs
    theory = [part.theory for part in simulations]
    axes.plot(answers, theory, color="black", linewidth=1.4, label="theory")
    axes.plot(answers, theory[0] / answers, color="0.55", linewidth=1.2, linestyle="--", label="proportional to 1/k")
    axes.errorbar(
        answers,
        costs,
        yerr=[below, above],
        fmt="o",
        color="black",
        markerfacecolor="white",
        markersize=5,
        capsize=3,
        label=f"{simulations[0].trials:,} trials, 95% interval",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [int(answer) for answer in answers if answer in (1, 2, 3, 5, 7, 10) or answer > 12 or answer == answers[-1]]
    axes.set_xticks(ticks, labels=[str(tick) for tick in ticks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="k, the number of answers", ylabel="expected cost")
    axes.legend(frameon=False)
    return axes


def _light_axes() -> Any:
    axes = new_axes(7.5, 4.6)
    axes.grid(True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
