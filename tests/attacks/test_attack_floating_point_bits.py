"""Attack: the low bits of a noisy number tell which score the noise was added to (Mironov 2012).

Noise computed in float64 takes few of all floats. A sum of score and noise that no noise can give from another score
excludes that score, whatever epsilon is. `tests/sampling/test_floating_point_attack.py` shows why the choice of items
gives nothing away either.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import dpselect as dps

NUMBERS = 2**53
"""How many uniform numbers `random.random()` can give."""


def naive_noise(number: int) -> float:
    """Return the Laplace noise that the textbook formula computes from the uniform number `number / NUMBERS`."""
    uniform = number / NUMBERS
    return math.log(2 * uniform) if uniform < 0.5 else -math.log(2 - 2 * uniform)


def is_reachable(value: float, score: float) -> bool:
    """Whether the naive sum of this score and some noise is this value: the attack."""
    noise = value - score
    uniform = math.exp(noise) / 2 if noise < 0 else 1 - math.exp(-noise) / 2
    around = round(uniform * NUMBERS)
    numbers = range(max(around - 8, 1), min(around + 9, NUMBERS))
    return any(score + naive_noise(number) == value for number in numbers)


def test_the_attack_excludes_the_true_neighbour_of_a_naive_release() -> None:
    """A third of all naive releases prove that the score was 1 and not 0."""
    random_numbers = random.Random(1)
    published = [1.0 + naive_noise(random_numbers.randrange(1, NUMBERS)) for _ in range(300)]
    assert all(is_reachable(value, 1.0) for value in published)
    assert sum(not is_reachable(value, 0.0) for value in published) > 100


def published_values(score: float) -> list[float]:
    """Return values that dpselect publishes for a score that is no binary fraction."""
    question = {"k": 1, "epsilon": 1.0, "sensitivity": dps.Sensitivity(-1, 1), "mechanism": "laplace"}
    scores = {"tea": score}
    return [
        value
        for seed in range(100)
        for value in dps.select(scores, **question, max_items_per_person=1, values=True, seed=seed).values
    ]


def finest_bit(values: list[float]) -> Fraction:
    """Return the largest power of two of which all values are multiples."""
    exact = [Fraction(value) for value in values]
    bit = Fraction(1, max(value.denominator for value in exact))
    while all((value / bit) % 2 == 0 for value in exact):
        bit *= 2
    return bit


def test_published_values_of_all_scores_lie_on_one_public_grid() -> None:
    """The grid does not depend on the score, and all of it can be reached from any score: no value excludes one."""
    grids = {finest_bit(published_values(score)) for score in (0.1, 0.3, 1.1, 123.456789)}
    assert len(grids) == 1
    [grid] = grids
    assert 2.0**-30 < grid < 2.0**-10  # far coarser than the floats there, far finer than the noise
