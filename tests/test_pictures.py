"""All pictures share one style: a mechanism has one colour and marker, and every line can be read without colour."""

from __future__ import annotations

import io
from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from dpselect._pictures import FORMS, GREYS, LOOKS, THICK, greys, label_ends, look, new_axes, picture, set_title

TOGETHER = [
    ("canonical", "joint", "oneshot", "peeling", "laplace", "gaussian", "gamma"),
    ("restricted", "limited", "top-stable", "peeling"),
    ("canonical", "lipschitz", "oneshot"),
]
"""Mechanisms that appear in one picture."""

EYES = {
    "all cones": np.eye(3),
    "no red cones": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "no green cones": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}
"""What different eyes see of linear red, green and blue (Machado, Oliveira and Fernandes 2009)."""

MECHANISMS = ("canonical", "gamma", "gaussian", "joint", "laplace", "lipschitz", "oneshot", "peeling")


def linear(color: str) -> np.ndarray:
    """Return the amounts of red, green and blue light."""
    return np.array([part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)])


def contrast_with_white(color: str) -> float:
    """Return the contrast of a colour with white, as the WCAG defines it."""
    return float(1.05 / (np.dot([0.2126, 0.7152, 0.0722], linear(color)) + 0.05))


def perceived(color: str, eyes: np.ndarray) -> np.ndarray:
    """Return a colour in OKLab, in which distances are as large as they look (Ottosson 2020)."""
    cones = [[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]]
    opponents = [[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]]
    seen = np.clip(eyes @ linear(color), 0, 1)
    return np.array(opponents @ np.cbrt(cones @ seen))


def test_every_mechanism_has_a_colour_and_a_marker_of_its_own() -> None:
    assert set(MECHANISMS) <= LOOKS.keys()
    for part in zip(*LOOKS.values(), strict=True):
        assert len(set(part)) == len(LOOKS)


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("group", TOGETHER, ids=lambda group: group[0])
def test_colours_of_one_picture_are_far_apart_for_every_reader(group: tuple[str, ...], eyes: str) -> None:
    colors = {name: perceived(LOOKS[name][0], EYES[eyes]) for name in group}
    distances = {(one, two): np.linalg.norm(colors[one] - colors[two]) for one, two in combinations(group, 2)}
    assert min(distances.values()) > 0.12, min(distances, key=distances.__getitem__)  # black to white is 1


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


def test_labels_at_the_ends_of_lines_keep_their_order_and_do_not_overlap() -> None:
    axes = new_axes(6, 4)
    for label, end in [("highest", 1000.0), ("lowest", 1.0), ("next", 990.0), ("between", 980.0)]:
        axes.plot([0, 1], [1, end], label=label)
    axes.set_yscale("log")
    label_ends(axes)
    axes.figure.draw_without_rendering()
    assert [text.get_text() for text in axes.texts] == ["lowest", "between", "next", "highest"]
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the lines that lead to them
    assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))


def test_a_picture_is_a_white_card_with_round_corners() -> None:
    axes = new_axes(2, 1)
    axes.plot([0, 1], [0, 1])
    figure: Figure = axes.figure
    set_title(figure, "A title")
    pixels = imread(io.BytesIO(picture(figure, "png")))
    assert pixels[0, 0, 3] == 0  # outside the round corner
    middle = pixels[pixels.shape[0] // 2, 3]
    assert middle.tolist() == [1, 1, 1, 1]
