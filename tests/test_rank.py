"""From rows to a release: what counts as a comparison, what is refused, and what is promised."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest

import dpselect as dps
from dpselect import rank
from dpselect.privacy import Ledger
from dpselect.ranking import Bounds
from dpselect.sources.comparisons import Columns, open_comparisons
from dpselect.sources.domain import Domain

PLAYERS = ["ann", "bob", "cem", "dan"]
GAMES = [("ann", "bob")] * 3 + [("bob", "ann")] + [("bob", "cem")] * 2 + [("ann", "cem")]
FACTS: dict[str, Any] = {"comparisons_per_pair": 4, "max_degree": 3}
SURE = 1e9


def counted(table: Any, domain: Any = PLAYERS, **options: Any) -> Counter[tuple[str, str, str]]:
    """Return how often each result of each pair was counted, by name."""
    columns = Columns("winner", "loser", options.pop("person", None), options.pop("tie", None))
    possible = None if domain is None else Domain.of(domain)
    found: Counter[tuple[str, str, str]] = Counter()
    with open_comparisons(table, columns, domain=possible, **options) as opened:
        names = opened.fetch(list(range(opened.size)))
        for low, high, low_won, high_won, tied in zip(*opened.pairs(), strict=True):
            found[names[low], ">", names[high]] = int(low_won)
            found[names[high], ">", names[low]] = int(high_won)
            found[*sorted((names[low], names[high])), "="] = int(tied)
    return +found


def frame(games: Any = GAMES, **more: Any) -> pandas.DataFrame:
    winners, losers = zip(*games, strict=True)
    return pandas.DataFrame({"winner": winners, "loser": losers, **more})


def test_pairs_are_counted_by_result() -> None:
    expected = {("ann", ">", "bob"): 3, ("bob", ">", "ann"): 1, ("bob", ">", "cem"): 2, ("ann", ">", "cem"): 1}
    assert counted(frame()) == expected
    assert counted(frame(), domain=None) == expected


def test_what_is_no_comparison_of_the_domain_is_left_out() -> None:
    odd = [("ann", None), (None, "bob"), ("ann", "ann"), ("ann", "zoe"), ("zoe", "ann")]
    assert counted(frame(GAMES + odd)) == counted(frame())


@pytest.mark.slow
def test_ties_are_those_that_the_column_says() -> None:
    expected = {("ann", "bob", "="): 1, ("bob", ">", "ann"): 1, ("ann", ">", "cem"): 1}
    for ties in ([True, False, False], [2, 0, 0], ["Yes", "no", ""], [" TRUE ", None, "0"], [1.0, None, 0.0]):
        games = frame([("bob", "ann"), ("bob", "ann"), ("ann", "cem")], tie=ties)
        assert counted(games, tie="tie") == expected, ties


def test_what_is_not_a_number_is_no_tie() -> None:
    table = pyarrow.table({"winner": ["bob", "bob"], "loser": ["ann", "ann"], "tie": [float("nan"), 0.5]})
    assert counted(table, tie="tie") == {("bob", ">", "ann"): 1, ("ann", "bob", "="): 1}


@pytest.mark.slow
def test_a_person_keeps_so_many_votes_whatever_others_do() -> None:
    votes = frame([("ann", "bob")] * 2 + [("bob", "cem")] * 2 + [("cem", "ann")] * 2, voter=[1] * 6)
    more = frame([("dan", "ann")], voter=[2])
    options = {"person": "voter", "max_votes_per_person": 3, "key": "0" * 32}
    alone, together = counted(votes, **options), counted(pandas.concat([votes, more]), **options)
    assert sum(alone.values()) == 3
    assert together - alone == {("dan", ">", "ann"): 1}
    assert len({tuple(counted(votes, **{**options, "key": f"{key:032x}"}).items()) for key in range(5)}) > 1


def test_votes_outside_the_domain_take_no_place() -> None:
    votes = frame([("ann", "zoe")] * 20 + [("ann", "ann")] * 20 + [("ann", "bob")], voter=[1] * 41)
    found = counted(votes, person="voter", max_votes_per_person=1, key="0" * 32)
    assert found == {("ann", ">", "bob"): 1}


@pytest.mark.slow
def test_files_frames_arrays_and_lists_agree(tmp_path: Path) -> None:
    file = tmp_path / "games.csv"
    frame().to_csv(file, index=False)
    answers = [
        rank(given, k=2, epsilon=1.0, domain=PLAYERS, seed=3, **FACTS).to_dict()
        for given in (GAMES, frame(), str(file), np.array(GAMES))
    ]
    assert all(answer == answers[0] for answer in answers)


def test_scores_are_those_of_the_walk() -> None:
    """With almost no noise all scores come out; here the walk is solved as it is written."""
    released = rank(GAMES, k=4, epsilon=SURE, domain=PLAYERS, values=0.5, damping=0.4, **FACTS)
    lost = np.zeros((4, 4))
    for winner, loser in GAMES:
        lost[PLAYERS.index(loser), PLAYERS.index(winner)] += 1 / 12
    walk = lost + np.diag(1 - lost.sum(axis=1))
    exact = np.linalg.solve((np.eye(4) - 0.6 * walk).T, np.full(4, 0.1))
    assert released.values is not None
    assert dict(zip(released.items, released.values, strict=True)) == pytest.approx(
        dict(zip(PLAYERS, exact, strict=True)), abs=float(Bounds(4, 3, 0.4).tolerance(4)) + 1e-7
    )


def test_the_best_comes_first_and_the_never_compared_can_win() -> None:
    best = rank(GAMES, k=2, epsilon=SURE, domain=PLAYERS, ordered=True, **FACTS)
    assert best.items == ["ann", "dan"]
    assert best.ordered


def test_no_comparison_at_all_gives_an_answer() -> None:
    nothing = frame(GAMES).head(0)
    assert len(rank(nothing, k=2, epsilon=1.0, domain=PLAYERS, **FACTS).items) == 2


def test_where_the_rows_name_no_item_there_is_nothing_to_choose() -> None:
    for games in ([], [("ann", "ann")], [("ann", None)]):
        with pytest.raises(dps.InvalidInput, match="that the comparisons name") as refused:
            rank(games, k=1, epsilon=1.0, **FACTS)
        assert refused.value.argument == "k"


def test_items_keep_their_type() -> None:
    numbers = np.array([[1, 2], [1, 3], [2, 3]])
    assert rank(numbers, k=1, epsilon=SURE, **FACTS).items == [1]
    assert rank([(1, 2), (1, 3), (2, 3)], k=1, epsilon=SURE, domain=[1, 2, 3], **FACTS).items == [1]
    assert rank([(1, 2), (1, 3), (2, 3)], k=1, epsilon=SURE, **FACTS).items == ["1"]


def test_the_guarantee_says_whom_it_covers(caplog: pytest.LogCaptureFixture) -> None:
    listed = rank(GAMES, k=1, epsilon=1.0, domain=PLAYERS, **FACTS).guarantee
    assert (listed.protects, listed.neighbours) == ("one comparison", "add or remove")
    voted = frame(voter=range(len(GAMES)))
    people = rank(voted, k=1, epsilon=1.0, domain=PLAYERS, person="voter", max_votes_per_person=2, **FACTS)
    assert people.guarantee.protects == "one person"
    assert people.mechanism.sensitivity == Bounds(4, 3, votes=2).sensitivity(4)
    assert "where others have the same items" in rank(GAMES, k=1, epsilon=1.0, **FACTS).guarantee.neighbours
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "dpselect"):
        promised = rank(GAMES, k=1, epsilon=1.0, domain=PLAYERS, promised_rho=0.9, **FACTS)
    assert "promise" in promised.guarantee.neighbours
    assert "promise" in caplog.text


def test_noise_depends_on_public_facts_only() -> None:
    choices = [
        rank(games, k=1, epsilon=1.0, domain=PLAYERS, **FACTS).mechanism
        for games in (GAMES, GAMES[:1], [("dan", "bob")] * 50)
    ]
    assert choices[0] == choices[1] == choices[2]


def test_a_ledger_is_charged_first_and_refuses_what_does_not_cover_everybody(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("games", epsilon=1.0, protects="one comparison")
        options: dict[str, Any] = {"k": 1, "epsilon": 0.75, "ledger": ledger, "dataset": "games", **FACTS}
        rank(GAMES, domain=PLAYERS, **options)
        with pytest.raises(dps.BudgetExceeded):
            rank(GAMES, domain=PLAYERS, **options)
        with pytest.raises(dps.InvalidInput, match="must list the items"):
            rank(GAMES, **options)
        with pytest.raises(dps.InvalidInput, match="use damping"):
            rank(GAMES, domain=PLAYERS, promised_rho=0.5, **options)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("comparisons_per_pair", {"comparisons_per_pair": 0}),
    ("max_degree", {"max_degree": 2**52}),
    ("damping", {"damping": 1.0}),
    ("damping", {"damping": 0.0}),
    ("promised_rho", {"promised_rho": 1.0}),
    ("max_votes_per_person", {"person": "voter"}),
    ("max_votes_per_person", {"max_votes_per_person": 3}),
    ("domain", {"domain": 100}),
    ("domain", {"domain": dps.UNKNOWN}),
    ("mechanism", {"mechanism": "gaussian"}),
    ("mechanism", {"mechanism": "restricted"}),
    ("mechanism", {"mechanism": dps.Canonical(k=1, epsilon=1.0, sensitivity=dps.Sensitivity(0, 1e-6))}),
    ("k", {"k": 5}),
    ("k", {"k": 5, "domain": None}),
    ("epsilon", {"epsilon": -1.0}),
    ("loser", {"loser": "winner"}),
    ("table", {"winner": "victor"}),
    ("table_name", {"table_name": "games"}),
]


def test_bad_arguments_are_named() -> None:
    for argument, options in REFUSED:
        arguments = {"k": 1, "epsilon": 1.0, "domain": PLAYERS, **FACTS, **options}
        with pytest.raises(dps.InvalidInput) as refused:
            rank(frame(), **arguments)
        assert refused.value.argument == argument, options


def test_lists_of_something_else_are_refused_without_a_row_of_them() -> None:
    arrays = (np.zeros((3, 3)), np.zeros(4), np.zeros((2, 2), complex), np.zeros((2, 2), np.longdouble))
    for given in ([("ann",)], ["ab"], *arrays):
        with pytest.raises(dps.InvalidInput) as refused:
            rank(given, k=1, epsilon=1.0, domain=PLAYERS, **FACTS)
        assert refused.value.argument == "comparisons"
        assert "ann" not in str(refused.value)


def test_what_an_array_masks_and_what_is_no_text_is_left_out() -> None:
    masked = np.ma.array([[1, 2], [2, 3]], mask=[[False, True], [False, False]])
    assert sorted(rank(masked, k=2, epsilon=1.0, **FACTS).items) == [2, 3]
    broken = np.array([["ann", "bob"], ["cem", "a\ud800"]])
    assert sorted(rank(broken, k=2, epsilon=1.0, **FACTS).items) == ["ann", "bob"]


def test_winners_and_losers_must_be_of_one_kind() -> None:
    mixed = pandas.DataFrame({"winner": ["1", "2"], "loser": [2, 1]})
    with pytest.raises(dps.InvalidInput, match="loser"):
        rank(mixed, k=1, epsilon=1.0, domain=["1", "2"], **FACTS)
    floats = pandas.DataFrame({"winner": [1, 1], "loser": [2.0, None]})
    assert rank(floats, k=1, epsilon=SURE, domain=[1, 2], **FACTS).items == [1]


@pytest.mark.parametrize("largest", [7, 2**64 - 1])
def test_whole_numbers_of_kinds_without_a_common_one_are_refused_whatever_they_are(largest: int) -> None:
    """No row decides: a number that does not fit would fail where a smaller one does not."""
    winners, losers = pyarrow.array([largest], pyarrow.uint64()), pyarrow.array([1], pyarrow.int64())
    with pytest.raises(dps.InvalidInput, match=r"of winners .uint64."):
        rank(pyarrow.table({"winner": winners, "loser": losers}), k=1, epsilon=1.0, domain=[1, 7], **FACTS)
    alike = pyarrow.table({"winner": winners, "loser": winners})
    assert rank(alike, k=1, epsilon=1.0, domain=[1, 7], **FACTS).k == 1


@pytest.mark.slow
def test_a_mechanism_that_covers_a_vote_may_be_given() -> None:
    enough = Bounds(4, 3).sensitivity(4)
    for kind in (dps.Canonical, dps.OneShot, dps.Joint, dps.Peeling, dps.Gamma):
        given = kind(k=2, epsilon=1.0, sensitivity=enough)
        assert rank(GAMES, mechanism=given, domain=PLAYERS, **FACTS).mechanism == given
    assert rank(GAMES, k=2, epsilon=1.0, mechanism="oneshot", ordered=True, domain=PLAYERS, **FACTS).ordered
