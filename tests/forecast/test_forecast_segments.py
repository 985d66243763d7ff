"""Segments of items below rank k: power sums, item by item and counting all give the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpselect.forecast.noisy import log_series
from dpselect.forecast.segments import COSTLY, MARKED, PASSED, Segments
from dpselect.forecast.tails import HEAVY_TERMS, LIGHT_TERMS, Tails
from dpselect.sampling import NOISES

Z = np.array([3.0, 4.5, 7.0])


def one_by_one(noise: str, locations: np.ndarray, sizes: np.ndarray, costs: np.ndarray, last: int) -> Segments:
    """Join the items of all groups; the step to the next group comes with the last of each."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    steps = np.where(np.diff(groups, append=len(sizes)) > 0, np.append(np.diff(costs), 0.0)[groups], 0.0)
    items = Segments.items(NOISES[noise], Z - locations[groups, None], costs[groups], steps)
    return Segments.empty(len(Z), float(costs[0])).joined(items.together(last), last)


@pytest.mark.parametrize("noise", list(NOISES))
@pytest.mark.parametrize(("terms", "highest"), [(LIGHT_TERMS, -5.5), (HEAVY_TERMS, -0.5)])
def test_a_tail_is_its_items(noise: str, terms: int, highest: float) -> None:
    locations = highest - np.array([0.0, 0.3, 0.9, 1.0, 2.5, 4.0])
    sizes, costs = np.array([1, 3, 1, 2, 9, 40]), np.array([1.0, 1.5, 4.0, 4.5, 11.0, 20.0])
    series = log_series(noise)
    assert series is not None
    starts = np.array([0, 2, 5])
    tails = Tails.of(series, terms, starts, locations, sizes.astype(float), costs, np.append(np.diff(costs), 0.0))
    for last in (3, 20):
        found = Segments.empty(len(Z), 1.0).joined(tails.segments(Z, last).together(last), last)
        wanted = one_by_one(noise, locations, sizes, costs, last)
        powers = min(found.law.shape[1], wanted.law.shape[1], 5)
        assert found.law[0, :powers] == pytest.approx(wanted.law[0, :powers], rel=1e-9, abs=1e-13)
        assert found.one == pytest.approx(wanted.one, rel=1e-9)
        for kind in (MARKED, COSTLY, PASSED):
            powers = min(powers, last)
            assert found.parts[0, kind, :powers] == pytest.approx(
                wanted.parts[0, kind, :powers], rel=1e-8, abs=1e-12
            ), kind


@pytest.mark.parametrize("size", [9, 30])
def test_a_group_is_its_items(size: int) -> None:
    noise, shifted = NOISES["gumbel"], Z - 1.0
    for last in (4, 50):
        found = Segments.group(noise, shifted, float(size), 2.0, 3.0, last)
        steps = np.append(np.zeros(size - 1), 3.0)
        wanted = Segments.items(noise, np.tile(shifted, (size, 1)), np.full(size, 2.0), steps).together(last)
        count = min(found.law.shape[1], wanted.law.shape[1])
        assert found.law[0, :count] == pytest.approx(wanted.law[0, :count], rel=1e-10, abs=1e-15)
        assert found.parts[0, :, : min(count, last)] == pytest.approx(
            wanted.parts[0, :, : min(count, last)], rel=1e-9, abs=1e-14
        )
        assert found.none == pytest.approx(wanted.none)
        assert found.one == pytest.approx(wanted.one)


def test_four_items_by_listing_all_patterns() -> None:
    noise, locations, costs = NOISES["exponential"], np.array([2.0, 1.0, 0.5, -1.0]), np.array([1.0, 2.0, 5.0, 7.0])
    found = one_by_one("exponential", locations, np.ones(4, dtype=int), costs, 9)
    shifted = Z - locations[:, None]
    below, above, at_z = noise.cdf(shifted), noise.survival(shifted), noise.density(shifted)
    law, passed = np.zeros((5, len(Z))), np.zeros((5, len(Z)))
    for pattern in itertools.product((False, True), repeat=4):
        law[sum(pattern)] += np.prod([above[i] if is_above else below[i] for i, is_above in enumerate(pattern)], axis=0)
    # Nobody above z behind group g, and one of them at z; before the first group there are none.
    for group, step in enumerate([1.0, 1.0, 3.0, 2.0]):
        for at in range(group, 4):
            for pattern in itertools.product((False, True), repeat=group):
                upper = [above[i] if is_above else below[i] for i, is_above in enumerate(pattern)]
                lower = [at_z[i] if i == at else below[i] for i in range(group, 4)]
                passed[sum(pattern)] += step * np.prod(upper + lower, axis=0)
    assert found.law[0] == pytest.approx(law, rel=1e-12)
    assert found.parts[0, PASSED] == pytest.approx(passed, rel=1e-12)
