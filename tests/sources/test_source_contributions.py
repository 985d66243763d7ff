"""What one person can add to a score: never more than stated, the same in any order, and nothing to do with others."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect as dps
from dpselect.errors import InvalidInput
from dpselect.sampling import bit_source
from dpselect.sources import Contribution, Domain, fresh_key, open_counts

FILMS = ["Alien", "Heat", "Her", "Up"]
KEY = "0123456789abcdef" * 2
Row = tuple[str, str, float | None, float | None]
numbers = st.one_of(
    st.none(), st.floats(), st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 5e-324, 1e308, -1e308]), st.integers(-9, 9)
)
rows_of_people = st.lists(
    st.tuples(st.sampled_from(FILMS), st.sampled_from(["ann", "bob", "cat"]), numbers, numbers), max_size=12
)


def table(rows: list[Row]) -> Any:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    names = ["film", "viewer", "value", "weight"]
    kinds = [pyarrow.string(), pyarrow.string(), pyarrow.float64(), pyarrow.float64()]
    return pyarrow.table({n: pyarrow.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})


def scores(
    rows: Any, contribution: Contribution, domain: Any = FILMS, key: str = KEY, **options: Any
) -> dict[str, Any]:
    given_rows = table(rows) if isinstance(rows, list) else rows
    with open_counts(
        given_rows,
        item="film",
        person="viewer",
        domain=Domain.of(domain),
        k=1,
        contribution=contribution,
        key=key,
        **options,
    ) as counts:
        places = [(score, index) for score, number in zip(*counts.histogram(), strict=True) for index in range(number)]
        found = counts.fetch([score for score, _ in places], [index for _, index in places])
    return dict(zip(found, (score for score, _ in places), strict=True))


def plain_scores(rows: list[Row], contribution: Contribution) -> dict[str, Any]:
    """Say the same in plain Python, with fractions."""
    sums: dict[tuple[str, str], Fraction] = {}
    weights: dict[tuple[str, str], float] = {}
    for film, viewer, value, weight in rows:
        needed = [number for number, name in ((value, contribution.value), (weight, contribution.weight)) if name]
        if any(number is None or math.isnan(number) for number in needed):
            continue
        pair = (film, viewer)
        if contribution.value:
            assert value is not None
            limit = float(contribution.unit * 2**62)
            units = Fraction(max(-limit, min(limit, value))) / contribution.unit
            sums[pair] = sums.get(pair, Fraction(0)) + math.floor(float(units) + 0.5)
        else:
            sums[pair] = Fraction(contribution.high)
        weights[pair] = max(weights.get(pair, 0.0), min(1.0, max(0.0, weight or 0.0)))
    result = dict.fromkeys(FILMS, Fraction(0))
    for (film, viewer), total in sums.items():
        amount = int(max(contribution.low, min(contribution.high, total)))
        if contribution.weight:
            amount = math.floor(float(amount) * weights[film, viewer] + 0.5)
        result[film] += amount * contribution.unit
    return result


KINDS = {
    "people": Contribution(),
    "value": Contribution.of("value", (-2, 5), None, None),
    "narrow": Contribution.of("value", (0, 0.3), None, None),
    "negative": Contribution.of("value", (-7, -1), None, None),
    "immense": Contribution.of("value", (0, 1e200), None, None),
    "weight": Contribution.of(None, None, "weight", None),
    "both": Contribution.of("value", (-2, 5), "weight", None),
}


@pytest.mark.slow
def test_the_sum_of_a_person_is_clipped_at_both_bounds() -> None:
    rows: list[Row] = [("Up", "ann", -9, None), ("Up", "bob", 9, None), ("Up", "cat", 3, None), ("Up", "cat", 1, None)]
    assert scores(rows[:1], KINDS["value"])["Up"] == -2
    assert scores(rows[1:2], KINDS["value"])["Up"] == 5
    assert scores(rows, KINDS["value"])["Up"] == -2 + 5 + 4


def test_the_largest_weight_of_a_person_counts_within_0_and_1() -> None:
    rows: list[Row] = [("Up", "ann", None, 0.25), ("Up", "ann", None, 0.5), ("Heat", "bob", None, 7.0)]
    rows += [("Her", "cat", None, -3.0), ("Her", "dan", None, math.nan)]
    assert scores(rows, KINDS["weight"]) == {"Up": 0.5, "Heat": 1, "Her": 0, "Alien": 0}


@pytest.mark.parametrize(
    ("clip", "moves"), [((2, 5), (0, 5)), ((-7, -1), (-7, 0)), ((-2, 5), (-2, 5)), ((0, 0.5), (0, 0.5))]
)
def test_a_person_who_lacks_an_item_leaves_its_score_alone(
    clip: tuple[float, float], moves: tuple[float, float]
) -> None:
    """Whoever has the item moves it by 2 to 5, whoever has not by 0: both are within the sensitivity."""
    assert Contribution.of("value", clip, None, None).sensitivity == dps.Sensitivity(*moves)


@pytest.mark.parametrize("clip", [(-0.3, 0.2), (-1 / 3, 7.1), (0.1, 0.3)])
def test_the_bounds_of_a_clip_are_rounded_inwards(clip: tuple[float, float]) -> None:
    """Contributions are whole units, and none of these bounds is: a unit more would exceed the sensitivity."""
    contribution = Contribution.of("value", clip, None, None)
    low, high = contribution.low * contribution.unit, contribution.high * contribution.unit
    assert Fraction(clip[0]) < low < Fraction(clip[0]) + contribution.unit
    assert Fraction(clip[1]) - contribution.unit < high < Fraction(clip[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4)
@given(rows=rows_of_people)
def test_scores_are_those_of_plain_python_in_any_order(kind: str, rows: list[Row]) -> None:
    expected = plain_scores(rows, KINDS[kind])
    assert scores(rows, KINDS[kind]) == expected
    assert scores(rows[::-1], KINDS[kind]) == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["negative", "both"])
@settings(max_examples=4)
@given(rows=rows_of_people)
def test_one_person_moves_every_score_within_the_sensitivity(kind: str, rows: list[Row]) -> None:
    with_all = scores(rows, KINDS[kind])
    sensitivity = KINDS[kind].sensitivity
    for person in {row[1] for row in rows}:
        without = scores([row for row in rows if row[1] != person], KINDS[kind])
        for film in FILMS:
            moved = Fraction(with_all[film]) - Fraction(without[film])
            assert Fraction(sensitivity.low) <= moved <= Fraction(sensitivity.high)


def test_sums_of_floats_as_engines_make_them_would_depend_on_the_order() -> None:
    """The mistake that whole units avoid: the same rows in another order, another score."""
    values = [1e16, 1.0, -1e16, 1.0]
    assert sum(values) != sum(sorted(values))
    rows: list[Row] = [("Up", "ann", value, None) for value in values]
    contribution = Contribution.of("value", (-5, 5), None, None)
    assert scores(rows, contribution)["Up"] == scores(sorted(rows, key=str), contribution)["Up"]


@pytest.mark.slow
def test_each_person_keeps_as_many_items_as_allowed_and_others_do_not_matter() -> None:
    bound = 2
    contribution = Contribution.of(None, None, None, bound)
    chance = random.Random(1)
    items = [f"item {number}" for number in range(9)]
    owned = {person: chance.sample(items, size) for person, size in zip("abcdef", [1, 2, 4, 6, 8, 9], strict=True)}
    alone = {
        person: {
            item
            for item, score in scores([(one, person, None, None) for one in mine], contribution, items).items()
            if score
        }
        for person, mine in owned.items()
    }
    for person, mine in owned.items():
        assert alone[person] <= set(mine)
        assert len(alone[person]) == min(bound, len(mine))
    everybody: list[Row] = [(item, person, None, None) for person, mine in owned.items() for item in mine]
    together = Counter(item for kept in alone.values() for item in kept)
    assert scores(everybody, contribution, items) == {item: together[item] for item in items}
    assert scores(everybody * 2, contribution, items) == {item: together[item] for item in items}


@pytest.mark.slow
def test_the_items_that_a_person_keeps_are_a_uniform_choice() -> None:
    """Of 1,200 people each keeps 2 of 4: chi-square with 5 degrees of freedom exceeds 37 with probability 6e-7."""
    people = [f"person {number}" for number in range(1200)]
    rows: list[Row] = [(f"{place} of {person}", person, None, None) for person in people for place in range(4)]
    contribution = Contribution.of(None, None, None, 2)
    found = scores(rows, contribution, [row[0] for row in rows], key=fresh_key(bit_source(1)))
    pairs = [frozenset(place for place in range(4) if found[f"{place} of {person}"]) for person in people]
    kept = Counter(pairs)
    assert all(len(pair) == 2 for pair in kept)
    assert sum((kept[pair] - 200) ** 2 / 200 for pair in kept) + 200 * (6 - len(kept)) < 37


@pytest.mark.slow
def test_what_a_person_keeps_depends_on_the_key() -> None:
    contribution = Contribution.of(None, None, None, 1)
    rows: list[Row] = [(film, "ann", None, None) for film in FILMS]
    found = [scores(rows, contribution, key=KEY[place:]) for place in range(4)]
    assert any(scores_of_key != found[0] for scores_of_key in found)


def test_items_outside_a_list_take_nobodys_place() -> None:
    contribution = Contribution.of(None, None, None, 1)
    rows: list[Row] = [(f"outside {number}", "ann", None, None) for number in range(50)] + [("Up", "ann", None, None)]
    assert scores(rows, contribution)["Up"] == 1


def test_a_key_is_32_digits_of_fresh_bits() -> None:
    assert fresh_key(bit_source(1)) == fresh_key(bit_source(1)) != fresh_key(bit_source(2))
    assert len(fresh_key(bit_source())) == 32
    assert fresh_key(bit_source()) != fresh_key(bit_source())


WRONG: list[tuple[tuple[Any, ...], str]] = [
    (("value", None, None, None), "clip"),
    ((None, (0, 1), None, None), "value"),
    (("value", (1, 1), None, None), "clip"),
    (("value", (2, 1), None, None), "clip"),
    (("value", (0, math.inf), None, None), "clip"),
    (("value", (0, math.nan), None, None), "clip"),
    (("value", (0, 1e300), None, None), "clip"),
    (("value", (1, 1 + 1e-12), None, None), "clip"),
    (("value", 3, None, None), "clip"),
    (("value", "ab", None, None), "clip"),
    ((3, (0, 1), None, None), "value"),
    ((None, None, "", None), "weight"),
    ((None, None, None, 0), "max_items_per_person"),
]


def test_wrong_arguments_are_refused_by_name() -> None:
    for arguments, argument in WRONG:
        with pytest.raises(InvalidInput) as caught:
            Contribution.of(*arguments)
        assert caught.value.argument == argument, arguments


def test_a_column_that_holds_no_numbers_is_refused_by_its_type() -> None:
    dates = pyarrow.table({"film": ["Up"], "viewer": ["ann"], "value": pyarrow.array([3], pyarrow.date32())})
    with pytest.raises(InvalidInput, match="column 'value' of type date"):
        scores(dates, Contribution.of("value", (0, 1), None, None))


def test_text_that_is_no_number_is_dropped_like_a_null() -> None:
    text = pyarrow.table({"film": ["Up"] * 4, "viewer": list("abcd"), "value": ["1.5", "x", "", " 2 "]})
    assert scores(text, Contribution.of("value", (0, 5), None, None))["Up"] == 3.5


def test_values_of_sums_are_published_with_their_noise() -> None:
    rows: list[Row] = [("Up", f"p{number}", 2.5, None) for number in range(400)] + [("Heat", "ann", 1.0, None)]
    release = dps.top(
        table(rows),
        item="film",
        person="viewer",
        k=1,
        epsilon=4.0,
        domain=FILMS,
        value="value",
        clip=(0, 5),
        values=0.5,
        seed=3,
    )
    assert release.items == ["Up"]
    assert release.values is not None
    assert abs(release.values[0] - 1000) < 200
    assert release.mechanism.sensitivity == dps.Sensitivity(0, 5)
