"""The audit: exact statistics, broken mechanisms that it catches, and the same questions on every engine."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
from collections.abc import Hashable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from scipy.stats import binom, binomtest
from typer.testing import CliRunner, Result

import dpselect as dps
from dpselect.cli import verify as command
from dpselect.errors import InvalidInput
from dpselect.verify import Evidence, Probe, audit_signals, open_audit, registry, run_audit
from dpselect.verify.audit import POWER, audit, interval, lower_bounds
from dpselect.verify.audit_select import BROKEN, BROKEN_RANKINGS, RANKINGS, SELECTIONS, Selection
from dpselect.verify.audit_tables import (
    CROWDS,
    GROUPED,
    Effort,
    _csv,
    _duckdb,
    _postgresql,
    _spark,
    open_engines,
    table_probes,
)
from dpselect.verify.broken.exact import with_factor

BROKEN_PROBES = [each.probe(40) for each in BROKEN]
SMALL = Effort(copies=20, calls=1, single_calls=4)


def seeds(first: int = 1) -> Iterator[int]:
    return itertools.count(first)


def test_intervals_are_those_of_scipy() -> None:
    for runs, error in ((1, 0.1), (7, 1e-3), (200, 1e-8)):
        low, high = interval(np.arange(runs + 1), runs, error)
        for hits in range(runs + 1):
            exact = binomtest(hits, runs).proportion_ci(confidence_level=1 - error, method="exact")
            assert (low[hits], high[hits]) == pytest.approx((exact.low, exact.high), rel=1e-6)


def test_a_bound_is_the_logarithm_of_what_the_intervals_leave() -> None:
    low, high = interval([150, 20], 200, 1e-3)
    [bound] = lower_bounds([150], [20], 200, 0.05, 1e-3)
    assert bound == pytest.approx(math.log((low[0] - 0.05) / high[1]))
    assert lower_bounds([9, 0, 200], [9, 0, 200], 200, 0.0, 1e-3).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 0.05)])
def test_a_sound_claim_is_rejected_with_the_stated_probability_at_most(epsilon: float, delta: float) -> None:
    """Over all counts of a hundred answers, for events whose probabilities just meet the claim."""
    runs, error = 100, 0.05
    counts = np.arange(runs + 1)
    bounds = np.array([lower_bounds(np.full(runs + 1, first), counts, runs, delta, error) for first in counts])
    rates = []
    for second in (0.001, 0.02, 0.1, 0.3):
        first = math.exp(epsilon) * second + delta
        both = np.outer(binom.pmf(counts, runs, first), binom.pmf(counts, runs, second))
        rates.append(both[bounds > epsilon].sum())
    assert max(rates) <= error


def test_the_power_is_that_of_the_binomial_law() -> None:
    evidence = Evidence(60, 10, 120, epsilon=1.0, delta=0.02, error=1e-3)
    counts = np.arange(121)
    bounds = np.array([lower_bounds(np.full(121, first), counts, 120, 0.02, 1e-3) for first in counts])

    def found(first: float, second: float) -> float:
        both = np.outer(binom.pmf(counts, 120, first), binom.pmf(counts, 120, second))
        return float(both[bounds > 1.0].sum())

    epsilon, delta = evidence.detectable_epsilon, evidence.detectable_delta
    assert epsilon is not None
    assert delta is not None
    assert found(0.5, (0.5 - 0.02) * math.exp(-epsilon)) == pytest.approx(POWER, abs=1e-4)
    assert found(math.e / 12 + delta, 1 / 12) == pytest.approx(POWER, abs=1e-4)


def test_too_few_answers_detect_nothing() -> None:
    evidence = Evidence(5, 1, 10, epsilon=3.0, delta=0.0, error=1e-6)
    assert evidence.detectable_epsilon is None
    assert evidence.detectable_delta is None


def tossed(probability: float, runs: int, with_person: bool, numbers: Iterator[int | None]) -> Any:
    """Return answers 0 to 9, of which 0 has this probability with the person, and 0.1 without."""
    coin = random.Random(next(numbers))
    answers = [0 if coin.random() < (probability if with_person else 0.1) else coin.randint(1, 9) for _ in range(runs)]
    return dps.Guarantee(1.0), answers


def test_the_event_is_found_and_bounds_the_true_ratio_from_below() -> None:
    """P = 0.5 and Q = 0.1 are an epsilon of 1.61; with P = 0.1 there is nothing to be found."""
    row = audit(Probe("coins", "biased", partial(tossed, 0.5, 20_000)), seeds(), 1e-7)
    assert row.evidence.runs == 17_500
    assert 1.4 < row.evidence.lower_bound < math.log(5)
    assert not row.passed
    fair = audit(Probe("coins", "fair", partial(tossed, 0.1, 20_000)), seeds(), 1e-7)
    assert fair.evidence.lower_bound == 0.0
    assert fair.passed


def test_a_guarantee_that_depends_on_the_data_is_found() -> None:
    def answers(with_person: bool, numbers: Iterator[int | None]) -> tuple[dps.Guarantee, list[Hashable]]:
        guarantee = dps.Guarantee(1.0 if with_person else 0.9)
        return guarantee, [("tea", guarantee)] * 400

    assert not audit(Probe("select", "leaky", answers), seeds(), 1e-7).passed


@pytest.mark.parametrize(
    ("selection", "answers"), list(zip(BROKEN, (1600, 900, 300), strict=True)), ids=["noise", "order", "item"]
)
def test_a_broken_mechanism_is_rejected_and_its_sound_counterpart_is_not(selection: Selection, answers: int) -> None:
    kind = type(selection.mechanism).__bases__[0]
    sound = kind(**{name: getattr(selection.mechanism, name) for name in sound_arguments(kind)})
    counterpart = Selection("sound", sound, selection.without, selection.with_person)
    rows = run_audit([selection.probe(answers), counterpart.probe(answers)], seed=3)
    assert [row.passed for row in rows] == [True, True]
    assert [row.evidence.holds for row in rows] == [False, True]


def sound_arguments(kind: type) -> list[str]:
    return ["inner", "pool", "test_epsilon", "test_delta"] if kind is dps.Restricted else ["k", "epsilon"]


def test_a_broken_mechanism_that_is_not_noticed_fails_its_row() -> None:
    honest = Selection("honest", dps.OneShot(k=1, epsilon=1.0), (1, 1), (1, 2), flaw="nothing is wrong with it")
    [row] = run_audit([honest.probe(400)], seed=1)
    assert not row.passed


@pytest.mark.slow
def test_every_mechanism_is_asked_and_passes() -> None:
    rows = run_audit([each.probe(60) for each in SELECTIONS], seed=5)
    assert all(row.passed for row in rows)
    asked = {each.mechanism_name for each in SELECTIONS}
    assert asked >= set(registry.UNDER_TEST) | set(registry.UNKNOWN_UNDER_TEST) | {"auto"}


@pytest.mark.slow
def test_signals_of_every_kind_are_audited_and_a_misused_client_is_found() -> None:
    asked = [*audit_signals.SESSIONS, *audit_signals.BROKEN]
    rows = run_audit([each.probe(400) for each in asked], seed=6)
    assert all(row.passed for row in rows)
    assert [row.evidence.delta for row in rows if row.evidence.delta] == [0.01]
    assert {row.evidence.epsilon for row in rows if not row.evidence.delta} == {2.0}


@pytest.mark.slow
def test_other_processes_give_the_same_rows_in_the_same_order() -> None:
    asked = [audit_signals.SESSIONS[0].probe(40), Probe("coins", "biased", partial(tossed, 0.5, 40)), *BROKEN_PROBES]
    together = run_audit(asked, seed=3, processes=2)
    alone = run_audit(asked, seed=3)
    assert [row.probe.name for row in together] == [probe.name for probe in asked]
    assert [row.evidence for row in together] == [row.evidence for row in alone]


@pytest.mark.long
def test_rankings_are_audited_and_the_claim_for_one_comparison_fails_for_a_person_with_many() -> None:
    sound, broken = run_audit([RANKINGS[0].probe(8), BROKEN_RANKINGS[0].probe(60)], seed=8)
    assert (sound.passed, broken.passed) == (True, True)
    assert broken.evidence.epsilon == 1.0 < broken.evidence.lower_bound


@pytest.mark.slow
def test_every_question_about_files_is_answered_as_often_as_stated(tmp_path: Path) -> None:
    probes = [crowd.probe("top, CSV", partial(_csv, tmp_path), SMALL) for crowd in CROWDS]
    for crowd, row in zip(CROWDS, run_audit(probes, seed=2), strict=True):
        assert row.evidence.holds, crowd.name
        assert row.answers == (20 if crowd.parts or crowd.discovers else 4)


def asked_of(engine: Any) -> None:
    """Ask an engine about a crowd with groups, with a sound mechanism and with one that has a quarter of the noise."""
    effort = Effort(copies=600, calls=1, single_calls=0)
    quarter = with_factor(dps.OneShot, "rate", Fraction(4))(k=1, epsilon=2.0)
    broken = replace(GROUPED, asked={"domain": ["a", "b"], "mechanism": quarter}, flaw="a quarter of the noise")
    rows = run_audit([crowd.probe("top", engine, effort) for crowd in (GROUPED, broken)], seed=4)
    assert [row.passed for row in rows] == [True, True]
    assert rows[0].evidence.lower_bound > 0.5


@pytest.mark.slow
def test_duckdb_is_audited(tmp_path: Path) -> None:
    asked_of(partial(_duckdb, tmp_path))


def test_postgresql_is_audited(postgresql_server: str) -> None:
    asked_of(partial(_postgresql, postgresql_server))


def test_spark_is_audited(spark_session: Any, tmp_path: Path) -> None:
    asked_of(partial(_spark, spark_session, tmp_path))


def test_a_quick_audit_says_which_engines_it_leaves_out() -> None:
    with open_engines(quick=True) as (engines, skipped):
        assert list(engines) == ["CSV"]
        assert skipped == dict.fromkeys(["DuckDB", "PostgreSQL", "Spark"], "left out by --quick")
        assert {probe.door for probe in table_probes(engines, quick=True)} == {"top, CSV"}


def test_an_engine_whose_packages_are_missing_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"PostgreSQL": ("no_such_package",), "Spark": ("pyspark", "none_either")}
    monkeypatch.setattr("dpselect.verify.audit_tables.WANTED", wanted)
    with open_engines(quick=False) as (engines, skipped):
        assert list(engines) == ["CSV", "DuckDB"]
        assert skipped == {
            "PostgreSQL": "no_such_package not installed; pip install 'dpselect[test]'",
            "Spark": "none_either not installed; pip install 'dpselect[test]'",
        }


def test_a_mechanism_that_is_not_audited_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"must be one of canonical, joint, .* in an audit"), open_audit("groups"):
        pass


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(command.verify_command)
    return CliRunner().invoke(app, ["--audit", "--quick", "--mechanism", "oneshot", *arguments])


@pytest.mark.slow
def test_the_command_reports_claims_bounds_power_and_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "QUICK_ANSWERS", 1600)
    monkeypatch.setattr(registry, "BROKEN", BROKEN[:1])
    result = run("--seed", "7")
    assert result.exit_code == 0
    assert "1 of 1 claims are compatible with the answers, 1 of 1 broken mechanisms" in " ".join(result.stdout.split())
    found = json.loads(run("--seed", "7", "--format", "json").stdout)
    assert (found["passed"], found["error"], found["power"]) == (True, 1e-6, 0.95)
    assert (found["seed"], found["answers"]) == (7, 6400)
    first = found["audit"][0]
    assert (first["asked"], first["question"], first["epsilon"], first["answers"]) == ("select", "one-shot", 2.0, 1600)
    assert 0 < first["lower_bound"] < 2 < first["detects_epsilon"]
    rows = list(csv.DictReader(io.StringIO(run("--seed", "7", "--format", "csv").stdout)))
    assert [row["verdict"] for row in rows] == ["holds", "rejected"]
    assert [row["first"] for row in rows] == [str(row["first"]) for row in found["audit"]]


@pytest.mark.parametrize(
    ("selection", "verdict"),
    [
        (Selection("claims too much", BROKEN[0].mechanism, (1, 1), (1, 2)), "BROKEN"),
        (Selection("honest", dps.OneShot(k=1, epsilon=1.0), (1, 1), (1, 2), flaw="none"), "MISSED"),
    ],
)
def test_a_row_that_fails_fails_the_command(
    selection: Selection, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "SELECTIONS", [])
    monkeypatch.setattr(registry, "BROKEN", [selection])
    monkeypatch.setattr(registry, "QUICK_ANSWERS", 1200)
    result = run("--seed", "1")
    assert result.exit_code == 1
    assert verdict in result.stdout
    assert "1 of 1 rows failed" in result.stderr


def test_a_seed_is_refused_without_the_audit() -> None:
    app = typer.Typer()
    app.command()(command.verify_command)
    result = CliRunner().invoke(app, ["--seed", "1"])
    assert isinstance(result.exception, InvalidInput)
    assert "must be left out without --audit" in str(result.exception)
