"""What people see of a release in Python: `print`, notebooks and pandas show what the command line prints."""

from __future__ import annotations

import html
import shlex
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.ledger import Ledger

ROWS = [("Heat", f"viewer {n}", "DE" if n % 2 else "FR") for n in range(300)]
ROWS += [("Up", f"viewer {n}", "DE" if n % 2 else "FR") for n in range(200)] + [("<Her> & Co", "ann", "DE")]
ASKED: dict[str, Any] = {"item": "film", "person": "viewer", "k": 2, "epsilon": 1.0, "domain": "films.csv", "seed": 7}
ASKS = "--item film --person viewer -k 2 --epsilon 1 --domain films.csv --seed 7"
GAMES = [("ann", "bob"), ("ann", "cem"), ("bob", "cem")] * 40


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSELECT_LEDGER", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    pd.DataFrame(ROWS, columns=["film", "viewer", "country"]).to_csv("views.csv", index=False)
    Path("films.csv").write_text("film\nHeat\nUp\n<Her> & Co\n")
    Path("countries.csv").write_text("country\nDE\nFR\n")
    pd.DataFrame(GAMES, columns=["winner", "loser"]).to_csv("games.csv", index=False)
    Path("players.csv").write_text("winner\nann\nbob\ncem\n")


def command(line: str) -> str:
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


def released() -> list[Any]:
    """Return pairs of a command and the same release in Python."""
    few = {"comparisons_per_pair": 40, "max_degree": 2, "seed": 7}
    listed = {**ASKED, "max_items_per_person": 2, "delta": 1e-6}
    del listed["k"], listed["domain"]
    return [
        pytest.param(f"top views.csv {ASKS}", lambda: dps.top("views.csv", **ASKED), id="top"),
        pytest.param(
            f"top views.csv {ASKS} --values 0.5 --ordered",
            lambda: dps.top("views.csv", **ASKED, values=0.5, ordered=True),
            id="values",
        ),
        pytest.param(
            f"top views.csv {ASKS} --by country --groups countries.csv",
            lambda: dps.top("views.csv", **ASKED, by="country", groups="countries.csv"),
            id="groups",
        ),
        pytest.param(
            "domain views.csv --item film --person viewer --epsilon 1 --delta 1e-6 --max-items-per-person 2 --seed 7",
            lambda: dps.discover("views.csv", **listed),
            id="domain",
        ),
        pytest.param(
            "rank games.csv -k 1 --epsilon 1 --comparisons-per-pair 40 --max-degree 2 --domain players.csv --seed 7",
            lambda: dps.rank("games.csv", k=1, epsilon=1.0, domain="players.csv", **few),
            id="rank",
        ),
    ]


@pytest.mark.parametrize(("line", "release"), released())
def test_print_shows_what_the_command_line_prints(line: str, release: Any) -> None:
    answer = release()
    assert f"{answer}\n" == command(line)
    assert "\n" not in repr(answer)
    assert repr(answer).endswith(", not secure>")
    assert max(map(len, str(answer).splitlines())) <= 80
    assert html.escape(answer.guarantee.protects) in answer._repr_html_()


def test_a_statement_is_printed_as_the_command_line_prints_it() -> None:
    command("ledger create films --epsilon 1")
    with Ledger("ledger.sqlite") as ledger:
        ledger.spend("films", dps.Guarantee(0.25), purpose="<b>chart</b>")
        statement = ledger.statement("films")
    assert f"{statement}\n" == command("ledger show films")
    assert repr(statement) == "<Statement of 'films': 1 release, epsilon 0.25 of 1 spent>"
    assert "&lt;b&gt;chart&lt;/b&gt;" in statement._repr_html_()
    frame = statement.to_frame()
    assert list(frame.columns) == command("ledger show films --format csv").splitlines()[0].split(",")
    assert (frame["epsilon"].sum(), str(frame["time"].dt.tz)) == (0.25, "UTC")


def test_a_notebook_shows_items_as_text_and_every_fact() -> None:
    release = dps.select({"<b>tea</b>": 900, "[bold]milk": 800}, k=2, epsilon=1.0, protects="one [red]house")
    shown = release._repr_html_()
    assert "&lt;b&gt;tea&lt;/b&gt;" in shown
    assert "[bold]milk" in shown
    assert "one [red]house" in shown
    assert "<b>" not in shown
    assert "protects one [red]house with all they contributed" in " ".join(str(release).split())


@pytest.mark.parametrize(
    ("asked", "columns"),
    [
        ({}, ["item"]),
        ({"ordered": True}, ["item"]),
        ({"values": 0.5}, ["item", "value", "low", "high"]),
        ({"by": "country", "groups": "countries.csv"}, ["group", "item"]),
    ],
)
def test_a_frame_has_the_answer_in_its_order(asked: dict[str, Any], columns: list[str]) -> None:
    release = dps.top("views.csv", **ASKED, **asked)
    frame = release.to_frame()
    assert list(frame.columns) == columns
    items = list(frame["item"])
    assert (list(zip(frame["group"], items, strict=True)) if release.groups else items) == release.items
    if release.values:
        assert list(frame["value"]) == release.values
        assert [tuple(pair) for pair in frame[["low", "high"]].to_numpy()] == release.intervals


def test_a_frame_without_items_has_the_columns() -> None:
    assert list(dps.Release([], False, dps.Guarantee(1.0), dps.Canonical(k=1, epsilon=1.0), True).to_frame()) == [
        "item"
    ]


def test_a_frame_of_discovered_items_is_a_domain() -> None:
    found = dps.discover("views.csv", item="film", person="viewer", epsilon=1.0, delta=1e-6, max_items_per_person=2)
    assert list(found.to_frame()["film"]) == found.items
    assert dps.top("views.csv", **{**ASKED, "domain": found.to_frame()}).k == 2


def test_without_pandas_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    release = dps.top("views.csv", **ASKED)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dps.InvalidInput, match=r"to_frame must have pandas, .* pip install 'dpselect\[pandas\]'"):
        release.to_frame()
