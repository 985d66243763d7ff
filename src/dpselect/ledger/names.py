"""Names of data sets: two names that look alike must not get a budget each.

Names are stored as given, and compared in a normal form. There is no table of look-alike letters: a name written as a
whole in another script is not recognised.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from dpselect.errors import InvalidInput

_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
"""Variation selectors, fillers and blanks that str.isprintable accepts; it refuses zero-width characters."""

_COMMON = {"MODIFIER", "VEDIC"}
_EAST_ASIAN = {"CJK", "IDEOGRAPHIC", "VERTICAL", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO", "HANGUL"}
_MAY_BE_MIXED = _EAST_ASIAN | {"LATIN"}
"""Japanese mixes kana and Chinese characters; Latin letters look like none of them."""

_MICRO = "\u03bc"
"""The micro sign in its normal form, a Greek letter. It is common in units, and looks like no Latin letter."""


def compared(name: str) -> str:
    """Return a form that is equal for names that differ only in case, blanks or the encoding of their characters."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    visible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", folded))
    return " ".join(visible.split())


def alike(name: str, known: Iterable[str]) -> str:
    """Return the known names that look like this one, each in quotes; an empty text if none does."""
    wanted = compared(name)
    return " and ".join(repr(other) for other in known if compared(other) == wanted)


def new_name(name: str) -> str:
    """Return the name of a new data set, if it can be typed as it looks."""
    form = unicodedata.normalize("NFKC", name)
    if _INVISIBLE.search(form):
        raise InvalidInput("dataset", name, "must have visible characters only")
    scripts = {_script(character) for character in form} - {""}
    if len(scripts) > 1 and not scripts <= _MAY_BE_MIXED:
        mixed = " and ".join(sorted(scripts))
        raise InvalidInput(
            "dataset",
            name,
            f"must have letters of one script, not of {mixed}, which can look alike; type it again or choose another",
        )
    return name


def _script(character: str) -> str:
    """Return the script of a letter, the first word of its Unicode name; other characters go with any script."""
    if not unicodedata.category(character).startswith("L") or character == _MICRO:
        return ""
    script = unicodedata.name(character, "unknown").split()[0]
    return "" if script in _COMMON else script
