"""Members of tied groups are found where they are, whatever the size of a block."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import lookup
from dpselect._numbers import exact_array


def naive_positions(data: list[object]) -> dict[object, list[int]]:
    places: defaultdict[object, list[int]] = defaultdict(list)
    for position, value in enumerate(data):
        places[value].append(position)
    return places


small_numbers = (
    st.lists(st.integers(-3, 3), min_size=1, max_size=60)
    | st.lists(st.sampled_from([-1.5, 0.0, 2.25]), min_size=1, max_size=60)
    | st.lists(st.sampled_from([10**30, Fraction(1, 3), -1]), min_size=1, max_size=60)
)


@given(small_numbers, st.data(), st.sampled_from([1, 2, 3, 7, 60, 1 << 16]))
def test_members_are_found_as_by_looking_at_every_item(values: list[object], data: st.DataObject, block: int) -> None:
    array = exact_array("scores", values)
    places = naive_positions(array.tolist())
    wanted = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=10, unique=True))
    scores = array[wanted]
    indexes = np.array([places[score].index(place) for score, place in zip(scores.tolist(), wanted, strict=True)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "_BLOCK", block)
        assert lookup.positions_of_members(array, scores, indexes).tolist() == wanted


def test_members_beyond_the_first_block_are_found_with_the_block_size_in_use() -> None:
    data = np.arange(3 * lookup._BLOCK) % 5
    indexes = np.array([0, lookup._BLOCK // 5, len(data) // 5 - 1])
    positions = lookup.positions_of_members(data, np.array([4, 4, 4]), indexes)
    assert positions.tolist() == np.flatnonzero(data == 4)[indexes].tolist()
