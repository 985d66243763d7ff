"""`dpselect verify`: what it prints, in which format, and with which exit status."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from dpselect.cli.verify import verify_command
from dpselect.errors import InvalidInput
from dpselect.verify import registry
from dpselect.verify.broken import HalvedNoise, SortedSet
from dpselect.verify.broken.exact import EXACT_TWINS


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(verify_command)
    return CliRunner().invoke(app, ["--quick", "--mechanism", "peeling", *arguments], env={"COLUMNS": "100"})


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave one sampler, one setting, one exact check and one broken mechanism of each kind, for speed."""
    monkeypatch.setattr(registry, "QUICK_SETTINGS", registry.QUICK_SETTINGS[1:])
    monkeypatch.setattr(
        registry, "BROKEN", [HalvedNoise(k=2, epsilon=1.0), SortedSet(k=2, epsilon=4.0, noise="gumbel")]
    )
    monkeypatch.setattr(registry, "EXACT_TWINS", [twin for twin in EXACT_TWINS if twin.name == "noise 5 % too large"])
    monkeypatch.setattr(registry, "BORDERS", [border for border in registry.BORDERS if border[0] == "peeling"][1:])
    for name in ("PAIRS", "FIGURES", "COUNTED"):
        monkeypatch.setattr(registry, name, [])


@pytest.mark.usefixtures("short")
def test_the_table_shows_losses_claims_and_what_was_rejected() -> None:
    result = run()
    assert result.exit_code == 0
    for text in ("worst", "claim", "0.905", "holds", "agrees", "halved noise", "loss 2.00 > 1", "rejected"):
        assert text in result.stdout
    for text in ("words at which answers change, gumbel", "uniform draws", "exact: 0.95 < 0.9999"):
        assert text in result.stdout
    words = " ".join(result.stdout.split())
    assert "2 of 2 guarantees hold, 3 of 3 samplers agree with their law, 2 of 2 exact comparisons agree" in words
    assert all(len(line) <= 100 for line in result.stdout.splitlines())


@pytest.mark.usefixtures("short")
def test_json_holds_every_check() -> None:
    result = run("--format", "json")
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["passed"] is True
    assert [row["noise"] for row in found["privacy"]] == ["exponential", "gumbel"]
    assert all(row["worst_loss"] <= row["epsilon"] for row in found["privacy"])
    assert {row["verdict"] for row in found["samplers"]} == {"agrees"}
    assert [row["verdict"] for row in found["exact"]] == ["agrees"] * 2
    assert all(row["least"] <= row["found"] <= row["most"] for row in found["exact"])
    assert [row["rejected_by"] for row in found["broken"]] == ["privacy", "sampler", "exact"]


@pytest.mark.usefixtures("short")
def test_variants_are_told_apart_by_their_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    variants = registry.UNDER_TEST["canonical"].variants
    monkeypatch.setattr(registry, "UNDER_TEST", {"canonical": registry.Entry([], variants=variants)})
    app = typer.Typer()
    app.command()(verify_command)
    result = CliRunner().invoke(app, ["--mechanism", "canonical"], env={"COLUMNS": "100"})
    assert result.exit_code == 0
    for text in ("gamma 0.25, margin", "gamma 0.75, no margin", "gamma 1, no margin"):
        assert text in result.stdout
    assert all(len(line) <= 100 for line in result.stdout.splitlines())


@pytest.mark.usefixtures("short")
def test_csv_has_one_row_a_check() -> None:
    result = run("--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    kinds = [("privacy", "holds", 2), ("samplers", "agrees", 3), ("exact", "agrees", 2), ("broken", "rejected", 3)]
    assert [row["check"] for row in rows] == [check for check, _, number in kinds for _ in range(number)]
    assert [row["verdict"] for row in rows] == [verdict for _, verdict, number in kinds for _ in range(number)]


@pytest.mark.usefixtures("short")
def test_a_mechanism_that_breaks_its_claim_is_named_with_its_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    broken: Any = HalvedNoise(k=2, epsilon=1.0)
    monkeypatch.setattr(registry, "UNDER_TEST", {"peeling": registry.Entry([broken])})
    result = run()
    assert result.exit_code == 1
    assert "BROKEN" in result.stdout
    assert "HalvedNoise(k=2" in result.stdout
    assert "worst at (" in " ".join(result.stdout.split())
    assert "checks failed" in result.stderr


@pytest.mark.usefixtures("short")
def test_a_broken_mechanism_that_slips_through_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    class Honest(HalvedNoise):
        """Not broken at all, so that the check cannot reject it."""

        rate = registry.broken.Lipschitz.rate

    monkeypatch.setattr(registry, "BROKEN", [Honest(k=2, epsilon=1.0)])
    result = run()
    assert result.exit_code == 1
    assert "MISSED" in result.stdout


def test_an_unknown_mechanism_is_bad_input() -> None:
    result = run("--mechanism", "nonesuch")
    assert isinstance(result.exception, InvalidInput)
    assert "oneshot, peeling" in str(result.exception)
