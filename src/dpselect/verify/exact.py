"""Checks of samplers that compute instead of drawing: decision boundaries in the random words, against closed forms.

A noisy comparison is decided by random words W_j in [0, 1). With all words but one fixed, an item wins up to some W*
and loses beyond it. Bisection through the sampler itself finds W* to 2⁻⁶⁴; closed forms in ball arithmetic say where it
must be. One boundary measures the rate, the noise, its order statistics and the rounding at once; counting draws would
need 10¹² of them to see a rate that is off by a millionth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._arrays import BitArray
from dpselect.sampling.balls import ball, working_precision
from dpselect.sampling.bits import SeededBits

WIDTH = 64
WORDS = 1 << WIDTH
"""The number of random words: word n stands for the uniform numbers in [n/WORDS, (n + 1)/WORDS)."""

PRECISION = 256
"""Bits of precision of the balls; the boundaries need a quarter of them."""

ALLOWED = 64.0
"""Tolerance of a boundary, in words: a word is an interval, and fixed words are evaluated at their midpoints."""

OFF = float(WORDS)
"""The error reported for a boundary that does not exist."""


@dataclass(frozen=True)
class ExactCheck:
    """Values computed without sampling; theory says that each lies in [least, most].

    Parameters
    ----------
    name
        The mechanism.
    compared
        What was compared, as in "words at which answers change, laplace".
    values
        The values found, one per case.
    least, most
        The bounds from theory.

    Examples
    --------
    >>> ExactCheck("oneshot", "epsilon used", (0.98, 0.99), least=0.97, most=1.0).passed
    True
    >>> ExactCheck("oneshot", "epsilon used", (0.98, 1.01), least=0.97, most=1.0).found
    1.01
    """

    name: str
    compared: str
    values: tuple[float, ...]
    least: float
    most: float

    @property
    def found(self) -> float:
        """The value closest to its bounds, or farthest beyond them."""
        return max(self.values, key=self._excess)

    @property
    def passed(self) -> bool:
        """Whether there are values and all of them lie within the bounds; NaN does not."""
        return bool(self.values) and self._excess(self.found) <= 0

    def _excess(self, value: float) -> float:
        return math.inf if math.isnan(value) else max(self.least - value, value - self.most)


class GivenWords(SeededBits):
    """A bit source that returns given 64-bit words, and given narrower numbers; after those, seeded bits."""

    def __init__(self, words: Iterable[int], narrow: Iterable[int] = ()) -> None:
        super().__init__(0)
        self._words = list(words)
        self._narrow = list(narrow)

    def integers(self, count: int, width: int) -> BitArray:
        """Return the next given numbers of this width."""
        left = self._words if width == WIDTH else self._narrow
        given, left[:count] = left[:count], []
        further = super().integers(count - len(given), width)
        return np.concatenate([np.array(given, dtype=further.dtype), further])


@dataclass(frozen=True)
class ClosedForm:
    """A noise Z as two functions of balls, each the inverse of the other.

    `value(W)` is the z that Z exceeds with probability W, and `tail(z) = P[Z > z]`. They do not share code with
    `sampling.noise`, where a noise is a function of an exponential variable `E = −log(1 − W)`.
    """

    value: Callable[[Any], Any]
    tail: Callable[[Any], Any]


def _one(like: Any) -> Any:
    return like * 0 + 1


def _root_of_two(like: Any) -> Any:
    return (_one(like) * 2).sqrt()


CLOSED_FORMS: dict[str, ClosedForm] = {
    "exponential": ClosedForm(lambda w: -w.log(), lambda z: (-z).exp() if z > 0 else _one(z)),
    "gumbel": ClosedForm(lambda w: -(-(-w).log1p()).log(), lambda z: -(-(-z).exp()).expm1()),
    "laplace": ClosedForm(
        lambda w: -(2 * w).log() if w < 0.5 else (2 * (1 - w)).log(),
        lambda z: (-z).exp() / 2 if z > 0 else 1 - z.exp() / 2,
    ),
    "logistic": ClosedForm(lambda w: ((1 - w) / w).log(), lambda z: 1 / (1 + z.exp())),
    "half-logistic": ClosedForm(lambda w: ((2 - w) / w).log(), lambda z: 2 / (1 + z.exp()) if z > 0 else _one(z)),
    "normal": ClosedForm(lambda w: _root_of_two(w) * (2 * w).erfcinv(), lambda z: (z / _root_of_two(z)).erfc() / 2),
    "uniform": ClosedForm(lambda w: 1 - 2 * w, lambda z: (1 - z) / 2),
}


@dataclass(frozen=True)
class NoisyValue:
    """One noisy value in theory: its location, and its random words, each with the divisor of its exponential.

    A single noise has one word and divisor 1. The j-th largest of m noises has the words of the j largest, with
    divisors m, m − 1, …
    """

    location: Fraction
    draws: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Border:
    """A decision boundary: the value of one random word at which the answer of a sampler changes.

    Parameters
    ----------
    wins
        Run the sampler on the given words and return whether the first entrant is among the `winners` largest.
    noise
        Name of the noise, a key of CLOSED_FORMS.
    entrants
        The noisy values that compete. The last word of the first one is varied.
    words
        The fixed values of all other words.
    winners
        How many entrants win.

    Examples
    --------
    Exponential noise: an entrant at the same location as its rival, whose word is W, wins with words below W.

    >>> rivals = NoisyValue(Fraction(0), ((0, 1),)), NoisyValue(Fraction(0), ((1, 1),))
    >>> border = Border(lambda words: words[0] <= words[1], "exponential", rivals, (0, 1 << 62))
    >>> abs(border.off_by()) <= 1
    True
    """

    wins: Callable[[Sequence[int]], bool]
    noise: str
    entrants: tuple[NoisyValue, ...]
    words: tuple[int, ...]
    winners: int = 1

    def off_by(self) -> float:
        """Return the distance, in words, between the boundary of the sampler and that of theory."""
        varied = self.entrants[0].draws[-1][0]
        words = list(self.words)

        def wins(word: int) -> bool:
            words[varied] = word
            return self.wins(words)

        last = last_win(wins)
        if last is None:
            return OFF
        with working_precision(PRECISION):
            return float((last + 1 - self.expected() * WORDS).mid())

    def expected(self) -> Any:
        """Return W* as a ball, from the noisy values of the other entrants."""
        form = CLOSED_FORMS[self.noise]
        first, others = self.entrants[0], self.entrants[1:]
        noisy = [ball(other.location) + form.value(-(-self._exponent(other.draws)).expm1()) for other in others]
        reached = sorted(noisy, key=lambda value: -float(value.mid()))[self.winners - 1]
        exponent = -(-form.tail(reached - ball(first.location))).log1p()
        *before, (_, divisor) = first.draws
        return -(-(exponent - self._exponent(tuple(before))) * divisor).expm1()

    def _exponent(self, draws: tuple[tuple[int, int], ...]) -> Any:
        """Return `Σ −log(1 − W_j) / divisor_j`, W_j being the midpoint of its word."""
        return sum((-(-ball(Fraction(2 * self.words[j] + 1, 2 * WORDS))).log1p() / n for j, n in draws), ball(0))


def last_win(wins: Callable[[int], bool]) -> int | None:
    """Return the last word that wins, by bisection; None unless the first word wins and the last one loses."""
    low, high = 0, WORDS - 1
    if not wins(low) or wins(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wins(middle) else (low, middle)
    return low


def check_borders(name: str, compared: str, borders: list[Border]) -> ExactCheck:
    """Compare the decision boundaries of a sampler with theory.

    Parameters
    ----------
    name
        The mechanism.
    compared
        What is compared, for the report.
    borders
        The boundaries.

    Returns
    -------
    ExactCheck
        The distances in words, of which each may be at most 64.

    Examples
    --------
    >>> rivals = NoisyValue(Fraction(0), ((0, 1),)), NoisyValue(Fraction(0), ((1, 1),))
    >>> late = Border(lambda words: words[0] <= words[1] + 1000, "exponential", rivals, (0, 1 << 62))
    >>> check_borders("example", "words", [late]).passed
    False
    """
    return ExactCheck(name, compared, tuple(border.off_by() for border in borders), -ALLOWED, ALLOWED)
