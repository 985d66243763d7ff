"""A ledger adds up exactly, refuses what does not fit, and is asked before an answer is drawn."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from dpselect.ledger import Account, Budget, Ledger, Statement, records
from dpselect.ledger.rules import Amount

VOTES = {"tea": 400, "coffee": 300, "milk": 2}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with one data set, films, of epsilon 1."""
    ledger = Ledger(tmp_path / "budget.sqlite")
    ledger.create("films", epsilon=1.0)
    return ledger


def test_the_ledger_is_a_public_name() -> None:
    assert dps.privacy.Ledger is Ledger


def test_what_is_spent_is_no_longer_left(ledger: Ledger) -> None:
    entry = ledger.spend("films", dps.Guarantee(0.25), purpose="chart", parameters={"k": 3})
    assert (entry.sequence, entry.purpose, entry.parameters, entry.secure) == (1, "chart", {"k": 3}, True)
    assert entry.guarantee == dps.Guarantee(0.25)
    assert ledger.remaining("films") == Budget(0.75)
    assert ledger.spent("films") == Budget(0.25)
    assert ledger.entries("films") == [entry]
    assert abs((entry.time - datetime.now(UTC)).total_seconds()) < 3600


def test_another_ledger_object_on_the_same_file_sees_the_same(ledger: Ledger, tmp_path: Path) -> None:
    ledger.spend("films", dps.Guarantee(0.25))
    other = Ledger(f"sqlite:///{tmp_path / 'budget.sqlite'}")
    assert other.remaining("films") == Budget(0.75)
    other.spend("films", dps.Guarantee(0.5))
    assert ledger.remaining("films") == Budget(0.25)


def test_a_refusal_says_requested_remaining_and_difference_and_records_nothing(ledger: Ledger) -> None:
    ledger.spend("films", dps.Guarantee(0.75))
    with pytest.raises(dps.BudgetExceeded, match=r"'films'.*requested 0.5, remaining 0.25, short by 0.25") as refusal:
        ledger.spend("films", dps.Guarantee(0.5))
    error = refusal.value
    assert (error.requested, error.remaining, error.difference, error.dataset) == (0.5, 0.25, 0.25, "films")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert len(ledger.entries("films")) == 1
    ledger.spend("films", dps.Guarantee(0.25))
    assert ledger.remaining("films") == Budget(0.0)


def test_delta_is_a_budget_of_its_own(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a")
    ledger.create("d", epsilon=1.0, delta=1e-6)
    ledger.spend("d", dps.Guarantee(0.1, 2**-20))
    with pytest.raises(dps.BudgetExceeded, match=r"delta: requested .* remaining .* short by") as refusal:
        ledger.spend("d", dps.Guarantee(0.1, 1e-7))
    assert refusal.value.requested_delta == 1e-7
    assert 0 < refusal.value.remaining_delta < 1e-7
    assert "remaining 0.9," not in str(refusal.value)
    pure = Ledger(tmp_path / "b")
    pure.create("d", epsilon=1.0)
    with pytest.raises(dps.BudgetExceeded, match="delta: requested 1e-09, remaining 0"):
        pure.spend("d", dps.Guarantee(0.1, 1e-9))


def test_sums_are_exact_so_that_ten_binary_tenths_are_more_than_one(ledger: Ledger) -> None:
    for _ in range(9):
        ledger.spend("films", dps.Guarantee(0.1))
    with pytest.raises(dps.BudgetExceeded, match=r"sums are exact, so ask for 0\.09999") as refusal:
        ledger.spend("films", dps.Guarantee(0.1))
    ledger.spend("films", dps.Guarantee(refusal.value.remaining))
    assert ledger.remaining("films").epsilon < 2**-53


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=20))
def test_what_is_shown_is_rounded_towards_privacy(costs: list[float]) -> None:
    spent = sum((Amount(Fraction(cost)) for cost in costs), Amount())
    exact = sum(map(Fraction, costs), Fraction(0))
    assert Fraction(spent.rounded_up().epsilon) >= exact
    total = Amount(exact + Fraction(1, 3))
    assert Fraction((total - spent).rounded_down().epsilon) <= Fraction(1, 3)
    assert Amount.parse(*spent.text()) == spent


@given(st.floats(1e-9, 1e9), st.floats(1e-6, 1e3))
def test_the_remainder_buys_as_many_releases_as_fit_and_no_more(left: float, cost: float) -> None:
    number = Amount(Fraction(left)).buys(Amount(Fraction(cost)))
    assert number * Fraction(cost) <= Fraction(left) < (number + 1) * Fraction(cost)


def test_a_statement_says_what_the_remainder_buys(ledger: Ledger) -> None:
    assert [str(offer) for offer in ledger.statement("films").offers()] == ["10 releases of epsilon 0.0999"]
    ledger.spend("films", dps.Guarantee(0.25))
    assert [str(offer) for offer in ledger.statement("films").offers()] == [
        "3 more releases like the last one (epsilon 0.25)",
        "10 releases of epsilon 0.075",
    ]
    ledger.spend("films", dps.Guarantee(0.75))
    assert [offer.releases for offer in ledger.statement("films").offers()] == [0]


@given(st.floats(1e-290, 1e300))
def test_ten_releases_of_the_short_epsilon_that_is_shown_do_fit(left: float) -> None:
    account = Account("d", Budget(left), "one person", "add or remove", "basic", "", 0, "")
    (offer,) = Statement(account, Amount(), []).offers()
    typed = Fraction(float(f"{offer.cost.epsilon:g}"))
    assert offer.releases >= 10
    assert Fraction(left) * Fraction(98, 100) < 10 * typed <= Fraction(left)


def test_a_total_that_no_float_holds_is_rounded_down(tmp_path: Path) -> None:
    account = Ledger(tmp_path / "a").create("d", epsilon=Decimal("0.1"))  # type: ignore[arg-type]
    assert Fraction(account.total.epsilon) <= Fraction(1, 10)


BAD_TOTALS: list[tuple[str, dict[str, Any]]] = [
    *(("dataset", {"dataset": name}) for name in ("", "a\nb", "a\0", "\ud800", "x" * 201, 7)),
    ("epsilon", {"epsilon": 0.0}),
    ("epsilon", {"epsilon": float("nan")}),
    ("delta", {"delta": 1.0}),
    ("protects", {"protects": ""}),
    ("composition", {"composition": "hopeful"}),
]


def test_a_bad_total_is_refused_before_a_file_is_made(tmp_path: Path) -> None:
    for named, change in BAD_TOTALS:
        with pytest.raises(dps.InvalidInput) as refusal:
            Ledger(tmp_path / "a").create(**{"dataset": "d", "epsilon": 1.0, **change})
        assert refusal.value.argument == named
    assert list(tmp_path.iterdir()) == []


def test_a_bad_question_is_refused(ledger: Ledger) -> None:
    questions: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
        *(("last", ledger.statement, {"dataset": "films", "last": last}) for last in ("x", -1)),
        ("dataset", ledger.check, {"dataset": ["films"]}),
        *(("head", ledger.check, {"head": head}) for head in ("\udcff", 7, "")),
    ]
    for named, method, arguments in questions:
        with pytest.raises(dps.InvalidInput) as refusal:
            method(**arguments)
        assert refusal.value.argument == named


def test_a_head_may_be_handed_in_with_blanks_around_it(ledger: Ledger) -> None:
    assert ledger.check(head=f" {ledger.head()} ") == []


def test_a_bad_spend_is_refused_and_not_recorded(ledger: Ledger) -> None:
    for argument, call in (
        ("guarantee", lambda: ledger.spend("films", 0.5)),  # type: ignore[arg-type]
        ("purpose", lambda: ledger.spend("films", dps.Guarantee(0.5), purpose="x" * 2001)),
        ("parameters", lambda: ledger.spend("films", dps.Guarantee(0.5), parameters=5)),  # type: ignore[arg-type]
        ("parameters", lambda: ledger.spend("films", dps.Guarantee(0.5), parameters={1: 2, "a": 3})),  # type: ignore[dict-item]
        ("dataset", lambda: ledger.spend("filmes", dps.Guarantee(0.5))),
        ("dataset", lambda: ledger.spend(None, dps.Guarantee(0.5))),  # type: ignore[arg-type]
    ):
        with pytest.raises(dps.InvalidInput) as refusal:
            call()
        assert refusal.value.argument == argument
    assert ledger.entries("films") == []


def test_a_name_can_be_taken_once_and_its_total_cannot_be_changed(ledger: Ledger) -> None:
    with pytest.raises(dps.InvalidInput, match="a total of epsilon 1, which cannot be changed"):
        ledger.create("films", epsilon=100.0)
    assert ledger.remaining("films") == Budget(1.0)
    ledger.create("books", epsilon=3.0)
    ledger.spend("books", dps.Guarantee(2.0))
    assert ledger.remaining("films") == Budget(1.0)
    assert [account.dataset for account in ledger.accounts()] == ["books", "films"]


def test_two_ledgers_may_use_the_same_name_for_different_budgets(ledger: Ledger, tmp_path: Path) -> None:
    other = Ledger(tmp_path / "other.sqlite")
    other.create("films", epsilon=2.0)
    other.spend("films", dps.Guarantee(1.5))
    assert (ledger.remaining("films"), other.remaining("films")) == (Budget(1.0), Budget(0.5))


def test_units_of_protection_must_agree(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a")
    ledger.create("visits", epsilon=1.0, protects="one household")
    with pytest.raises(dps.InvalidInput, match=r"one household .*one person"):
        ledger.spend("visits", dps.Guarantee(0.1))
    with pytest.raises(dps.InvalidInput, match=r"add or remove.*change one"):
        ledger.spend("visits", dps.Guarantee(0.1, protects="one household", neighbours="change one"))
    ledger.spend("visits", dps.Guarantee(0.1, protects="one household"))
    assert len(ledger.entries("visits")) == 1


def test_a_zcdp_account_adds_up_rho_and_never_promises_more_than_its_total(tmp_path: Path) -> None:
    """The whole is checked against compose(), which knows nothing of ledgers."""
    ledger = Ledger(tmp_path / "a")
    account = ledger.create("d", epsilon=1.0, delta=1e-6, composition="zcdp")
    parts = [dps.Guarantee(0.05), dps.Guarantee.zcdp(0.001, delta=1e-9), dps.Guarantee.bounded_range(0.1, rounds=2)]
    spent: list[dps.Guarantee] = []

    def spend_all() -> None:
        for part in itertools.cycle(parts):
            ledger.spend("d", part)
            spent.append(part)

    with pytest.raises(dps.BudgetExceeded, match=r"rho: requested .* remaining .* short by") as refusal:
        spend_all()
    part = parts[len(spent) % 3]
    rho = sum((part.known_rho or Fraction(0) for part in spent), Fraction(0))
    assert rho <= Fraction(account.total.rho) < rho + (part.known_rho or Fraction(0))
    assert refusal.value.requested_rho > refusal.value.remaining_rho > 0
    whole = dps.privacy.compose(spent, delta=1e-6, route="zcdp")
    assert whole.epsilon == ledger.spent("d").epsilon <= 1.0
    assert ledger.spent("d").delta == 1e-6
    assert len(spent) > 5
    assert ledger.check() == []
    remaining = ledger.remaining("d")
    with pytest.raises(dps.BudgetExceeded):
        ledger.spend("d", dps.Guarantee(remaining.epsilon * (1 + 1e-9)))
    ledger.spend("d", dps.Guarantee(remaining.epsilon))
    assert ledger.spent("d").epsilon <= 1.0


def test_a_zcdp_account_takes_noise_for_its_whole_total_only_as_its_first_release(tmp_path: Path) -> None:
    whole = dps.Peeling(k=10, epsilon=1.0, noise="gumbel", delta=1e-6).guarantee
    ledger = Ledger(tmp_path / "a")
    for name in ("alone", "second"):
        account = ledger.create(name, epsilon=1.0, delta=1e-6, composition="zcdp")
        assert whole.rho is not None
        assert account.total.rho < whole.rho
    ledger.spend("alone", whole)
    assert ledger.remaining("alone").rho == 0
    with pytest.raises(dps.BudgetExceeded):
        ledger.spend("alone", dps.Guarantee(1e-9))
    ledger.spend("second", dps.Guarantee(1e-7))
    with pytest.raises(dps.BudgetExceeded) as refusal:
        ledger.spend("second", whole)
    assert refusal.value.requested_rho == pytest.approx(whole.rho)


def test_a_zcdp_account_refuses_a_rho_beyond_its_total(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a")
    total = ledger.create("d", epsilon=1.0, delta=1e-6, composition="zcdp").total
    with pytest.raises(dps.BudgetExceeded, match="rho: requested"):
        ledger.spend("d", dps.Guarantee.zcdp(total.rho * (1 + 1e-6), delta=1e-9))
    ledger.spend("d", dps.Guarantee.zcdp(total.rho, delta=1e-9))


def test_the_rho_of_a_total_is_nearly_the_largest_that_implies_it(tmp_path: Path) -> None:
    total = Ledger(tmp_path / "a").create("d", epsilon=1.0, delta=1e-6, composition="zcdp").total
    assert dps.Guarantee.zcdp(total.rho, delta=1e-6).epsilon <= 1.0
    assert dps.Guarantee.zcdp(total.rho * (1 + 1e-6), delta=1e-6).epsilon > 1.0


def test_a_zcdp_account_refuses_what_it_cannot_add(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a")
    with pytest.raises(dps.InvalidInput, match="implies no pure guarantee"):
        ledger.create("d", epsilon=1.0, composition="zcdp")
    ledger.create("d", epsilon=1.0, delta=1e-6, composition="zcdp")
    with pytest.raises(dps.InvalidInput, match="delta = 1e-09 and no rho"):
        ledger.spend("d", dps.Guarantee(0.1, 1e-9))
    assert ledger.entries("d") == []


def test_a_zcdp_statement_offers_what_fits(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a")
    ledger.create("d", epsilon=1.0, delta=1e-6, composition="zcdp")
    (offer,) = ledger.statement("d").offers()
    for _ in range(offer.releases):
        ledger.spend("d", dps.Guarantee(offer.cost.epsilon))
    with pytest.raises(dps.BudgetExceeded):
        ledger.spend("d", dps.Guarantee(offer.cost.epsilon))
    assert offer.releases == 10


def test_a_clock_that_is_set_back_does_not_turn_the_record_around(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(["2990-01-01T00:00:00.000000+00:00", "1990-01-01T00:00:00.000000+00:00"])
    monkeypatch.setattr("dpselect.ledger.charges.utc_now", lambda: next(times))
    first, second = (ledger.spend("films", dps.Guarantee(0.1)) for _ in range(2))
    assert first.time == second.time == datetime(2990, 1, 1, tzinfo=UTC)
    assert ledger.check() == []


def test_a_release_is_recorded_with_its_parameters(ledger: Ledger, tmp_path: Path) -> None:
    release = dps.select(VOTES, k=2, epsilon=0.5, ledger=ledger, dataset="films", purpose="chart")
    (entry,) = ledger.entries("films")
    assert entry.parameters == release.mechanism.describe()
    assert (entry.guarantee, entry.purpose, entry.secure) == (release.guarantee, "chart", True)
    path = str(tmp_path / "budget.sqlite")
    assert dps.select(VOTES, k=2, epsilon=0.25, ledger=path, dataset="films", seed=1).secure is False
    assert [entry.secure for entry in ledger.entries("films")] == [True, False]
    with pytest.raises(dps.BudgetExceeded):
        dps.select(VOTES, k=2, epsilon=0.5, ledger=path, dataset="films")


def test_noisy_values_are_charged_with_the_items(ledger: Ledger) -> None:
    release = dps.select(VOTES, k=2, epsilon=0.5, values=0.5, ledger=ledger, dataset="films")
    (entry,) = ledger.entries("films")
    assert entry.guarantee == release.guarantee
    assert ledger.remaining("films") == Budget(0.5)


def test_a_table_is_charged_before_its_rows_are_read(ledger: Ledger) -> None:
    rows = pandas.DataFrame({"film": ["Heat", "Up"], "viewer": ["ann", "bob"]})
    question: dict[str, Any] = {
        "item": "film",
        "person": "viewer",
        "k": 1,
        "domain": ["Heat", "Up"],
        "dataset": "films",
    }
    dps.top(rows, epsilon=0.5, ledger=ledger, **question)
    assert ledger.remaining("films") == Budget(0.5)

    backend = ibis.duckdb.connect()
    backend.con.execute("CREATE TABLE views AS SELECT 'Heat' AS film, 'ann' AS viewer")
    backend.con.execute("CREATE VIEW unreadable AS SELECT film, CAST(viewer AS INTEGER) AS viewer FROM views")
    unreadable = backend.table("unreadable")
    with pytest.raises(dps.BudgetExceeded):
        dps.top(unreadable, epsilon=0.6, ledger=ledger, **question)
    assert ledger.remaining("films") == Budget(0.5)
    with pytest.raises(dps.errors.SourceError):
        dps.top(unreadable, epsilon=0.25, ledger=ledger, **question)
    assert ledger.remaining("films") == Budget(0.25)


def test_an_answer_exists_only_after_its_record(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[int] = []
    draw = dps.Canonical.draw

    def watched(self: Any, *arguments: Any) -> Any:
        recorded.append(len(ledger.entries("films")))
        return draw(self, *arguments)

    monkeypatch.setattr(dps.Canonical, "draw", watched)
    for _ in range(2):
        dps.select(VOTES, k=1, epsilon=0.25, ledger=ledger, dataset="films")
    assert recorded == [1, 2]


def test_a_release_that_fails_stays_charged(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(dps.Canonical, "draw", broken)
    with pytest.raises(MemoryError):
        dps.select(VOTES, k=1, epsilon=0.25, ledger=ledger, dataset="films")
    assert ledger.remaining("films") == Budget(0.75)


def test_arguments_that_cannot_be_used_cost_nothing(ledger: Ledger) -> None:
    here: dict[str, Any] = {"ledger": ledger, "dataset": "films"}
    cases: list[tuple[str, dict[str, Any]]] = [
        ("dataset", {"dataset": "films"}),
        ("purpose", {"purpose": "chart"}),
        ("ledger", {"ledger": 7, "dataset": "films"}),
        ("dataset", {"ledger": "budget.sqlite"}),
        ("k", {**here, "k": 4}),
        ("seed", {**here, "seed": -1}),
    ]
    for named, arguments in cases:
        with pytest.raises(dps.InvalidInput) as refusal:
            dps.select(VOTES, **{"k": 1, "epsilon": 0.5, **arguments})
        assert refusal.value.argument == named
    assert ledger.remaining("films") == Budget(1.0)


def test_a_release_made_by_other_means_is_charged_in_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`charge` takes the unit of the data set, and returns the statement after it."""
    ledger = Ledger(tmp_path / "a")
    ledger.create("homes", epsilon=1.0, delta=1e-6, protects="one household")
    reads = []
    state = records.state
    monkeypatch.setattr(records, "state", lambda *arguments: reads.append(1) or state(*arguments))
    statement = ledger.charge("homes", epsilon=0.25, delta=1e-7, rho=0.01, purpose="chart")
    assert reads == [1]
    assert statement == ledger.statement("homes")
    assert statement.entries[-1].guarantee == dps.Guarantee(0.25, 1e-7, "one household", rho=0.01)
    with pytest.raises(dps.BudgetExceeded):
        ledger.charge("homes", epsilon=0.8)
    assert ledger.statement("homes") == statement


def test_a_ledger_crosses_process_boundaries_without_its_connection(ledger: Ledger) -> None:
    ledger.spend("films", dps.Guarantee(0.25))
    again = pickle.loads(pickle.dumps(ledger))
    again.spend("films", dps.Guarantee(0.25))
    assert ledger.remaining("films") == Budget(0.5)


def test_a_closed_ledger_opens_again_when_it_is_used(ledger: Ledger) -> None:
    with ledger:
        ledger.spend("films", dps.Guarantee(0.25))
    ledger.spend("films", dps.Guarantee(0.25))
    assert ledger.remaining("films") == Budget(0.5)


def test_importing_the_package_does_not_load_the_database_toolkit() -> None:
    program = "import sys, dpselect; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
