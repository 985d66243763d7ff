"""The same question under the same key is drawn once, charged once, and answered with the stored answer."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpselect as dps
from dpselect.charging import ChargeTarget, _asked_for
from dpselect.ledger import Budget, Ledger
from dpselect.release import PUBLIC, StatedDomain
from dpselect.request import ReleaseRequest
from dpselect.sampling import bit_source

pytestmark = pytest.mark.slow

EVEN = {f"item {number}": 0 for number in range(10_000)}
"""Equal scores: two draws of three of these items agree with probability below 1e-11."""


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    """A ledger with one data set."""
    with Ledger(tmp_path / "budget.sqlite") as opened:
        opened.create("films", epsilon=1.0, delta=0.6)
        yield opened


def asked(ledger: Any, key: str | None = "week 46", **changes: Any) -> dps.Release:
    question: dict[str, Any] = {"k": 3, "epsilon": 0.25, "ledger": ledger, "dataset": "films", "once": key, **changes}
    return dps.select(question.pop("scores", EVEN), **question)


class TestSelect:
    def test_a_second_call_returns_the_stored_answer_and_costs_nothing(self, ledger: Ledger) -> None:
        first = asked(ledger)
        second = asked(ledger)
        assert second == first
        assert second.to_dict() == first.to_dict() == ledger.answer("films", "week 46")
        assert (first.repeated, second.repeated) == (False, True)
        assert ledger.remaining("films").epsilon == 0.75
        assert asked(ledger, "week 47").items != first.items
        assert asked(ledger, None).items != first.items
        assert ledger.remaining("films").epsilon == 0.25

    def test_the_place_of_the_ledger_will_do(self, ledger: Ledger, tmp_path: Path) -> None:
        assert asked(ledger) == asked(str(tmp_path / "budget.sqlite")) == asked(tmp_path / "budget.sqlite")

    def test_the_scores_are_no_part_of_the_question_and_the_items_are(self, ledger: Ledger) -> None:
        first = asked(ledger)
        assert asked(ledger, scores=dict.fromkeys(EVEN, 7)) == first
        assert asked(ledger, scores=dict(reversed(EVEN.items()))) == first
        with pytest.raises(dps.KeyReused):
            asked(ledger, scores={**EVEN, "one more": 0})
        with pytest.raises(dps.KeyReused):
            asked(ledger, scores=[0] * len(EVEN))

    def test_numbered_items_are_known_by_their_number(self, ledger: Ledger) -> None:
        first = asked(ledger, scores=[1, 2, 3, 4, 5])
        assert asked(ledger, scores=pd.Series([9, 9, 9, 9, 9])) == first
        with pytest.raises(dps.KeyReused):
            asked(ledger, scores=[1, 2, 3, 4])

    def test_which_items_exist_is_no_part_of_the_question_if_that_is_private(self, ledger: Ledger) -> None:
        mechanism = dps.LimitedDomain(k=1, epsilon=0.25, delta=1e-6, pool=5)
        question: dict[str, Any] = {"ledger": ledger, "dataset": "films", "once": "a", "mechanism": mechanism}
        first = dps.select({"tea": 900}, **question)
        assert dps.select({"milk": 900, "salt": 1}, **question) == first

    @pytest.mark.parametrize(
        "change",
        [
            {"k": 4},
            {"epsilon": 0.125},
            {"delta": 1e-6},
            {"mechanism": "joint"},
            {"mechanism": "oneshot", "options": {"noise": "gumbel"}},
            {"aim": "exact"},
            {"ordered": True},
            {"lowest": True},
            {"values": 0.5},
            {"sensitivity": dps.Sensitivity(-1, 1)},
            {"mechanism": dps.Canonical(k=3, epsilon=0.25)},
        ],
        ids=lambda change: ", ".join(change),
    )
    def test_every_argument_that_matters_is_part_of_the_question(self, change: dict[str, Any], ledger: Ledger) -> None:
        first = asked(ledger)
        with pytest.raises(dps.KeyReused):
            asked(ledger, **change)
        assert asked(ledger, "another", **change).items != first.items
        assert asked(ledger) == first

    def test_the_same_question_in_other_words_is_the_same_question(self, ledger: Ledger) -> None:
        import numpy as np

        first = asked(ledger, epsilon=1, mechanism="joint")
        same: list[dict[str, Any]] = [
            {"epsilon": 1.0, "mechanism": "joint"},
            {"epsilon": np.float64(1), "k": np.int64(3), "mechanism": "joint", "delta": 0.0},
            {"epsilon": 1, "mechanism": "joint", "purpose": "another note", "options": {}, "aim": "most"},
        ]
        assert all(asked(ledger, **words) == first for words in same)

    def test_a_seed_and_a_missing_ledger_are_refused(self, ledger: Ledger) -> None:
        with pytest.raises(dps.InvalidInput, match="seed must be left out with once"):
            asked(ledger, seed=1)
        with pytest.raises(dps.InvalidInput, match="once must be left out without a ledger"):
            dps.select(EVEN, k=1, epsilon=1.0, once="week 46")
        assert ledger.entries("films") == []

    def test_a_function_of_the_caller_is_refused_before_it_is_charged(self, ledger: Ledger) -> None:
        box = dps.BlackBox(k=1, epsilon=0.5, choose=lambda scores, k: [0], exact=True)
        for mechanism in (box, dps.Restricted(inner=box, test_epsilon=0.1, test_delta=1e-6)):
            with pytest.raises(dps.InvalidInput, match="mechanism without functions of your own"):
                dps.select(EVEN, mechanism=mechanism, ledger=ledger, dataset="films", once="a")
        assert ledger.entries("films") == []


def test_whoever_stores_an_answer_later_returns_the_first_one(ledger: Ledger) -> None:
    """Two callers are charged under one key at the same time, and both draw."""
    plan = ReleaseRequest(mechanism="auto", k=1, epsilon=0.25, sensitivity=dps.COUNTS).plan()
    target = ChargeTarget.of(ledger, "films", "", "a")
    charges = [target.charge(plan, secure=True) for _ in range(2)]
    assert [charge.stored for charge in charges] == [None, None]
    domain, bits = StatedDomain(2, PUBLIC), bit_source(None)
    first, second = (
        charge.published(charge.plan.release([item], [1], bits, domain))
        for charge, item in zip(charges, ("tea", "milk"), strict=True)
    )
    assert (first.items, second.items) == (["tea"], ["tea"])
    assert (first.repeated, second.repeated) == (False, True)
    assert len(ledger.entries("films")) == 1


@pytest.mark.parametrize("later", ["tea", "milk"])
def test_repeated_does_not_tell_what_a_later_caller_drew(ledger: Ledger, later: str) -> None:
    """Each draw costs epsilon, and one was charged: nothing may depend on the others, not even whether they agree."""
    plan = ReleaseRequest(mechanism="auto", k=1, epsilon=0.25, sensitivity=dps.COUNTS).plan()
    target = ChargeTarget.of(ledger, "films", "", "a")
    charges = [target.charge(plan, secure=True) for _ in range(2)]
    domain, bits = StatedDomain(2, PUBLIC), bit_source(None)
    answers = [
        charge.published(charge.plan.release([item], [1], bits, domain))
        for charge, item in zip(charges, ("tea", later), strict=True)
    ]
    assert [(answer.items, answer.repeated) for answer in answers] == [(["tea"], False), (["tea"], True)]


def power_cut(*_: Any) -> Any:
    """Fail in the place of storing an answer."""
    raise dps.SourceError("the power went out")


class TestAfterACrash:
    """A charge without an answer is what a crash between the two leaves behind."""

    def test_the_question_is_drawn_again_without_a_second_charge(self, ledger: Ledger, tmp_path: Path) -> None:
        file = tmp_path / "views.csv"
        question: dict[str, Any] = {"item": "film", "person": "viewer", "k": 1, "epsilon": 0.25, "domain": 3}
        question |= {"delta": 0.5, "max_items_per_person": 1}
        question |= {"ledger": ledger, "dataset": "films", "once": "week 46"}
        file.write_text("film,viewer\n" + "".join(f"film {number},{number}\n" for number in range(4)))
        with pytest.raises(dps.InvalidInput, match="at least the number of distinct items"):
            dps.top(file, **question)
        (entry,) = ledger.entries("films")
        assert (entry.once, entry.answered) == ("week 46", False)
        file.write_text("film,viewer\n" + "Up,ann\n" * 3)
        first = dps.top(file, **question)
        assert dps.top(file, **question) == first
        (entry,) = ledger.entries("films")
        assert entry.answered
        assert ledger.account("films").count == 2

    def test_a_release_that_was_reduced_to_what_is_left_is_drawn_with_what_was_charged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Three tenths exceed 0.3 by a rounding error; the third was charged less, and its retry must not cost more."""
        with Ledger(tmp_path / "tenths.sqlite") as ledger:
            ledger.create("films", epsilon=0.3)
            for key in ("a", "b"):
                asked(ledger, key, epsilon=0.1)

            with monkeypatch.context() as patched:
                patched.setattr(Ledger, "keep_answer", power_cut)
                with pytest.raises(dps.SourceError, match="power"):
                    asked(ledger, "c", epsilon=0.1)
            charged = ledger.entries("films")[-1].guarantee
            assert charged.epsilon < 0.1
            retried = asked(ledger, "c", epsilon=0.1)
            assert retried.guarantee == charged == retried.mechanism.guarantee
            assert asked(ledger, "c", epsilon=0.1) == retried
            assert ledger.remaining("films") == Budget(0.0)
            assert ledger.check() == []

    def test_a_charge_with_another_guarantee_is_never_drawn_from(self, ledger: Ledger) -> None:
        """A later version may plan the same question with another guarantee than the one that was charged."""
        asked(ledger, "a")
        plan = ReleaseRequest(mechanism="auto", k=3, epsilon=0.25, sensitivity=dps.COUNTS).plan()
        question = {**plan.request.question(), **_asked_for({"command": "select", "domain": "x"})}
        ledger.spend_once("films", dps.Guarantee(0.125), "b", question)
        target = ChargeTarget.of(ledger, "films", "", "b")
        with pytest.raises(dps.InvalidInput, match="charged this question with another guarantee"):
            target.charge(plan, secure=True, asked=lambda: {"command": "select", "domain": "x"})


class TestTop:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A folder with views, and two lists of the same films."""
        (tmp_path / "views.csv").write_text("film,viewer,year\n" + "".join(f"f{n},{n},2026\n" for n in range(500)))
        names = [f"f{number}" for number in range(500)]
        (tmp_path / "films.csv").write_text("film\n" + "\n".join(names) + "\n")
        (tmp_path / "sorted.csv").write_text("title\n" + "\n".join(sorted(names, reverse=True)) + "\n")
        (tmp_path / "fewer.csv").write_text("film\n" + "\n".join(names[1:]) + "\n")
        return tmp_path

    def asked(self, folder: Path, ledger: Ledger, key: str = "a", **changes: Any) -> dps.Release:
        question: dict[str, Any] = {
            "item": "film",
            "person": "viewer",
            "k": 5,
            "epsilon": 0.125,
            "domain": folder / "films.csv",
            "ledger": ledger,
            "dataset": "films",
            "once": key,
            **changes,
        }
        return dps.top(question.pop("table", folder / "views.csv"), **question)

    def test_the_contents_of_the_domain_count_and_not_where_it_is(self, folder: Path, ledger: Ledger) -> None:
        first = self.asked(folder, ledger)
        assert self.asked(folder, ledger, domain=folder / "sorted.csv", domain_column="title") == first
        assert self.asked(folder, ledger, domain=[f"f{number}" for number in range(500)]) == first
        for other in (folder / "fewer.csv", [f"f{number}" for number in range(501)]):
            with pytest.raises(dps.KeyReused):
                self.asked(folder, ledger, domain=other)
        (folder / "films.csv").write_text((folder / "fewer.csv").read_text())
        with pytest.raises(dps.KeyReused):
            self.asked(folder, ledger)
        assert len(ledger.entries("films")) == 1

    @pytest.mark.parametrize(
        "change",
        [
            {"where": "year = '2026'"},
            {"item": "year", "domain_column": "film"},
            {"person": "year"},
            {"max_items_per_person": 3},
            {"value": "year", "clip": (0, 1)},
            {"weight": "year"},
            {"protects": "one household"},
            {"domain": dps.UNKNOWN, "delta": 1e-6},
        ],
        ids=lambda change: ", ".join(change),
    )
    def test_every_part_of_the_question_counts(self, change: dict[str, Any], folder: Path, ledger: Ledger) -> None:
        self.asked(folder, ledger)
        with pytest.raises(dps.KeyReused):
            self.asked(folder, ledger, **change)

    def test_new_rows_in_a_file_of_the_same_name_do_not_change_the_answer(self, folder: Path, ledger: Ledger) -> None:
        first = self.asked(folder, ledger)
        (folder / "elsewhere").mkdir()
        (folder / "elsewhere" / "views.csv").write_text("film,viewer,year\n" + "f7,x,2026\n" * 900)
        assert self.asked(folder, ledger, table=folder / "elsewhere" / "views.csv") == first
        (folder / "returns.csv").write_text((folder / "views.csv").read_text())
        with pytest.raises(dps.KeyReused):
            self.asked(folder, ledger, table=folder / "returns.csv")

    @pytest.mark.parametrize("values", [None, 0.5, True])
    def test_answers_of_every_kind_come_back(self, values: Any, folder: Path, ledger: Ledger) -> None:
        more = {"max_items_per_person": 1} if values is True else {}
        first = self.asked(folder, ledger, values=values, **more)
        second = self.asked(folder, ledger, values=values, **more)
        assert second == first
        assert second.values == first.values
        assert second.intervals == first.intervals
        assert str(second.guarantee) == str(first.guarantee)

    def test_unseen_items_come_back_as_such(self, folder: Path, ledger: Ledger) -> None:
        (folder / "views.csv").write_text("film,viewer,year\n")
        question: dict[str, Any] = {"domain": 10**9, "max_items_per_person": 1, "delta": 1e-6}
        first = self.asked(folder, ledger, **question)
        assert first.items == [dps.Unseen(number) for number in range(1, 6)]
        assert self.asked(folder, ledger, **question) == first

    def test_items_are_as_json_holds_them_from_the_first_answer_on(self, ledger: Ledger) -> None:
        days = [date(2026, 11, day) for day in range(1, 4)]
        rows = pd.DataFrame({"day": pd.to_datetime(days), "person": [1, 2, 3]})
        question: dict[str, Any] = {"item": "day", "person": "person", "k": 3, "epsilon": 0.25, "domain": days}
        first = dps.top(rows, ledger=ledger, dataset="films", once="days", **question)
        assert sorted(first.items) == ["2026-11-01", "2026-11-02", "2026-11-03"]
        assert dps.top(rows, ledger=ledger, dataset="films", once="days", **question) == first

    def test_an_unknown_domain_is_answered_once(self, folder: Path, ledger: Ledger) -> None:
        (folder / "views.csv").write_text("film,viewer,year\n" + "".join(f"f7,{n},2026\n" for n in range(900)))
        first = self.asked(folder, ledger, domain=dps.UNKNOWN, delta=1e-6, epsilon=1.0)
        assert self.asked(folder, ledger, domain=dps.UNKNOWN, delta=1e-6, epsilon=1.0) == first
        assert first.stopped


def test_a_ranking_is_answered_once(ledger: Ledger) -> None:
    players = [f"player {number}" for number in range(200)]
    games = [(players[number], players[-1 - number]) for number in range(100)]
    question: dict[str, Any] = {"k": 3, "epsilon": 0.25, "comparisons_per_pair": 2, "max_degree": 4, "domain": players}
    kept: dict[str, Any] = {"ledger": ledger, "dataset": "games", "once": "season 1"}
    ledger.create("games", epsilon=1.0, protects="one comparison")
    first = dps.rank(games, **question, **kept)
    assert dps.rank(games[:50], **question, **kept) == first
    for change in ({"max_degree": 5}, {"domain": players[:-1]}, {"damping": 0.5}, {"k": 4}):
        with pytest.raises(dps.KeyReused):
            dps.rank(games, **{**question, **change}, **kept)
    assert ledger.remaining("games") == Budget(0.75)


class TestDiscover:
    """Of 400 items each is listed with probability ½, so that two draws agree with probability below 1e-100."""

    MECHANISM = dps.Discovery(epsilon=0.25, delta=1e-6, max_items_per_person=1)

    @pytest.fixture
    def rows(self) -> pd.DataFrame:
        """As many people for each item as the threshold asks for."""
        people = round(self.MECHANISM.threshold / self.MECHANISM.units)
        films = [f"f{number}" for number in range(400) for _ in range(people)]
        return pd.DataFrame({"film": films, "viewer": range(len(films)), "day": "2026-11-11"})

    def asked(self, rows: Any, ledger: Any, key: str | None = "films", **changes: Any) -> dps.DomainRelease:
        question: dict[str, Any] = {"item": "film", "person": "viewer", "epsilon": 0.25, "delta": 1e-6, **changes}
        question = {"max_items_per_person": 1, "ledger": ledger, "dataset": "films", "once": key, **question}
        return dps.discover(rows, **question)

    def test_a_second_call_returns_the_stored_list_and_costs_nothing(self, rows: Any, ledger: Ledger) -> None:
        first = self.asked(rows, ledger)
        second = self.asked(rows[:10], ledger)
        assert 0 < len(first.items) < 400
        assert second == first
        assert second.to_dict() == first.to_dict() == ledger.answer("films", "films")
        assert (first.repeated, second.repeated) == (False, True)
        assert ledger.remaining("films").epsilon == 0.75
        assert self.asked(rows, ledger, "again").items != first.items
        assert self.asked(rows, ledger, None).items != first.items
        assert ledger.check() == []

    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon": 0.125},
            {"delta": 1e-7},
            {"max_items_per_person": 2},
            {"at_least": 5},
            {"item": "day"},
            {"person": "day"},
            {"where": "film <> 'f1'"},
            {"protects": "one household"},
        ],
        ids=lambda change: ", ".join(change),
    )
    def test_every_part_of_the_question_counts(self, change: dict[str, Any], rows: Any, ledger: Ledger) -> None:
        self.asked(rows, ledger)
        with pytest.raises(dps.KeyReused):
            self.asked(rows, ledger, **change)
        assert len(ledger.entries("films")) == 1

    def test_the_period_counts(self, rows: Any, tmp_path: Path) -> None:
        with Ledger(tmp_path / "weekly.sqlite") as ledger:
            ledger.create("films", epsilon=1.0, delta=1e-3, every="week")
            first = self.asked(rows, ledger, time="day", period="2026-W46")
            assert self.asked(rows, ledger, time="day", period="2026-W46") == first
            assert first.period == "2026-W46"
            with pytest.raises(dps.KeyReused):
                self.asked(rows, ledger, time="day", period="2026-W45")

    def test_the_same_question_in_other_words_is_the_same_question(self, rows: Any, ledger: Ledger) -> None:
        first = self.asked(rows, ledger, epsilon=1)
        assert self.asked(rows, ledger, epsilon=1.0, at_least=1, purpose="another note") == first

    def test_a_key_of_another_kind_of_release_is_refused(self, rows: Any, ledger: Ledger) -> None:
        asked(ledger, "top")
        self.asked(rows, ledger, "films")
        with pytest.raises(dps.KeyReused):
            self.asked(rows, ledger, "top")
        with pytest.raises(dps.KeyReused):
            asked(ledger, "films")

    def test_a_seed_is_refused(self, rows: Any, ledger: Ledger) -> None:
        with pytest.raises(dps.InvalidInput, match="seed must be left out with once"):
            self.asked(rows, ledger, seed=1)
        assert ledger.entries("films") == []

    def test_a_crash_between_charge_and_answer_is_drawn_again_without_a_second_charge(
        self, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Three tenths exceed 0.3 by a rounding error; the third is charged less, also if it is drawn later."""
        with Ledger(tmp_path / "tenths.sqlite") as ledger:
            ledger.create("films", epsilon=0.3, delta=1e-3)
            for key in ("a", "b"):
                self.asked(rows, ledger, key, epsilon=0.1)
            with monkeypatch.context() as patched:
                patched.setattr(Ledger, "keep_answer", power_cut)
                with pytest.raises(dps.SourceError, match="power"):
                    self.asked(rows, ledger, "c", epsilon=0.1)
            entry = ledger.entries("films")[-1]
            assert (entry.once, entry.answered) == ("c", False)
            assert entry.guarantee.epsilon < 0.1
            retried = self.asked(rows, ledger, "c", epsilon=0.1)
            assert retried.guarantee == entry.guarantee == retried.mechanism.guarantee
            assert not retried.repeated
            assert self.asked(rows, ledger, "c", epsilon=0.1) == retried
            assert ledger.remaining("films").epsilon == 0.0
            assert ledger.check() == []

    def test_callers_who_ask_at_the_same_time_get_the_same_list(
        self, rows: Any, ledger: Ledger, tmp_path: Path
    ) -> None:
        place = tmp_path / "budget.sqlite"
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: self.asked(rows, place), range(6)))
        assert all(answer == answers[0] for answer in answers)
        assert [answer.repeated for answer in answers].count(False) == 1
        assert len(ledger.entries("films")) == 1

    def test_a_list_is_rebuilt_from_its_plain_data(self, rows: Any) -> None:
        release = dps.discover(
            rows, item="film", person="viewer", epsilon=1.0, delta=1e-6, max_items_per_person=1, at_least=3
        )
        again = dps.DomainRelease.from_dict(json.loads(json.dumps(release.to_dict())))
        assert again == release
        assert again.mechanism == release.mechanism


MECHANISMS = [
    dps.Canonical(k=2, epsilon=1.0, gamma=0.25, noise="gumbel", margin=False),
    dps.Joint(k=2, epsilon=1.0, margin=False),
    dps.OneShot(k=2, epsilon=1.0, noise="gumbel", delta=1e-6, ordered=True),
    dps.OneShot(k=2, epsilon=0.1, sensitivity=dps.Sensitivity(-1, 0.1)),
    dps.Peeling(k=2, epsilon=1.0, noise="laplace"),
    dps.Peeling(k=2, epsilon=1.0, noise="gumbel", delta=1e-6),
    dps.Gamma(k=2, epsilon=1.0),
    dps.Laplace(k=2, epsilon=1.0, max_items_per_person=3),
    dps.Gaussian(k=2, epsilon=1.0, delta=1e-6, max_items_per_person=3),
    dps.Restricted(inner=dps.Joint(k=2, epsilon=0.5), test_epsilon=0.5, test_delta=1e-6, pool=7),
    dps.RestrictedGumbel(k=2, epsilon=1.0, delta=1e-6),
    dps.RestrictedNormal(k=2, epsilon=1.0, delta=1e-6, max_items_per_person=3),
    dps.LimitedDomain(k=2, epsilon=1.0, delta=1e-6, pool=5),
    dps.TopStable(k=2, epsilon=1.0, delta=1e-6, pool=5),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_a_release_is_rebuilt_from_its_plain_data(mechanism: dps.Mechanism) -> None:
    release = dps.select({"tea": 900, "coffee": 800, "milk": 3}, mechanism=mechanism, seed=1)
    data = json.loads(json.dumps(release.to_dict()))
    again = dps.Release.from_dict(data)
    assert json.loads(json.dumps(again.to_dict())) == data
    assert again.mechanism.describe() == mechanism.describe()
    assert again.mechanism.guarantee == mechanism.guarantee
    assert again.guarantee == release.guarantee
    assert (again.items, again.secure, again.stopped, again.domain) == (
        release.items,
        release.secure,
        release.stopped,
        release.domain,
    )


@pytest.mark.parametrize("lowest", [False, True])
def test_a_release_with_values_is_rebuilt(lowest: bool) -> None:
    release = dps.select({("a", 1): 900, ("b", 2): 5}, k=1, epsilon=1.0, values=0.5, lowest=lowest, seed=1)
    again = dps.Release.from_dict(json.loads(json.dumps(release.to_dict())))
    assert again == release
    assert again.intervals == release.intervals
