"""--dry-run takes the path of a release up to its charge, and one default ledger serves every command."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpselect
from dpselect.charging import rehearsal
from dpselect.cli import app
from dpselect.cli.stdin import source_path
from dpselect.ledger import Ledger

pytestmark = pytest.mark.slow

ASKED = "--item film --person viewer -k 2 --epsilon 0.25"
TOP = f"top views.parquet {ASKED} --domain films.csv"


@pytest.fixture(autouse=True)
def _with_a_ledger(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSELECT_LEDGER", raising=False)
    Path("counts.csv").write_text("item,count\nHeat,900\nUp,700\nHer,20\n")
    Path("games.csv").write_text("winner,loser\nann,bob\nbob,cem\n")
    Path("players.csv").write_text("winner\nann\nbob\ncem\n")
    assert run("ledger create films --epsilon 0.5").exit_code == 0
    assert run("ledger create votes --epsilon 0.5 --protects 'one comparison'").exit_code == 0


def run(line: str) -> Any:
    return CliRunner().invoke(app, shlex.split(line))


def done(line: str) -> str:
    result = run(line)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


COMMANDS = {
    "top": f"{TOP} --dataset films",
    "values": f"{TOP} --values 0.5 --dataset films",
    "select": "select counts.csv -k 2 --epsilon 0.25 --items-are-public --dataset films",
    "rank": "rank games.csv -k 1 --epsilon 0.25 --comparisons-per-pair 1 --max-degree 2 --domain players.csv "
    "--dataset votes",
}


@pytest.mark.parametrize("line", [COMMANDS[name] for name in ("top", "values", "select", "rank")])
def test_what_is_shown_is_what_is_charged_then(line: str) -> None:
    shown = json.loads(done(f"{line} --dry-run --format json"))
    with Ledger("ledger.sqlite") as ledger:
        [(dataset, left)] = shown["left"].items()
        assert ledger.remaining(dataset).epsilon == 0.5
        released = json.loads(done(f"{line} --format json"))
        assert ledger.remaining(dataset).to_dict() == left
        [entry] = ledger.entries(dataset)
    assert shown["guarantee"] == released["guarantee"]
    assert shown["mechanism"] == json.loads(json.dumps(entry.parameters))


RANKED_BY_ROWS = "rank games.csv -k 1 --epsilon 0.25 --comparisons-per-pair 1 --max-degree 2"


def test_without_a_list_a_dry_run_of_a_ranking_leaves_out_what_follows_from_the_rows() -> None:
    shown = json.loads(done(f"{RANKED_BY_ROWS} --dry-run --format json"))
    released = json.loads(done(f"{RANKED_BY_ROWS} --format json"))
    assert shown["guarantee"] == released["guarantee"]
    assert "where others have the same items" in shown["guarantee"]["neighbours"]
    assert "sensitivity" not in shown["mechanism"]
    assert shown["mechanism"]["comparisons_per_pair"] == 1
    Path("games.csv").write_text("winner,loser\n")
    assert json.loads(done(f"{RANKED_BY_ROWS} --dry-run --format json")) == shown
    assert run(RANKED_BY_ROWS).exit_code == 2
    text = " ".join(done(f"{RANKED_BY_ROWS} --values 0.3 --dry-run").split())
    assert "none, because no data set" in text
    assert "Values noisy; how much, follows from the number of items" in text


def test_a_discovery_can_be_tried_too() -> None:
    line = "domain views.parquet --item film --person viewer --epsilon 0.25 --delta 1e-6 --max-items-per-person 2"
    text = done(f"{line} --dry-run")
    assert "discovery, at most 2 items per person" in text
    assert "none, because no data set of a ledger is named" in text


def test_a_dry_run_says_it_in_words() -> None:
    text = " ".join(done(f"{COMMANDS['top']} --dry-run").split())
    assert text.startswith("Dry run: no row was read, nothing was charged")
    assert "Asked top 2; table views.parquet; item film; person viewer" in text
    assert "Charge 'films': epsilon = 0.25; epsilon 0.25 left after it" in text
    with_values = " ".join(done(f"{COMMANDS['values']} --dry-run").split())
    released = json.loads(done(f"{COMMANDS['values']} --format json"))
    [(low, high), _] = released["intervals"]
    assert f"noisy; each is off by at most {(high - low) // 2} with probability 0.95" in with_values
    assert done(f"{COMMANDS['top']} --dry-run --format csv").startswith("fact,text\nAsked,")


def test_a_dry_run_writes_and_reads_nothing() -> None:
    """Rows that cannot be decoded stop a release, and not a dry run."""
    content = Path("views.parquet").read_bytes()
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    Path("views.parquet").write_bytes(content[:4] + b"\0" * (len(content) - footer - 4) + content[-footer:])
    select = "select views.parquet --item film --count viewer -k 2 --epsilon 0.25 --domain films.csv"
    for line in (TOP, select):
        assert run(line).exit_code != 0
        assert run(f"{line} --dry-run --output out.json").exit_code == 0
    assert not Path("out.json").exists()


@pytest.mark.parametrize(
    "line",
    [COMMANDS["top"], "select counts.csv -k 2 --epsilon 0.25 --domain films.csv --domain-column film --dataset films"],
)
def test_a_dry_run_says_that_the_question_was_asked_before(line: str) -> None:
    done(f"{line} --once today")
    assert "nothing more" in done(f"{line} --once today --dry-run")


@pytest.mark.parametrize(
    ("line", "header"),
    [
        (f"top - {ASKED} --domain films.csv --where \"seen = 'x'\"", "film,viewer,seen"),
        (
            "domain - --item film --person viewer --epsilon 0.25 --delta 1e-6 --max-items-per-person 2",
            'film,viewer,"a\nb"',
        ),
        ("select - -k 2 --epsilon 0.25 --items-are-public", "item,count"),
        ("rank - -k 1 --epsilon 1 --comparisons-per-pair 1 --max-degree 2 --domain players.csv", "winner,loser"),
    ],
)
def test_of_standard_input_a_dry_run_needs_the_header_alone(line: str, header: str) -> None:
    result = CliRunner().invoke(app, shlex.split(f"{line} --dry-run --format json"), input=f"{header}\nsecret,")
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["asked"].get("table", "standard input") == "standard input"


def test_nothing_behind_the_header_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.BytesIO(b'film,"a\nb",c\nHeat,1,2\n')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(given))
    with source_path("-", header_only=True) as path:
        assert Path(path).read_bytes() == b'film,"a\nb",c\n'
    assert given.read() == b"Heat,1,2\n"


def test_a_dry_run_of_standard_input_refuses_a_column_that_is_not_there() -> None:
    result = CliRunner().invoke(app, shlex.split(f"{TOP} --dry-run".replace("views.parquet", "-")), input="film,user\n")
    assert result.exit_code == 2
    assert "SOURCE standard input: the header has no column 'viewer'" in result.stderr


def test_a_dry_run_leaves_nothing_behind() -> None:
    """A process of its own, in which DuckDB reports on standard error what was not closed."""
    start = "import sys, dpselect.cli as cli; sys.argv[0] = 'dpselect'; cli.main()"
    command = [sys.executable, "-c", start, *shlex.split(f"{TOP} --dry-run")]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        (f"{TOP} --dataset films --epsilon 0.6", 1, "requested 0.6, remaining 0.5"),
        (f"{TOP} --dataset fims", 2, "fims"),
        (f"{TOP} --item fild", 2, "fild"),
        (f"{TOP} -k 13", 2, "-k must be at most 12"),
        ("select counts.csv -k 2 --epsilon 1", 2, "so say what is public"),
        ("select counts.csv -k 2 --epsilon 1 --items-are-public --count viewers", 2, "viewers"),
        ("select counts.csv -k 2 --epsilon 1 --domain fims.csv", 2, "fims.csv"),
        ("select counts.csv -k 13 --epsilon 1 --domain films.csv --domain-column film", 2, "-k must be at most 12"),
        (f"{COMMANDS['select']} --once today", 2, "--once must be left out of a dry run"),
        (f"{RANKED_BY_ROWS} --dataset votes", 2, "--domain must list the items if a ledger is charged"),
        (f"{RANKED_BY_ROWS} --winner first", 2, "first"),
    ],
)
def test_a_dry_run_refuses_what_the_release_would_refuse(line: str, status: int, said: str) -> None:
    result = run(f"{line} --dry-run")
    assert (result.exit_code, result.stdout) == (status, "")
    assert said in result.stderr


def test_a_dry_run_knows_the_key_and_the_last_release_that_fills_the_total() -> None:
    line = f"{TOP} --dataset films --once w46"
    done(line)
    shown = json.loads(done(f"{line} --dry-run --format json"))
    assert (shown["repeated"], shown["left"]["films"]["epsilon"]) == (True, 0.25)
    assert "nothing more, because this question was asked" in done(f"{line} --dry-run")
    for other in ("-k 1", "--where 'film = 1'"):
        refused = run(f"{line} {other} --dry-run")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "another question was asked under this key" in refused.stderr
    with Ledger("ledger.sqlite") as ledger:
        ledger.create("tenths", epsilon=1.0)
        for _ in range(9):
            ledger.spend("tenths", dpselect.Guarantee(0.1))
    done(f"{TOP} --epsilon 0.1 --dataset tenths --dry-run")
    assert json.loads(done(f"{TOP} --epsilon 0.1 --dataset tenths --format json"))["guarantee"]["epsilon"] < 0.1


def test_nothing_is_drawn_within_a_rehearsal() -> None:
    with rehearsal() as found:
        dpselect.select({"tea": 1, "milk": 0}, k=1, epsilon=1.0)
    assert found[0].plan.guarantee == dpselect.Guarantee(1.0)
    assert dpselect.select({"tea": 1, "milk": 0}, k=1, epsilon=1.0).k == 1


def test_every_command_has_one_default_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    done(f"{TOP} --dataset films")
    assert "0.25 of 0.5 spent" in done("ledger show films")
    done(TOP)
    assert "0.25 of 0.5 spent" in done("ledger show films")
    monkeypatch.setenv("DPSELECT_LEDGER", "other.sqlite")
    done("ledger create films --epsilon 3")
    done(f"{TOP} --dataset films")
    assert "0.25 of 3 spent" in done("ledger show films")
    done(f"{TOP} --dataset films --ledger ledger.sqlite")
    assert "0.5 of 0.5 spent" in done("ledger show films --ledger ledger.sqlite")
