"""The borders of every mechanism: scores for which it is known which of its random words decides what.

Rates and thresholds are stated once more, from the theorems, and not asked of the mechanism: a rate that law and
sampler share may be wrong in both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from dpselect.mechanisms import Canonical, Gamma, Gaussian, Joint, Mechanism, OneShot, Peeling
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.top_stable import TopStable
from dpselect.privacy import Sensitivity
from dpselect.sampling.balls import ball, working_precision
from dpselect.sampling.noise import NOISES
from dpselect.sampling.sequences import bounded_sequence, whole_numbers
from dpselect.scores import Scores
from dpselect.verify.borders import PRECISION, Border, Entrant, check_borders
from dpselect.verify.exact import ExactCheck
from dpselect.verify.words import WORDS, GivenWords

EPSILON = 1.75
WIDE = Sensitivity(-1, 2)
"""A person lowers a score by 1 at most, and raises it by 2: a spread of 3."""

COMPARED = "words at which answers change"

Answer = Callable[[Any], bool]


def word(share: float) -> int:
    """Return a word that stands for about this share of [0, 1), with bits in all of its digits."""
    return int(share * WORDS) ^ 0x5DEECE66D


EARLY, MIDDLE, LATE = word(0.11), word(0.52), word(0.83)
FIRST, SECOND = word(0.01), word(0.02)
"""Words of large noises, with which an item behind can overtake one ahead, also where noise is never negative."""

LAST = WORDS - (1 << 40)
"""A word so near to 1 that one float does not tell its noise well enough: the sampler takes another path."""


def asks(mechanism: Mechanism, scores: Any, wanted: Answer, narrow: Sequence[int] = ()) -> Callable[[Any], bool]:
    """Return a function that draws from given words and says whether the answer, positions in a list, is as wanted."""
    table = mechanism.table(scores)

    def wins(words: Sequence[int]) -> bool:
        return wanted(mechanism.draw(table, GivenWords(words, narrow)).positions().tolist())

    return wins


def single(location: Fraction | int, number: int) -> Entrant:
    """Return an entrant with a noise of its own."""
    return Entrant(Fraction(location), ((number, 1),))


def listed(mechanism: Mechanism, noise: str, rate: Fraction, far: int = -40) -> list[Border]:
    """Return borders of the k = 2 largest of four noisy scores: of an item close by, and of one far behind.

    The second has words on the way to its border that no shortcut for hopeless items may overlook.
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
    """Return the border at which both of k = 2 answers come from a group of three, not one of them from a single item.

    Words: the largest noise of the group, the noise of the single item, the second largest of the group.
    """
    scores = Scores.from_histogram([4, 0], [3, 1])
    second = Entrant(4 * rate, ((0, 3), (2, 2)))
    wins = asks(mechanism, scores, lambda chosen: all(item < 3 for item in chosen))
    return [Border(wins, noise, (second, single(0, 1)), (EARLY, word(share), 0)) for share in (0.1, 0.2)]


MANY = 2048
"""Items from which on the first eight bits of each word come first, and screen out who cannot win."""


def screened(mechanism: Mechanism, noise: str, rate: Fraction) -> list[Border]:
    """Return the border between two items of k = 1, among many that are far behind.

    Eight bits of all words are asked for, then the other 56 of those that may still win.
    """
    table = mechanism.table([4, 0, *[-(10**6)] * (MANY - 2)])

    def wins(words: Sequence[int]) -> bool:
        first = [word >> 56 for word in words]
        bits = GivenWords((), [*first, *[128] * (MANY - 2), *(word & ((1 << 56) - 1) for word in words)])
        return bool(mechanism.draw(table, bits).positions()[0] == 1)

    return [Border(wins, noise, (single(0, 1), single(4 * rate, 0)), (share, 0)) for share in (MIDDLE, LATE)]


def oneshot_borders(noise: str) -> list[Border]:
    """Return borders of one-shot noise of scale k w/ε."""
    mechanism = OneShot(k=2, epsilon=EPSILON, sensitivity=WIDE, noise=noise)
    rate = Fraction(EPSILON) / (2 * 3)
    best = screened(replace(mechanism, k=1), noise, 2 * rate)
    return [*listed(mechanism, noise, rate), *best, *tied(mechanism, noise, rate)]


def gaussian_borders() -> list[Border]:
    """Return borders of normal noise; its deviation is compared elsewhere."""
    mechanism = Gaussian(k=2, epsilon=EPSILON, delta=0.1, sensitivity=WIDE, max_items_per_person=3)
    rate = 1 / Fraction(mechanism.sigma)
    return [*listed(mechanism, "normal", rate, far=-10), *tied(mechanism, "normal", rate)]


def peeling_borders(noise: str) -> list[Border]:
    """Return borders of rounds at ε/(k w) each: of gumbel noise on the scores, or of a race between single items."""
    mechanism = Peeling(k=2, epsilon=EPSILON, sensitivity=WIDE, noise=noise)
    rate = Fraction(EPSILON) / (2 * 3)
    if noise == "gumbel":
        return [*listed(mechanism, noise, rate), *tied(mechanism, noise, rate)]
    scores = [9, 0]
    wins = asks(mechanism, scores, lambda chosen: chosen[0] == 1)
    # Two items within one unit of location are a block, of which a single bit chooses the holder of the larger noise.
    close = asks(replace(mechanism, k=1), [1, 0], lambda chosen: chosen == [0], narrow=(1, 0))
    return [
        Border(wins, noise, (single(0, 1), single(9 * rate, 0)), (MIDDLE, 0)),
        Border(wins, noise, (single(0, 1), single(9 * rate, 0)), (LATE, 0)),
        Border(close, noise, (Entrant(2 * rate, ((0, 2), (1, 1))), Entrant(Fraction(0), ((0, 2),))), (MIDDLE, 0)),
    ]


def canonical_borders(noise: str) -> list[Border]:
    """Return borders of the race of subsets at ε/w: the top set against another, and two sets of one block.

    Of k = 2 of three items with γ = ¼, {1, 2} has loss `¾ x_1 − ¼ x_3`, {1, 3} has `¾ x_2 − ¼ x_3`, and the top set
    `¾ x_3 − ¼ x_2`.
    """
    rate = Fraction(EPSILON) / 3
    one = Canonical(k=1, epsilon=EPSILON, sensitivity=WIDE, noise=noise)
    pair = replace(one, k=2, gamma=0.25)
    scores, quarter = [9, 4, 0], Fraction(1, 4)
    losses = [(1 - quarter) * missing - quarter * held for missing, held in ((0, 4), (9, 0), (4, 0))]
    places = [single(-rate * loss, number) for number, loss in enumerate(losses)]
    # Items 1 and 2 are a block of two: the top set's word, the block's, which item has its larger noise, the next
    # noise, and the item that is left.
    holders = (word(0.97), SECOND, 1, 0, 0)
    near, next_to = -rate * 4, -rate * Fraction(9, 2)
    # Items 2 and 3 are a block of two that was cut off behind item 1: the words of the top set and of both blocks,
    # which item has the larger noise of the second, and its next noise.
    cut = (word(0.97), word(0.97), 0, 0, LATE)
    return [
        Border(asks(one, [6, 0], lambda chosen: chosen == [0]), noise, (single(6 * rate, 0), single(0, 1)), (0, FIRST)),
        Border(
            asks(one, [6, 0], lambda chosen: chosen == [1]), noise, (single(0, 1), single(6 * rate, 0)), (MIDDLE, 0)
        ),
        Border(
            asks(pair, scores, lambda chosen: set(chosen) == {0, 1}),
            noise,
            tuple(places),
            (0, SECOND, FIRST),
        ),
        Border(
            asks(pair, scores, lambda chosen: set(chosen) == {0, 2}),
            noise,
            (places[2], places[0], places[1]),
            (LATE, MIDDLE, 0),
        ),
        Border(
            asks(one, [4, 0, -1], lambda chosen: chosen == [1]),
            noise,
            (Entrant(near, ((1, 2), (3, 1))), Entrant(next_to, ((1, 2),)), single(0, 0)),
            holders,
        ),
        Border(
            asks(one, [3, 2, -6, -7], lambda chosen: chosen == [2]),
            noise,
            (Entrant(-rate * 5, ((2, 2),)), single(0, 0), single(-rate, 1)),
            cut,
        ),
    ]


def joint_borders(noise: str) -> list[Border]:
    """Return borders of the race of sequences at ε/(2w): of two items, the better first or second."""
    rate = Fraction(EPSILON) / (2 * 3)
    pair = Joint(k=2, epsilon=EPSILON, sensitivity=WIDE, noise=noise)
    one = replace(pair, k=1)
    return [
        Border(
            asks(pair, [9, 0], lambda chosen: chosen == [0, 1]), noise, (single(9 * rate, 0), single(0, 1)), (0, FIRST)
        ),
        Border(
            asks(pair, [9, 0], lambda chosen: chosen == [1, 0]), noise, (single(0, 1), single(9 * rate, 0)), (LATE, 0)
        ),
        Border(
            asks(one, [9, 0], lambda chosen: chosen == [1]), noise, (single(0, 1), single(9 * rate, 0)), (MIDDLE, 0)
        ),
        Border(
            asks(one, [9, 0, -2], lambda chosen: chosen == [1]),
            noise,
            (
                Entrant(-9 * rate, ((1, 2), (3, 1))),
                Entrant(-11 * rate, ((1, 2),)),
                single(0, 0),
            ),
            (word(0.97), SECOND, 1, 0, 0),
        ),
    ]


def row_borders(sequence: Callable[..., list[int]] = bounded_sequence) -> list[Border]:
    """Return borders of the first row that exceeds its inner bound, (3 − 2)(5 − 1) = 4 ways against 2 (5 − 2) = 6."""
    bounds = whole_numbers([2, 2]), whole_numbers([3, 5])
    rows = [Entrant(Fraction(0), ((number, ways),)) for number, ways in enumerate((4, 6))]
    return [
        Border(lambda words: sequence(*bounds, GivenWords(words))[0] >= 2, "gumbel", tuple(rows), (0, LATE)),
        Border(lambda words: sequence(*bounds, GivenWords(words))[0] < 2, "gumbel", tuple(rows[::-1]), (MIDDLE, 0)),
    ]


def gamma_borders() -> list[Border]:
    """Return borders of uniform noise u scaled by a gamma variable g, `2 ε x / (w g) + u`; word 0 is `Q(d + 1, g)`."""
    mechanism = Gamma(k=1, epsilon=EPSILON, sensitivity=WIDE)
    rate = 2 * Fraction(EPSILON) / 3
    borders = []
    for size in (EARLY, MIDDLE, LATE):
        variable = gamma_variable(3, Fraction(2 * size + 1, 2 * WORDS))
        higher, lower = single(rate / variable, 1), single(0, 2)
        borders += [
            Border(asks(mechanism, [1, 0], lambda chosen: chosen == [0]), "uniform", (higher, lower), (size, 0, EARLY)),
            Border(
                asks(mechanism, [1, 0], lambda chosen: chosen == [1]), "uniform", (lower, higher), (size, MIDDLE, 0)
            ),
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
    """Return borders of the tests at ε_R/(2w): words of the choice's order, of the threshold, and of each test.

    The last border is that of the second of two tests, of which the first passes.
    """
    one = Restricted(
        inner=Canonical(k=1, epsilon=1.0, sensitivity=WIDE), pool=1, test_epsilon=EPSILON, test_delta=0.125
    )
    rate = Fraction(EPSILON) / (2 * 3)
    # The threshold itself is compared elsewhere; one person adds w = 3 to it.
    height = one.height() - 3 * rate
    borders = [
        Border(
            asks(one, [lead + 2, 2], lambda chosen: chosen == [0]),
            "laplace",
            (single(rate * (lead - 3), 2), single(height, 1)),
            (0, threshold, 0),
        )
        for lead, threshold in ((9, MIDDLE), (30, EARLY), (5, LATE), (9, LAST))
    ]
    inner = Peeling(k=2, epsilon=1.0, sensitivity=WIDE, noise="gumbel")
    two = Restricted(inner=inner, pool=2, test_epsilon=EPSILON, test_delta=0.125)
    wins = asks(two, [60, 9, 0], lambda chosen: chosen == [0, 1])
    words = (FIRST, LATE, MIDDLE, EARLY, 0)
    return [*borders, Border(wins, "laplace", (single(rate * 6, 4), single(height, 2)), words)]


def top_stable_borders() -> list[Border]:
    """Return borders of the tests of gaps at ε/(3w): words of the threshold, and of each test."""
    one = TopStable(k=1, epsilon=EPSILON, delta=0.125, pool=1, sensitivity=WIDE)
    rate = Fraction(EPSILON) / (3 * 3)
    height = one.height() - 3 * rate
    borders = [
        Border(
            asks(one, [gap + 2, 2], lambda chosen: chosen == [0]),
            "laplace",
            (single(rate * max(gap - 3, 0), 1), single(height, 0)),
            (threshold, 0),
        )
        for gap, threshold in ((9, MIDDLE), (30, EARLY), (5, LATE), (9, LAST), (1, LATE))
    ]
    two = replace(one, k=2, pool=2)
    # The gap behind rank 2 is tested first, and fails; then that behind rank 1.
    wins = asks(two, [20, 2, 2], lambda chosen: chosen == [0])
    height = two.height() - 3 * rate
    borders.append(Border(wins, "laplace", (single(rate * 15, 2), single(height, 0)), (MIDDLE, word(0.99), 0)))
    # With a pool beyond k half of ε is kept for the choice. The gap behind rank 2, tested second, fails.
    beyond, half = replace(one, pool=2), rate / 2
    wins = asks(beyond, [11, 2, 0], lambda chosen: chosen == [0])
    height = beyond.height() - 3 * half
    return [*borders, Border(wins, "laplace", (single(half * 6, 1), single(height, 0)), (MIDDLE, 0, word(0.99)))]


def limited_borders(noise: str) -> list[Border]:
    """Return borders of an item of the pool against the dummy, at ε/(m w) with laplace noise."""
    laplace = LimitedDomain(k=1, epsilon=EPSILON, delta=0.125, pool=2, noise="laplace", max_items_per_person=2)
    gumbel = LimitedDomain(k=2, epsilon=EPSILON, delta=0.125, pool=2, sensitivity=WIDE)
    mechanism = laplace if noise == "laplace" else gumbel
    rate = Fraction(EPSILON) / 2 if noise == "laplace" else gumbel.share() / 3
    dummy = single(rate * (1 + mechanism.lead()), 2)
    wins = asks(mechanism, [9, 4, 1], lambda chosen: chosen[:1] == [0])
    rivals = (single(9 * rate, 0), single(4 * rate, 1), dummy)
    return [
        Border(wins, noise, rivals, (0, LATE, MIDDLE)),
        Border(wins, noise, rivals, (0, MIDDLE, EARLY)),
        Border(wins, noise, rivals, (0, EARLY, LATE)),
    ]


RACES = ("exponential", "gumbel")

BORDERS: list[tuple[str, str, Callable[[], list[Border]]]] = [
    *[("canonical", noise, partial(canonical_borders, noise)) for noise in RACES],
    *[(name, "first row beyond its bounds", row_borders) for name in ("canonical", "joint")],
    ("gamma", "uniform", gamma_borders),
    ("gaussian", "normal", gaussian_borders),
    *[("joint", noise, partial(joint_borders, noise)) for noise in RACES],
    *[("oneshot", noise, partial(oneshot_borders, noise)) for noise in NOISES],
    *[("peeling", noise, partial(peeling_borders, noise)) for noise in RACES],
    ("restricted", "laplace", restricted_borders),
    *[("limited", noise, partial(limited_borders, noise)) for noise in ("gumbel", "laplace")],
    ("top-stable", "laplace", top_stable_borders),
]


def drawn_as_stated(name: str, noise: str, borders: Callable[[], list[Border]]) -> ExactCheck:
    """Compare the words at which the answers of a mechanism change with those that its theorem gives."""
    return check_borders(name, f"{COMPARED}, {noise}", borders())
