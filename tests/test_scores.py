"""Scores of any type are counted exactly, and the items of a score are found."""

from __future__ import annotations

import importlib
import pickle
from collections import Counter, OrderedDict, defaultdict
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from dpselect import InvalidInput, Scores
from dpselect._numbers import exact_array
from dpselect.scores import positions_of_members

scores_module = importlib.import_module("dpselect.scores")

LABELS = ["ant", "bee", "cat", "dog"]
NUMBERS = [3, 7, 7, -2]


def members(scores: Scores) -> dict[object, set[object]]:
    """Return the items of each score, by asking for every member of every group."""
    found: dict[object, set[object]] = {}
    for group, (value, size) in enumerate(zip(scores.values.tolist(), scores.multiplicities.tolist(), strict=True)):
        places = scores.distinct.members(np.full(size, group), np.arange(size)).positions()
        found[value] = set(scores.items(places.tolist()))
    return found


@pytest.mark.parametrize(
    "data",
    [
        dict(zip(LABELS, NUMBERS, strict=True)),
        OrderedDict(zip(LABELS, NUMBERS, strict=True)),
        MappingProxyType(dict(zip(LABELS, NUMBERS, strict=True))),
        Counter(dict(zip(LABELS, NUMBERS, strict=True))),
        pd.Series(NUMBERS, index=LABELS),
        pd.Series(NUMBERS, index=LABELS, dtype="Int64"),
        pd.Series(NUMBERS, index=LABELS, dtype="float32"),
        pd.Series(NUMBERS, index=LABELS, dtype="int64[pyarrow]"),
        pd.Series([Decimal(number) for number in NUMBERS], index=LABELS),
    ],
    ids=lambda data: type(data).__name__ + str(getattr(data, "dtype", "")),
)
def test_labelled_scores_keep_their_labels(data: object) -> None:
    assert members(Scores.of(data)) == {7: {"bee", "cat"}, 3: {"ant"}, -2: {"dog"}}


@pytest.mark.parametrize(
    "data",
    [
        NUMBERS,
        tuple(NUMBERS),
        np.array(NUMBERS),
        np.array(NUMBERS, dtype=np.int8),
        np.array(NUMBERS, dtype=np.float32),
        np.array(NUMBERS, dtype=object),
        np.array([n for number in NUMBERS for n in (number, 0)])[::2],
        pl.Series("votes", NUMBERS),
        pl.Series(NUMBERS, dtype=pl.Float64),
        pl.Series(NUMBERS, dtype=pl.Decimal(10, 2)),
        Scores.of(NUMBERS),
    ],
    ids=lambda data: type(data).__name__ + str(getattr(data, "dtype", "")),
)
def test_items_without_labels_are_their_positions(data: object) -> None:
    assert members(Scores.of(data)) == {7: {1, 2}, 3: {0}, -2: {3}}


def test_a_series_that_covers_several_chunks_is_one_series() -> None:
    chunked = pl.Series([3, 7]).append(pl.Series([7, -2]))
    assert members(Scores.of(chunked)) == {7: {1, 2}, 3: {0}, -2: {3}}


def test_labels_may_be_dates_tuples_and_numbers() -> None:
    days = pd.Series([5, 1], index=pd.to_datetime(["2020-01-01", "2020-01-02"]))
    assert Scores.of(days).item(0) == pd.Timestamp("2020-01-01")
    pairs = pd.Series([5, 1], index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    assert Scores.of(pairs).item(1) == ("b", 2)
    assert Scores.of({None: 1, 2.5: 3}).items([0, 1]) == [None, 2.5]


@given(st.dictionaries(st.text(), st.integers(-3, 3) | st.floats(-1, 1) | st.integers(), min_size=1))
def test_ranks_and_items_match_for_any_mapping(data: dict[str, float]) -> None:
    scores = Scores.of(data)
    assert scores.size == len(scores) == len(data)
    found = members(scores)
    assert Counter({Fraction(value): len(items) for value, items in found.items()}) == Counter(
        Fraction(value) for value in data.values()
    )
    for value, items in found.items():
        assert all(Fraction(data[str(item)]) == Fraction(value) for item in items)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 9)), min_size=1))
def test_positions_of_a_histogram_count_down_the_ranks(pairs: list[tuple[int, int]]) -> None:
    scores = Scores.from_histogram(pairs, item=lambda value, index: (value, index))
    sizes: Counter[int] = Counter()
    for value, size in pairs:
        sizes[value] += size
    expected = [(value, index) for value in sorted(sizes, reverse=True) for index in range(sizes[value])]
    assert scores.items(range(scores.size)) == expected


HISTOGRAMS: list[tuple[Any, ...]] = [
    ([(3, 2), (5, 1)],),
    ([[3, 2], [5, 1]],),
    (np.array([[3, 2], [5, 1]]),),
    ([3, 5], [2, 1]),
    (np.array([3, 5]), np.array([2, 1])),
    (np.array([3, 5], dtype=np.uint8), np.array([2, 1], dtype=np.int8)),
    ({3: 2, 5: 1}.keys(), {3: 2, 5: 1}.values()),
    ({3: 2, 5: 1}.items(),),
    (iter([(3, 2), (5, 1)]),),
    (iter([3, 5]), iter([2, 1])),
    (pd.Series([3, 5]), pd.Series([2, 1])),
    (pl.Series([3, 5]), pl.Series([2, 1])),
    ([3, 5, 3, 9], [1, 1, 1, 0]),
    ([(3, 2), (Fraction(5), 1)],),
]


def test_a_histogram_comes_as_pairs_or_as_two_sequences() -> None:
    for arguments in HISTOGRAMS:
        scores = Scores.from_histogram(*arguments)
        assert scores.values.tolist() == [5, 3]
        assert scores.multiplicities.tolist() == [1, 2]
        assert scores.size == 3


@pytest.mark.parametrize("size", [2**62, 2**63, 10**300], ids=["2^62", "2^63", "10^300"])
def test_groups_far_larger_than_memory_give_items_on_demand(size: int) -> None:
    scores = Scores.from_histogram([(9, 2), (5, size)], item=lambda value, index: (value, index))
    assert scores.size == size + 2
    assert scores.item(1) == (9, 1)
    assert scores.item(2) == (5, 0)
    assert scores.item(size + 1) == (5, size - 1)
    release = dps.select(scores, k=3, epsilon=1.0, seed=1)
    assert len(set(release.items)) == 3
    assert all(value in (9, 5) and 0 <= index < {9: 2, 5: size}[value] for value, index in release.items)


MALFORMED: list[tuple[Any, ...]] = [
    ([],),
    ([], []),
    ([1], [0]),
    ([1, 2], [1]),
    ([1], [-1]),
    ([1], [1.5]),
    ([1], ["1"]),
    ([1], [None]),
    (["a"], [1]),
    ([float("nan")], [1]),
    ([(1, 2, 3)],),
    ([5],),
    (5,),
    ([1], 5),
    ("ab",),
    ({5: 3},),
    ([[1, 2], [3]],),
]


def test_a_malformed_histogram_is_refused() -> None:
    for arguments in MALFORMED:
        with pytest.raises(InvalidInput):
            Scores.from_histogram(*arguments)


NO_SCORES: list[Any] = [
    {},
    [],
    (),
    np.array([]),
    pd.Series([], dtype=float),
    pl.Series([], dtype=pl.Int64),
    "abc",
    b"abc",
    bytearray(b"abc"),
    {1, 2},
    iter([1, 2]),
    None,
    5,
    pd.DataFrame({"a": [1, 2]}),
    pl.DataFrame({"a": [1, 2]}),
    {"a": "b"},
    {"a": None},
    {"a": [1]},
    {"a": [1, 2], "b": 3},
    [[1, 2], [3, 4]],
    pd.Series([1, None]),
    pd.Series([1, None], dtype="Int64"),
    pd.Series(["a", "b"]),
    pd.Series(pd.to_datetime(["2020-01-01"])),
    pd.Series(["a", "b"], dtype="category"),
    pl.Series([1, None]),
    pl.Series([1.0, float("nan")]),
    pl.Series(["a"]),
    pl.Series([[1], [2]]),
    pl.Series([object()], dtype=pl.Object),
]


def test_data_without_scores_is_refused() -> None:
    for data in NO_SCORES:
        with pytest.raises(InvalidInput) as caught:
            Scores.of(data)
        assert caught.value.argument == "scores"


def test_two_scores_for_one_label_are_refused_without_naming_it() -> None:
    with pytest.raises(InvalidInput, match="one score per item") as caught:
        Scores.of(pd.Series([1, 2], index=["secret", "secret"]))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"a": 1, "b": None}, "scores must have no missing values, got a missing value; fill the gaps first"),
        (pl.Series([1, None]), "scores must have no missing values, got a missing value; fill the gaps first"),
        (pd.Index([1, 2]), ", got an object of type Index"),
        ({"a": "b"}, "scores must be numbers, got something that is not a number"),
    ],
    ids=["dict", "polars", "index", "text"],
)
def test_an_error_says_what_was_given(data: object, complaint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Scores.of(data)
    assert str(caught.value).endswith(complaint)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (([5],), "values must be pairs (score, multiplicity), got an entry that is not a pair"),
        (([1], ["1"]), "multiplicities must be whole numbers, got an entry that is not a whole number"),
        (([1], 5), "multiplicities must be a sequence, got an object of type int"),
    ],
    ids=["values", "text", "number"],
)
def test_an_error_about_a_histogram_says_what_was_given(arguments: tuple[object, ...], complaint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Scores.from_histogram(*arguments)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([2**100, -(2**100), 0], dtype=pl.Int128),
        pl.Series([Decimal("0.1"), Decimal("-7.3"), Decimal(0)]),
        pl.Series([True, False, True]),
    ],
    ids=lambda series: str(series.dtype),
)
def test_wide_and_decimal_series_of_polars_are_exact(series: pl.Series) -> None:
    assert Scores.of(series).exact() == [Fraction(value) for value in series.to_list()]


@pytest.mark.parametrize(
    "scores",
    [
        Scores.of({"a": 3, "b": 1, "c": 2}),
        Scores.of(pd.Series(range(5), index=list("vwxyz"))),
        Scores.of(np.arange(40_000) % 7),
        Scores.from_histogram([(5, 2), (3, 10)]),
    ],
    ids=["mapping", "Series", "by group", "histogram"],
)
def test_scores_that_were_used_can_be_pickled(scores: Scores) -> None:
    before = dps.select(scores, k=2, epsilon=1.0, seed=1).items, members(scores)
    again = pickle.loads(pickle.dumps(scores))
    assert (dps.select(again, k=2, epsilon=1.0, seed=1).items, members(again)) == before


def test_scores_show_nothing_but_their_number() -> None:
    assert repr(Scores.of({"a": 12345, "b": 5})) == "<Scores of 2 items>"


def test_counting_is_the_same_with_and_without_a_table() -> None:
    """One far value makes the range too wide for a table, and sends the same counts down the other path."""
    dense = np.random.default_rng(1).integers(-50, 1000, size=1 << 16)
    sparse = np.append(dense, 1 << 50)
    assert Scores.of(sparse).values[1:].tolist() == Scores.of(dense).values.tolist()
    assert Scores.of(sparse).multiplicities[1:].tolist() == Scores.of(dense).multiplicities.tolist()


@pytest.mark.parametrize(
    ("data", "grouped"),
    [
        (np.arange(1 << 16) % 1000, True),
        (np.arange(1 << 16) % 1000 - 500, True),
        (np.arange(1 << 16) % 1000 + 0.5, False),
        (np.arange(1 << 16) % 10_000, False),
        (np.arange(1 << 16), False),
        (np.append(np.arange(1 << 16) % 1000, 1 << 50), False),
        (np.arange(1000) % 10, False),
    ],
    ids=["few", "few, mixed sign", "floats", "many", "all distinct", "one far off", "small"],
)
def test_items_are_drawn_by_group_only_if_there_are_few_distinct_scores(data: np.ndarray, grouped: bool) -> None:
    """A group costs as much as some thirty items, in time and in memory."""
    entries = Scores.of(data).entries
    assert (entries.multiplicities is not None) == grouped
    if grouped:
        assert len(entries.values) == 1000
        assert entries.members(np.array([0, 999]), np.array([3, 64])).positions().tolist() == [3999, 64_000]
    else:
        assert entries.members(np.array([5, 7]), np.array([0, 0])).positions().tolist() == [5, 7]


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
        patch.setattr(scores_module, "_SEARCHED", block)
        assert positions_of_members(array, scores, indexes).tolist() == wanted


def test_members_beyond_the_first_block_are_found_with_the_block_size_in_use() -> None:
    data = np.arange(3 * scores_module._SEARCHED) % 5
    indexes = np.array([0, scores_module._SEARCHED // 5, len(data) // 5 - 1])
    positions = positions_of_members(data, np.array([4, 4, 4]), indexes)
    assert positions.tolist() == np.flatnonzero(data == 4)[indexes].tolist()
