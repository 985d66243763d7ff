"""Attack: the noise that chose an item is shown again in its published value.

The choice by noisy scores is private; the noisy score of the winner is not. One-sided noise makes it plain: a noisy
score is never below the true one, so a low value excludes every higher score.
"""

from __future__ import annotations

import math
import random

import dpselect as dps

WITHOUT, WITH = {"tea": 10, "rum": 0}, {"tea": 11, "rum": 0}
"""Scores without and with one person."""


def naive_release(scores: dict[str, int], seed: int) -> tuple[str, float]:
    """Return the item with the largest score after exponential noise for epsilon 1, and that noisy score."""
    noise = random.Random(seed)
    value, item = max((score + noise.expovariate(1.0), item) for item, score in scores.items())
    return item, value


def test_the_attack_proves_that_one_person_is_missing_from_a_naive_release() -> None:
    """A value below 11 is possible only without the person, and 63 % of the releases have one."""
    assert not any(naive_release(WITH, seed)[1] < 11 for seed in range(1000))
    proofs = sum(naive_release(WITHOUT, seed)[1] < 11 for seed in range(1000))
    assert proofs > 500


def test_values_that_dpselect_publishes_have_noise_of_their_own() -> None:
    """Low values occur with and without the person, as often as epsilon allows and no oftener.

    Counts get discrete Laplace noise on whole numbers, for epsilon ½: P[value < 11] is 0.38 with the person and 0.62
    without. Over 1,000 draws each, the difference below has a standard deviation of 0.03.
    """
    question = {"k": 1, "epsilon": 1.0, "mechanism": "oneshot", "values": 0.5}

    def share_of_low(scores: dict[str, int]) -> float:
        releases = [dps.select(scores, **question, seed=seed) for seed in range(1000)]
        return sum(release.values[0] < 11 for release in releases if release.items == ["tea"]) / len(releases)

    with_person, without = share_of_low(WITH), share_of_low(WITHOUT)
    assert with_person > 0.25
    assert without - math.exp(0.5) * with_person < 6 * 0.03
