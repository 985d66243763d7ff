"""`dpselect select`: the private top k of counts in a file, whose items are public only if that is said."""

from __future__ import annotations

import csv
import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app

COUNTS = {f"film {place:02d}": 240 - 20 * place for place in range(12)}
PUBLIC = "--items-are-public"


@pytest.fixture(autouse=True)
def counts(folder: Path) -> None:
    """The counts of the people's rows, and the list of their items under the name of the column of counts."""
    (folder / "counts.csv").write_text("item,count\n" + "".join(f"{item},{n}\n" for item, n in COUNTS.items()))
    (folder / "items.csv").write_text("item\n" + "".join(f"{item}\n" for item in [*list(COUNTS)[1:], "nobody's"]))


def run(line: str) -> Any:
    return CliRunner().invoke(app, ["select", *shlex.split(line)])


def answer(line: str) -> dict[str, Any]:
    result = run(f"{line} --format json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(line: str) -> str:
    result = run(line)
    assert (result.exit_code, result.stdout) == (2, ""), line
    return str(result.stderr)


def test_the_answer_is_that_of_select_on_the_same_scores() -> None:
    for options, asked in (
        ("--epsilon 0.05", {}),
        ("--epsilon 1 --ordered --values 0.3", {"ordered": True, "values": 0.3}),
        ("--epsilon 1 --lowest", {"lowest": True}),
        ("--epsilon 1 --sensitivity 0 5", {"sensitivity": dps.Sensitivity(0, 5)}),
        (
            "--epsilon 1 --delta 1e-6 --mechanism gaussian --max-items-per-person 2 --values included",
            {"delta": 1e-6, "mechanism": "gaussian", "max_items_per_person": 2, "values": True},
        ),
        (
            "--epsilon 1 --mechanism oneshot --noise laplace --protects 'one household'",
            {"mechanism": "oneshot", "options": {"noise": "laplace"}, "protects": "one household"},
        ),
    ):
        epsilon = float(options.split()[1])
        wanted = dps.select(COUNTS, 3, epsilon=epsilon, seed=5, **asked).to_dict()
        assert answer(f"counts.csv -k 3 {PUBLIC} --seed 5 {options}") == json.loads(json.dumps(wanted)), options


def test_a_list_drops_other_items_and_gives_missing_ones_a_zero() -> None:
    found = answer("counts.csv -k 3 --epsilon 1e6 --domain items.csv")
    assert set(found["items"]) == {"film 01", "film 02", "film 03"}
    assert found["domain"] == {"items": 12, "stated": "public"}
    lowest = answer("counts.csv -k 1 --epsilon 1e6 --domain items.csv --lowest")
    assert lowest["items"] == ["nobody's"]
    named = "counts.csv -k 1 --epsilon 1e6 --domain films.csv --domain-column film"
    assert answer(named)["items"] == ["film 00"]
    Path("named.csv").write_text(Path("counts.csv").read_text().replace("item,count", "film,viewers"))
    assert answer("named.csv -k 1 --epsilon 1e6 --domain films.csv --item film --count viewers")["items"] == ["film 00"]


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ("", "restricted"),
        ("--max-items-per-person 3", "discovered"),
        ("--max-items-per-person 4", "restricted"),
        ("--max-items-per-person 3 --pool 9", "restricted"),
        ("--max-items-per-person 3 --sensitivity -1 1", "restricted"),
    ],
)
def test_auto_takes_what_top_would_on_an_unknown_domain(options: str, taken: str) -> None:
    found = answer(f"counts.csv -k 3 --epsilon 8 --delta 1e-3 --domain unknown {options}")
    assert found["mechanism"]["name"] == taken


def test_an_unknown_domain_hides_which_items_exist() -> None:
    found = answer("counts.csv -k 3 --epsilon 20 --delta 1e-3 --domain unknown")
    assert found["domain"] == {"items": None, "stated": "unknown"}
    assert found["mechanism"]["name"] == "restricted"
    assert found["items"] == ["film 00", "film 01", "film 02"]
    assert answer("counts.csv -k 3 --epsilon 8 --delta 1e-3 --domain unknown --mechanism limited --pool 5")["k"] == 3
    Path("empty.csv").write_text("item,count\n")
    assert answer("empty.csv -k 3 --epsilon 8 --delta 1e-3 --domain unknown")["items"] == []
    Path("nobody.csv").write_text("item,count\nsecret,0\n")
    assert answer("nobody.csv -k 3 --epsilon 8 --delta 0.9 --domain unknown --seed 1")["items"] == []


def test_the_table_says_what_the_guarantee_takes_on_trust() -> None:
    shown = " ".join(run(f"counts.csv -k 3 --epsilon 1 {PUBLIC}").stdout.split())
    assert "12 items, stated as public" in shown
    assert "rests on your promise, which nothing checks: adding a person moves each score by 0 to 1." in shown
    shown = run(f"counts.csv -k 3 --epsilon 1 {PUBLIC} --sensitivity 0 5 --max-items-per-person 2").stdout
    assert "moves each score by 0 to 5, and at most 2 of the scores." in " ".join(shown.split())
    assert "promise" in run("--help").stdout
    rows = list(csv.DictReader(io.StringIO(run(f"counts.csv -k 3 --epsilon 1e6 {PUBLIC} --format csv").stdout)))
    assert {row["item"] for row in rows} == {"film 00", "film 01", "film 02"}


BAD = [
    ("counts.csv -k 3 --epsilon 1", "--domain public --items-are-public unknown --delta"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --domain items.csv", "--domain --items-are-public"),
    ("counts.csv -k 3 --epsilon 1 --domain counts.csv", "--domain 'counts.csv' --items-are-public"),
    ("counts.csv -k 3 --epsilon 1 --domain 12", "--domain '12' file"),
    ("counts.csv -k 3 --epsilon 1 --domain none.csv", "--domain 'none.csv' no such file"),
    ("counts.csv -k 3 --epsilon 1 --domain unknown", "--delta unknown domain"),
    ("counts.csv -k 3 --epsilon 1 --domain unknown --delta 1e-6 --mechanism canonical", "--mechanism 'canonical' auto"),
    ("counts.csv -k 3 --epsilon 1 --domain unknown --delta 1e-6 --lowest", "--lowest"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --domain-column item", "--domain --domain-column"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --pool 5", "--pool limited"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --mechanism laplace", "--max-items-per-person promise"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --max-items-per-person 0", "--max-items-per-person 0"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --sensitivity 1 0", "--sensitivity (1.0, 0.0) low"),
    (f"counts.csv -k 13 --epsilon 1 {PUBLIC}", "-k 13 12"),
    (f"counts.csv -k 3 --epsilon 0 {PUBLIC}", "--epsilon 0.0 positive"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --item film", "FILE 'counts.csv' 'film' --item --count"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --item count", "--count 'count' another"),
    (f"none.csv -k 3 --epsilon 1 {PUBLIC}", "FILE 'none.csv' no such file"),
    (f"empty.csv -k 3 --epsilon 1 {PUBLIC}", "FILE 'empty.csv' no item"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --output counts.csv", "--output 'counts.csv'"),
    ("counts.csv -k 3 --epsilon 1 --domain items.csv --output items.csv", "--output 'items.csv'"),
    (f"counts.csv -k 3 --epsilon 1 {PUBLIC} --dataset films", "--ledger ledger.sqlite create"),
]


def test_bad_input_is_refused_with_the_way_out() -> None:
    """Each word must be in the message."""
    Path("empty.csv").write_text("item,count\n")
    for line, words in BAD:
        said = refused(line)
        assert [word for word in words.split() if word not in said] == [], said
        assert len(said.splitlines()) == 1, said


def test_no_cell_shows_in_messages_or_status() -> None:
    said = set()
    for cell in ("7", "hush", "-7", "nan", "", "1e999"):
        Path("odd.csv").write_text(f"item,count\na,5000\nb,{cell}\n")
        result = run(f"odd.csv -k 1 --epsilon 1 {PUBLIC} --format json")
        said.add((result.exit_code, result.stderr, result.stdout))
    assert len(said) == 1
    [(status, notes, _)] = said
    assert (status, notes) == (0, "")


def test_a_ledger_is_charged_and_an_output_written(folder: Path) -> None:
    assert CliRunner().invoke(app, shlex.split("ledger create films --epsilon 1 --ledger l.sqlite")).exit_code == 0
    line = f"counts.csv -k 3 --epsilon 0.6 {PUBLIC} --ledger l.sqlite --dataset films --purpose weekly --output out.csv"
    assert run(line).exit_code == 0
    assert len((folder / "out.csv").read_text().splitlines()) == 4
    again = run(line)
    assert again.exit_code == 1
    assert "requested 0.6, remaining 0.4" in again.stderr


def test_the_same_question_under_a_key_is_answered_once() -> None:
    assert CliRunner().invoke(app, shlex.split("ledger create films --epsilon 1 --ledger l.sqlite")).exit_code == 0
    line = f"counts.csv -k 3 --epsilon 0.01 {PUBLIC} --ledger l.sqlite --dataset films --once weekly --format csv"
    first, second = run(line), run(line)
    assert (first.exit_code, first.stderr, first.stdout) == (0, "", second.stdout)
    assert "nothing more was charged" in second.stderr
    Path("more.csv").write_text(Path("counts.csv").read_text() + "film 12,1\n")
    assert run(line.replace("counts.csv", "more.csv")).exit_code == 2


def test_json_gets_its_note_whatever_it_contains() -> None:
    for name in ("count", "cuont"):
        Path("counts.jsonl").write_text(json.dumps({"item": "a", name: 3}) + "\n")
        assert "misspelt" in run(f"counts.jsonl -k 1 --epsilon 1 {PUBLIC}").stderr


@pytest.mark.slow
def test_the_example_in_the_help_runs(folder: Path) -> None:
    lines = [line.strip() for line in run("--help").stdout.splitlines()]
    start = next(place for place, line in enumerate(lines) if line.startswith("printf"))
    script = "\n".join(lines[start : start + 2])
    command = Path(sys.executable).with_name("dpselect")
    result = subprocess.run(
        script.replace("dpselect", str(command)), shell=True, capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "Heat" in result.stdout
