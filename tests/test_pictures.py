"""All pictures share one style: a mechanism has one colour and marker, and every line can be read without colour."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread

from dpselect._pictures import FORMS, GREYS, LOOKS, THICK, greys, look, new_axes, picture, set_title

MECHANISMS = ("canonical", "gamma", "gaussian", "joint", "laplace", "lipschitz", "oneshot", "peeling")


def contrast_with_white(color: str) -> float:
    """Return the contrast of a colour with white, as the WCAG defines it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return float(1.05 / (np.dot([0.2126, 0.7152, 0.0722], linear) + 0.05))


def test_every_mechanism_has_a_colour_and_a_marker_of_its_own() -> None:
    assert set(MECHANISMS) <= LOOKS.keys()
    for part in zip(*LOOKS.values(), strict=True):
        assert len(set(part)) == len(LOOKS)


@pytest.mark.parametrize("color", [color for color, _ in (*LOOKS.values(), *GREYS)])
def test_every_colour_stands_out_from_the_card(color: str) -> None:
    assert contrast_with_white(color) >= 3  # what the WCAG asks of graphics


def test_forms_share_colour_and_marker_and_differ_in_dash() -> None:
    forms = [look(f"oneshot, {form}" if form else "oneshot") for form in FORMS]
    assert len({(form.color, form.marker) for form in forms}) == 1
    assert len({form.linestyle for form in forms}) == len(FORMS)
    assert [form.filled for form in forms] == [True, *[False] * (len(FORMS) - 1)]
    assert look("canonical", default=True).options()["linewidth"] == THICK > look("canonical").options()["linewidth"]


def test_lines_without_a_mechanism_are_grey_and_told_apart() -> None:
    drawn = greys(5)
    assert len({(one.marker, one.linestyle) for one in drawn}) == 5
    for one in drawn:
        assert len(set(to_rgb(one.color))) == 1


def test_a_picture_is_a_white_card_with_round_corners() -> None:
    axes = new_axes(2, 1)
    axes.plot([0, 1], [0, 1])
    figure: Figure = axes.figure
    set_title(figure, "A title")
    pixels = imread(io.BytesIO(picture(figure, "png")))
    assert pixels[0, 0, 3] == 0  # outside the round corner
    middle = pixels[pixels.shape[0] // 2, 3]
    assert middle.tolist() == [1, 1, 1, 1]
