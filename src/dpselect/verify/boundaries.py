"""The decision boundaries of every mechanism: inputs for which it is known which random word decides the answer.

Rates and thresholds are restated from the theorems instead of being read from the mechanism: if law and sampler share a
wrong rate, comparing them would not show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

from dpselect.mechanisms import Canonical, Gamma, Gaussian, Joint, Laplace, Lipschitz, Mechanism, OneShot, Peeling
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.top_stable import TopStable
from dpselect.multiselect.noise import GridNoise
from dpselect.multiselect.ring import Ring
from dpselect.privacy import Sensitivity
from dpselect.sampling.balls import ball, working_precision
from dpselect.sampling.noise import NOISES
from dpselect.sampling.sequences import bounded_sequence, whole_numbers
from dpselect.scores import Scores
from dpselect.verify.exact import (
    ALLOWED,
    OFF,
    PRECISION,
    WORDS,
    Border,
    ExactCheck,
    GivenWords,
    NoisyValue,
    check_borders,
    last_win,
)

EPSILON = 1.75
WIDE = Sensitivity(-1, 2)
"""A person lowers a score by at most 1 and raises it by at most 2: a spread of 3."""

RACES = ("exponential", "gumbel")

Wins = Callable[[Sequence[int]], bool]


def word(share: float) -> int:
    """Return a word near this share of [0, 1) whose low bits are not zero."""
    return int(share * WORDS) ^ 0x5DEECE66D


EARLY, MIDDLE, LATE = word(0.11), word(0.52), word(0.83)
FIRST, SECOND, HIGH = word(0.01), word(0.02), word(0.97)
"""FIRST and SECOND give large noises, with which an item can overtake a better one even if noise is never negative."""

LAST = WORDS - (1 << 40)
"""A word so close to 1 that a float is not precise enough for its noise: the sampler takes another path."""


def asks(mechanism: Mechanism, scores: Any, wanted: Callable[[list[int]], bool], narrow: Sequence[int] = ()) -> Wins:
    """Return a function that draws with given words and says whether the answer is wanted."""
    table = mechanism.table(scores)

    def wins(words: Sequence[int]) -> bool:
        return wanted(mechanism.draw(table, GivenWords(words, narrow)).positions().tolist())

    return wins


def answers(mechanism: Mechanism, scores: Any, answer: list[int] | set[int], narrow: Sequence[int] = ()) -> Wins:
    """Return a function that draws with given words and says whether the answer is this list, or this set."""
    return asks(mechanism, scores, lambda chosen: type(answer)(chosen) == answer, narrow)


def single(location: Fraction | int, number: int) -> NoisyValue:
    """Return an entrant with its own noise."""
    return NoisyValue(Fraction(location), ((number, 1),))


def listed(mechanism: Mechanism, noise: str, rate: Fraction, far: int = -40) -> list[Border]:
    """Return boundaries of the k = 2 largest of four noisy scores, the last of which is far behind.

    The words up to the boundary of the last item must not be skipped by a shortcut for hopeless items.
    """
    scores = [9, 4, 0, far]
    places = [single(rate * score, number) for number, score in enumerate(scores)]

    def border(item: int, words: tuple[int, ...]) -> Border:
        rivals = (places[item], *(place for place in places if place is not places[item]))
        return Border(asks(mechanism, scores, lambda chosen: item in chosen), noise, rivals, words, winners=2)

    return [
        border(2, (EARLY, MIDDLE, 0, LATE)),
        border(1, (LATE, 0, FIRST, EARLY)),
        border(0, (0, SECOND, FIRST, MIDDLE)),
        border(2, (EARLY, MIDDLE, 0, LAST)),
        border(3, (EARLY, MIDDLE, LATE, 0)),
    ]


def tied(mechanism: Mechanism, noise: str, rate: Fraction) -> list[Border]:
    """Return the boundary at which both of k = 2 answers come from a group of three ties, against a single item.

    Words: the largest noise of the group, the noise of the single item, the second largest of the group.
    """
    scores = Scores.from_histogram([4, 0], [3, 1])
    second = NoisyValue(4 * rate, ((0, 3), (2, 2)))
    wins = asks(mechanism, scores, lambda chosen: all(item < 3 for item in chosen))
    return [Border(wins, noise, (second, single(0, 1)), (EARLY, word(share), 0)) for share in (0.1, 0.2)]


MANY = 2048
"""With so many items the sampler first draws eight bits of each word, to screen out items that cannot win."""


def screened(mechanism: Mechanism, noise: str, rate: Fraction) -> list[Border]:
    """Return the boundary between two items for k = 1, among many that are far behind.

    The sampler asks for eight bits of every word, then for the other 56 of the words that may still win.
    """
    table = mechanism.table([4, 0, *[-(10**6)] * (MANY - 2)])

    def wins(words: Sequence[int]) -> bool:
        first = [word >> 56 for word in words]
        bits = GivenWords((), [*first, *[128] * (MANY - 2), *(word & ((1 << 56) - 1) for word in words)])
        return bool(mechanism.draw(table, bits).positions()[0] == 1)

    return [Border(wins, noise, (single(0, 1), single(4 * rate, 0)), (share, 0)) for share in (MIDDLE, LATE)]


def oneshot_borders(noise: str) -> list[Border]:
    """Return boundaries of one-shot noise of scale k w/ε, one of them between the two orders of two items."""
    mechanism = OneShot(k=2, epsilon=EPSILON, sensitivity=WIDE, noise=noise)
    rate = Fraction(EPSILON) / (2 * 3)
    best = screened(replace(mechanism, k=1), noise, 2 * rate)
    swapped = answers(replace(mechanism, ordered=True), [9, 0], [1, 0])
    order = Border(swapped, noise, (single(0, 1), single(9 * rate, 0)), (LATE, 0))
    return [*listed(mechanism, noise, rate), *best, order, *tied(mechanism, noise, rate)]


def lipschitz_borders(noise: str) -> list[Border]:
    """Return boundaries of a noise that is given as an object and compared in balls, of scale k w/ε."""
    mechanism = Lipschitz(k=2, epsilon=EPSILON, sensitivity=WIDE, noise=NOISES[noise])
    return listed(mechanism, noise, Fraction(EPSILON) / (2 * 3))


def gaussian_borders() -> list[Border]:
    """Return boundaries of normal noise; its standard deviation is checked in `calibration`."""
    mechanism = Gaussian(k=2, epsilon=EPSILON, delta=0.1, sensitivity=WIDE, max_items_per_person=3)
    rate = 1 / Fraction(mechanism.sigma)
    return [*listed(mechanism, "normal", rate, far=-10), *tied(mechanism, "normal", rate)]


def laplace_borders() -> list[Border]:
    """Return boundaries of Laplace noise of scale m s/ε, s = 2."""
    mechanism = Laplace(k=2, epsilon=EPSILON, sensitivity=WIDE, max_items_per_person=3)
    rate = Fraction(EPSILON) / (3 * 2)
    return [*listed(mechanism, "laplace", rate), *tied(mechanism, "laplace", rate)]


def peeling_borders(noise: str) -> list[Border]:
    """Return boundaries of rounds at ε/(k w) each: Gumbel noise on the scores, or a race between single items."""
    mechanism = Peeling(k=2, epsilon=EPSILON, sensitivity=WIDE, noise=noise)
    rate = Fraction(EPSILON) / (2 * 3)
    if noise == "gumbel":
        return [*listed(mechanism, noise, rate), *tied(mechanism, noise, rate)]
    wins = asks(mechanism, [9, 0], lambda chosen: chosen[0] == 1)
    rivals = single(0, 1), single(9 * rate, 0)
    # Two items whose locations differ by less than 1/4 form a block; one bit chooses which holds the larger noise.
    close = answers(replace(mechanism, k=1), [0.125, 0.0], [0], narrow=(1, 0))
    block = NoisyValue(rate / 4, ((0, 2), (1, 1))), NoisyValue(Fraction(0), ((0, 2),))
    return [
        Border(wins, noise, rivals, (MIDDLE, 0)),
        Border(wins, noise, rivals, (LATE, 0)),
        Border(close, noise, block, (MIDDLE, 0)),
    ]


def canonical_borders(noise: str) -> list[Border]:
    """Return boundaries of the race of subsets at ε/w: the top set against another, and two sets of one block.

    For k = 2 of three items and γ = ¼, {1, 2} has loss `¾ x_1 − ¼ x_3`, {1, 3} has `¾ x_2 − ¼ x_3`, and the top set
    `¾ x_3 − ¼ x_2`.
    """
    rate = Fraction(EPSILON) / 3
    one = Canonical(k=1, epsilon=EPSILON, sensitivity=WIDE, noise=noise)
    better, worse = single(6 * rate, 0), single(0, 1)
    pair, scores, quarter = replace(one, k=2, gamma=0.25), [9, 4, 0], Fraction(1, 4)
    losses = [(1 - quarter) * missing - quarter * held for missing, held in ((0, 4), (9, 0), (4, 0))]
    top, second, third = (single(-rate * loss, number) for number, loss in enumerate(losses))
    # Items 1 and 2 form a block. Words: the top set's, the block's, which item has its larger noise, the next noise,
    # and the item that is left.
    in_block = NoisyValue(-rate * 4, ((1, 2), (3, 1))), NoisyValue(-rate * Fraction(9, 2), ((1, 2),)), single(0, 0)
    # Items 2 and 3 form a block behind item 1. Words: those of the top set and of both blocks, which item has the
    # larger noise of the second block, and its next noise.
    behind = NoisyValue(-rate * 5, ((2, 2),)), single(0, 0), single(-rate, 1)
    return [
        Border(answers(one, [6, 0], [0]), noise, (better, worse), (0, FIRST)),
        Border(answers(one, [6, 0], [1]), noise, (worse, better), (MIDDLE, 0)),
        Border(answers(pair, scores, {0, 1}), noise, (top, second, third), (0, SECOND, FIRST)),
        Border(answers(pair, scores, {0, 2}), noise, (third, top, second), (LATE, MIDDLE, 0)),
        Border(answers(one, [4, 0, -1], [1]), noise, in_block, (HIGH, SECOND, 1, 0, 0)),
        Border(answers(one, [3, 2, -6, -7], [2]), noise, behind, (HIGH, HIGH, 0, 0, LATE)),
    ]


def joint_borders(noise: str, margin: bool) -> list[Border]:
    """Return boundaries of the race of sequences at ε/(2w): of two items, the better one first or second.

    The margin doubles the lead of the right order: its loss is minus the gap, and that of the other order the gap.
    """
    rate = Fraction(EPSILON) / (2 * 3)
    pair = Joint(k=2, epsilon=EPSILON, sensitivity=WIDE, noise=noise, margin=margin)
    one = replace(pair, k=1)
    gap, lead = (5, 10) if margin else (9, 9)
    better, worse = single(lead * rate, 0), single(0, 1)
    block = NoisyValue(-lead * rate, ((1, 2), (3, 1))), NoisyValue(-(lead + 2) * rate, ((1, 2),)), single(0, 0)
    return [
        Border(answers(pair, [gap, 0], [0, 1]), noise, (better, worse), (0, FIRST)),
        Border(answers(pair, [gap, 0], [1, 0]), noise, (worse, better), (LATE, 0)),
        Border(answers(one, [gap, 0], [1]), noise, (worse, better), (MIDDLE, 0)),
        Border(answers(one, [gap, 0, -2], [1]), noise, block, (HIGH, SECOND, 1, 0, 0)),
    ]


def row_borders() -> list[Border]:
    """Return boundaries of the first row above its inner bound, (3 − 2)(5 − 1) = 4 ways against 2 (5 − 2) = 6."""
    bounds = whole_numbers([2, 2]), whole_numbers([3, 5])
    rows = [NoisyValue(Fraction(0), ((number, ways),)) for number, ways in enumerate((4, 6))]
    return [
        Border(lambda words: bounded_sequence(*bounds, GivenWords(words))[0] >= 2, "gumbel", tuple(rows), (0, LATE)),
        Border(
            lambda words: bounded_sequence(*bounds, GivenWords(words))[0] < 2, "gumbel", tuple(rows[::-1]), (MIDDLE, 0)
        ),
    ]


def gamma_borders() -> list[Border]:
    """Return boundaries of uniform noise u with a gamma scale g, `2 ε x / (w g) + u`; word 0 is `Q(d + 1, g)`."""
    mechanism = Gamma(k=1, epsilon=EPSILON, sensitivity=WIDE)
    borders = []
    for size in (EARLY, MIDDLE, LATE):
        variable = gamma_variable(3, Fraction(2 * size + 1, 2 * WORDS))
        higher, lower = single(2 * Fraction(EPSILON) / 3 / variable, 1), single(0, 2)
        borders += [
            Border(answers(mechanism, [1, 0], [0]), "uniform", (higher, lower), (size, 0, EARLY)),
            Border(answers(mechanism, [1, 0], [1]), "uniform", (lower, higher), (size, MIDDLE, 0)),
        ]
    return borders


def gamma_variable(shape: int, probability: Fraction) -> Fraction:
    """Return g with `Q(shape, g) = probability`, by bisection, to 2⁻¹²⁰."""
    low, high = Fraction(0), Fraction(64)
    with working_precision(PRECISION):
        while high - low > Fraction(1, 1 << 120):
            middle = (low + high) / 2
            above = ball(middle).gamma_upper(shape, regularized=1) > ball(probability)
            low, high = (middle, high) if above else (low, middle)
    return low


def restricted_borders() -> list[Border]:
    """Return boundaries of the tests at ε_R/(2w): words of the order of the set, of the threshold, and of each test.

    The last boundary belongs to the second of two tests, of which the first passes.
    """
    inner = Canonical(k=1, epsilon=1.0, sensitivity=WIDE)
    one = Restricted(inner=inner, pool=1, test_epsilon=EPSILON, test_delta=0.125)
    rate = Fraction(EPSILON) / (2 * 3)
    # The threshold is checked in `calibration`; one person adds w = 3 to it.
    height = one.height() - 3 * rate
    borders = [
        Border(
            answers(one, [lead + 2, 2], [0]),
            "laplace",
            (single(rate * (lead - 3), 2), single(height, 1)),
            (0, threshold, 0),
        )
        for lead, threshold in ((9, MIDDLE), (30, EARLY), (5, LATE), (9, LAST))
    ]
    rounds = Peeling(k=2, epsilon=1.0, sensitivity=WIDE, noise="gumbel")
    two = Restricted(inner=rounds, pool=2, test_epsilon=EPSILON, test_delta=0.125)
    wins = answers(two, [60, 9, 0], [0, 1])
    words = (FIRST, LATE, MIDDLE, EARLY, 0)
    return [*borders, Border(wins, "laplace", (single(rate * 6, 4), single(height, 2)), words)]


def top_stable_borders() -> list[Border]:
    """Return boundaries of the tests of gaps at ε/(3w): words of the threshold and of each test."""
    one = TopStable(k=1, epsilon=EPSILON, delta=0.125, pool=1, sensitivity=WIDE)
    rate = Fraction(EPSILON) / (3 * 3)
    height = one.height() - 3 * rate
    borders = [
        Border(
            answers(one, [gap + 2, 2], [0]),
            "laplace",
            (single(rate * max(gap - 3, 0), 1), single(height, 0)),
            (threshold, 0),
        )
        for gap, threshold in ((9, MIDDLE), (30, EARLY), (5, LATE), (9, LAST), (1, LATE))
    ]
    # The gap after rank 2 is tested first and fails; then the gap after rank 1.
    two = replace(one, k=2, pool=2)
    rivals = single(rate * 15, 2), single(two.height() - 3 * rate, 0)
    borders.append(Border(answers(two, [20, 2, 2], [0]), "laplace", rivals, (MIDDLE, word(0.99), 0)))
    # A pool larger than k keeps half of ε for the choice. The gap after rank 2, tested second, fails.
    beyond, half = replace(one, pool=2), rate / 2
    rivals = single(half * 6, 1), single(beyond.height() - 3 * half, 0)
    borders.append(Border(answers(beyond, [11, 2, 0], [0]), "laplace", rivals, (MIDDLE, 0, word(0.99))))
    return borders


def limited_borders(noise: str) -> list[Border]:
    """Return boundaries of an item of the pool against the dummy, at ε/(m w) with Laplace noise."""
    laplace = LimitedDomain(k=1, epsilon=EPSILON, delta=0.125, pool=2, noise="laplace", max_items_per_person=2)
    gumbel = LimitedDomain(k=2, epsilon=EPSILON, delta=0.125, pool=2, sensitivity=WIDE)
    mechanism = laplace if noise == "laplace" else gumbel
    rate = Fraction(EPSILON) / 2 if noise == "laplace" else gumbel.share() / 3
    wins = asks(mechanism, [9, 4, 1], lambda chosen: chosen[:1] == [0])
    rivals = single(9 * rate, 0), single(4 * rate, 1), single(rate * (1 + mechanism.lead()), 2)
    fixed = ((LATE, MIDDLE), (MIDDLE, EARLY), (EARLY, LATE))
    return [Border(wins, noise, rivals, (0, second, dummy)) for second, dummy in fixed]


BORDERS: list[tuple[str, str, Callable[[], list[Border]]]] = [
    *[("canonical", noise, partial(canonical_borders, noise)) for noise in RACES],
    *[(name, "first row beyond its bounds", row_borders) for name in ("canonical", "joint")],
    ("gamma", "uniform", gamma_borders),
    ("gaussian", "normal", gaussian_borders),
    *[("joint", noise, partial(joint_borders, noise, True)) for noise in RACES],
    *[("joint", f"{noise}, no margin", partial(joint_borders, noise, False)) for noise in RACES],
    ("laplace", "laplace", laplace_borders),
    *[("lipschitz", noise, partial(lipschitz_borders, noise)) for noise in RACES],
    *[("oneshot", noise, partial(oneshot_borders, noise)) for noise in NOISES],
    *[("peeling", noise, partial(peeling_borders, noise)) for noise in RACES],
    ("restricted", "laplace", restricted_borders),
    *[("limited", noise, partial(limited_borders, noise)) for noise in ("gumbel", "laplace")],
    ("top-stable", "laplace", top_stable_borders),
]
"""Mechanism, noise, and its boundaries."""


@cache
def answer_words(name: str, noise: str, borders: Callable[[], list[Border]]) -> ExactCheck:
    """Compare the words at which the answers of a mechanism change with those of its theorem.

    Cached, since the broken twins need the result as well.
    """
    return check_borders(name, f"words at which answers change, {noise}", borders())


GRID_EPSILON, STEP = 0.25, 0.5
REJECTING = [WORDS - 1] * 8
"""Words that reject every further proposal."""


def _kept_from(drawn: Callable[[int], int], kept: int, probability: Fraction) -> float:
    """Return the distance, in words, between the first word at which a proposal is kept and its probability."""
    last = last_win(lambda word: drawn(word) != kept)
    return OFF if last is None else float(last + 1 - probability * WORDS)


def grid_words(name: str, noise_of: Callable[[float, float], GridNoise] = GridNoise) -> ExactCheck:
    """Compare the words from which on a remainder m of noise of scale t = 1/(ε r) is kept with m/t."""
    noise = noise_of(GRID_EPSILON, STEP)

    def off(remainder: int) -> float:
        def drawn(word: int) -> int:
            return noise.draw(0, GivenWords([word, *REJECTING], [remainder, 0]))

        return _kept_from(drawn, remainder, remainder * Fraction(GRID_EPSILON) * Fraction(STEP))

    return ExactCheck(name, "words at which noise is kept, grid", (off(1), off(3), off(7)), -ALLOWED, ALLOWED)


def ring_words(name: str, ring_of: Callable[..., Ring] = Ring) -> ExactCheck:
    """Compare the words from which on a proposal y on a ring is kept with `ε r h(y)`, r being the step of the ring."""
    ring = ring_of(epsilon=GRID_EPSILON, heights=(0, 1, 2, 1), answers=(0,), circumference=4 * STEP)

    def off(proposal: int) -> float:
        def drawn(word: int) -> int:
            return -ring.draw(0, GivenWords([word, *REJECTING], [proposal, 0])) % 4

        return _kept_from(drawn, proposal, ring.heights[proposal] * Fraction(GRID_EPSILON) * Fraction(STEP))

    return ExactCheck(name, "words at which noise is kept, ring", (off(1), off(2), off(3)), -ALLOWED, ALLOWED)


def distances(name: str, noise_of: Callable[[float, float], GridNoise] = GridNoise) -> ExactCheck:
    """Compare the loss stated for a distance with ε r times the largest number of steps between such positions."""
    guarantee = noise_of(GRID_EPSILON, STEP).guarantee
    cases = {0.1: 1, 0.5: 1, 0.625: 2, 1.0: 2, 1.01: 3}
    ratios = tuple(guarantee.loss(distance) / (GRID_EPSILON * STEP * steps) for distance, steps in cases.items())
    return ExactCheck(name, "loss stated for a distance / steps", ratios, 1.0, math.nextafter(1.0, 2))


SIGNAL_WORDS: list[tuple[str, Callable[[str], ExactCheck]]] = [
    ("multiselect", check) for check in (grid_words, ring_words, distances)
]
