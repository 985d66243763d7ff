"""A release is settled from public facts: what it protects, what it may use, and what a ledger is charged."""

from __future__ import annotations

import math
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.charging import ROUNDING_ALLOWANCE, ChargeTarget
from dpselect.cli import app
from dpselect.ledger.rules import Budget
from dpselect.privacy import Ledger
from dpselect.privacy.conversion import largest_rho
from dpselect.privacy.naming import delta_of_naming
from dpselect.request import ReleaseRequest
from dpselect.values import value_noise

VOTES = {"tea": 4120, "coffee": 3980, "water": 190, "juice": 87}


def plan(**arguments: Any) -> Any:
    given = {"k": 2, "epsilon": 1.0, "sensitivity": dps.COUNTS, "ordered": False, "values": None} | arguments
    return ReleaseRequest(**{"mechanism": "auto", **given}).plan()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


class TestTheLastReleaseOfATotal:
    """Next to nothing may be missing: then the release is made with what is left, and says so."""

    def test_ten_releases_of_a_tenth_fill_a_total_of_one(self, ledger: Ledger) -> None:
        ledger.create("d", epsilon=1.0)
        releases = [dps.select(VOTES, k=2, epsilon=0.1, ledger=ledger, dataset="d") for _ in range(10)]
        assert [release.guarantee.epsilon for release in releases[:9]] == [0.1] * 9
        assert Fraction(releases[9].guarantee.epsilon) == 1 - 9 * Fraction(0.1)
        assert releases[9].mechanism.epsilon == releases[9].guarantee.epsilon
        assert sum(Fraction(entry.guarantee.epsilon) for entry in ledger.entries("d")) == 1
        assert ledger.entries("d")[9].parameters["epsilon"] == releases[9].guarantee.epsilon
        with pytest.raises(dps.BudgetExceeded, match=r"requested 0\.1, remaining 0"):
            dps.select(VOTES, k=2, epsilon=0.1, ledger=ledger, dataset="d")

    def test_values_shrink_with_the_choice(self, ledger: Ledger) -> None:
        ledger.create("d", epsilon=1.0)
        for _ in range(10):
            dps.select(VOTES, k=2, epsilon=0.1, values=0.3, ledger=ledger, dataset="d")
        assert ledger.spent("d").epsilon <= 1.0
        assert ledger.remaining("d").epsilon < 1e-9
        with pytest.raises(dps.BudgetExceeded):
            dps.select(VOTES, k=2, epsilon=0.1, values=0.3, ledger=ledger, dataset="d")

    def test_delta_shrinks_too(self, ledger: Ledger) -> None:
        ledger.create("d", epsilon=1e6, delta=3e-5)
        assert 3 * Fraction(1e-5) > Fraction(3e-5)
        asked: dict[str, Any] = {"k": 100, "epsilon": 0.5, "delta": 1e-5, "mechanism": "peeling", "ordered": True}
        releases = [dps.select(range(200), **asked, ledger=ledger, dataset="d") for _ in range(3)]
        assert releases[0].guarantee.delta == 1e-5 > releases[2].guarantee.delta > 1e-5 * (1 - 1e-9)
        assert ledger.remaining("d").delta < 1e-15

    @pytest.mark.parametrize("values", [None, 0.3])
    def test_rho_is_filled_as_well(self, ledger: Ledger, values: float | None) -> None:
        account = ledger.create("d", epsilon=1.0, delta=1e-6, composition="zcdp")
        tenth = Fraction(account.total.rho) / 10
        cost = plan(epsilon=1.0, values=values).guarantee.known_rho
        epsilon = float(tenth / cost) ** 0.5 * (1 + 1e-12)
        for _ in range(10):
            dps.select(VOTES, k=2, epsilon=epsilon, values=values, ledger=ledger, dataset="d")
        assert ledger.remaining("d").rho < 1e-9 * tenth
        assert ledger.spent("d").epsilon <= 1.0
        with pytest.raises(dps.BudgetExceeded, match=r"rho: requested .* as pure releases, epsilon"):
            dps.select(VOTES, k=2, epsilon=epsilon, values=values, ledger=ledger, dataset="d")

    def test_top_does_the_same(self, ledger: Ledger) -> None:
        rows = pd.DataFrame({"film": ["Up"] * 900 + ["Heat"] * 500, "viewer": [*range(900), *range(500)]})
        ledger.create("d", epsilon=0.3)
        arguments: dict[str, Any] = {"item": "film", "person": "viewer", "k": 1, "domain": ["Up", "Heat"]}
        releases = [dps.top(rows, epsilon=0.1, ledger=ledger, dataset="d", **arguments) for _ in range(3)]
        assert releases[2].mechanism.epsilon == releases[2].guarantee.epsilon < 0.1
        assert ledger.remaining("d") == Budget(0.0)

    def test_more_than_next_to_nothing_is_refused_and_recorded_nowhere(self, ledger: Ledger) -> None:
        ledger.create("d", epsilon=1.0)
        with pytest.raises(dps.BudgetExceeded):
            dps.select(VOTES, k=2, epsilon=1 + 2 * float(ROUNDING_ALLOWANCE), ledger=ledger, dataset="d")
        assert ledger.entries("d") == []
        release = dps.select(VOTES, k=2, epsilon=1 + float(ROUNDING_ALLOWANCE) / 2, ledger=ledger, dataset="d")
        assert release.guarantee.epsilon == 1.0

    def test_a_delta_that_naming_needs_as_a_whole_is_refused_as_any_other(self, ledger: Ledger) -> None:
        """It cannot be made smaller, so that there is no release that fits, and the budget is what is short."""
        needed = delta_of_naming(Fraction(1), k=1, size=10**9, max_items_per_person=1)
        ledger.create("short", epsilon=1.0, delta=math.nextafter(needed, 0.0))
        rows = pd.DataFrame({"film": ["a", "b"], "viewer": ["ann", "bob"]})
        with pytest.raises(dps.BudgetExceeded, match="delta"):
            dps.top(
                rows,
                item="film",
                person="viewer",
                k=1,
                epsilon=1.0,
                delta=needed,
                domain=10**9,
                max_items_per_person=1,
                ledger=ledger,
                dataset="short",
            )
        assert ledger.entries("short") == []

    def test_a_mechanism_object_states_its_own_cost(self, ledger: Ledger) -> None:
        ledger.create("d", epsilon=1.0)
        with pytest.raises(dps.BudgetExceeded):
            dps.select(VOTES, mechanism=dps.OneShot(k=2, epsilon=1 + 1e-12), ledger=ledger, dataset="d")
        assert ledger.entries("d") == []

    def test_another_process_that_was_faster_is_not_overdrawn(self, ledger: Ledger) -> None:
        """Between the refusal and the second record, somebody else takes a part of what was left."""
        ledger.create("d", epsilon=1.0)

        calls = []

        class Overtaken(ChargeTarget):
            def record(self, guarantee: dps.Guarantee, parameters: Any, *, secure: bool) -> None:
                calls.append(guarantee.epsilon)
                if len(calls) == 2:
                    ledger.spend("d", dps.Guarantee(0.5))
                super().record(guarantee, parameters, secure=secure)

        with pytest.raises(dps.BudgetExceeded):
            Overtaken(ledger, "d", "").charge(plan(epsilon=1 + 1e-12), secure=True)
        assert calls == [1 + 1e-12, 1.0]
        assert [entry.guarantee.epsilon for entry in ledger.entries("d")] == [0.5]


SPENDER = """
import sys
import dpselect as dps
answers = 0
for _ in range(6):
    try:
        dps.select({"tea": 9, "milk": 3}, k=1, epsilon=0.1, ledger=sys.argv[1], dataset="d")
        answers += 1
    except dps.BudgetExceeded:
        pass
print(answers)
"""


@pytest.mark.slow
def test_processes_that_race_for_the_last_tenth_fill_the_total_and_no_more(ledger: Ledger, tmp_path: Path) -> None:
    """Four processes ask six times each; whoever comes last gets what is left, and all others nothing."""
    ledger.create("d", epsilon=1.0)
    command = [sys.executable, "-c", SPENDER, str(tmp_path / "ledger.sqlite")]
    spenders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = [int(spender.communicate(timeout=120)[0]) for spender in spenders]
    assert sum(answers) == len(ledger.entries("d")) == 10
    assert sum(Fraction(entry.guarantee.epsilon) for entry in ledger.entries("d")) == 1
    assert ledger.check() == []


class TestRho:
    """A data set that adds up rho is charged the rho of both parts, and takes what was calibrated to its total."""

    def test_a_release_with_values_is_charged_the_sum_of_its_parts(self, ledger: Ledger) -> None:
        ledger.create("d", epsilon=1.0, delta=1e-6, composition="zcdp")
        dps.select(VOTES, k=2, epsilon=0.125, values=0.25, ledger=ledger, dataset="d")
        parts = (Fraction(3, 32) ** 2 + Fraction(1, 32) ** 2) / 2
        assert ledger.statement("d").exact_spent.rho == parts < Fraction(1, 8) ** 2 / 2

    def test_noise_calibrated_to_the_total_fits_into_it(self, ledger: Ledger) -> None:
        for place, (epsilon, delta) in enumerate([(1.0, 1e-6), (0.3, 1e-9), (5.0, 0.01)]):
            ledger.create(f"d{place}", epsilon=epsilon, delta=delta, composition="zcdp")
            noise = value_noise(k=1000, epsilon=epsilon, delta=delta, sensitivity=dps.COUNTS)
            assert noise.guarantee.rho == largest_rho(epsilon, delta)
            ledger.spend(f"d{place}", noise.guarantee)
            assert ledger.remaining(f"d{place}").rho == 0

    @pytest.mark.parametrize(("k", "epsilon", "delta"), [(100, 1.0, 1e-6), (1000, 0.5, 1e-9), (50, 3.0, 1e-5)])
    def test_rounds_calibrated_to_the_total_fit_into_it(
        self, ledger: Ledger, k: int, epsilon: float, delta: float
    ) -> None:
        account = ledger.create("d", epsilon=epsilon, delta=delta, composition="zcdp")
        peeling = dps.Peeling(k=k, epsilon=epsilon, delta=delta, noise="gumbel")
        ledger.create("begun", epsilon=epsilon, delta=delta, composition="zcdp")
        ledger.spend("begun", dps.Guarantee(1e-6))
        ledger.spend("d", peeling.guarantee)
        assert ledger.remaining("d").rho < 1e-9 * account.total.rho
        assert ledger.spent("d").epsilon <= epsilon
        for dataset, more in (("d", dps.Guarantee(1e-4)), ("begun", peeling.guarantee)):
            with pytest.raises(dps.BudgetExceeded):
                ledger.spend(dataset, more)

    def test_a_refusal_compares_like_with_like(self, ledger: Ledger) -> None:
        """The epsilons are those of pure releases that cost as much, not that of an approximate release."""
        ledger.create("d", epsilon=1.0, delta=1e-6, composition="zcdp")
        approximate = dps.Guarantee.zcdp(0.03, delta=1e-3)
        with pytest.raises(dps.BudgetExceeded) as refusal:
            ledger.spend("d", approximate)
        assert refusal.value.requested == pytest.approx((2 * 0.03) ** 0.5, rel=1e-12)
        assert refusal.value.requested**2 / 2 >= 0.03
        assert refusal.value.remaining == ledger.remaining("d").epsilon
        assert refusal.value.difference == refusal.value.requested - refusal.value.remaining
        assert str(refusal.value).endswith(
            "this release: rho: requested 0.03, remaining 0.0243559, short by 0.00564403; "
            "as pure releases, epsilon 0.244949 of 0.220707"
        )
        with pytest.raises(dps.BudgetExceeded) as refusal:
            ledger.spend("d", dps.Guarantee(0.5))
        assert refusal.value.requested == 0.5


class TestProtects:
    """What one contributor stands for is stated in the guarantee, and must be that of the data set."""

    @pytest.mark.slow
    def test_a_data_set_of_households_can_be_charged(self, ledger: Ledger, tmp_path: Path) -> None:
        ledger.create("d", epsilon=1.0, protects="one household")
        with pytest.raises(dps.InvalidInput, match="must protect one household"):
            dps.select(VOTES, k=2, epsilon=0.25, ledger=ledger, dataset="d")
        release = dps.select(VOTES, k=2, epsilon=0.25, protects="one household", ledger=ledger, dataset="d")
        assert release.guarantee == dps.Guarantee(0.25, protects="one household")
        assert "protects one household" in str(release.guarantee)
        rows = pd.DataFrame({"film": ["Up"] * 90 + ["Heat"] * 50, "home": [*range(90), *range(50)]})
        rows.to_csv(tmp_path / "rows.csv", index=False)
        (tmp_path / "films.csv").write_text("film\nUp\nHeat\n")
        options = shlex.split("--item film --person home -k 1 --epsilon 0.25 --dataset d --format json")
        options += ["--domain", str(tmp_path / "films.csv")]
        command = ["top", str(tmp_path / "rows.csv"), *options, "--ledger", str(tmp_path / "ledger.sqlite")]
        assert CliRunner().invoke(app, [*command, "--protects", "one household"]).exit_code == 0
        assert CliRunner().invoke(app, command).exit_code != 0
        assert ledger.remaining("d") == Budget(0.5)

    def test_it_reaches_every_guarantee(self) -> None:
        for options in ({}, {"values": 0.5}, {"mechanism": dps.OneShot(k=2, epsilon=1.0)}):
            assert plan(protects="one school", **options).guarantee.protects == "one school"

    def test_it_must_be_a_text(self) -> None:
        for unit in ("", "  ", None, 3, "two\nlines"):
            with pytest.raises(dps.InvalidInput, match="protects"):
                dps.select(VOTES, k=2, epsilon=1.0, protects=unit)  # type: ignore[arg-type]


def test_a_delta_of_zero_that_was_said_is_kept() -> None:
    """An object that needs a delta is refused where none is allowed, and taken where nothing was said."""
    mechanism = dps.OneShot(k=2, epsilon=0.5, noise="gumbel", delta=0.4)
    assert mechanism.guarantee.delta == 0.4
    assert dps.select(VOTES, mechanism=mechanism).guarantee.delta == 0.4
    assert dps.select(VOTES, mechanism=mechanism, delta=0.4).guarantee.delta == 0.4
    for delta in (0, 0.0, 0.3):
        with pytest.raises(dps.InvalidInput, match=r"delta must be at least 0.4, as the mechanism object states"):
            dps.select(VOTES, mechanism=mechanism, delta=delta)
    assert dps.select(VOTES, mechanism=dps.OneShot(k=2, epsilon=0.5), delta=0.0).guarantee.delta == 0
