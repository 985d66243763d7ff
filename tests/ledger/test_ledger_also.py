"""A release may be charged to several data sets of a ledger at once: to all of them, or to none."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpselect as dps
from dpselect.ledger import Budget, Ledger

VOTES = {"tea": 400, "coffee": 300, "milk": 2}
BOTH = ["films", "films/ann"]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with the budget of a data set, and a smaller one of an analyst."""
    ledger = Ledger(tmp_path / "budget.sqlite")
    ledger.create("films", epsilon=1.0)
    ledger.create("films/ann", epsilon=0.5)
    return ledger


@pytest.mark.parametrize("once", [None, "a key"])
def test_both_are_charged(ledger: Ledger, once: str | None) -> None:
    dps.select(VOTES, k=1, epsilon=0.25, ledger=ledger, dataset=BOTH, purpose="chart", once=once)
    assert (ledger.remaining("films"), ledger.remaining("films/ann")) == (Budget(0.75), Budget(0.25))
    [entry], [of_ann] = ledger.entries("films"), ledger.entries("films/ann")
    assert (entry.once or None, of_ann.once or None) == (once, None)
    assert entry.purpose == of_ann.purpose == "chart"
    assert ledger.check() == []


@pytest.mark.parametrize("once", [None, "a key"])
@pytest.mark.parametrize(("spent_before", "spent_by"), [(0.8, "films"), (0.4, "films/ann")])
def test_if_one_refuses_neither_is_charged(
    ledger: Ledger, once: str | None, spent_before: float, spent_by: str
) -> None:
    ledger.spend(spent_by, dps.Guarantee(spent_before))
    before = [ledger.spent(name) for name in BOTH]
    with pytest.raises(dps.BudgetExceeded) as refusal:
        dps.select(VOTES, k=1, epsilon=0.25, ledger=ledger, dataset=BOTH, once=once)
    assert refusal.value.dataset == spent_by
    assert [ledger.spent(name) for name in BOTH] == before
    assert ledger.check() == []


def test_a_repeated_question_charges_neither_again(ledger: Ledger) -> None:
    answers = [dps.select(VOTES, k=1, epsilon=0.25, ledger=ledger, dataset=BOTH, once="key") for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert [ledger.spent(name) for name in BOTH] == [Budget(0.25), Budget(0.25)]


def test_a_retry_after_a_crash_cannot_name_a_data_set_that_was_not_charged(ledger: Ledger) -> None:
    ledger.create("books", epsilon=1.0)
    cost, question = dps.Guarantee(0.25), {"k": 1}
    charge = ledger.spend_once("films", cost, "key", question, also=["books", "films/ann"])
    alone = ledger.spend_once("films", cost, "other key", question)
    ledger.spend_once("books", cost, "other key", question)  # a release of its own, which is no part of that on films
    ledger.spend_once("films", cost, "third key", question)
    ledger.spend("books", cost)  # as is this one, which has no key and is recorded with the same words
    for also in (["films/ann", "books"], ["books"], []):
        assert ledger.spend_once("films", cost, "key", question, also=also) == charge
        assert ledger.find("films", "key", question, also=also) == charge
    for key, also in (("other key", ["books"]), ("other key", ["films/ann"]), ("third key", ["books"])):
        for ask in (
            lambda key=key, also=also: ledger.spend_once("films", cost, key, question, also=also),
            lambda key=key, also=also: ledger.find("films", key, question, also=also),
        ):
            with pytest.raises(dps.InvalidInput, match="must name the data sets that were charged under this key"):
                ask()
    assert [ledger.remaining(name).epsilon for name in ("films", "books", "films/ann")] == [0.25, 0.25, 0.25]
    assert ledger.check() == []
    # A stored answer is as public as before, whoever asks for it.
    ledger.keep_answer(alone.entry, {"items": ["tea"]})
    assert ledger.spend_once("films", cost, "other key", question, also=["books"]).answer == {"items": ["tea"]}


def test_find_tells_charge_and_answer(ledger: Ledger) -> None:
    assert ledger.find("films", "key") is None
    charge = ledger.spend_once("films", dps.Guarantee(0.25), "key", {"k": 1}, also=["films/ann"])
    found = ledger.find("films", "key")
    assert found is not None
    assert (found.entry.hash, found.answer) == (charge.entry.hash, None)
    ledger.keep_answer(charge.entry, {"items": ["tea"]})
    found = ledger.find("films", "key")
    assert found is not None
    assert found.answer == {"items": ["tea"]}


@pytest.mark.parametrize("names", [[], ["films", "films"], ["films", ""]])
def test_names_must_be_given_once(ledger: Ledger, names: list[str]) -> None:
    with pytest.raises(dps.InvalidInput, match="dataset"):
        dps.select(VOTES, k=1, epsilon=0.25, ledger=ledger, dataset=names)
    assert ledger.entries("films") == []
