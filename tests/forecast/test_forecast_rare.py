"""Items taken together, merged or left out give what items one by one do."""

from __future__ import annotations

import numpy as np
import pytest

import dpselect as dps
from dpselect.forecast import mistake_chunks, mistake_looks, mistake_reach, mistake_smooth, tails, tilted
from dpselect.forecast.contour import Circle
from dpselect.forecast.figures import exact_figures
from dpselect.forecast.mistake_below import Below
from dpselect.forecast.mistake_nodes import Groups, Nodes
from dpselect.forecast.mistake_reach import Reach
from dpselect.forecast.mistake_upper import Upper
from dpselect.forecast.noise_values import merged, values_at
from dpselect.forecast.noisy import NoisyGroups, log_series
from dpselect.forecast.tails import COSTLY, EACH, LAW, MARKED, MASS, SLOPE, TERMS, RareItems, Tail
from dpselect.sampling import NOISES
from dpselect.sampling.noise import NORMAL

LONG_TAIL = np.round(3000 / np.arange(1, 1501) ** 0.7)


@pytest.mark.parametrize("noise", [*NOISES.values(), NORMAL], ids=lambda noise: noise.name)
def test_values_that_share_exponentials_are_those_of_the_noise(noise):
    x = np.concatenate([-np.geomspace(1e-9, 2000, 60), [0.0], np.geomspace(1e-9, 2000, 60)])
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        expected = noise.cdf(x), noise.survival(x), noise.density(x)
        for found, wanted in zip(values_at(noise, x, np.zeros(1)), expected, strict=True):
            np.testing.assert_allclose(found[0], wanted, rtol=1e-12, atol=1e-300)
        locations, near = np.array([1500.0, 40.0, 1.0, 0.0, -3.0, -50.0, -600.0]), x[np.abs(x) < 90]
        each = near - locations[:, None]
        expected = noise.cdf(each), noise.survival(each), noise.density(each)
        for found, wanted in zip(values_at(noise, near, locations), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-250)


@pytest.mark.parametrize("name", NOISES)
def test_merged_groups_bound_how_many_items_are_above_a_value(name):
    locations, sizes = -(np.linspace(0, 12, 400) ** 1.3), np.arange(400.0) % 7 + 1
    costs, z = np.linspace(1, 90, 400), np.linspace(-3, 20, 47)
    rough, together, means = merged(NOISES[name], locations, sizes, costs)
    assert len(rough) < 120
    assert together.sum() == sizes.sum()
    assert (together * means) @ np.exp(rough) == pytest.approx((sizes * costs) @ np.exp(locations), rel=1e-12)
    exact = sizes @ NOISES[name].survival(z - locations[:, None])
    bound = together @ NOISES[name].survival(z - rough[:, None])
    assert (bound >= exact * (1 - 1e-12)).all()
    assert (bound <= exact * 1.01).all()


def test_merged_groups_of_normal_noise_are_about_as_often_above_a_value():
    sizes, costs, z = np.arange(600.0) % 7 + 1, np.linspace(1, 90, 600), np.linspace(-3, 9, 25)
    rough, together, _ = merged(NORMAL, -(np.linspace(0, 2.6, 600) ** 2), sizes, costs)
    assert len(rough) < 80
    exact = sizes @ NORMAL.survival(z + (np.linspace(0, 2.6, 600) ** 2)[:, None])
    np.testing.assert_allclose(together @ NORMAL.survival(z - rough[:, None]), exact, rtol=0.05)


def test_what_the_series_of_tails_leave_out_is_below_the_stated_error():
    for each in np.linspace(0, EACH, 41):
        left_out, term = 0.0, 1.0
        for order in range(TERMS + 40):
            left_out += term if order >= TERMS else 0.0
            term *= (MASS - SLOPE * each + (order + 1) * each) / (order + 1)
        assert left_out < 2.2e-10


@pytest.mark.parametrize("name", NOISES)
def test_no_noise_has_a_larger_series_than_the_one_of_the_proof(name):
    series, powers = log_series(name), np.arange(1, 21)
    assert (np.abs(series) <= series[0] ** powers / powers * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("log_radius", [-2.0, 0.0, 1.5])
@pytest.mark.parametrize("many", [1.0, 70.0])
def test_a_tail_is_its_items(name, log_radius, many):
    """Groups of one segment and of several, among them one larger than a segment may be."""
    noise, z, logs = NOISES[name], np.array([3.5, 4.5, 7.0]), np.full(3, log_radius)
    locations = -5.0 - np.array([0.0, 0.3, 0.9, 1.0, 2.5, 4.0])
    sizes = many * np.array([1.0, 3.0, 1.0, 2.0, 9.0, 40.0])
    costs = np.array([1.0, 1.5, 4.0, 4.5, 11.0, 20.0])
    items = RareItems(log_series(name), locations, sizes, costs, np.append(np.diff(costs), 0.0))
    starts = np.array([0, 2, 5, 6])
    turns = np.exp(1j * np.array([0.0, 0.4, 2.0]))
    points = np.exp(log_radius) * turns
    below, above, at_z = values_at(noise, z, locations)
    for start, tail in zip(starts, items.tails(starts, 3.5 - max(log_radius, 0.0)), strict=True):
        found = tail.at(z, logs) @ turns ** np.arange(TERMS + 1)[:, None]
        f, s, d = (part[start:, :, None] for part in (below, above, at_z))
        m, c = sizes[start:, None, None], costs[start:, None, None]
        np.testing.assert_allclose(found[LAW], (m * np.log(f + s * points)).sum(axis=0), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found[MARKED], (m * d / (f + s * points)).sum(axis=0), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(found[COSTLY], (c * m * d / (f + s * points)).sum(axis=0), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(tail.passed(z, logs, turns), _passed(f, s, d, m, c, points), rtol=1e-9, atol=1e-14)
        plain = _passed(f, s, d, m, c, np.ones((3, 1)))[:, 0]
        np.testing.assert_allclose(tail.plainly_passed(z), plain, rtol=1e-9, atol=1e-14)


def _passed(below, above, at_z, sizes, costs, points):
    """The sum of tails.py, group by group."""
    result = np.zeros(np.broadcast_shapes(below.shape[1:], points.shape), dtype=complex)
    for group in range(len(sizes) - 1):
        behind = slice(group + 1, None)
        odds = np.prod((1 + above[behind] / below[behind] * points) ** sizes[behind], axis=0)
        rates = (sizes[behind] * at_z[behind] / below[behind]).sum(axis=0)
        result += (costs[group + 1] - costs[group]) * rates / odds
    return result


@pytest.mark.parametrize("name", NOISES)
def test_items_are_rare_and_cut_into_segments_where_the_proof_says(name):
    items = RareItems(log_series(name), -4 - np.arange(200) / 40, 1.0 + np.arange(200) % 60, np.ones(200), np.ones(200))
    each = items.series[0] * np.exp(items.locations + 2.0)
    start = items.start(np.array([-1.5, -1.0]), np.array([-9.0, 1.0]))
    assert 0 < start < 200
    assert each[start] <= EACH < each[start - 1]
    segments = items.tails(np.array([start]), -2.0)[0].segments
    masses, each = (items.sizes * each)[start:], each[start:]
    ends = np.append(segments.starts[1:], 200 - start)
    assert len(ends) > 3
    assert segments.heavy.any()
    assert not segments.heavy.all()
    for first, end, heavy in zip(segments.starts, ends, segments.heavy, strict=True):
        most = (MASS - SLOPE * EACH * each[first] / each[0]) * (1 + 1e-12)
        assert heavy == (masses[first:end].sum() > most)
        assert not heavy or end == first + 1
        assert end == len(masses) or masses[first : end + 1].sum() > most * (1 - 1e-9)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("epsilon", [0.06, 0.4])
def test_rare_and_light_items_together_cost_what_they_cost_one_by_one(name, epsilon, monkeypatch):
    mechanism = dps.OneShot(k=8, epsilon=epsilon, noise=name)
    table = dps.Scores.of(np.append(LONG_TAIL[:300], [5.0] * 900))
    together = exact_figures(table, mechanism)
    monkeypatch.setattr(tails, "EACH", 0.0)
    monkeypatch.setattr(tilted, "LIGHT", 0.0)
    assert exact_figures(table, mechanism) == pytest.approx(together, rel=1e-9)


@pytest.mark.parametrize("name", ["laplace", "logistic"])
def test_where_z_is_surely_passed_by_enough_or_too_few_nothing_is_counted(name, monkeypatch):
    mechanism, table = dps.OneShot(k=80, epsilon=1.6, noise=name), dps.Scores.of(LONG_TAIL)
    sure, whole = [], Reach.nodes

    def nodes(reach):
        found = whole(reach)
        sure.append((int((found.missing & found.settled).sum()), int((found.chosen & found.empty).sum())))
        nowhere = np.zeros_like(found.settled)
        return Nodes(found.z, found.weights, found.missing, found.chosen, nowhere, nowhere)

    found = exact_figures(table, mechanism)
    monkeypatch.setattr(Reach, "nodes", nodes)
    monkeypatch.setattr(mistake_chunks, "_SURE", -np.inf)
    assert exact_figures(table, mechanism) == pytest.approx(found, rel=1e-10)
    assert min(sure[0]) > 20


@pytest.mark.parametrize("noise", [*NOISES])
def test_finer_nodes_change_nothing(noise, monkeypatch):
    """At the stated error: nodes twice as dense, over a wider range, on circles with more points."""
    mechanism, table = dps.OneShot(k=20, epsilon=0.7, noise=noise), dps.Scores.of(LONG_TAIL)
    found = exact_figures(table, mechanism)
    monkeypatch.setattr(mistake_reach, "_PANEL", mistake_reach._PANEL / 2)
    monkeypatch.setattr(mistake_reach, "_DEPTH", mistake_reach._DEPTH + 6)
    monkeypatch.setattr("dpselect.forecast.noisy._PANELS", 14)
    monkeypatch.setattr("dpselect.forecast.noisy._PANEL", 1.3)
    monkeypatch.setattr("dpselect.forecast.contour._NEVER", 50.0)
    monkeypatch.setattr("dpselect.forecast.contour._UNSEEN", 40.0)
    assert exact_figures(table, mechanism) == pytest.approx(found, rel=2e-9)


DROWNED = np.round(4000 / np.arange(1, 1501) ** 0.5)


@pytest.mark.parametrize("noise", [*NOISES])
@pytest.mark.parametrize("epsilon", [0.02, 0.1])
def test_looks_give_what_nodes_one_by_one_do(noise, epsilon, monkeypatch):
    mechanism, table = dps.OneShot(k=60, epsilon=epsilon, noise=noise), dps.Scores.of(DROWNED)
    taken, integrals = [], mistake_smooth.Smooth.integrals

    def counted(smooth, *arguments):
        taken.append(integrals(smooth, *arguments))
        return taken[-1]

    monkeypatch.setattr(mistake_smooth.Smooth, "integrals", counted)
    found = exact_figures(table, mechanism)
    assert [each is None for each in taken] == [False]
    monkeypatch.setattr(mistake_smooth.Smooth, "of", lambda *_: None)
    monkeypatch.setattr(mistake_looks, "plain_looks", lambda _: ())
    assert exact_figures(table, mechanism) == pytest.approx(found, rel=2e-9)


@pytest.mark.parametrize("epsilon", [0.6, 1.0, 2.5])
def test_kinks_below_rank_k_are_looked_at_one_by_one(epsilon, monkeypatch):
    """Laplace noise: the groups that some z is below count at each node, the others by looks."""
    mechanism, table = dps.OneShot(k=60, epsilon=epsilon, noise="laplace"), dps.Scores.of(DROWNED)
    nearest, integrals = [], mistake_smooth.Smooth.integrals

    def counted(smooth, groups, *arguments):
        nearest.append(smooth.first - groups.border)
        return integrals(smooth, groups, *arguments)

    monkeypatch.setattr(mistake_smooth.Smooth, "integrals", counted)
    found = exact_figures(table, mechanism)
    assert len(nearest) == 1
    assert nearest[0] > 5
    monkeypatch.setattr(mistake_smooth.Smooth, "of", lambda *_: None)
    assert exact_figures(table, mechanism) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("sizes", [np.ones(30), np.arange(30.0) % 3 + 1])
def test_nearest_and_further_groups_make_up_how_deep_the_lowest_item_is(sizes):
    """`law · W` of all groups from rank k's on, from those before some group and from those behind."""
    noisy = NoisyGroups(6.0 - 0.4 * np.arange(30.0), sizes, int(sizes[:16].sum()), NOISES["laplace"])
    costs = np.abs(np.arange(30.0) - 15) ** 1.5
    groups = Groups(noisy, costs, np.append(np.diff(costs), 0.0), 15, 1)
    z, log_radius = np.array([-1.3, -0.2, 0.4, 2.0]), np.array([-0.4, -0.2, 0.0, 0.3])
    every = Below.of(groups, 30, Tail.none(), z, log_radius)
    circle = Circle.of(log_radius, every.variance)
    wanted = every.law(circle) * every.depths(circle.turns)
    for first in (17, 20, 29):
        upper, below = (
            Upper.of(groups, z, log_radius, first),
            Below.of(groups, 30, Tail.none(), z, log_radius, first),
        )
        laws, (log_none, log_rate) = upper.nearest_laws(circle), below.none_above()
        far = below.law(circle) * below.depths(circle.turns)
        np.testing.assert_allclose(
            upper.depths(laws, log_none, np.exp(log_rate)) + laws[-1] * far, wanted, rtol=1e-11, atol=1e-14
        )
        np.testing.assert_allclose(laws[-1] * below.law(circle), every.law(circle), rtol=1e-11, atol=1e-14)
        assert np.abs(laws[-1] * far / wanted - 1).max() > 1e-3


@pytest.mark.parametrize(
    ("noise", "epsilon"), [*((name, 0.5) for name in NOISES), ("laplace", 1.5), ("exponential", 1.5)]
)
def test_one_circle_does_for_what_is_missing_and_what_is_chosen(noise, epsilon, monkeypatch):
    mechanism, table = dps.OneShot(k=20, epsilon=epsilon, noise=noise), dps.Scores.of(LONG_TAIL)
    kinds, both = [], mistake_chunks.Chunk.both
    monkeypatch.setattr(mistake_chunks.Chunk, "both", lambda chunk: kinds.append("both") or both(chunk))
    found = exact_figures(table, mechanism)
    assert kinds
    monkeypatch.setattr(mistake_reach, "_VARIED", np.inf)
    taken = len(kinds)
    assert exact_figures(table, mechanism) == pytest.approx(found, rel=1e-9)
    assert len(kinds) == taken


@pytest.mark.parametrize("noise", [*NOISES])
def test_too_few_looks_are_noticed(noise, monkeypatch):
    mechanism, table = dps.OneShot(k=60, epsilon=0.1, noise=noise), dps.Scores.of(DROWNED)
    found = exact_figures(table, mechanism)
    for name in ("SMOOTH", "KINKED", "ONE_SIDED"):
        monkeypatch.setattr(mistake_smooth, name, (2.0, 7.0, 0.0))
    monkeypatch.setattr(mistake_looks, "plain_looks", lambda _: (7, 9))
    assert exact_figures(table, mechanism) == pytest.approx(found, rel=2e-9)
    monkeypatch.setattr(mistake_looks, "_DOUBT", np.inf)
    assert exact_figures(table, mechanism) != pytest.approx(found, rel=1e-6)
