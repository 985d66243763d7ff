"""Many items under normal noise, taken together, give what they do one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr

import dpselect as dps
from dpselect.forecast import close_items, noisy, normal_tails
from dpselect.forecast.close_items import CloseItems
from dpselect.forecast.figures import exact_figures
from dpselect.forecast.mistake_reach import Reach
from dpselect.forecast.noisy import NoisyGroups
from dpselect.forecast.normal_tails import NormalItems, NormalTail, first_rare, log_law
from dpselect.forecast.tail_segments import SIZE
from dpselect.forecast.tails import COSTLY, LAW, MARKED
from dpselect.sampling.noise import NORMAL

TURNS = np.exp(1j * np.linspace(0.0, 2.6, 9))
LONG_TAIL = np.round(9000 / np.arange(1, 4001) ** 0.7)


def _groups(spread: float, count: int = 700) -> tuple[np.ndarray, np.ndarray]:
    """Groups down to `spread` deviations below the first, more and more of them, with one to nine items."""
    return -spread * np.linspace(0, 1, count) ** 0.6, 1.0 + np.arange(count) % 9


@pytest.mark.parametrize("spread", [0.2, 3.0, 12.0, 400.0])
@pytest.mark.parametrize("part", [slice(0, None), slice(3, None), slice(250, 690), slice(600, 603), slice(5, 5)])
def test_close_items_add_up_as_they_do_one_by_one(spread, part):
    locations, sizes = _groups(spread)
    items = CloseItems.of(locations, sizes).upto(700 if part.stop is None else part.stop).since(part.start)
    locations, sizes = locations[part], sizes[part]
    weights, costs = items.weights(sizes), items.weights(sizes * locations)
    for z in (-4.0, 0.0, 3.0, 6.0):
        for function in (NORMAL.survival, NORMAL.density, log_ndtr):
            expected = sizes @ function(z - locations), (sizes * locations) @ function(z - locations)
            found = weights @ function(z - items.points), costs @ function(z - items.points)
            assert found == pytest.approx(expected, rel=2e-9, abs=1e-300)


def test_close_items_need_few_points():
    locations, sizes = _groups(3.0)
    assert len(CloseItems.of(locations, sizes).points) < 80
    assert len(CloseItems.of(400 * locations, sizes).points) == len(locations)


@pytest.mark.parametrize("spread", [0.2, 3.0, 400.0])
def test_items_far_down_are_left_out_by_whole_cells(spread):
    locations, sizes = _groups(spread)
    items = CloseItems.of(locations, sizes)
    for lowest in (1.0, 0.0, -0.1, -1.0, -2.9, -1e3):
        found = items.down_to(lowest)
        kept = int((locations >= lowest).sum())
        assert kept <= len(found.sizes)
        # A cell is made anew only if it is cut.
        assert all(cell is other for cell, other in zip(found.cells, items.cells, strict=False))
        if lowest > 0:
            assert not len(found.sizes)


@pytest.mark.parametrize("spread", [0.2, 3.0, 400.0])
def test_sums_behind_some_groups_are_those_behind_all_of_them(spread):
    """Whether a cell is crowded or not, and in any order."""
    locations, sizes = _groups(spread, 40)
    for crowded in (False, True):
        cell = close_items.Cell(locations, sizes, crowded)
        values = np.stack([NORMAL.survival(np.arange(3.0) - cell.points[:, None]) ** power for power in (1, 2)])
        further, some = np.arange(6.0).reshape(2, 1, 3), np.array([5, 39, 0, 17, 5, 38])
        every = cell.behind(values, further)
        np.testing.assert_allclose(cell.behind(values, further, some), every[:, some], rtol=1e-12)
        np.testing.assert_allclose(every[:, -1:], further)
        np.testing.assert_allclose(cell.behind(values, further, slice(3, 9)), every[:, 3:9], rtol=1e-12)


def test_fewer_points_would_show(monkeypatch):
    monkeypatch.setattr(close_items, "_POINTS", 6)
    locations, sizes = _groups(3.0)
    items = CloseItems.of(locations, sizes)
    found, expected = items.weights(sizes) @ NORMAL.survival(4 - items.points), sizes @ NORMAL.survival(4 - locations)
    assert found != pytest.approx(expected, rel=2e-9)
    assert found == pytest.approx(expected, rel=1e-3)


def test_groups_may_share_a_location():
    items = CloseItems.of(np.append(np.zeros(20), np.full(20, -0.5)), np.ones(40))
    assert items.weights(np.ones(40)) @ np.exp(items.points) == pytest.approx(20 + 20 * np.exp(-0.5), rel=1e-12)
    same = CloseItems.of(np.zeros(20), np.ones(20))
    assert same.weights(np.ones(20)) @ np.exp(same.points) == pytest.approx(20, rel=1e-12)


def _tail(spread: float, log_radius: np.ndarray, z: np.ndarray) -> tuple[NormalTail, np.ndarray, np.ndarray]:
    """Return the rare ones of some items, their locations and sizes; each costs twice its distance."""
    locations, sizes = _groups(spread)
    items = NormalItems(CloseItems.of(locations, sizes), -2 * locations, np.append(-2 * np.diff(locations), 0.0))
    first = items.start(z, log_radius)
    return items.tails(np.array([first]), len(sizes))[0], locations[first:], sizes[first:]


def _passed(locations: np.ndarray, sizes: np.ndarray, z: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The sum of normal_tails.py, group by group."""
    x = z - locations[:, None]
    logs = sizes[:, None, None] * np.log1p((NORMAL.survival(x) / NORMAL.cdf(x))[..., None] * points)
    behind = np.cumsum(logs[::-1], axis=0)[::-1][1:]
    rates = np.cumsum((sizes[:, None] * NORMAL.density(x) / NORMAL.cdf(x))[::-1], axis=0)[::-1][1:]
    return ((-2 * np.diff(locations))[:, None, None] * rates[..., None] * np.exp(-behind)).sum(axis=0)


CASES = [
    (0.4, 2.6, -0.5),
    (0.4, 1.0, -3.0),
    (3.0, 1.0, -2.0),
    (3.0, 2.0, 0.0),
    (6.0, 2.0, 3.0),
    (6.0, 5.0, 9.0),
    (60.0, 2.0, 1.0),
]


@pytest.mark.parametrize(("spread", "lowest", "log_radius"), CASES)
def test_a_tail_is_its_items(spread, lowest, log_radius):
    z = lowest + np.array([0.0, 0.4, 1.3])
    logs = log_radius + 0.3 * np.arange(3)
    tail, locations, sizes = _tail(spread, logs, z)
    assert len(sizes) > 3
    points, x = np.exp(logs)[:, None] * TURNS, z - locations[:, None]
    f, s, d = (values(x)[..., None] for values in (NORMAL.cdf, NORMAL.survival, NORMAL.density))
    m, c = sizes[:, None, None], -2 * locations[:, None, None]
    found = tail.at(z, logs) @ TURNS ** np.arange(SIZE)[:, None]
    np.testing.assert_allclose(found[LAW], (m * np.log(f + s * points)).sum(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[MARKED], (m * d / (f + s * points)).sum(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[COSTLY], (c * m * d / (f + s * points)).sum(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(log_law(tail.items, z, logs).shape, tail.at(z, logs)[LAW].shape)
    np.testing.assert_allclose(log_law(tail.items, z, logs), tail.at(z, logs)[LAW], rtol=1e-12)
    expected = _passed(locations, sizes, z, points)
    # Beside the law, which is at most e^{−v (1 − cos θ)}.
    variance = (sizes[:, None] * (s * f)[..., 0] * np.exp(logs) / (f + s * np.exp(logs)[:, None])[..., 0] ** 2).sum(
        axis=0
    )
    law = np.exp(-variance[:, None] * (1 - TURNS.real))
    error = np.abs(tail.passed(z, logs, TURNS) - expected) * law
    assert (error < 1e-10 * np.abs(expected[:, :1])).all()


@pytest.mark.parametrize(("spread", "lowest", "log_radius"), CASES)
def test_a_tail_for_one_needs_no_series(spread, lowest, log_radius):
    z = np.minimum(lowest + np.array([-6.0, 0.0, 1.3, 9.0]), 6.0)
    tail, *_ = _tail(spread, np.full(4, log_radius), z)
    more, whole = tail.for_one()
    locations, sizes = _groups(spread)
    assert (more, whole.first) == (tail.first, 0)
    x = z - locations[:, None]
    expected = [
        sizes @ log_ndtr(x),
        sizes @ (NORMAL.density(x) / NORMAL.cdf(x)),
        sizes @ NORMAL.density(x),
        (sizes * -2 * locations) @ NORMAL.density(x),
    ]
    np.testing.assert_allclose(whole.plainly(z), expected, rtol=1e-9)
    plain = _passed(locations, sizes, z, np.ones((4, 1)))[:, 0]
    np.testing.assert_allclose(whole.plainly_passed(z), plain, rtol=1e-9, atol=1e-300)


def test_items_are_rare_where_their_odds_are_small_on_the_circle():
    locations = -np.linspace(0, 30, 3001)
    for z, log_radius in ((0.0, 0.0), (1.0, -5.0), (-2.0, 20.0), (3.0, 200.0)):
        first = int(first_rare(locations, np.array([z]), np.array([log_radius]))[0])
        odds = NORMAL.survival(z - locations) / NORMAL.cdf(z - locations) * np.exp(log_radius)
        assert (odds[first:] <= normal_tails._EACH * 1.01).all()
        assert (odds[: max(first - 2, 0)] > normal_tails._EACH * 0.99).all()


@pytest.mark.parametrize(("name", "value"), [("_ORDERS", ((2, 0.06), (3, 0.2))), ("_CHAINED", 3), ("_UNSEEN", 3.0)])
def test_segments_that_are_too_large_would_show(name, value, monkeypatch):
    monkeypatch.setattr(normal_tails, name, value)
    monkeypatch.setattr(normal_tails, "_MOST_ORDERS", normal_tails._ORDERS[-1][0])
    z, logs = np.array([1.0]), np.array([1.0])
    tail, locations, sizes = _tail(2.0, logs, z)
    expected = _passed(locations, sizes, z, np.exp(logs)[:, None] * TURNS)[:, 0]
    assert tail.passed(z, logs, TURNS)[:, 0] != pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.0005, 0.01, 0.04, 0.3])
def test_forecasts_are_those_of_items_one_by_one(epsilon, monkeypatch):
    mechanism, table = dps.Gaussian(k=40, epsilon=epsilon, delta=1e-6, max_items_per_person=3), dps.Scores.of(LONG_TAIL)
    together = exact_figures(table, mechanism)
    assert "total_error" in together
    # Then no item is rare, and all are computed at each z.
    monkeypatch.setattr(normal_tails, "_EACH", 1e-300)
    monkeypatch.setattr(close_items, "_WIDTH", 1e-300)
    assert exact_figures(table, mechanism) == pytest.approx(together, rel=1e-9)


def test_the_mean_cost_of_what_is_above_z_falls_where_few_items_take_over_from_many():
    locations, sizes = np.array([3.0, 0.0, -0.5, -4.0]), np.array([2.0, 1.0, 3.0, 9000.0])
    costs = np.array([30.0, 0.0, 5.0, 40.0])
    reach = Reach(NoisyGroups(locations, sizes, 3, NORMAL), costs, 1, 1)
    low, high = (
        (3 * 5 * NORMAL.survival(z + 0.5) + 9000 * 40 * NORMAL.survival(z + 4.0))
        / (3 * NORMAL.survival(z + 0.5) + 9000 * NORMAL.survival(z + 4.0))
        for z in (np.array(-1.0), np.array(1.0))
    )
    assert reach.falling_cost(-1.0, 1.0) == pytest.approx(np.log(low / high), rel=1e-12)
    assert np.log(low / high) > 1
    with np.errstate(divide="ignore", invalid="ignore"):
        assert Reach(NoisyGroups(locations[:2], sizes[:2], 3, NORMAL), costs[:2], 1, 1).falling_cost(-1.0, 1.0) == 0


@pytest.mark.parametrize(("leaders", "others", "gap"), [(145_297, 514, 0.17), (3_981, 394_126, 1e-4)])
def test_for_one_item_great_is_exact(leaders, others, gap, monkeypatch):
    """The largest of many changes faster than each: nodes as far apart as for larger k would show."""
    mechanism = dps.Gaussian(k=1, epsilon=0.17, delta=1e-6, max_items_per_person=3)
    table = dps.Scores.from_histogram([gap, 0.0], [leaders, others])
    found = exact_figures(table, mechanism)
    assert found["great"] == pytest.approx(found["exact"], rel=1e-9)
    monkeypatch.setattr(noisy, "_STEP_LARGEST", 2 * noisy._STEP_LARGEST)
    assert exact_figures(table, mechanism)["great"] != pytest.approx(found["exact"], rel=1e-9)
