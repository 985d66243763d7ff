"""discover(): which items exist, from rows to a list by name, charged before a row is read."""

from __future__ import annotations

import datetime
import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import dpselect as dps
from dpselect.errors import SourceError
from dpselect.sources import open_weights, read_columns

COUNTS = {"weather": 900, "news": 800, "football": 700, "maps": 2, "recipe for ann": 1, "bob's address": 1}
ROWS = pandas.DataFrame(
    [(query, f"user{number}") for query, count in COUNTS.items() for number in range(count)],
    columns=["query", "user"],
)
OPTIONS: dict[str, Any] = {
    "item": "query",
    "person": "user",
    "epsilon": 1.0,
    "delta": 1e-7,
    "max_items_per_person": 6,
}


def ask(table: Any = ROWS, **options: Any) -> dps.DomainRelease:
    return dps.discover(table, **{**OPTIONS, **options})


def test_items_that_many_have_are_listed_by_name_and_no_others() -> None:
    """Weights above 700/√6 = 285 against a threshold of 28 ± 5: another answer has probability below 1e-7."""
    release = ask()
    assert release.items == ["football", "news", "weather"]
    assert release.column == "query"
    assert release.guarantee == dps.Guarantee(1.0, 1e-7)
    assert release.secure
    data = json.loads(json.dumps(release.to_dict()))
    assert data["items"] == release.items
    assert data["mechanism"]["name"] == "discovery"
    assert (data["guarantee"]["epsilon"], data["guarantee"]["delta"]) == (1.0, 1e-7)


def test_what_was_discovered_is_a_domain() -> None:
    words = ask().items
    release = dps.top(ROWS, item="query", person="user", k=2, epsilon=2.0, domain=words)
    assert set(release.items) == {"weather", "news"}
    assert release.domain is not None
    assert release.domain.items == 3


def test_a_table_with_hardly_anything_in_it_has_an_empty_list() -> None:
    for rows in (0, 1, 2):
        table = pandas.DataFrame({"query": ["a", "b"][:rows], "user": ["u", "v"][:rows]}, dtype=object)
        release = ask(table)
        assert release.items == []
        assert set(release.to_dict()) == set(ask().to_dict())


def weights_of(table: Any, most: int, units: int = 1024, **options: Any) -> dict[Any, int]:
    """Return the weight of every item, by fetching all of them one weight at a time."""
    found = {}
    named = {"item": "query", "person": "user", "max_items_per_person": most, "units": units, "key": "k", **options}
    with open_weights(table, **named) as weights:
        for weight, size in zip(*weights.histogram(), strict=True):
            items = [item for item, _ in weights.fetch(np.full(size, weight), np.arange(size))]
            assert len(items) == len(set(items)) == size
            found.update(dict.fromkeys(items, int(weight)))
    return found


def test_weights_are_those_of_plain_python() -> None:
    """A person with n items adds ⌊units/√n⌋ to each; rows that repeat, or lack a value, change nothing."""
    rows = [
        ("a", "u"),
        ("a", "u"),
        ("b", "u"),
        ("c", "u"),
        ("a", "v"),
        ("b", "w"),
        ("c", "w"),
        (None, "w"),
        ("d", None),
    ]
    table = pandas.DataFrame(rows, columns=["query", "user"])
    one, two, three = 1024, int(1024 / 2**0.5), int(1024 / 3**0.5)
    assert weights_of(table, 3) == {"a": three + one, "b": three + two, "c": three + two}


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2, 3, 50])
def test_no_person_adds_more_than_one_to_the_norm(most: int) -> None:
    """Alone in the table, a person's weights are the same for at most m items, and their squares sum to at most 1."""
    rng, units = np.random.default_rng(most), 1 << 20
    for held in (1, 2, 3, 7, 49, 50, 60):
        table = pandas.DataFrame({"query": rng.permutation(100)[:held], "user": 5})
        found = weights_of(table, most, units)
        assert len(found) == min(held, most)
        assert sum(weight**2 for weight in found.values()) <= units**2
        assert min(found.values()) >= 0.999999 * units / min(held, most) ** 0.5 - 1


def test_which_items_a_person_keeps_is_uniform() -> None:
    """1,000 people keep 3 of their own 5 items: each of 10 subsets 100 times; χ² (9) above 47 with probability 4e-7."""
    table = pandas.DataFrame([(f"{user} {each}", user) for user in range(1000) for each in "abcde"])
    kept: dict[str, set[str]] = {}
    for item in weights_of(table.set_axis(["query", "user"], axis=1), 3):
        user, each = item.split()
        kept.setdefault(user, set()).add(each)
    subsets = Counter(map(frozenset, kept.values()))
    assert subsets.total() == 1000
    assert sum((subsets[frozenset(three)] - 100) ** 2 / 100 for three in combinations("abcde", 3)) < 47


def test_which_items_a_person_keeps_depends_on_nobody_else() -> None:
    alone = pandas.DataFrame({"query": list("abcde"), "user": "u"})
    others = pandas.DataFrame({"query": list("abc") * 2, "user": ["v"] * 3 + ["w"] * 3})
    for key in ("k", "l", "m"):
        before, after = weights_of(others, 3, key=key), weights_of(pandas.concat([others, alone]), 3, key=key)
        moved = {item: after[item] - before.get(item, 0) for item in after if after[item] != before.get(item, 0)}
        assert moved == weights_of(alone, 3, key=key)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3)), min_size=1, max_size=16),
    st.integers(0, 3),
    st.integers(1, 4),
)
def test_a_person_who_leaves_moves_the_weights_by_at_most_one(
    rows: list[tuple[str, int]], leaver: int, most: int
) -> None:
    """In the norm, for the same key; nobody else's items change."""
    table = pandas.DataFrame(rows, columns=["query", "user"])
    with_all, without = weights_of(table, most), weights_of(table[table.user != leaver], most)
    moved = [with_all.get(item, 0) - without.get(item, 0) for item in with_all.keys() | without.keys()]
    assert min(moved) >= 0
    assert sum(weight**2 for weight in moved) <= 1024**2
    assert sum(weight > 0 for weight in moved) == min(most, table[table.user == leaver]["query"].nunique())


def test_items_are_listed_with_the_stated_probabilities() -> None:
    """1,000 items at each of 5 weights: each number is off by 5.5 deviations with probability 4e-8."""
    people, question = [10, 16, 20, 24, 30], {"epsilon": 1.0, "delta": 1e-4, "max_items_per_person": 1}
    items = [f"{count} {number}" for count in people for number in range(1000)]
    table = pyarrow.table({"query": [item for item in items for _ in range(int(item.split()[0]))]})
    table = table.append_column("user", pyarrow.array(range(len(table))))
    mechanism = dps.Discovery(**question)  # type: ignore[arg-type]
    listed = Counter(int(item.split()[0]) for item in ask(table, seed=5, **question).items)
    for count in people:
        chance = ndtr((count - mechanism.threshold / mechanism.units) / mechanism.sigma)
        assert abs(listed[count] - 1000 * chance) < 5.5 * (1000 * chance * (1 - chance)) ** 0.5


def test_at_least_raises_the_threshold_and_counts_nobody() -> None:
    assert ask(at_least=100, max_items_per_person=1).items == ["football", "news", "weather"]
    assert ask(at_least=10_000).items == []


def test_a_seed_makes_it_reproducible_and_not_secure() -> None:
    table = pandas.DataFrame({"query": list(range(30)) * 30, "user": range(900)})
    first, second = (ask(table, seed=4) for _ in range(2))
    assert first.items == second.items
    assert 0 < len(first.items) < 30
    assert not first.secure


def test_a_condition_selects_rows_before_items_are_kept() -> None:
    table = pandas.concat([ROWS.assign(year=2024), ROWS.assign(year=2023, query="old")])
    assert ask(table, where="year = 2024", max_items_per_person=1, epsilon=3.0).items == ask(epsilon=3.0).items
    with pytest.raises(dps.InvalidInput, match="where"):
        ask(table, where="month = 5")


@pytest.mark.parametrize(
    ("items", "listed"),
    [
        ([10, 9, 2], [2, 9, 10]),
        ([0.5, -1.0, 10.0], [-1.0, 0.5, 10.0]),
        ([True, False], [False, True]),
        (
            [datetime.date(2024, 2, 1), datetime.date(2023, 12, 31)],
            [datetime.date(2023, 12, 31), datetime.date(2024, 2, 1)],
        ),
        (["b", "B", "a b", ""], ["", "B", "a b", "b"]),
    ],
)
def test_items_keep_their_type_and_come_in_its_order(items: list[Any], listed: list[Any]) -> None:
    table = pyarrow.table({"query": items * 300, "user": list(range(300 * len(items)))})
    release = ask(table, max_items_per_person=1)
    assert release.items == listed
    assert [type(item) for item in release.items] == [type(item) for item in listed]


def test_whole_numbers_of_pandas_stay_whole_if_one_is_missing() -> None:
    """Otherwise 1.0 instead of 1 would reveal that somebody's item is missing."""
    items = [1, 2, 3] * 300
    for column in (items, [*items[:-1], None]):
        table = pandas.DataFrame({"query": column, "user": range(900)})
        assert [repr(item) for item in ask(table, max_items_per_person=1).items] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": -1}, "epsilon must be"),
        ({"delta": 0}, "delta must be above 0"),
        ({"max_items_per_person": None}, "max_items_per_person must be a whole number"),
        ({"at_least": 2.5}, "at_least must be a whole number"),
        ({"item": "user"}, "person must be another column"),
        ({"item": "Query"}, "table"),
        ({"protects": " "}, "protects must be the unit"),
        ({"seed": -1}, "seed must be"),
        ({"dataset": "views"}, "dataset must be left out without a ledger"),
    ],
)
def test_bad_arguments_cost_nothing(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(dps.InvalidInput, match=said):
        ask(**options)
    if "dataset" in options:
        return
    with dps.ledger.Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("views", epsilon=2.0, delta=1e-6)
        with pytest.raises(dps.InvalidInput):
            ask(ledger=ledger, dataset="views", **options)
        assert ledger.remaining("views").epsilon == 2.0


def test_the_record_is_there_when_the_first_row_is_read(tmp_path: Path) -> None:
    with dps.ledger.Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("views", epsilon=2.0, delta=1e-6)
        entries: list[int] = []

        def batches() -> Iterator[pyarrow.RecordBatch]:
            entries.append(len(ledger.entries("views")))
            yield pyarrow.record_batch({"query": ["a"], "user": ["u"]})

        schema = pyarrow.schema([("query", pyarrow.string()), ("user", pyarrow.string())])
        ask(pyarrow.RecordBatchReader.from_batches(schema, batches()), ledger=ledger, dataset="views", purpose="words")
        assert entries == [1]
        [entry] = ledger.entries("views")
        assert (entry.guarantee.epsilon, entry.guarantee.delta, entry.purpose) == (1.0, 1e-7, "words")
        assert entry.parameters["name"] == "discovery"
        assert ledger.remaining("views").epsilon == 1.0
        with pytest.raises(dps.BudgetExceeded):
            ask(epsilon=1.5, ledger=ledger, dataset="views")


def test_a_table_that_changes_between_the_queries_gives_no_answer() -> None:
    with open_weights(ROWS, item="query", person="user", max_items_per_person=1, units=8, key="") as weights:
        values, _ = weights.histogram()
        with pytest.raises(SourceError, match="changed between two queries"):
            weights.fetch(values[:1], np.array([10**6]))


@pytest.mark.slow
def test_fimi_retail_if_it_is_there() -> None:
    shared = Path(os.environ.get("DPSELECT_DATA", Path(__file__).parents[2] / "shared" / "data"))
    data = shared / "fimi_retail" / "pairs.csv.gz"
    if not data.exists():
        pytest.skip("the data set is not here")
    release = dps.discover(data, item="item", person="user", epsilon=1.0, delta=1e-6, max_items_per_person=20)
    counts = Counter(read_columns(data, ["item"]).column("item").to_pylist())
    assert 1500 < len(release.items) < 3500
    assert min(counts[item] for item in release.items) > 10
