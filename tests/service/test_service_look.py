"""The shared look: its colours can be told apart in both themes."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

LOOK = files("dpselect.service").joinpath("static", "look.css").read_text(encoding="utf-8")
COLOURS = {name: pair for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", LOOK)}
TEXTS = ("ink", "soft", "accent", "good", "warn", "bad", "blue")
GROUNDS = ("paper", "card", "inset", "sea", "sand")
TINTS = [(text, f"{name}-tint") for name in ("accent", "good", "warn", "bad") for text in ("ink", "soft", name)]
MARKS = [(name, ground) for name in ("edge", "focus", "teal") for ground in ("paper", "card", "inset")]


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2, from 1 to 21."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_is_legible_and_marks_are_visible(theme: int) -> None:
    texts = [(text, ground) for text in TEXTS for ground in GROUNDS]
    texts += [*TINTS, ("on-action", "action"), ("on-action", "action-hover")]
    for pairs, least in ((texts, 4.5), (MARKS, 3.0)):
        for text, ground in pairs:
            found = contrast(COLOURS[text][theme], COLOURS[ground][theme])
            assert found >= least, f"{text} on {ground}: {found:.2f}"


def test_every_variable_that_is_used_exists() -> None:
    defined = set(re.findall(r"(--[\w-]+):", LOOK))
    for package, sheet in (("service", "look.css"), ("service", "page.css"), ("desk", "desk.css")):
        text = files(f"dpselect.{package}").joinpath("static", sheet).read_text(encoding="utf-8")
        assert set(re.findall(r"var\((--[\w-]+)", text)) <= defined | set(re.findall(r"(--[\w-]+):", text)), sheet
