"""How every picture looks: one colour and marker for each mechanism, a card that is dark on dark pages, small files.

A mechanism's plain form is solid with filled markers; its other forms (another noise, as published) are dashed with
hollow ones. Lines that stand for no mechanism are grey. All can be told apart without colour.
"""

from __future__ import annotations

import io
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect.errors import InvalidInput, how_to_install, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = {
    "canonical": ("#00407a", "o"),
    "joint": ("#3a9fa7", "s"),
    "oneshot": ("#df781b", "^"),
    "peeling": ("#7b1cd0", "D"),
    "laplace": ("#00758b", "P"),
    "gaussian": ("#870a0c", "X"),
    "gamma": ("#c7313a", "v"),
    "lipschitz": ("#904ff2", "h"),
    "restricted": ("#6d92de", "p"),
    "limited": ("#6d4801", "<"),
    "top-stable": ("#43931c", ">"),
}
"""Colour and marker of each mechanism: far apart, for colour-blind readers too, among those that one picture shows."""

GREYS = (("#000000", "o"), ("#4d4d4d", "s"), ("#6b6b6b", "^"), ("#808080", "D"), ("#333333", "v"))
"""Colour and marker of lines that stand for no mechanism, in order."""

FORMS: dict[str, Any] = {
    "": "-",
    "gumbel": "--",
    "published": "-.",
    "laplace": ":",
    "delta": (0, (6, 1, 1, 1, 1, 1)),
    "gamma = 1": (0, (1, 1)),
    "logistic": (0, (9, 2)),
    "half-logistic": (0, (4, 1, 1, 1)),
}
"""Dash of each form of a mechanism; the first is the plain one."""

THIN, THICK = 1.4, 2.6
"""Width of a line, and of the line that is emphasised: the default."""

_STYLE = b'<style type="text/css">'
_DARK = b"@media (prefers-color-scheme: dark) {svg {filter: invert(.93) hue-rotate(180deg)}}\n"
"""Where the styles of an SVG begin, and ours: on a dark page its card is dark, its letters are light, hues stay."""

_CORNER, _LETTERS, _LINE = 0.1, 9.4, 14.0
"""Radius of the corners in inches, letters of a title in an inch, and points from one label to the next."""


@dataclass(frozen=True)
class Look:
    """How one line is drawn."""

    color: str
    marker: str
    linestyle: Any
    filled: bool = True
    thick: bool = False

    def options(self) -> dict[str, Any]:
        """Return what Matplotlib's `plot` takes."""
        return {
            "color": self.color,
            "marker": self.marker,
            "linestyle": self.linestyle,
            "linewidth": THICK if self.thick else THIN,
            "markersize": 5.5 if self.thick else 4.5,
            "markerfacecolor": self.color if self.filled else "white",
        }


def look(label: str, *, default: bool = False) -> Look:
    """Return the look of a line such as "oneshot, gumbel": mechanism, then form; `default` emphasises it."""
    mechanism, *forms = label.split(", ")
    color, marker = LOOKS.get(mechanism, GREYS[0])
    form = forms[-1] if forms else ""
    return Look(color, marker, FORMS.get(form, ":"), not form, default)


def greys(number: int) -> list[Look]:
    """Return the looks of lines that stand for no mechanism, such as one for each k."""
    dashes = list(FORMS.values())
    return [Look(*GREYS[place % len(GREYS)], dashes[place % len(dashes)], filled=place == 0) for place in range(number)]


def new_axes(width: float, height: float) -> Any:
    """Return the Matplotlib axes of a new figure of that size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidInput("plot", plain("without Matplotlib"), f"install it: {how_to_install('plot')}") from None
    axes = Figure(figsize=(width, height), layout="constrained").subplots()
    lighten(axes)
    return axes


def lighten(axes: Axes) -> None:
    """Draw a faint grid and only the two axis lines."""
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label_ends(axes: Axes) -> None:
    """Write the label of each line beside its last point, moved up or down where two would overlap.

    The scales and limits of the axes must be set before.
    """
    lines: list[Any] = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    figure: Any = axes.get_figure()
    room = _LINE / 72 / (axes.get_position().height * figure.get_size_inches()[1])
    ends = axes.transData.transform([line.get_xydata()[-1] for line in lines])
    heights = axes.transAxes.inverted().transform(ends)[:, 1]
    order, steps = np.argsort(heights), room * np.arange(len(lines))
    places = np.maximum.accumulate(heights[order] - steps) + steps
    places -= (places - heights[order]).mean()
    for line, place in zip([lines[one] for one in order], places, strict=True):
        arrow = {"arrowstyle": "-", "color": line.get_color(), "linewidth": 0.8, "shrinkA": 0, "shrinkB": 3}
        where: dict[str, Any] = {"xytext": (1.06, place), "textcoords": "axes fraction", "va": "center"}
        axes.annotate(line.get_label(), line.get_xydata()[-1], fontsize=9, arrowprops=arrow, **where)


def set_title(figure: Figure, title: str) -> None:
    """Write a title above the panels of a figure, broken into lines."""
    columns = int(_LETTERS * figure.get_size_inches()[0])
    figure.suptitle(textwrap.fill(title, columns), x=0.02, ha="left", fontsize=11, fontweight="bold")


def picture(figure: Figure, plot_format: str) -> bytes:
    """Return a figure on a card with round corners as the content of a file; same numbers give same bytes."""
    import matplotlib

    settings: Any = {"svg.hashsalt": "dpselect", "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Arial"]}
    metadata = {"Date": None} if plot_format == "svg" else None
    buffer = io.BytesIO()
    with matplotlib.rc_context(settings):
        _put_on_card(figure)
        figure.savefig(buffer, format=plot_format, dpi=160, metadata=metadata)
    return _shortened(buffer.getvalue()) if plot_format == "svg" else buffer.getvalue()


def _put_on_card(figure: Figure) -> None:
    from matplotlib.patches import FancyBboxPatch

    width, height = figure.get_size_inches()
    shape = f"round,pad=0,rounding_size={_CORNER / width}"
    where: dict[str, Any] = {"transform": figure.transFigure, "mutation_aspect": width / height, "zorder": -10}
    card = FancyBboxPatch((0, 0), 1, 1, boxstyle=shape, facecolor="white", edgecolor="none", **where)
    card.set_in_layout(False)
    figure.add_artist(card)
    figure.patch.set_visible(False)
    for axes in figure.axes:
        axes.patch.set_visible(False)
    engine: Any = figure.get_layout_engine()
    if engine is not None:
        engine.set(w_pad=0.1, h_pad=0.1)


def _shortened(svg: bytes) -> bytes:
    """Return an SVG with fewer digits and spaces, which is dark on a dark page."""
    # A tenth of a point is enough for a screen. Only tags are shortened, not the text between them.
    short = re.sub(rb"<[^>]*>", lambda tag: re.sub(rb"(\d\.\d)\d+", rb"\1", tag[0]), svg)
    short = re.sub(rb' d="[^"]*"', lambda path: re.sub(rb"\s*([MLQCz])\s*", rb"\1", path[0]), short)
    short = re.sub(rb"\s*\n\s*", b"\n", re.sub(rb'<g id="[^"]*">', b"<g>", short))
    return short.replace(_STYLE, _STYLE + _DARK, 1)
