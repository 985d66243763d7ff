"""A total for each day, week or month, and one for all of them: exact, checked, and the same on file and server."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ledger_files import tamper
from ledger_servers import PROCESSES, fresh_database
from test_ledger_migration import old_on_server

import dpselect as dps
from dpselect.ledger import Budget, Ledger, schema

THIRD = (Path(__file__).parent / "ledger_version_3.sql").read_text()


def weekly(epsilon: float, **more: Any) -> dps.Guarantee:
    return dps.Guarantee(epsilon, protects="one person's week", **more)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger can be made: a file, or an empty database on the server."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.sqlite")
    return fresh_database(request.getfixturevalue("postgresql_server"))


def test_every_period_has_the_total_and_lifetime_limits_their_sum(place: str) -> None:
    with Ledger(place) as ledger:
        account = ledger.create("views", epsilon=0.5, every="week", lifetime=1.25)
        assert (account.protects, account.every, account.lifetime) == ("one person's week", "week", Budget(1.25))
        assert ledger.account("views") == account
        for week in ("2024-W46", "2024-W45"):
            ledger.spend("views", weekly(0.25), period=week)
            ledger.spend("views", weekly(0.25), period=week)
            with pytest.raises(dps.BudgetExceeded) as short:
                ledger.spend("views", weekly(0.125), period=week)
            assert (short.value.scope, short.value.remaining) == (f"for {week}", 0.0)
        assert ledger.remaining("views") == ledger.remaining("views", "2024-W47") == Budget(0.25)
        assert ledger.remaining("views", "2024-W46") == Budget(0.0)
        with pytest.raises(dps.BudgetExceeded, match="'views' over all periods does not allow this release") as short:
            ledger.spend("views", weekly(0.5), period="2024-W47")
        assert short.value.remaining == 0.25
        ledger.spend("views", weekly(0.25), period="2024-W47")
        assert ledger.spent("views") == Budget(1.25)
        assert [ledger.spent("views", week).epsilon for week in ("2024-W47", "2024-W46", "2024-W44")] == [0.25, 0.5, 0]
        statement = ledger.statement("views")
        assert statement.in_periods() == {
            "2024-W47": (Budget(0.25), Budget(0.0)),
            "2024-W46": (Budget(0.5), Budget(0.0)),
            "2024-W45": (Budget(0.5), Budget(0.0)),
        }
        assert statement.a_year == Budget(26.0)
        assert ledger.check() == []


def test_a_statement_has_the_latest_periods(tmp_path: Path) -> None:
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("views", epsilon=0.5, every="day")
        for day in range(1, 21):
            ledger.charge("views", epsilon=0.25, period=f"2024-11-{day:02}")
        data = ledger.statement("views").to_dict()
        assert [one["period"] for one in data["periods"]] == [f"2024-11-{day}" for day in range(20, 10, -1)]
        assert data["periods"][0] == {
            "period": "2024-11-20",
            "spent": {"epsilon": 0.25, "delta": 0.0},
            "remaining": {"epsilon": 0.25, "delta": 0.0},
        }
        assert (data["every"], data["lifetime"], data["spent"]["epsilon"]) == ("day", None, 5.0)
        assert data["entries"][-1]["period"] == "2024-11-20"
        assert "every" not in ledger.create("films", epsilon=1.0).to_dict()


def test_deltas_of_a_lifetime_grow_with_its_epsilon(tmp_path: Path) -> None:
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        account = ledger.create("views", epsilon=0.5, delta=1e-7, every="week", lifetime=1.5)
        assert account.lifetime is not None
        assert account.lifetime.delta == pytest.approx(3e-7, rel=1e-12)
        for week in (44, 45, 46):
            ledger.spend("views", weekly(0.25, delta=0.99e-7), period=f"2024-W{week}")
        with pytest.raises(dps.BudgetExceeded, match=r"over all periods .*delta"):
            ledger.spend("views", weekly(0.25, delta=0.99e-7), period="2024-W47")


def test_rho_adds_up_over_periods_and_no_release_counts_less_for_being_alone(tmp_path: Path) -> None:
    """Alone, noise for the whole (epsilon, delta) may take a total of less rho; a sum over weeks would hide that."""
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        whole = ledger.create("films", epsilon=1.0, delta=1e-6, composition="zcdp").total
        ledger.create("views", epsilon=1.0, delta=1e-6, composition="zcdp", every="week", lifetime=2.0)
        more = dps.Guarantee(1.0, 1e-6, rho=1.5 * whole.rho)
        ledger.spend("films", more)
        with pytest.raises(dps.BudgetExceeded):
            ledger.spend("views", weekly(1.0, delta=1e-6, rho=1.5 * whole.rho), period="2024-W46")
        fit = int(ledger.account("views").lifetime.rho // whole.rho)  # type: ignore[union-attr]
        for week in range(1, fit + 1):
            ledger.spend("views", weekly(1.0, delta=1e-6, rho=whole.rho), period=f"2024-W{week:02}")
        with pytest.raises(dps.BudgetExceeded, match="over all periods"):
            ledger.spend("views", weekly(1.0, delta=1e-6, rho=whole.rho), period="2024-W40")
        assert fit >= 2
        assert 1.0 < ledger.spent("views").epsilon <= 2.0
        assert ledger.statement("views").a_year.epsilon > 7  # type: ignore[union-attr]
        assert ledger.check() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"every": "year"}, "every must be one of day, week, month"),
        ({"every": "Week"}, "every must be one of"),
        ({"every": 7}, "every must be one of"),
        ({"lifetime": 5.0}, "lifetime must be left out without periods"),
        ({"every": "week", "lifetime": 0.25}, "lifetime must be at least 0.5, the epsilon of one period"),
        ({"every": "week", "lifetime": -1}, "lifetime must be"),
        ({"every": "week", "lifetime": "five"}, "lifetime must be"),
    ],
)
def test_what_cannot_be_agreed_is_refused_before_a_file_is_made(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(dps.InvalidInput, match=message):
        Ledger(tmp_path / "budget.sqlite").create("views", epsilon=0.5, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_only_releases_that_protect_the_same_unit_are_charged(tmp_path: Path) -> None:
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("views", epsilon=0.5, every="week")
        for protects in ("one person", "one person's day", "one household's week"):
            with pytest.raises(dps.InvalidInput, match="must protect one person's week"):
                ledger.spend("views", dps.Guarantee(0.1, protects=protects), period="2024-W46")
        with pytest.raises(dps.InvalidInput, match="period must be a week such as 2026-W46"):
            ledger.spend("views", weekly(0.1))
        with pytest.raises(dps.InvalidInput, match="period must be a week such as 2026-W46"):
            ledger.spend("views", weekly(0.1), period="2024-11-12")
        assert ledger.entries("views") == []
        ledger.create("films", epsilon=1.0)
        with pytest.raises(dps.InvalidInput, match="'films' has one total for all time"):
            ledger.remaining("films", "2024-W46")
        with pytest.raises(dps.InvalidInput, match="period must be a week"):
            ledger.remaining("views", "2024-11")


def spend_in_periods(place: str, worker: int) -> int:
    """Spend in one week after another from a process of its own; return how many releases were recorded."""
    recorded = 0
    with Ledger(place) as ledger:
        for number in range(20):
            try:
                ledger.spend("views", weekly(0.25), period=f"2024-W{1 + (number + worker) % 10:02}")
                recorded += 1
            except dps.BudgetExceeded:
                pass
    return recorded


@pytest.mark.slow
def test_processes_never_overdraw_a_week_or_the_lifetime_together(place: str) -> None:
    """Ten weeks of two releases each would be twenty; fifteen fit into the lifetime."""
    with Ledger(place) as ledger:
        ledger.create("views", epsilon=0.5, every="week", lifetime=3.75)
    with ProcessPoolExecutor(4, mp_context=PROCESSES) as pool:
        recorded = list(pool.map(spend_in_periods, [place] * 4, range(4), timeout=120))
    assert sum(recorded) == 15
    with Ledger(place) as ledger:
        assert ledger.check() == []
        assert all(spent.epsilon <= 0.5 for spent, _ in ledger.statement("views").in_periods().values())


def filled(folder: Path) -> Path:
    """Return the file of a ledger with three releases in two weeks, one of them answered once."""
    file = folder / "budget.sqlite"
    file.unlink(missing_ok=True)
    with Ledger(file) as ledger:
        ledger.create("views", epsilon=0.5, every="week", lifetime=5.0)
        for week in ("2024-W45", "2024-W46"):
            ledger.spend("views", weekly(0.25), period=week)
        charge = ledger.spend_once("views", weekly(0.25), "key", {"k": 1}, period="2024-W46")
        ledger.keep_answer(charge.entry, {"items": []})
    return file


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        ("UPDATE dpselect_entries SET period = '2024-W44' WHERE sequence = 3", ("views", 3)),
        ("UPDATE dpselect_entries SET period_spent = '0 0 0' WHERE sequence = 3", ("views", 3)),
        ("UPDATE dpselect_accounts SET every = 'day'", ("views", 1)),
        ("UPDATE dpselect_accounts SET lifetime = ''", ("views", 1)),
        ('UPDATE dpselect_accounts SET lifetime = \'{"delta":0.0,"epsilon":50.0}\'', ("views", 1)),
    ],
)
def test_an_edit_of_a_period_or_of_what_was_agreed_is_found(edit: str, fault: Any, tmp_path: Path) -> None:
    file = filled(tmp_path)
    tamper(file, edit)
    with Ledger(file) as ledger:
        assert fault in [(found.dataset, found.sequence) for found in ledger.check()]
        if "accounts" in edit:
            with pytest.raises(dps.SourceError, match="changed from outside"):
                ledger.spend("views", weekly(0.25), period="2024-W47")


@pytest.mark.parametrize("lifetime", ["x", "{}", "[]", '{"epsilon": 1, "more": 2}'])
def test_a_lifetime_that_cannot_be_read_is_told(lifetime: str, tmp_path: Path) -> None:
    file = filled(tmp_path)
    tamper(file, f"UPDATE dpselect_accounts SET lifetime = '{lifetime}'")
    with Ledger(file) as ledger, pytest.raises(dps.SourceError, match="cannot be read"):
        ledger.spend("views", weekly(0.25), period="2024-W47")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"period": ""}, "it has no period"),
        ({"period": "2024-11"}, "its period is not a week"),
        ({"period": "2024-W44"}, "running sum is not the sum of the costs of its period"),
        ({"period_spent": "1/4 0 0"}, "running sum is not the sum of the costs of its period"),
    ],
)
def test_periods_that_no_release_can_have_written_are_faults_even_with_right_hashes(
    changes: dict[str, str], problem: str, tmp_path: Path
) -> None:
    file = filled(tmp_path)
    rehashed(file, 3, changes)
    with Ledger(file) as ledger:
        assert problem in " ".join(fault.problem for fault in ledger.check("views") if fault.sequence == 3)


def test_an_overdrawn_week_is_a_fault_even_with_right_sums(tmp_path: Path) -> None:
    file = filled(tmp_path)
    half = {"epsilon": 0.5, "spent_epsilon": "1", "period_spent": "3/4 0 0"}
    rehashed(file, 3, half)
    with Ledger(file) as ledger:
        problems = [fault.problem for fault in ledger.check("views") if fault.sequence == 3]
    assert problems == ["it overdraws the total of its period"]


def rehashed(file: Path, sequence: int, changes: dict[str, Any]) -> None:
    """Change an entry and give it the right hash, as a forger would."""
    import sqlalchemy as sql

    from dpselect.ledger.chain import Record

    engine = sql.create_engine(f"sqlite:///{file}")
    place = schema.entries.c.sequence == sequence
    with engine.begin() as connection:
        (row,) = connection.execute(sql.select(schema.entries).where(place))
        fields = {**row._mapping, **changes}
        fields["hash"] = Record(**fields).expected_hash()
        connection.execute(schema.entries.update().where(place).values(**fields))
    engine.dispose()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_ledger_of_the_third_version_keeps_its_hashes_and_learns_periods(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "third.sqlite")
    if kind == "postgresql":
        place = old_on_server(request.getfixturevalue("postgresql_server"), THIRD)
    else:
        connection = sqlite3.connect(place)
        connection.executescript(THIRD)
        connection.close()
    head = "b0d151aee4af42bd4943186b910b1f4959e66ed53f44320df39ced9c82182ba4"
    with Ledger(place) as ledger:
        assert ledger.head() == head
        assert ledger.check(head=head) == []
        assert ledger.answer("films", "week 46") == {"items": ["Up"]}
        assert [entry.once for entry in ledger.entries("films")] == [None, "week 46", "week 47"]
        ledger.spend("films", dps.Guarantee(0.5))
        ledger.create("views", epsilon=0.5, every="week")
        ledger.spend("views", weekly(0.5), period="2024-W46")
        assert ledger.check(head=head) == []
