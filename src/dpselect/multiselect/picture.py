"""Plots of answers and their costs, readable without colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._pictures import THICK, THIN, greys, new_axes

if TYPE_CHECKING:
    from dpselect.multiselect.comparison import RingComparison
    from dpselect.multiselect.offsets import Answers
    from dpselect.multiselect.quantiles import QuantileAnswers
    from dpselect.multiselect.simulation import Simulation


_POWERS = {"linear": (1.0, "k"), "square": (2.0, "k²"), "root": (0.5, "√k")}
"""Disutilities that are a power of the distance: the power, and the power of k by which the cost falls."""

Density = Callable[[Any], Any]


def draw_answers(answers: Answers | QuantileAnswers, axes: Any = None, *, density: Density, reach: float) -> Any:
    """Draw the density of the user's position around the signal, with the answers as dots on it."""
    axes = new_axes(7.5, 4.6) if axes is None else axes
    offsets = np.array(answers.offsets)
    reach = max(1.15 * offsets[-1], reach)
    places = np.linspace(-reach, reach, 801)
    axes.plot(places, density(places), color="black", linewidth=THIN)
    axes.vlines(offsets, 0, density(offsets), color="0.6", linewidth=0.8, linestyle=":")
    axes.plot(offsets, density(offsets), "o", color="black", markersize=6)
    axes.set(xlabel="position, counted from the signal", ylabel="density of the user's position")
    axes.set_ylim(0, None)
    shown = f"expected cost {answers.cost:.3g}\nwith one answer {answers.single:.3g}"
    axes.text(0.98, 0.95, shown, transform=axes.transAxes, ha="right", va="top")
    return axes


def draw_rings(comparison: RingComparison, axes: Any = None) -> Any:
    """Draw the density of the user's position around the signal for both noises, with the answers as marks on it."""
    axes = new_axes(7.5, 4.6) if axes is None else axes
    for (name, ring), own in zip(comparison.rings.items(), greys(2), strict=True):
        half = ring.places // 2
        turned = np.arange(-half, ring.places - half + 1)
        answers = (np.array(ring.answers) + half) % ring.places - half
        options = {**own.options(), "linewidth": THICK if name == "optimal" else THIN, "markersize": 7}
        density = (ring.noise / ring.step)[turned % ring.places]
        label = f"{name} noise: expected cost {ring.cost:.3g}"
        axes.plot(turned * ring.step, density, **options, markevery=(answers + half).tolist(), label=label)
    axes.set(xlabel="position along the ring, counted from the signal; marks: answers")
    axes.set_ylabel("density of the user's position")
    axes.set_ylim(0, None)
    axes.legend(frameon=False, loc="lower center")
    return axes


def draw_costs(simulations: Sequence[Simulation], axes: Any = None) -> Any:
    """Draw the cost against k on logarithmic axes: simulated, expected, and the line that it approaches.

    For noise with density `ε/2 e^(−ε|x|)` and the cost `|x|^r` of a distance x, the best of k answers costs about
    `((1 + r) / (ε k))^r` for large k, the limit of the best k points for a density in one dimension.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes = new_axes(7.5, 4.6) if axes is None else axes
    answers = np.array([part.k for part in simulations])
    costs = np.array([part.cost for part in simulations])
    below = costs - [part.low for part in simulations]
    above = [part.high for part in simulations] - costs
    theory = [part.theory for part in simulations]
    axes.plot(answers, theory, color="black", linewidth=THICK, zorder=2)
    bars: dict[str, Any] = {"fmt": "o", "color": "black", "markerfacecolor": "white", "markersize": 5, "capsize": 3}
    axes.errorbar(answers, costs, yerr=[below, above], **bars, zorder=3)
    axes.set(xscale="log", yscale="log")
    label: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9}
    middle = len(answers) // 2
    simulated = f"expected cost; dots: simulated,\n{simulations[0].trials:,} trials with 95% intervals"
    axes.annotate(simulated, (answers[middle], theory[middle]), (-10, -6), ha="right", va="top", **label)
    if simulations[0].disutility in _POWERS:
        power, divisor = _POWERS[simulations[0].disutility]
        first = ((1 + power) / simulations[0].epsilon) ** power
        axes.plot(answers, first / answers**power, color="0.4", linewidth=THIN, linestyle="--", zorder=1)
        axes.annotate(f"asymptote {first:.3g} / {divisor}", (answers[0], first), (12, 0), color="0.3", **label)
    ticks = [int(answer) for answer in answers if answer in (1, 2, 3, 5, 7, 10) or answer > 12 or answer == answers[-1]]
    axes.set_xticks(ticks, labels=[str(tick) for tick in ticks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="k, the number of answers", ylabel="expected cost")
    return axes
