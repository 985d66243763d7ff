"""--quiet and --verbose, and the file with options that would be repeated."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpselect.cli import app

pytestmark = pytest.mark.usefixtures("folder")

ASKED = "--item film --person viewer -k 2 --epsilon 1 --domain films.csv"
SECTION = """
[top]
item = "film"
person = "viewer"
k = 2
epsilon = 1
domain = "films.csv"
seed = 3
"""


def run(line: str) -> Any:
    return CliRunner().invoke(app, shlex.split(line))


def done(line: str) -> tuple[str, str]:
    result = run(line)
    assert result.exit_code == 0, result.stderr
    return result.stdout, result.stderr


def refused(line: str) -> str:
    result = run(line)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    return str(result.stderr)


def test_quiet_leaves_results_and_errors_and_verbose_adds_steps() -> None:
    result, notes = done(f"top views.parquet {ASKED} --seed 3")
    assert notes == "dpselect: a seed was given, so this answer is not private. Do not publish it.\n"
    assert done(f"top views.parquet {ASKED} --seed 3 --quiet") == (result, "")
    assert "must be" in refused("top views.parquet --quiet -k 0 --item film --person viewer --epsilon 1 --domain 9")
    told, steps = done(f"top views.parquet {ASKED} --seed 3 --verbose")
    assert told == result
    assert "settled: canonical, epsilon = 1; no row was read so far" in steps
    assert "nothing is charged" in steps
    assert notes in steps


def test_verbose_names_what_is_charged() -> None:
    done("ledger create films --epsilon 2")
    _, steps = done(f"top views.parquet {ASKED} --ledger ledger.sqlite --dataset films --verbose")
    assert "charged to 'films'" in steps


def test_a_configuration_holds_repeated_options_and_the_command_line_wins() -> None:
    expected = done(f"top views.parquet {ASKED} --seed 3")
    Path("dpselect.toml").write_text(SECTION)
    assert done("top views.parquet") == expected
    assert len(done("top views.parquet -k 5 --format csv")[0].splitlines()) == 6
    _, steps = done("top views.parquet --verbose")
    assert "from dpselect.toml: item, person, k, epsilon, domain, seed" in steps


def test_the_configuration_can_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("other.toml").write_text(SECTION)
    expected = done(f"top views.parquet {ASKED} --seed 3")
    assert done("top views.parquet --config other.toml") == expected
    monkeypatch.setenv("DPSELECT_CONFIG", "other.toml")
    assert done("top views.parquet") == expected
    assert "--config 'none.toml': there is no such file" in refused("top x --config none.toml")


def test_flags_lists_and_commands_of_a_group() -> None:
    Path("dpselect.toml").write_text(SECTION + 'ordered = true\n[ledger.create]\nepsilon = 0.5\nevery = "week"\n')
    assert done("top views.parquet --format csv")[0].startswith("rank,item\n")
    assert "a new week buys" in done("ledger create films")[0]
    Path("dpselect.toml").write_text("[select]\nsensitivity = [-1, 1]\nitems-are-public = true\n")
    Path("counts.csv").write_text("item,count\nHeat,9\nUp,-9\n")
    assert "by -1 to 1" in done("select counts.csv -k 1 --epsilon 1")[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SECTION + 'colour = "red"\n', "line 9: top has no option colour; see dpselect top --help"),
        ('\n[tpo]\nitem = "film"\n', "line 2: tpo is not a section; a section has the name of a command: top, "),
        ('item = "film"\n', "line 1: item is not a section"),
        ("[top]\nitem = \n", "it is not valid TOML"),
        ('[top]\nordered = "yes"\n', "line 2: ordered must be true or false"),
        ("[top]\nitem = true\n", "line 2: item must be a text or a number"),
        ("[top]\nclip = 3\n", "line 2: clip must be a list"),
        ('[top]\nconfig = "x"\n', "line 2: top has no option config"),
        ("[top]\nmax_items_per_person = 1\nmax-items-per-person = 9\n", "line 3: max-items-per-person is stated twice"),
        ("\n[[top]]\nk = 2\n", "line 2: top is not a section"),
        ("[top]\nk = 2.5\n", "-k must be a whole number of at least 1, got '2.5'"),
    ],
)
def test_mistakes_in_a_configuration_are_errors_with_their_line(text: str, said: str) -> None:
    Path("dpselect.toml").write_text(text)
    assert said in refused("top views.parquet --item film --person viewer --epsilon 1 --domain films.csv")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            '[ledger]\nledger = "other.sqlite"\n',
            "ledger create films --epsilon 1",
            "line 2: ledger.ledger is not a section",
        ),
        ("[ledger.crate]\ndelta = 0\n", "ledger create films --epsilon 1", "line 1: ledger.crate is not a section"),
        ("[desk]\nprot = 8000\n", "desk token list", "line 2: desk.prot is not a section"),
        ("[desk.open]\nport = 8000\n", "desk token list", "line 1: desk.open is not a section"),
        ("[desk.open]\nport = 8000\n", "desk", "line 1: desk has no option open"),
        ("[desk.tokn]\nport = 8000\n", "desk token list", "the name of a command: token\n"),
        ("[desk]\nport = 8000\n", "desk token list", "--config 'desk.toml': there is no such file"),
    ],
)
def test_a_group_has_sections_of_its_commands_only(text: str, line: str, said: str) -> None:
    Path("dpselect.toml").write_text(text)
    assert said in refused(line)
    assert not Path("ledger.sqlite").exists()


def test_an_error_ends_with_the_page_that_explains_it() -> None:
    said = refused("top views.parquet --item film --person viewer -k 2 --epsilon 1 --domain none.csv")
    assert said.endswith("; see docs/files.md#the-domain\n")
    said = refused("top views.parquet --item film --person viewer -k 2 --epsilon 0 --domain films.csv")
    assert "see docs/" not in said


@pytest.mark.parametrize(
    ("line", "page"),
    [
        ("top views.parquet --item film --person viewer -k 2 --epsilon 1 --domain 12 --mechanism nix", "mechanisms"),
        ("multiselect quantiles -k 3 --noise nix", "multiselect"),
        ("verify --mechanism nix", "verify"),
    ],
)
def test_the_page_is_that_of_the_command(line: str, page: str) -> None:
    assert f"; see docs/{page}.md" in refused(line)


def test_verbose_says_where_an_internal_error_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"row of {'ann'}")

    monkeypatch.setattr("dpselect.top", fail)
    brief, long = (run(f"top views.parquet {ASKED}{more}").stderr for more in ("", " --verbose"))
    assert brief == "dpselect: internal error (RuntimeError); please report it, with what --verbose shows\n"
    assert "in top_command" in long
    assert "row of ann" not in long
