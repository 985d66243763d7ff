"""Names of data sets: two that look alike must not get a budget each.

Names are kept and found as they were given, and compared as `compared` writes them. That needs no table of look-alike
letters, and so does not see through a name that is written in another script as a whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from dpselect.errors import InvalidInput

_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
"""Variation selectors, fillers and blanks that str.isprintable accepts; it refuses the zero-width characters."""

_COMMON = {"MODIFIER", "VEDIC"}
_EAST_ASIAN = {"CJK", "IDEOGRAPHIC", "VERTICAL", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO", "HANGUL"}
_WRITTEN_TOGETHER = _EAST_ASIAN | {"LATIN"}
"""Japanese mixes kana and Chinese characters, and Latin words, whose letters look like none of them, are common."""

_MICRO = "\u03bc"
"""The micro sign in its normal form, a Greek letter; it is common in units, and looks like no Latin letter."""


def compared(name: str) -> str:
    """Return what two names have in common if they differ in case, blanks or the form of their characters only."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    visible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", folded))
    return " ".join(visible.split())


def alike(name: str, known: Iterable[str]) -> str:
    """Return the known names that look like this one, each in quotes; an empty text if none does."""
    wanted = compared(name)
    return " and ".join(repr(other) for other in known if compared(other) == wanted)


def new_name(name: str) -> str:
    """Return a name that a data set may be given: one that can be typed as it looks."""
    form = unicodedata.normalize("NFKC", name)
    if _INVISIBLE.search(form):
        raise InvalidInput("dataset", name, "a new name needs characters that can be seen, and this one holds others")
    scripts = {_script(character) for character in form} - {""}
    if len(scripts) > 1 and not scripts <= _WRITTEN_TOGETHER:
        raise InvalidInput(
            "dataset",
            name,
            f"a new name needs letters of one script, and this one mixes {' and '.join(sorted(scripts))}, whose "
            "letters can look alike; type it anew, or choose another",
        )
    return name


def _script(character: str) -> str:
    """Return the script of a letter, which its Unicode name begins with; digits, signs and marks go with any."""
    if not unicodedata.category(character).startswith("L") or character == _MICRO:
        return ""
    script = unicodedata.name(character, "unknown").split()[0]
    return "" if script in _COMMON else script
