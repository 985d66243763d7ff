"""Numbers of every type keep their exact value, and are counted exactly."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import InvalidInput
from dpselect._numbers import FLOAT_LIMIT, INTEGER_LIMIT, Extent, counted, exact_array, histogram_of

integers = st.integers(-(10**400), 10**400) | st.integers(-100, 100)
floats = st.floats(allow_nan=False, allow_infinity=False)
numbers = integers | floats | st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=3)


@given(st.lists(numbers, min_size=1, max_size=30))
def test_no_number_changes_its_value(values: list[object]) -> None:
    array = exact_array("scores", values)
    assert [Fraction(value) for value in array.tolist()] == [Fraction(value) for value in values]


@given(st.lists(integers, min_size=1, max_size=30) | st.lists(floats, min_size=1, max_size=30))
def test_differences_never_overflow(values: list[object]) -> None:
    array = exact_array("scores", values)
    differences = array - array[::-1]
    exact = [Fraction(a) - Fraction(b) for a, b in zip(values, reversed(values), strict=True)]
    if array.dtype == np.float64:
        assert np.isfinite(differences).all()
    else:
        assert [Fraction(difference) for difference in differences.tolist()] == exact


def test_extremes_of_integer_types_survive() -> None:
    for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        limits = np.iinfo(dtype)
        array = exact_array("scores", np.array([limits.min, limits.max, 1], dtype=dtype))
        assert array.tolist() == [limits.min, limits.max, 1]


def test_extremes_of_float_types_survive() -> None:
    for dtype in ("f2", "f4", "f8", "longdouble", ">f8", ">f4"):
        limits = np.finfo(dtype)
        given_values = np.array([limits.min, limits.max, limits.smallest_subnormal, 1], dtype=dtype)
        array = exact_array("scores", given_values)
        assert [Fraction(value) for value in array.tolist()] == [
            Fraction(*value.as_integer_ratio()) for value in given_values
        ]


def test_longdouble_keeps_the_bits_that_a_double_has_not() -> None:
    value = np.longdouble(1) + np.finfo(np.longdouble).eps
    array = exact_array("scores", np.array([value, 1], dtype=np.longdouble))
    assert array[0] - array[1] == Fraction(*np.finfo(np.longdouble).eps.as_integer_ratio())


def test_numpy_does_not_get_to_round_a_mixture() -> None:
    """NumPy would turn all of these lists into floats and lose the last digit of the large integer."""
    large = 2**63 + 1
    for others in ([-1], [0.5], [Fraction(1, 3)], [Decimal("0.1")], [np.float32(0.5)]):
        assert exact_array("scores", [large, *others])[0] == large


TYPES: list[tuple[Any, Any]] = [
    ([True, False], np.int64),
    ([1, 2], np.int64),
    ([INTEGER_LIMIT - 1, 1 - INTEGER_LIMIT], np.int64),
    ([INTEGER_LIMIT, 0], object),
    ([1.5, 2], np.float64),
    ([1.5, Fraction(1, 4), Decimal("0.5")], np.float64),
    ([Fraction(1, 3), 1], object),
    ([FLOAT_LIMIT, 0.0], object),
    (np.array([1, 2], dtype=object), np.int64),
    (range(5), np.int64),
    (np.array([3, 1, 2])[::-1], np.int64),
]


def test_the_fastest_exact_type_is_chosen() -> None:
    for values, dtype in TYPES:
        assert exact_array("scores", values).dtype == dtype


BAD = {
    "NaN": [1.0, float("nan")],
    "infinity": [1.0, float("inf")],
    "minus infinity": np.array([1.0, -np.inf]),
    "NaN among integers": [1, float("nan")],
    "float32 NaN": np.array([1, np.nan], dtype=np.float32),
    "longdouble infinity": np.array([1, np.inf], dtype=np.longdouble),
    "decimal NaN": [Decimal("NaN")],
    "signaling NaN": [Decimal("sNaN")],
    "decimal infinity": [Decimal("Infinity"), 1],
    "text": ["1", "2"],
    "text among numbers": [1, "2"],
    "bytes": [b"1"],
    "None": [1, None],
    "complex": [1j, 2],
    "complex array": np.array([1 + 0j]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "durations": np.array([1], dtype="timedelta64[s]"),
    "records": np.array([(1, 2)], dtype=[("a", int), ("b", int)]),
    "two dimensions": [[1, 2], [3, 4]],
    "no dimension": np.array(3),
    "ragged": [[1], [2, 3]],
    "number and list": [1, [2]],
    "masked": np.ma.masked_array([1, 2], mask=[False, True]),
    "objects": [object()],
}


def test_data_other_than_finite_numbers_is_refused() -> None:
    for kind, values in BAD.items():
        with pytest.raises(InvalidInput) as caught:
            exact_array("scores", values)
        assert caught.value.argument == "scores", kind


def test_a_refused_score_is_not_quoted() -> None:
    for values in ([1, "alice was here"], [1234.5, float("inf")], [1234.5, None], [1234.5, [1]]):
        with pytest.raises(InvalidInput) as caught:
            exact_array("scores", values)
        assert "alice" not in str(caught.value)
        assert "1234" not in str(caught.value)


def test_a_masked_array_without_gaps_is_an_array() -> None:
    assert exact_array("scores", np.ma.masked_array([1, 2], mask=False)).tolist() == [1, 2]


@given(
    st.lists(st.integers(-5, 5), min_size=1)
    | st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e300, 5e-324]), min_size=1)
    | st.lists(numbers, min_size=1)
)
def test_a_histogram_equals_counter(values: list[object]) -> None:
    data = exact_array("scores", values)
    distinct, multiplicities = counted(data, Extent.of(data) if data.dtype == np.int64 else None)
    expected = Counter(Fraction(value) for value in values)
    found = dict(zip(map(Fraction, distinct.tolist()), multiplicities.tolist(), strict=True))
    assert found == expected
    assert list(found) == sorted(found, reverse=True)


@given(st.lists(st.tuples(numbers, st.integers(0, 10**40)), min_size=1, max_size=20))
def test_pairs_with_equal_scores_are_merged(pairs: list[tuple[object, int]]) -> None:
    expected: Counter[Fraction] = Counter()
    for value, size in pairs:
        expected[Fraction(value)] += size
    expected = +expected
    if not expected:
        return
    distinct, multiplicities = histogram_of([value for value, _ in pairs], [size for _, size in pairs])
    assert dict(zip(map(Fraction, distinct.tolist()), multiplicities.tolist(), strict=True)) == expected
    assert sum(multiplicities.tolist()) == expected.total()


@given(st.lists(st.integers(-5, 40), min_size=1, max_size=700), st.integers(-6, 41))
def test_an_extent_knows_where_the_high_integers_may_be(values: list[int], lowest: int) -> None:
    data = np.array(values)
    extent = Extent.of(data)
    assert (extent.low, extent.high) == (min(values), max(values))
    places = extent.places_from(lowest, len(data))
    if places is not None:
        assert set(np.flatnonzero(data >= lowest).tolist()) <= set(places.tolist())
        assert places.tolist() == sorted(set(places.tolist()) & set(range(len(data))))


def test_few_places_are_left_where_few_integers_are_high() -> None:
    data = np.zeros(10_050, dtype=np.int64)
    data[[17, 9_000, 10_049]] = 5
    places = Extent.of(data).places_from(5, len(data))
    assert places is not None
    assert {17, 9_000, 10_049} <= set(places.tolist())
    assert len(places) < 200
