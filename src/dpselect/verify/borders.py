"""Where the answers of a sampler change, as its random words change, against where theory says that they do.

A noisy comparison is decided by words W_j in [0, 1). With all words but one held, an entrant wins up to some W* and
loses beyond it. A bisection through the sampler itself finds W* to 2⁻⁶⁴; closed forms in ball arithmetic say where it
must be. So one border measures the rate, the noise, its order statistics and the rounding of a sampler at once, where
counting draws would take 10¹² of them to tell a rate from one that is off by a millionth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect.sampling.balls import ball, working_precision
from dpselect.verify.closed_forms import CLOSED_FORMS
from dpselect.verify.exact import ExactCheck
from dpselect.verify.words import WORDS

PRECISION = 256
"""Bits of the balls; the borders need a quarter of them."""

ALLOWED = 64.0
"""Words by which a border may be off: a word is an interval, and those that are held are taken at its middle."""

OFF = float(WORDS)
"""Said of a border that is not there at all."""


@dataclass(frozen=True)
class Entrant:
    """One noisy value in theory: a location, and the words of its noise, each with what its exponential is divided by.

    A single noise has one word and divisor 1. The j-th largest of m noises has the words of the largest j, with
    divisors m, m − 1, …
    """

    location: Fraction
    draws: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Border:
    """One border: `wins` asks the sampler whether the first entrant is among the `winners` largest, given all words.

    The last word of the first entrant is varied; `words` holds the others.
    """

    wins: Callable[[Sequence[int]], bool]
    noise: str
    entrants: tuple[Entrant, ...]
    words: tuple[int, ...]
    winners: int = 1

    @property
    def varied(self) -> int:
        """The number of the word that is varied."""
        return self.entrants[0].draws[-1][0]

    def off_by(self) -> float:
        """Return by how many words the sampler's border is off."""
        last = last_win(self._wins)
        if last is None:
            return OFF
        with working_precision(PRECISION):
            return float((last + 1 - self.expected() * WORDS).mid())

    def _wins(self, word: int) -> bool:
        words = list(self.words)
        words[self.varied] = word
        return self.wins(words)

    def expected(self) -> Any:
        """Return W*, from the noisy values of the other entrants, as a ball."""
        form = CLOSED_FORMS[self.noise]
        first, others = self.entrants[0], self.entrants[1:]
        noisy = [ball(other.location) + form.value(-(-self._exponent(other.draws)).expm1()) for other in others]
        reached = sorted(noisy, key=lambda value: -float(value.mid()))[self.winners - 1]
        exponent = -(-form.tail(reached - ball(first.location))).log1p()
        *before, (_, divisor) = first.draws
        return -(-(exponent - self._exponent(tuple(before))) * divisor).expm1()

    def _exponent(self, draws: tuple[tuple[int, int], ...]) -> Any:
        """Return `Σ −log(1 − W_j) / divisor_j`, W_j being the middle of its word."""
        return sum((-(-ball(Fraction(2 * self.words[j] + 1, 2 * WORDS))).log1p() / n for j, n in draws), ball(0))


def last_win(wins: Callable[[int], bool]) -> int | None:
    """Return the last word that wins, if the first one does and the very last does not."""
    low, high = 0, WORDS - 1
    if not wins(low) or wins(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wins(middle) else (low, middle)
    return low


def check_borders(name: str, compared: str, borders: list[Border]) -> ExactCheck:
    """Compare all borders of a sampler with theory."""
    return ExactCheck(name, compared, tuple(border.off_by() for border in borders), -ALLOWED, ALLOWED)
