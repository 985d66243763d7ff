"""Plots of P[exact top k] against ε, and the files they are written to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._pictures import look, new_axes, picture, set_title
from dpselect._show import page_html
from dpselect.errors import InvalidInput
from dpselect.forecast.curves import Success
from dpselect.forecast.simulate import Figure
from dpselect.writing import is_writable, write_whole

ENDINGS = (".png", ".svg", ".html")
_WRITABLE = "must be a file in an existing folder with permission to write"
_POINTS, _ROUNDS, _STEP = 25, 4, 0.04
"""First points of a curve, and rounds in which intervals with a rise above the step are halved."""

_TINY = 1e-6
"""Curves are searched from this times `Success.start` to `Success.start` divided by this."""

_NARROW = 1e3
"""If the ends of the axis differ by less than this factor, ticks are labelled at 1, 2 and 5."""


def check_plot(path: str | os.PathLike[str]) -> Path:
    """Return the path of a plot, or refuse it before any work if it cannot be written.

    Parameters
    ----------
    path : str or path
        Where the plot shall be. Its ending names the format.

    Returns
    -------
    Path
        The same path.

    Raises
    ------
    InvalidInput
        If no plot has that ending, or the file cannot be written.
    """
    plot = Path(path)
    if plot.suffix.lower() not in ENDINGS:
        raise InvalidInput("plot", str(path), f"must be a name that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if not is_writable(plot):
        raise InvalidInput("plot", str(path), _WRITABLE)
    return plot


def write_plot(path: str | os.PathLike[str], shown: Any, title: str) -> None:
    """Write a plot as PNG or SVG, or as an HTML page with the plot and a table; whole or not at all.

    Parameters
    ----------
    path : str or path-like
        A file that ends in .png, .svg or .html.
    shown
        A forecast, comparison or plan: any object with `plot` and `_repr_html_`.
    title : str
        The title of the plot or page.

    Raises
    ------
    InvalidInput
        If the file cannot be written or Matplotlib is not installed.

    Examples
    --------
    >>> import dpselect as dps, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "plan.svg")
    ...     dps.forecast.write_plot(file, dps.forecast.plan(2, gap=50, items=10), "A plan")
    ...     file.exists()
    True
    """
    plot = check_plot(path)
    axes, ending = shown.plot(), plot.suffix.lower()
    if ending == ".html":
        content = page_html(title, picture(axes.figure, "svg").decode(), shown._repr_html_()).encode()
    else:
        set_title(axes.figure, title)
        content = picture(axes.figure, ending.removeprefix("."))
    try:
        write_whole(plot, content)
    except OSError:
        raise InvalidInput("plot", str(path), _WRITABLE) from None


def draw_curves(
    curves: list[tuple[str, Success]],
    *,
    epsilon: float | None = None,
    accuracy: float | None = None,
    limit: float | None = None,
    default: str = "",
    axes: Any = None,
) -> Any:
    """Draw P[exact top k] against ε for each curve, named in a legend if there are several, and return the axes.

    The curve whose label is `default` is emphasised.

    A vertical line marks the chosen ε, a horizontal one the accuracy wanted, and a grey band the ε below which no pure
    mechanism that treats items alike can reach it.
    """
    axes = new_axes(8.5, 5.0) if axes is None else axes
    low, high = _range([curve for _, curve in curves], epsilon, limit)
    lines = [_sampled(curve, low, high) for _, curve in curves]
    labels = [label for label, _ in curves]
    for place, (label, (epsilons, values)) in enumerate(zip(labels, lines, strict=True)):
        own = look(label, default=label == default)
        spacing = (0.03 * (place % 4) + 0.02, 0.13)
        shown = f"{label} (the default)" if own.thick else label
        axes.plot(epsilons, values, markevery=spacing, label=shown, zorder=3 if own.thick else 2, **own.options())
    _frame(axes, low, high)
    _mark(axes, epsilon, accuracy, limit)
    if len(labels) > 1:
        # Beside the picture: curves lie so close together that lines to labels among them would cross others.
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 0.9), frameon=False, handlelength=4.0, labelspacing=0.9)
    return axes


def draw_points(points: list[tuple[float, Figure]], *, epsilon: float, draws: int, axes: Any = None) -> Any:
    """Draw simulated P[exact top k] at some ε, with intervals and the chosen ε marked, and return the axes."""
    axes = new_axes(8.5, 5.0) if axes is None else axes
    epsilons, values = [place for place, _ in points], [figure.value for _, figure in points]
    reach = [[figure.value - figure.low for _, figure in points], [figure.high - figure.value for _, figure in points]]
    axes.errorbar(epsilons, values, yerr=reach, capsize=3, **look("").options())
    _frame(axes, epsilons[0] / 1.1, epsilons[-1] * 1.1)
    axes.set_xlabel(f"epsilon (simulated: {draws} draws each, with 95% intervals)")
    _mark(axes, epsilon, None, None)
    return axes


def _frame(axes: Any, low: float, high: float) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    if high < _NARROW * low:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="epsilon", ylabel="probability of exactly the top k", xlim=(low, high), ylim=(-0.02, 1.05))


def _sampled(curve: Success, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Return points of a curve, with more of them where it is steep."""
    epsilons = np.geomspace(low, high, _POINTS)
    values = np.array(curve.chances(epsilons.tolist()))
    for _ in range(_ROUNDS):
        steep = np.flatnonzero(np.abs(np.diff(values)) > _STEP)
        if not len(steep):
            break
        between = np.sqrt(epsilons[steep] * epsilons[steep + 1])
        epsilons = np.insert(epsilons, steep + 1, between)
        values = np.insert(values, steep + 1, curve.chances(between.tolist()))
    return epsilons, values


def _range(curves: list[Success], epsilon: float | None, limit: float | None) -> tuple[float, float]:
    """Return the ε to show: from where the first curve rises to where the last one is nearly done."""
    spots = [spot for curve in curves for spot in _ends(curve)]
    low, high = min(spots), max(spots)
    near = [value for value in (epsilon, limit) if value and low / 10 < value < high * 10]
    low, high = min([low, *near]) / 1.5, max([high, *near]) * 1.5
    return low, max(high, 4 * low)


def _ends(curve: Success) -> tuple[float, float]:
    """Return roughly where a curve leaves the bottom and reaches the top, by steps of a factor 2."""
    bottom, top = curve.chance(_TINY * curve.start), curve.limit
    rise, done = bottom + 0.03 * (top - bottom), bottom + 0.985 * (top - bottom)
    low = high = curve.start
    while curve.chance(low) > rise and low > _TINY * curve.start:
        low /= 2
    while curve.chance(low) < rise and low < curve.start / _TINY:
        low *= 2
    high = max(low, high)
    while curve.chance(high) < done and high < curve.start / _TINY:
        high *= 2
    while high > 2 * low and curve.chance(high / 2) > done:
        high /= 2
    return low / 2, high


def _mark(axes: Any, epsilon: float | None, accuracy: float | None, limit: float | None) -> None:
    low, high = axes.get_xlim()
    if accuracy is not None:
        axes.axhline(accuracy, color="0.5", linewidth=0.8)
        axes.annotate(
            f"{accuracy:g}", (high, accuracy), (-2, -2), textcoords="offset points", fontsize=8, ha="right", va="top"
        )
    if limit is not None and accuracy is not None and limit > low:
        axes.axvspan(low, limit, color="0.93", zorder=0)
        axes.set_xlabel(f"epsilon (grey: below the limit of pure mechanisms for {accuracy:g})")
    if epsilon is None:
        return
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9, "fontweight": "bold", "va": "bottom"}
    if low <= epsilon <= high:
        axes.axvline(epsilon, color="black", linewidth=1.2, linestyle=(0, (1, 1)))
        axes.annotate(f"epsilon = {epsilon:g}", (epsilon, 1.05), (3, 0), ha="center", **style)
    elif epsilon < low:
        axes.annotate(f"← epsilon = {epsilon:g} is further left", (low, 1.05), (0, 0), ha="left", **style)
    else:
        axes.annotate(f"epsilon = {epsilon:g} is further right →", (high, 1.05), (0, 0), ha="right", **style)
