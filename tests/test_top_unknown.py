"""top() where nobody can list the items: only the top of the list leaves the engine, and the answer may be shorter."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pytest

import dpselect as dps
from dpselect.errors import InvalidInput
from dpselect.mechanisms import RestrictedGumbel
from dpselect.sources import Domain, open_counts

COUNTS = {"weather": 900, "news": 800, "football": 700, "maps": 5, "recipe for ann": 1, "bob's address": 1}
ROWS = pandas.DataFrame(
    [(query, f"user{number}") for query, count in COUNTS.items() for number in range(count)],
    columns=["query", "user"],
)
OPTIONS: dict[str, Any] = {"item": "query", "person": "user", "k": 3, "epsilon": 3.0, "delta": 1e-6}


def ask(table: Any = ROWS, **options: Any) -> dps.Release:
    return dps.top(table, **{**OPTIONS, "domain": dps.UNKNOWN, **options})


def test_items_that_many_have_are_answered_and_the_guarantee_is_the_total() -> None:
    """Leads of 695 and 100 at scales of a few units: a wrong answer has probability below e^-40."""
    release = ask()
    assert release.items == ["weather", "news", "football"]
    assert release.ordered
    assert not release.stopped
    assert (release.guarantee.epsilon, release.guarantee.delta) == (3.0, 1e-6)
    assert release.mechanism.name == "restricted"
    assert release.mechanism.describe()["pool"] == 30
    assert json.loads(json.dumps(release.to_dict()))["stopped"] is False


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["restricted", "limited", "top-stable"])
def test_items_that_few_have_are_never_named(mechanism: str) -> None:
    """A private query passes with probability at most δ = 1e-6 in each of 5 draws."""
    for _ in range(5):
        release = ask(k=6, pool=6, mechanism=mechanism)
        assert set(release.items) <= {"weather", "news", "football", "maps"}
        assert release.stopped
        assert len(release.items) < 6


def test_a_table_with_hardly_anything_in_it_gives_an_empty_answer() -> None:
    empty = ask(ROWS[:0])
    for rows in (0, 1, 2):
        table = pandas.DataFrame({"query": ["a", "b"][:rows], "user": ["u", "v"][:rows]}, dtype=object)
        release = ask(table)
        assert release.items == []
        assert release.stopped
        assert release.k == 3
        assert release.to_dict() == empty.to_dict()


def test_all_counts_one_gives_an_empty_answer() -> None:
    table = pandas.DataFrame({"query": [f"q{number}" for number in range(200)], "user": list(range(200))})
    assert ask(table).items == []


def test_only_the_pool_and_one_more_row_leave_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpselect.sources.engine import Engine

    fetched: list[int] = []
    original = Engine.fetch

    def counting(self: Engine, expression: Any) -> list[dict[str, Any]]:
        rows = original(self, expression)
        fetched.append(len(rows))
        return rows

    monkeypatch.setattr(Engine, "fetch", counting)
    table = pandas.DataFrame({"query": [f"q{number}" for number in range(500)], "user": list(range(500))})
    ask(table, pool=7)
    assert fetched == [8]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("parquet", {"max_items_per_person": 2, "mechanism": "restricted"}),
        ("parquet", {"where": "user <> 'user1'"}),
        ("csv", {"weight": "share"}),
        ("duckdb", {}),
    ],
    ids=["bounded", "filtered", "weighted", "duckdb"],
)
def test_the_rows_are_read_once(
    kind: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan of the one query that reads rows has one place where it reads them; the others ask for no row."""
    from dpselect.sources.duckdb import EmbeddedEngine

    scans: list[int] = []
    original = EmbeddedEngine._arrow

    def counting(self: EmbeddedEngine, expression: Any) -> Any:
        [[_, plan]] = self.connection.execute(f"EXPLAIN (FORMAT JSON) {self.backend.compile(expression)}").fetchall()
        scans.append(len(re.findall(r"\"name\": \"\w*(?:PARQUET|CSV|SEQ)\w*\s*\"", plan)))
        return original(self, expression)

    table, source = ROWS.assign(share=0.5), {"table": str(tmp_path / f"rows.{kind}")}
    if kind == "duckdb":
        with duckdb.connect(source["table"]) as connection:
            connection.from_df(table).create("queries")
        source = {"table": f"duckdb://{source['table']}", "table_name": "queries"}
    elif kind == "csv":
        table.to_csv(source["table"], index=False)
    else:
        table.to_parquet(source["table"])
    monkeypatch.setattr(EmbeddedEngine, "_arrow", counting)
    assert ask(**source, **options).items[:1] == ["weather"]
    assert sum(scans) == scans[-1] == 1


def test_the_rows_of_the_pool_come_highest_first_and_ties_in_an_order_that_rows_cannot_change() -> None:
    def highest(rows: pandas.DataFrame, number: int) -> tuple[list[Any], list[Any]]:
        with open_counts(rows, item="query", person="user", domain=Domain.of(dps.UNKNOWN), k=3) as counts:
            return counts.highest(number)

    items, scores = highest(ROWS, 5)
    assert items[:4] == ["weather", "news", "football", "maps"]
    assert scores == [900, 800, 700, 5, 1]
    shuffled = ROWS.sample(frac=1.0, random_state=1)
    assert highest(shuffled, 5) == (items, scores)
    assert len(highest(ROWS, 100)[0]) == 6


def test_noisy_counts_can_be_published_of_what_is_shown() -> None:
    release = ask(values=0.3)
    assert release.values is not None
    assert len(release.values) == len(release.items) == 3
    assert abs(release.values[0] - 900) < 100
    assert release.guarantee.epsilon <= 3.0
    assert release.guarantee.delta <= 1e-6
    nothing = ask(ROWS[:0], values=0.3)
    assert nothing.values == []


def test_a_bound_on_items_per_person_is_enforced_where_the_noise_relies_on_it() -> None:
    normal = dps.RestrictedNormal(k=3, epsilon=3.0, delta=1e-6, max_items_per_person=2)
    with pytest.raises(InvalidInput) as caught:
        ask(mechanism=normal)
    assert caught.value.argument == "max_items_per_person"
    release = ask(mechanism=normal, max_items_per_person=2)
    assert release.mechanism == normal
    limited = dps.LimitedDomain(k=3, epsilon=3.0, delta=1e-6, max_items_per_person=2, noise="laplace")
    with pytest.raises(InvalidInput) as caught:
        ask(mechanism=limited, max_items_per_person=3)
    assert caught.value.argument == "max_items_per_person"
    assert ask(mechanism=limited, max_items_per_person=2).items[:1] == ["weather"]


def test_sums_of_values_work_as_counts_do() -> None:
    table = ROWS.assign(amount=2.5)
    release = ask(table, value="amount", clip=(0, 5))
    assert release.items == ["weather", "news", "football"]


def test_a_mechanism_object_is_taken_as_it_is() -> None:
    mechanism = RestrictedGumbel(k=3, epsilon=3.0, delta=1e-6, pool=5)
    release = ask(mechanism=mechanism)
    assert release.mechanism == mechanism
    assert release.items == ["weather", "news", "football"]


def test_a_ledger_is_charged_for_the_choice_and_the_tests(tmp_path: Path) -> None:
    from dpselect.privacy import Ledger

    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("queries", epsilon=3.0, delta=2e-6)
        ask(ledger=ledger, dataset="queries", epsilon=2.0)
        with pytest.raises(dps.BudgetExceeded):
            ask(ledger=ledger, dataset="queries", epsilon=2.0)


def test_a_seed_reproduces_the_answer() -> None:
    assert ask(seed=5, epsilon=0.05).items == ask(seed=5, epsilon=0.05).items


def test_auto_discovers_the_items_first_if_people_have_few_and_k_is_large() -> None:
    """Weights of 233 people and more against a threshold of about 20: nothing else has a probability above 1e-6."""
    release = ask(max_items_per_person=1)
    assert release.mechanism.name == "discovered"
    assert set(release.items) == {"weather", "news", "football"}
    assert (release.guarantee.epsilon, release.guarantee.delta) == (3.0, 1e-6)
    assert release.domain is not None
    assert release.domain.items is None
    assert json.loads(json.dumps(release.to_dict()))["mechanism"]["discovery"]["max_items_per_person"] == 1
    assert ask(max_items_per_person=4).mechanism.name == "restricted"


def test_discovered_answers_fewer_items_if_fewer_are_listed_and_their_values() -> None:
    release = ask(k=6, mechanism="discovered", max_items_per_person=3, values=0.3, epsilon=30.0)
    assert set(release.items) == {"weather", "news", "football"}
    assert release.stopped
    assert release.values is not None
    counts = dict(zip(release.items, release.values, strict=True))
    assert all(abs(counts[item] - COUNTS[item]) < 30 for item in counts)
    assert ask(ROWS[:0], mechanism="discovered", max_items_per_person=3).items == []


def test_discovered_is_refused_where_it_does_not_fit() -> None:
    for options, said in (
        ({}, "max_items_per_person must be"),
        ({"max_items_per_person": 2, "pool": 30}, "pool must be left out"),
        ({"max_items_per_person": 2, "weight": "share"}, "mechanism must be another one with value or weight"),
        ({"max_items_per_person": 2, "lowest": True}, "lowest must be left out"),
    ):
        with pytest.raises(InvalidInput, match=said):
            ask(ROWS.assign(share=0.5), mechanism="discovered", **options)


def test_discovered_under_a_key_is_charged_and_answered_once(tmp_path: Path) -> None:
    with dps.ledger.Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("queries", epsilon=4.0, delta=1e-5)
        asked: dict[str, Any] = {"ledger": ledger, "dataset": "queries", "once": "june", "max_items_per_person": 1}
        first, second = ask(**asked), ask(**asked)
        assert first.items == second.items
        assert second.repeated
        assert ledger.remaining("queries").epsilon == 1.0
        with pytest.raises(InvalidInput, match="once"):
            ask(**asked, where="query <> 'news'")
