"""Words that decide the noise of multi-selection, which is made of comparisons of words with rational numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpselect.multiselect.noise import GridNoise
from dpselect.multiselect.ring import Ring
from dpselect.verify.borders import ALLOWED, OFF, last_win
from dpselect.verify.exact import ExactCheck
from dpselect.verify.words import WORDS, GivenWords

EPSILON, STEP = 0.25, 0.5
LARGE = [WORDS - 1] * 8
"""Words that say no to every further comparison."""


def off_by(drawn: Callable[[int], int], kept: int, probability: Fraction) -> float:
    """Return by how many words the border is off up to which a proposal is dropped; it must be a share of all words."""
    last = last_win(lambda word: drawn(word) != kept)
    return OFF if last is None else float(last + 1 - probability * WORDS)


def grid_words(name: str, noise_of: Callable[[float, float], GridNoise] = GridNoise) -> ExactCheck:
    """Compare the words from which on a remainder m of noise of scale t = 1/(ε r) is kept with m/t."""
    noise = noise_of(EPSILON, STEP)

    def off(remainder: int) -> float:
        def drawn(word: int) -> int:
            return noise.draw(0, GivenWords([word, *LARGE], [remainder, 0]))

        return off_by(drawn, remainder, remainder * Fraction(EPSILON) * Fraction(STEP))

    return ExactCheck(name, "words at which noise is kept, grid", (off(1), off(3), off(7)), -ALLOWED, ALLOWED)


def ring_words(name: str, ring_of: Callable[..., Ring] = Ring) -> ExactCheck:
    """Compare the words from which on a proposal y on a ring is kept with `ε r h(y)`, r being the step of the ring."""
    ring = ring_of(epsilon=EPSILON, heights=(0, 1, 2, 1), answers=(0,), circumference=4 * STEP)

    def off(proposal: int) -> float:
        def drawn(word: int) -> int:
            return -ring.draw(0, GivenWords([word, *LARGE], [proposal, 0])) % 4

        return off_by(drawn, proposal, ring.heights[proposal] * Fraction(EPSILON) * Fraction(STEP))

    return ExactCheck(name, "words at which noise is kept, ring", (off(1), off(2), off(3)), -ALLOWED, ALLOWED)


def distances(name: str, noise_of: Callable[[float, float], GridNoise] = GridNoise) -> ExactCheck:
    """Compare what a guarantee says of distances with ε r times the steps that positions so far apart can lie apart."""
    guarantee = noise_of(EPSILON, STEP).guarantee
    cases = {0.1: 1, 0.5: 1, 0.625: 2, 1.0: 2, 1.01: 3}
    ratios = tuple(guarantee.loss(distance) / (EPSILON * STEP * steps) for distance, steps in cases.items())
    return ExactCheck(name, "loss stated for a distance / steps", ratios, 1.0, math.nextafter(1.0, 2))


SIGNALS: list[tuple[str, Callable[[str], ExactCheck]]] = [
    ("multiselect", grid_words),
    ("multiselect", ring_words),
    ("multiselect", distances),
]
