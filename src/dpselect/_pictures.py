"""How every picture looks: one colour and marker for each mechanism, a white card as background, small SVG files.

A mechanism's plain form is solid with filled markers; its other forms (another noise, as published) are dashed with
hollow ones. Lines that stand for no mechanism are grey. All can be told apart without colour.
"""

from __future__ import annotations

import io
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpselect.errors import InvalidInput, how_to_install, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = {
    "canonical": ("#0064ad", "o"),
    "joint": ("#00795c", "s"),
    "oneshot": ("#c65102", "^"),
    "peeling": ("#7b3294", "D"),
    "laplace": ("#8a6d00", "P"),
    "gaussian": ("#b5225e", "X"),
    "gamma": ("#5b4a3f", "v"),
    "lipschitz": ("#5f5fc4", "h"),
    "restricted": ("#0083a0", "p"),
    "limited": ("#b03a2e", "<"),
    "top-stable": ("#5f7300", ">"),
}
"""Colour and marker of each mechanism, chosen to differ for colour-blind readers too."""

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

_CORNER, _LETTERS = 0.1, 9.4
"""Radius of the corners in inches, and letters of a title in an inch."""


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


def set_title(figure: Figure, title: str) -> None:
    """Write a title above the panels of a figure, broken into lines."""
    columns = int(_LETTERS * figure.get_size_inches()[0])
    figure.suptitle(textwrap.fill(title, columns), x=0.02, ha="left", fontsize=11, fontweight="bold")


def picture(figure: Figure, plot_format: str) -> bytes:
    """Return a figure on a white card with round corners as the content of a file; same numbers give same bytes."""
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
    """Return an SVG with fewer digits and spaces."""
    # A tenth of a point is enough for a screen. Only tags are shortened, not the text between them.
    short = re.sub(rb"<[^>]*>", lambda tag: re.sub(rb"(\d\.\d)\d+", rb"\1", tag[0]), svg)
    short = re.sub(rb' d="[^"]*"', lambda path: re.sub(rb"\s*([MLQCz])\s*", rb"\1", path[0]), short)
    return re.sub(rb"\s*\n\s*", b"\n", re.sub(rb'<g id="[^"]*">', b"<g>", short))
