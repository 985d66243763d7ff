"""top(): from people's rows to a release."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from dpselect import COUNTS, Gaussian, InvalidInput, LimitedDomain, OneShot, Peeling, Sensitivity, top
from dpselect.mechanisms import MECHANISMS
from dpselect.sampling import bit_source
from dpselect.scores import Scores
from dpselect.sources import UNKNOWN, Unseen

FILMS = [f"film {i:02d}" for i in range(20)]
PAIRS = [(film, viewer) for rank, film in enumerate(FILMS) for viewer in range(400 - 20 * rank)]
ROWS = pandas.DataFrame([*PAIRS, *PAIRS[:300]], columns=["film", "viewer"])
COUNTED = dict(Counter(film for film, _ in PAIRS))


def ask(table: Any = ROWS, **options: Any) -> Any:
    arguments = {"item": "film", "person": "viewer", "k": 3, "epsilon": 1e6, "domain": FILMS}
    return top(table, **{**arguments, **options})


def test_with_almost_no_noise_the_answer_is_the_true_top() -> None:
    release = ask()
    assert set(release.items) == set(FILMS[:3])
    assert not release.ordered
    assert release.secure
    assert release.k == 3
    assert release.values is None
    assert release.guarantee.epsilon == 1e6
    assert release.guarantee.delta == 0


@pytest.mark.parametrize(
    "mechanism",
    ["auto", Peeling(k=3, epsilon=1e6), OneShot(k=3, epsilon=1e6, noise="gumbel")],
    ids=["auto", "peeling", "set"],
)
def test_an_ordered_answer_is_in_order(mechanism: Any) -> None:
    release = ask(mechanism=mechanism, ordered=not isinstance(mechanism, OneShot))
    assert release.ordered == release.mechanism.ordered
    if release.ordered:
        assert release.items == FILMS[:3]
    assert set(release.items) == set(FILMS[:3])


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_the_drawn_members_are_the_items_returned(noise: str) -> None:
    mechanism = OneShot(k=5, epsilon=0.05, noise=noise)
    scores, multiplicities = np.unique(list(COUNTED.values()), return_counts=True)
    for seed in range(3):
        release = ask(k=5, epsilon=0.05, mechanism=mechanism, seed=seed)
        drawn = mechanism.draw(Scores.from_histogram(scores, multiplicities), bit_source(seed))
        assert [COUNTED[item] for item in release.items] == drawn.values.tolist()


def test_a_mechanism_that_relies_on_few_items_a_person_is_refused() -> None:
    gaussian = Gaussian(k=5, epsilon=1.0, delta=1e-6, max_items_per_person=2)
    for bound in (None, 1, 3):
        with pytest.raises(InvalidInput, match="must be 2, the limit that the noise"):
            ask(k=5, epsilon=1.0, mechanism=gaussian, max_items_per_person=bound)
    narrow = Gaussian(k=5, epsilon=1.0, delta=1e-6, max_items_per_person=2, sensitivity=Sensitivity(-0.5, 0.5))
    with pytest.raises(InvalidInput, match="sensitivity"):
        ask(k=5, epsilon=1.0, mechanism=narrow, max_items_per_person=2)
    assert ask(k=5, epsilon=1.0, mechanism=gaussian, max_items_per_person=2).mechanism is gaussian
    named = ask(k=5, epsilon=1.0, delta=1e-6, mechanism="gaussian", max_items_per_person=2)
    assert named.mechanism == gaussian


def test_a_ledger_is_charged_only_once_the_columns_are_known(tmp_path: Path) -> None:
    from dpselect.privacy import Ledger

    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("films", epsilon=1.0)
        with pytest.raises(InvalidInput, match="column"):
            ask(k=2, epsilon=0.5, item="no such column", ledger=ledger, dataset="films")
        assert ledger.remaining("films").epsilon == 1.0
        ask(k=2, epsilon=0.5, ledger=ledger, dataset="films")
        assert ledger.remaining("films").epsilon == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in ("gaussian", "laplace")])
def test_every_mechanism_returns_distinct_items_also_where_scores_are_tied(name: str) -> None:
    assert set(ask(k=5, epsilon=1e6, mechanism=name).items) == set(FILMS[:5])
    nobody_has = [f"nobody has {i}" for i in range(6)]
    for domain in ([*nobody_has, *FILMS], 26):
        items = ask(k=23, epsilon=1e6, mechanism=name, domain=domain).items
        assert len(set(items)) == 23
        assert set(FILMS) <= set(items)


@pytest.mark.slow
def test_a_seed_makes_the_release_reproducible_in_every_format_and_not_secure(tmp_path: Path) -> None:
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    ROWS.to_parquet(tmp_path / "rows.parquet")
    ROWS.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    tables = [ROWS, *(tmp_path / f"rows.{ending}" for ending in ("csv", "parquet", "jsonl"))]
    releases = [ask(table, epsilon=0.01, k=8, seed=5) for table in tables]
    assert all(release.items == releases[0].items for release in releases)
    assert not any(release.secure for release in releases)
    assert len({tuple(ask(epsilon=0.01, k=8, seed=seed).items) for seed in range(4)}) > 1


def test_all_items_of_the_domain_can_be_asked_for_and_not_one_more() -> None:
    assert sorted(ask(k=20, epsilon=1.0).items) == FILMS
    with pytest.raises(InvalidInput, match="k must be at most 20"):
        ask(k=21)
    with pytest.raises(InvalidInput, match=r"k must be at most 20 \(the number of items"):
        ask(k=21, domain=20)


def test_unseen_items_fill_an_answer_from_a_stated_number() -> None:
    release = ask(ROWS[:0], k=3, domain=10**25)
    assert release.items == [Unseen(1), Unseen(2), Unseen(3)]
    assert json.loads(json.dumps(release.to_dict()))["items"] == [{"unseen": 1}, {"unseen": 2}, {"unseen": 3}]
    assert len(set(ask(ROWS[:0], k=3, domain=3).items)) == 3


@pytest.mark.long
def test_a_table_without_rows_gives_every_item_the_same_probability() -> None:
    # 60 draws of 1 of 2 equal items: outside 11..49 with probability below 2e-7.
    rows = pandas.DataFrame({"film": [], "viewer": []})
    answers = [ask(rows, k=1, epsilon=1.0, domain=["a", "b"], seed=seed).items for seed in range(60)]
    assert 11 <= answers.count(["a"]) <= 49


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"k": 0}, "k"),
    ({"k": 2.5}, "k"),
    ({"k": "many"}, "k"),
    ({"k": None}, "k"),
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"epsilon": float("inf")}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"),
    ({"delta": 1.0}, "delta"),
    ({"mechanism": "magic"}, "mechanism"),
    ({"mechanism": OneShot(k=3, epsilon=2.0)}, "epsilon"),
    ({"mechanism": "canonical", "ordered": True}, "mechanism"),
    ({"mechanism": OneShot(k=3, epsilon=1e6, sensitivity=Sensitivity(0, 0.5))}, "mechanism"),
    ({"seed": -1}, "seed"),
    ({"seed": 1.5}, "seed"),
    ({"domain": UNKNOWN}, "delta"),
    ({"domain": UNKNOWN, "delta": 1e-6, "mechanism": "canonical"}, "mechanism"),
    ({"domain": UNKNOWN, "delta": 1e-6, "mechanism": OneShot(k=3, epsilon=1e6)}, "mechanism"),
    ({"domain": UNKNOWN, "delta": 1e-6, "mechanism": ["auto"]}, "mechanism"),
    ({"domain": UNKNOWN, "delta": 1e-6, "pool": 2}, "pool"),
    ({"pool": 20}, "pool"),
    ({"domain": UNKNOWN, "mechanism": LimitedDomain(k=3, epsilon=1e6, delta=1e-6), "pool": 20}, "pool"),
    ({"domain": []}, "domain"),
    ({"domain": 0}, "domain"),
    ({"k": 4, "domain": 3}, "k"),
]


def test_arguments_are_checked_before_the_table_is_touched() -> None:
    for options, argument in REFUSED:
        with pytest.raises(InvalidInput) as caught:
            ask("there/is/no/such/file.csv", **options)
        assert caught.value.argument == argument, options


def test_a_mechanism_for_larger_changes_than_counts_is_allowed() -> None:
    mechanism = OneShot(k=3, epsilon=1e6, sensitivity=Sensitivity(-1, 1))
    assert set(ask(mechanism=mechanism).items) == set(FILMS[:3])
    assert COUNTS.spread == 1
