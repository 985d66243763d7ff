"""What `dpselect ledger` prints never shows less spent, or more left, than there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpselect.cli import app


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSELECT_LEDGER", raising=False)


def run(line: str) -> str:
    result = CliRunner().invoke(app, ["ledger", *line.split()])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_spent_is_rounded_up_and_left_is_rounded_down() -> None:
    """The floats 0.1 and 0.2 add up to more than the float 0.3, and two of 0.4 leave less than the float 0.2."""
    run("create films --epsilon 1")
    run("spend films --epsilon 0.1")
    assert "0.300001 of 1 spent, 0.7 left" in run("spend films --epsilon 0.2")
    run("create music --epsilon 1")
    run("spend music --epsilon 0.4")
    assert "0.8 of 1 spent, 0.199999 left" in run("spend music --epsilon 0.4")
    rows = [line.split()[:4] for line in run("list").splitlines()[-2:]]
    assert rows == [["films", "1", "0.300001", "0.7"], ["music", "1", "0.8", "0.199999"]]


def test_amounts_of_few_figures_are_shown_as_they_are() -> None:
    run("create films --epsilon 1 --delta 1e-6")
    assert "0.25 of 1 spent, 0.75 left" in run("spend films --epsilon 0.25")
    run("spend films --epsilon 0.1234567 --delta 1.2345678e-7")
    last = run("show films").splitlines()[-1]
    assert "0.123457" in last
    assert "1.23457e-07" in last
