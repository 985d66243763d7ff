"""`dpselect verify`: what it prints, in which format, and with which exit status."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from dpselect.cli import verify as command
from dpselect.errors import InvalidInput
from dpselect.mechanisms import OneShot
from dpselect.verify import Domain, check_privacy, exact_checks, privacy_checks, sampler_checks
from dpselect.verify.broken import TWINS, Altered, Twin
from dpselect.verify.registry import reject

TWIN_NAMES = ("halved noise", "set not shuffled", "noise 5 % too large")
BROKEN = Altered(sound=OneShot(k=2, epsilon=1.0), wrong_law=OneShot(k=2, epsilon=2.0).law)


def run(*arguments: str, columns: int = 80) -> Result:
    app = typer.Typer()
    app.command()(command.verify_command)
    return CliRunner().invoke(app, ["--quick", "--mechanism", "peeling", *arguments], env={"COLUMNS": str(columns)})


def use(monkeypatch: pytest.MonkeyPatch, **checks: list[Any]) -> None:
    """Replace kinds of checks by lists."""
    for name, listed in checks.items():
        monkeypatch.setattr(command, name, lambda *_, listed=listed, **__: listed)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a few checks of each kind."""
    exact = [check for check in exact_checks("peeling") if check().compared.endswith(("change, gumbel", "bits"))]
    use(
        monkeypatch,
        privacy_checks=privacy_checks("peeling", quick=True)[1::2],
        sampler_checks=sampler_checks("peeling", quick=True),
        exact_checks=[exact[0], exact[-1]],
        rejections=[partial(reject, twin) for twin in TWINS if twin.name in TWIN_NAMES],
    )


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_the_table_shows_losses_claims_and_what_was_rejected() -> None:
    result = run()
    assert result.exit_code == 0
    for text in ("worst", "claim", "0.905", "holds", "agrees", "halved noise", "loss 2.00 > 1", "rejected"):
        assert text in result.stdout
    words = " ".join(result.stdout.split())
    assert "exact: 0.95 < 0.9999" in words
    assert "3 of 3 guarantees hold, 4 of 4 samplers agree with their law, 2 of 2 exact comparisons agree" in words


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 100])
def test_tables_fit_the_terminal_and_cut_nothing_off(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    names = ("gaussian", "restricted", "multiselect")
    checks = [check for name in names for check in privacy_checks(name, quick=True)[:1]]
    exact = exact_checks("restricted")
    use(monkeypatch, privacy_checks=checks, sampler_checks=[], exact_checks=exact, rejections=[])
    lines = run(columns=columns).stdout.splitlines()
    assert all(len(line) <= columns for line in lines)
    assert not any("…" in line for line in lines)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_json_and_csv_hold_every_check() -> None:
    found: dict[str, Any] = json.loads(run("--format", "json").stdout)
    assert found["passed"] is True
    assert [row["noise"] for row in found["privacy"]] == ["exponential", "gumbel", "laplace"]
    assert all(row["worst_loss"] <= row["epsilon"] for row in found["privacy"])
    assert {row["verdict"] for row in found["samplers"]} == {"agrees"}
    assert all(row["least"] <= row["found"] <= row["most"] for row in found["exact"])
    assert [row["rejected_by"] for row in found["broken"]] == ["privacy", "sampler", "exact"]
    rows = list(csv.DictReader(io.StringIO(run("--format", "csv").stdout)))
    kinds = [("privacy", "holds", 3), ("samplers", "agrees", 4), ("exact", "agrees", 2), ("broken", "rejected", 3)]
    expected = [(check, verdict) for check, verdict, number in kinds for _ in range(number)]
    assert [(row["check"], row["verdict"]) for row in rows] == expected


@pytest.mark.slow
def test_variants_are_told_apart_by_their_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    variants = privacy_checks("canonical")[18::8]
    use(monkeypatch, privacy_checks=variants, sampler_checks=[], exact_checks=[], rejections=[])
    words = " ".join(run(columns=100).stdout.split())
    assert "gamma 0, margin" in words
    assert "no margin" in words


def test_a_mechanism_that_breaks_its_claim_is_named_with_its_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    class Named(Altered):
        name = "altered"

    broken = Named(sound=BROKEN.sound, wrong_law=BROKEN.wrong_law)
    checks = [partial(check_privacy, broken, Domain(3, 2))]
    use(monkeypatch, privacy_checks=checks, sampler_checks=[], exact_checks=[], rejections=[])
    result = run()
    assert result.exit_code == 1
    assert "BROKEN" in result.stdout
    assert "worst at (" in " ".join(result.stdout.split())
    assert "1 of 1 checks failed" in result.stderr


def test_a_broken_mechanism_that_slips_through_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = partial(check_privacy, OneShot(k=2, epsilon=1.0), Domain(3, 2))
    honest = Twin("honest", "nothing is wrong with it", "", "privacy", sound, sound, k=2)
    use(monkeypatch, privacy_checks=[], sampler_checks=[], exact_checks=[], rejections=[partial(reject, honest)])
    result = run()
    assert result.exit_code == 1
    assert "MISSED" in result.stdout


def test_an_unknown_mechanism_is_bad_input() -> None:
    result = run("--mechanism", "nonesuch")
    assert isinstance(result.exception, InvalidInput)
    assert "oneshot, peeling" in str(result.exception)
