"""Sums round a circle are those of the law, wherever the circle runs; nodes integrate what they are made for."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy import stats

from dpselect.forecast import marks
from dpselect.forecast.contour import Circle, factors, powers_of, product
from dpselect.forecast.marks import Damped, marked, marked_by, marked_upto
from dpselect.forecast.panels import ascending, chebyshev_terms, paced
from dpselect.forecast.radii import tilted
from dpselect.forecast.tilted import Tilted

ABOVE = np.array([[0.999, 1 - 1e-12], [0.8, 0.6], [0.5, 0.4], [0.3, 1e-3], [0.02, 1e-9], [0.01, 1e-15]])
SIZES = np.array([2.0, 1.0, 1.0, 3.0, 40.0, 7.0])
LOG_RADII = (-6.0, -1.0, 0.0, 0.5, 9.0)


def law(place: int, without: int | None = None) -> np.ndarray:
    """Return the law of the number of items above z, by multiplying one item after the other."""
    result = np.ones(1)
    for group, size in enumerate(SIZES.astype(int)):
        chance = ABOVE[group, place]
        for _ in range(size - (group == without)):
            result = np.convolve(result, [1 - chance, chance])
    return result


def circle_and_shares(log_radius: float) -> tuple[Circle, np.ndarray, np.ndarray]:
    logs = np.full(2, log_radius)
    scale = 1 - ABOVE + ABOVE * np.exp(logs)
    shares = ABOVE * np.exp(logs) / scale
    variances = SIZES @ (shares * (1 - shares))
    # Both places share the circle, and are asked for the numbers between their means.
    off = float(np.ptp(SIZES @ shares)) / 2 + 2
    return Circle.of(logs, variances, times=2, off=off), shares, SIZES @ np.log(scale)


@np.errstate(over="ignore")
@pytest.mark.parametrize("log_radius", LOG_RADII)
def test_coefficients_and_their_sums(log_radius: float) -> None:
    circle, shares, log_scale = circle_and_shares(log_radius)
    terms = np.multiply.reduce(factors(shares, SIZES, circle.turns), axis=0)
    np.testing.assert_allclose(product(shares, SIZES, circle), terms, rtol=1e-9, atol=1e-12)
    usual = round(float((SIZES @ shares).mean()))
    for number in range(max(usual - 2, 0), usual + 3):
        wanted = np.array([law(place)[number] for place in (0, 1)])
        at_most = np.array([law(place)[: number + 1].sum() for place in (0, 1)])
        more = np.array([law(place)[number + 1 :].sum() for place in (0, 1)])
        bound = np.exp(log_scale - number * log_radius)
        ones = np.ones(2)
        close = 1e-11 * (bound + 1e-2)
        assert (np.abs(circle.exactly(number, terms, log_scale) - wanted) <= close).all(), number
        assert (np.abs(circle.at_most(number, terms, log_scale, ones) - at_most) <= close).all(), number
        assert (np.abs(circle.more_than(number, terms, log_scale, ones) - more) <= close).all(), number


@pytest.mark.parametrize("chance", [1e-3, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("size", [1.0, 5.0, 40.0, 1000.0, 10.0**6])
def test_a_circle_has_as_many_points_as_leave_out_next_to_nothing(chance: float, size: float) -> None:
    """Binomial numbers are that far from their mean, on either side, with a chance of at most e^−22.

    Bennett's inequality is not far from the truth: with two thirds of the points more than that would be left out.
    """
    mean, variance = size * chance, size * chance * (1 - chance)
    number = Circle.of(np.zeros(1), np.full(1, variance)).number

    def beyond(distance: float) -> float:
        return float(stats.binom.sf(mean + distance, size, chance) + stats.binom.cdf(mean - distance, size, chance))

    assert beyond(number - 3) < 2 * math.exp(-22)
    if size > 100:
        assert beyond(2 / 3 * (number - 3)) > 2 * math.exp(-22)


@pytest.mark.parametrize("variance", [0.0, 5e-324, 1e-310, 1e-300, 1e-9])
def test_a_circle_for_what_hardly_varies_has_few_points(variance: float) -> None:
    assert 2 < Circle.of(np.zeros(1), np.full(1, variance)).number < 12


def test_a_tail_of_one_in_a_billion_keeps_its_digits() -> None:
    """With the radius at which twenty items are expected, P[20 or more] is right to nine digits."""
    below = 1 - ABOVE
    log_radius = tilted(below, ABOVE, SIZES, 19.5)
    scale = below + ABOVE * np.exp(log_radius)
    shares = ABOVE * np.exp(log_radius) / scale
    assert SIZES @ shares == pytest.approx([19.5, 19.5], abs=1.0)
    circle = Circle.of(log_radius, SIZES @ (shares * (1 - shares)))
    terms = product(shares, SIZES, circle)
    found = circle.more_than(19, terms, SIZES @ np.log(scale), np.ones(2))
    wanted = [law(place)[20:].sum() for place in (0, 1)]
    assert wanted[0] < 1e-9
    assert wanted[1] < 1e-40
    assert found == pytest.approx(wanted, rel=1e-9)


def test_few_undecided_items_need_few_points() -> None:
    chances = np.array([[0.3], [0.6], [0.9]])
    circle = Circle.of(np.zeros(1), np.array([0.54]), times=2, undecided=3)
    assert len(circle.angles) == 3
    terms = product(chances, np.ones(3), circle)
    exact = np.convolve(np.convolve([0.7, 0.3], [0.4, 0.6]), [0.1, 0.9])
    for last in range(3):
        found = circle.at_most(last, terms, np.zeros(1), np.ones(1))[0]
        assert found == pytest.approx(exact[: last + 1].sum(), rel=1e-13)


def test_marked_items_stand_at_z() -> None:
    circle, shares, _ = circle_and_shares(0.4)
    weights = np.arange(1.0, 13.0).reshape(6, 2)
    turned = circle.turns - 1
    direct = weights[..., None] / (1 + shares[..., None] * turned)
    (found,) = marked(shares, 1 - shares, [weights], circle)
    np.testing.assert_allclose(found, direct.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(marked_upto(shares, 1 - shares, weights, circle), np.cumsum(direct, axis=0), rtol=1e-12)
    by = np.exp(1j * np.multiply.outer(np.arange(6.0), circle.angles + 0.1)) * np.arange(2.0, 8.0)[:, None]
    wanted = (direct * by[:, None]).sum(axis=0)
    np.testing.assert_allclose(marked_by(shares, 1 - shares, weights, by, circle), wanted, rtol=1e-12)


def spread_out(items: int, span: float) -> Tilted:
    """Return items whose odds of being above z span some e-folds, at three z, of which the density is p (1 − p)."""
    z = np.array([-0.4, 0.0, 0.7])
    above = 1 / (1 + np.exp(z + np.linspace(-span / 2, span / 2, items)[:, None]))
    return Tilted(np.ones(items), np.zeros(3), 1 - above, above, above * (1 - above))


def damped_error(items: int, span: float, variance: float | None = None) -> tuple[float, int]:
    """Return how far off the series is beside the law, beside all that stands at z; and how many terms it has."""
    groups = spread_out(items, span)
    variances = groups.variances.sum(axis=0)
    circle = Circle.of(np.zeros(3), variances)
    law, weights = groups.law(circle), [np.ones(items), np.arange(float(items))]
    beside = circle.beside(law)
    if variance is not None:
        beside = replace(circle, log_law=variance * (np.cos(circle.angles) - 1))
    damped = Damped.of(beside)
    assert damped is not None
    found = damped.marked(groups.shares, groups.others, groups.density, weights, circle)
    wanted = marked(groups.shares, groups.others, [each[:, None] * groups.density for each in weights], circle)
    errors = [
        law[:, damped.enough] * (own - right[:, damped.enough]) / (each @ groups.density)[:, None]
        for own, right, each in zip(found, wanted, weights, strict=True)
    ]
    return float(np.abs(errors).max()), len(damped.coefficients)


@pytest.mark.parametrize(("items", "span"), [(100, 3.0), (175, 12.0), (200, 12.0), (900, 60.0), (900, 9.0)])
def test_few_terms_are_enough_beside_a_law(items: int, span: float) -> None:
    error, terms = damped_error(items, span)
    assert error < marks._LEFT_OUT
    assert terms <= 12


def test_a_law_that_varies_less_than_said_needs_more_terms() -> None:
    """The twin of the test before: with a variance of 100 in place of 2 as few terms are not enough."""
    error, _ = damped_error(10, 3.0, variance=100.0)
    assert error > 10 * marks._LEFT_OUT


def test_laws_that_vary_little_have_no_series() -> None:
    assert Damped.of(Circle.of(np.zeros(1), np.array([0.5]))) is None


@pytest.mark.parametrize(("items", "span"), [(40, 3.0), (100, 3.0), (175, 12.0), (900, 60.0)])
def test_what_stands_at_z_is_the_same_with_a_series_and_without(items: int, span: float) -> None:
    """Where the series is not enough at some angles, these are computed one by one."""
    groups = spread_out(items, span)
    circle = Circle.of(np.zeros(3), groups.variances.sum(axis=0))
    law, (found,) = groups.law(circle), groups.marked([groups.sizes], circle)
    (wanted,) = marked(groups.shares, groups.others, [groups.density], circle)
    np.testing.assert_allclose(law * found, law * wanted, rtol=0, atol=1e-11 * float(groups.density.sum(axis=0).min()))


@pytest.mark.parametrize("wanted", [0.5, 1.5, 30.0, 79.5])
@pytest.mark.parametrize("span", [1e-3, 10.0, 400.0])
def test_radii_bring_about_the_number_wanted(wanted: float, span: float) -> None:
    """Also from where next to none, or next to all, are above z; hopeless ones end at the farthest radius."""
    z = np.linspace(-300.0, 300.0, 25)
    log_odds = np.linspace(span / 2, -span / 2, 80)[:, None] - z
    above, below = 1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(log_odds))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_radius = tilted(below, above, np.ones(80), wanted)
    shares = above * np.exp(log_radius) / (below + above * np.exp(log_radius))
    possible = np.abs(z) + span / 2 < 240
    assert possible.sum() >= 3
    assert shares[:, possible].sum(axis=0) == pytest.approx(np.full(possible.sum(), wanted), abs=0.05)
    assert (np.abs(log_radius) < 260).all()


def test_radii_of_large_ties_may_be_far_from_their_odds() -> None:
    """Of 50,000 items, each e^251 times as likely below z, 59 are expected above it at a radius of about e^244."""
    log_odds = np.array([[-3.0, -300.0], [-251.0, -300.0]])
    above, below = 1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(log_odds))
    log_radius = tilted(below, above, np.array([9.0, 50_000.0]), 59.0)
    assert log_radius[0] == pytest.approx(251 + math.log(50 / 49_950), abs=0.01)
    assert log_radius[1] == 250


def test_powers_and_values_in_order_are_those_of_numpy() -> None:
    circle = Circle.of(np.zeros(1), np.array([9.0]))
    np.testing.assert_allclose(powers_of(circle.turns, 11), circle.turns ** np.arange(11)[:, None], rtol=1e-14)
    values, others = np.array([0.0, 1.0, 1.0, 2.0]), np.array([3.0, -1.0, 1.0])
    assert ascending(values, others).tolist() == [-1.0, 0.0, 1.0, 2.0, 3.0]


def test_points_on_circles_are_shared_and_cannot_be_changed() -> None:
    circle = Circle.of(np.zeros(1), np.array([9.0]))
    with pytest.raises(ValueError, match="read-only"):
        circle.turns[0] = 0.0


@pytest.mark.parametrize("sizes", [[], [1] * 4, [1] * 7, [1, 2, 8, 1, 3], [1, 9, 1, 400, 2], [30_000]], ids=str)
def test_the_law_of_a_few_items_at_a_time_is_that_of_all(sizes: list[int]) -> None:
    chances = np.random.default_rng(5).random((len(sizes), 3)) * np.array([1.0, 1e-3, 0.0])
    chances[1::2] = 1 - chances[1::2]
    groups = Tilted(np.array(sizes, dtype=np.float64), np.zeros(3), 1 - chances, chances, chances)
    circle = Circle.of(np.zeros(3), np.array([0.3, 0.3, 0.3]))
    items = np.repeat(chances, sizes, axis=0)[..., None]
    wanted = np.multiply.reduce(1 - items + items * circle.turns, axis=0)
    np.testing.assert_allclose(groups.law(circle), wanted, rtol=1e-10, atol=1e-15)


def test_groups_of_any_size_are_powers() -> None:
    circle = Circle.of(np.zeros(2), np.array([1.0, 2.0]))
    shares = np.array([[0.3, 0.2], [1e-3, 2e-3], [1e-9, 3e-9], [0.25, 0.5]])
    sizes = np.array([7.0, 1000.0, 1e9, 1.0])
    wanted = np.exp(sizes[:, None, None] * np.log1p(shares[..., None] * (circle.turns - 1)))
    np.testing.assert_allclose(factors(shares, sizes, circle.turns), wanted, rtol=1e-10)
    each = np.stack([sizes, sizes[::-1]], axis=1)
    swapped = factors(shares, each, circle.turns)
    np.testing.assert_allclose(swapped[:, 0], wanted[:, 0], rtol=1e-10)
    assert np.abs(swapped[0, 1] - (1 + 0.2 * (circle.turns - 1))) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("smooth", [False, True])
def test_nodes_integrate_what_is_smooth(smooth: bool) -> None:
    cells = np.linspace(-40.0, 60.0, 101)
    kept = (cells[1:] > -12) & (cells[:-1] < 45)
    nodes, weights = paced(cells, kept, np.full(100, 2.6), np.empty(0), smooth=smooth)
    assert len(nodes) < (200 if smooth else 320)
    # The density of Gumbel noise, and that of the second largest of three.
    density = np.exp(-nodes - np.exp(-nodes))
    below = np.exp(-np.exp(-nodes))
    assert weights @ density == pytest.approx(1.0, rel=1e-10)
    assert weights @ (6 * density * below * (1 - below)) == pytest.approx(1.0, rel=1e-10)


def test_nodes_end_at_kinks_and_follow_the_pace() -> None:
    kinks = np.array([-1.0, 0.0, 0.03, 1.7, 30.0])
    cells = np.linspace(-30.0, 30.0, 61)
    nodes, weights = paced(cells, np.ones(60, dtype=bool), np.full(60, 2.6), kinks)
    for kink in kinks[:-1]:
        total = 2 - math.exp(-30 - kink) - math.exp(kink - 30)
        assert weights @ np.exp(-np.abs(nodes - kink)) == pytest.approx(total, rel=1e-9)
    narrow, spread = cells[:-1] == 0.0, 0.01
    paces = np.where(narrow, 2.6 * spread, 2.6)
    nodes, weights = paced(cells, np.ones(60, dtype=bool), paces, kinks)
    bell = np.exp(-0.5 * ((nodes - 0.5) / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
    assert weights @ bell == pytest.approx(1.0, rel=1e-9)


def test_panels_between_near_kinks_are_not_cut_again() -> None:
    """They have as few nodes as their length asks for, and all of them integrate what is smooth between kinks."""
    kinks, cells = np.linspace(-5.0, 5.0, 101), np.linspace(-30.0, 30.0, 61)
    nodes, weights = paced(cells, np.ones(60, dtype=bool), np.full(60, 2.6), kinks)
    inside = np.histogram(nodes, kinks)[0]
    assert (inside == inside[0]).all()
    assert inside[0] < 5
    # A corner at every kink, of different sizes.
    corners = np.exp(-np.abs(nodes[:, None] - kinks)) @ np.arange(1.0, 102.0)
    assert weights @ corners == pytest.approx(2 * np.arange(1.0, 102.0).sum(), rel=1e-9)


@pytest.mark.parametrize("narrower", [0.7, 0.2, 0.02])
def test_smooth_nodes_follow_the_pace(narrower: float) -> None:
    """A bell is integrated wherever it is as narrow as the pace says, also where the pace changes."""
    cells = np.linspace(-30.0, 30.0, 61)
    paces = 2.6 * np.where(np.abs(cells[1:] + cells[:-1]) < 8, narrower, 1.0)
    nodes, weights = paced(cells, np.ones(60, dtype=bool), paces, np.empty(0), smooth=True)
    assert (np.diff(nodes) > 0).all()
    assert weights.sum() == pytest.approx(60.0, rel=0.02)
    even, _ = paced(cells, np.ones(60, dtype=bool), np.full(60, paces.min()), np.empty(0), smooth=True)
    assert len(nodes) < (0.85 if narrower == 0.7 else 0.4) * len(even)
    for middle, spread in ((-3.0, narrower), (0.3, narrower), (2.8, narrower), (12.0, 1.0), (6.5, 1.0), (-6.1, 1.0)):
        bell = np.exp(-0.5 * ((nodes - middle) / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
        assert weights @ bell == pytest.approx(1.0, rel=1e-9)


def test_nodes_lie_in_the_cells_kept_only() -> None:
    cells = np.arange(0.0, 11.0)
    kept = np.isin(np.arange(10), [1, 2, 7])
    nodes, weights = paced(cells, kept, np.full(10, 2.6), np.empty(0))
    assert weights.sum() == pytest.approx(3.0)
    assert (((nodes > 1) & (nodes < 3)) | ((nodes > 7) & (nodes < 8))).all()
    assert (np.diff(nodes) > 0).all()


@pytest.mark.parametrize("number", [1, 2, 3, 14, 25, 64])
def test_chebyshev_polynomials(number: int) -> None:
    places = np.linspace(-1.1, 1.1, 57)
    wanted = chebyshev.chebvander(places, number - 1).T
    np.testing.assert_allclose(chebyshev_terms(places, number), wanted, rtol=1e-11, atol=1e-13)
