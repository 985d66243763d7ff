"""Items taken together, merged or left out give what items one by one do."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpselect as dps
from dpselect.forecast import rare_items
from dpselect.forecast.figures import exact_figures
from dpselect.forecast.mistake_reach import Reach
from dpselect.forecast.noise_values import merged, values_at
from dpselect.forecast.noisy import log_series
from dpselect.forecast.rare_items import RareItems
from dpselect.forecast.segments import Segments
from dpselect.forecast.tails import HEAVY, HEAVY_EACH, HEAVY_TERMS, LIGHT, LIGHT_EACH, LIGHT_TERMS
from dpselect.sampling import NOISES
from dpselect.sampling.normal import NORMAL

LONG_TAIL = np.round(3000 / np.arange(1, 1501) ** 0.7)


@pytest.mark.parametrize("noise", [*NOISES.values(), NORMAL], ids=lambda noise: noise.name)
def test_values_that_share_exponentials_are_those_of_the_noise(noise):
    x = np.concatenate([-np.geomspace(1e-9, 2000, 60), [0.0], np.geomspace(1e-9, 2000, 60)])
    with np.errstate(over="ignore", under="ignore"):
        expected = noise.cdf(x), noise.survival(x), noise.density(x)
        for found, wanted in zip(values_at(noise, x), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", NOISES)
def test_merged_groups_bound_how_many_items_are_above_a_value(name):
    locations, sizes = -(np.linspace(0, 12, 400) ** 1.3), np.arange(400.0) % 7 + 1
    costs, z = np.linspace(1, 90, 400), np.linspace(-3, 20, 47)
    rough, together, means = merged(locations, sizes, costs)
    assert len(rough) < 120
    assert together.sum() == sizes.sum()
    assert (together * means) @ np.exp(rough) == pytest.approx((sizes * costs) @ np.exp(locations), rel=1e-12)
    exact = sizes @ NOISES[name].survival(z - locations[:, None])
    bound = together @ NOISES[name].survival(z - rough[:, None])
    assert (bound >= exact * (1 - 1e-12)).all()
    assert (bound <= exact * 1.01).all()


@pytest.mark.parametrize(
    ("mass", "each", "order", "scale"), [(LIGHT, LIGHT_EACH, LIGHT_TERMS, 50), (HEAVY, HEAVY_EACH, HEAVY_TERMS, 11)]
)
def test_what_the_series_of_tails_leave_out_is_below_the_stated_error(mass, each, order, scale):
    product = math.exp(-mass * math.log1p(-scale * each) / each)
    assert product * scale**-order / (scale - 1) * scale / (1 - scale * each) < 1e-10


@pytest.mark.parametrize("name", NOISES)
def test_no_noise_has_a_larger_series_than_the_one_of_the_proof(name):
    series, powers = log_series(name), np.arange(1, 21)
    assert (np.abs(series) <= series[0] ** powers / powers * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", NOISES)
def test_heavy_segments_keep_to_the_mass_of_the_proof(name):
    items = RareItems(log_series(name), -4 - np.arange(200) / 40, 1.0 + np.arange(200) % 60, np.ones(200), np.ones(200))
    for lowest in (-1.0, 0.0, 1.5):
        border = items.borders(lowest)
        heavy = items.tails([border])[0][0]
        assert len(heavy.bases) > 4
        # The first power sum of a segment is its mass; −log F begins with it.
        assert (-heavy.law[:, 0, 1] * np.exp(heavy.bases - lowest)).max() <= HEAVY


@pytest.mark.parametrize("name", NOISES)
def test_a_group_of_great_mass_cut_into_pieces_is_the_group(name):
    noise, series = NOISES[name], log_series(name)
    sizes = np.round(np.array([37.0, 250.0, 50.0, 3.0]) / series[0])
    locations = np.array([-4.0, -4.5, -6.0, -9.0])
    costs, steps = np.array([2.0, 5.0, 6.0, 9.0]), np.array([3.0, 1.0, 3.0, 0.0])
    items = RareItems(series, locations, sizes, costs, steps)
    z, last = np.array([0.0, 0.3, 2.0]), 30
    border = items.borders(0.0)
    assert border.heavy == 0
    parts = items.tails([border])[0]
    assert sum(len(part.bases) for part in parts) > len(sizes)
    found = expected = Segments.empty(len(z), 2.0)
    for part in parts:
        found = found.joined(part.segments(z, last).together(last), last)
    for location, size, cost, step in zip(locations, sizes, costs, steps, strict=True):
        expected = expected.joined(Segments.group(noise, z - location, size, cost, step, last), last)
    np.testing.assert_allclose(found.law[0], expected.law[0], atol=1e-11)
    np.testing.assert_allclose(found.parts[0, :, :last], expected.parts[0, :, :last], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", NOISES)
def test_rare_items_together_cost_what_they_cost_one_by_one(name, monkeypatch):
    mechanism = dps.OneShot(k=8, epsilon=0.06, noise=name)
    table = dps.Scores.of(np.append(LONG_TAIL[:300], [5.0] * 900))
    together = exact_figures(table, mechanism)
    # Then every group counts as common.
    monkeypatch.setattr(rare_items, "HEAVY_EACH", 0.0)
    monkeypatch.setattr(rare_items, "LIGHT", 0.0)
    assert exact_figures(table, mechanism) == pytest.approx(together, rel=1e-9)


@pytest.mark.parametrize("name", ["laplace", "logistic"])
def test_where_others_surely_fill_the_answer_nothing_is_counted(name, monkeypatch):
    mechanism, table = dps.OneShot(k=20, epsilon=0.4, noise=name), dps.Scores.of(LONG_TAIL)
    settled, whole = [], Reach.nodes

    def nodes(reach):
        places, weights, border = whole(reach)
        settled.append(int((places < border).sum()))
        return places, weights, -np.inf

    found = exact_figures(table, mechanism)
    monkeypatch.setattr(Reach, "nodes", nodes)
    assert exact_figures(table, mechanism) == pytest.approx(found, rel=1e-11)
    assert settled[0] > 50
