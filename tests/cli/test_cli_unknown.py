"""`dpselect top --domain unknown`: the documented way, what it prints, and that an empty answer tells nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpselect
from dpselect.cli import app

SHARED = {"weather": 300, "news": 250, "football": 200}
HEADER = "query,user\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with queries that many, one or no people made."""
    many = [f"{query},u{person}" for query, count in SHARED.items() for person in range(count)]
    lonely = [f"secret {person},u{person}" for person in range(40)]
    for name, lines in (("queries", [*many, *lonely]), ("lonely", lonely), ("nobody", [])):
        (tmp_path / f"{name}.csv").write_text(HEADER + "".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def ask(file: str, *options: str) -> Any:
    line = f"top {file} --item query --person user -k 10 --epsilon 8 --delta 1e-6 --domain unknown"
    return CliRunner().invoke(app, [*line.split(), *options])


def test_the_answer_stops_where_items_are_no_longer_shared_and_says_so(folder: Path) -> None:
    """Leads of 50 and more at noise scales of a few units; a secret passes with probability at most 1e-6."""
    result = ask("queries.csv")
    assert result.exit_code == 0
    assert "stopped after 3 of 10" in result.stdout
    assert "football" in result.stdout
    assert "secret" not in result.stdout
    assert "delta = 1e-06" in result.stdout


def test_json_is_the_release(folder: Path) -> None:
    data = json.loads(ask("queries.csv", "--format", "json", "--pool", "20").stdout)
    assert sorted(data["items"]) == sorted(SHARED)
    assert data["stopped"] is True
    assert data["k"] == 10
    assert data["mechanism"]["name"] == "restricted"
    assert data["mechanism"]["pool"] == 20
    assert data["guarantee"]["delta"] == 1e-6


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_data_and_data_that_nobody_shares_look_the_same(folder: Path, form: str) -> None:
    lonely, nobody = ask("lonely.csv", "--format", form), ask("nobody.csv", "--format", form)
    assert (lonely.exit_code, lonely.stdout, lonely.stderr) == (nobody.exit_code, nobody.stdout, nobody.stderr)
    assert lonely.exit_code == 0


def test_another_mechanism_can_be_asked_for(folder: Path) -> None:
    name = "top-stable"
    result = ask("queries.csv", "--mechanism", name, "--format", "json")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert data["mechanism"]["name"] == name
    assert set(data["items"]) <= set(SHARED)


BAD = [
    ("--mechanism canonical", "--mechanism 'canonical' unknown domain"),
    ("--pool 3", "--pool 3 10"),
    ("--pool 100000000", "--pool 100000000 10000000"),
    ("--delta 0", "--delta unknown domain"),
    ("--mechanism top-stable --ordered", "--mechanism restricted limited"),
    ("--mechanism limited --noise laplace", "--max-items-per-person"),
]


def test_bad_options_are_refused_and_nothing_is_answered(folder: Path) -> None:
    """Each word must be in the message."""
    for options, words in BAD:
        result = ask("queries.csv", *options.split())
        assert (result.exit_code, result.stdout) == (2, ""), options
        assert [word for word in words.split() if word not in result.stderr] == [], result.stderr


def test_the_noise_of_limited_can_be_named_with_what_it_relies_on(folder: Path) -> None:
    """A scale of 3/8 at leads of 50: a miss has a probability below e^-100."""
    bound = ["--max-items-per-person", "3", "--pool", "20", "--format", "json"]
    result = ask("queries.csv", "--mechanism", "limited", "--noise", "laplace", *bound)
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout)
    assert sorted(data["items"]) == sorted(SHARED)
    described = data["mechanism"]
    assert (described["noise"], described["max_items_per_person"], described["pool"]) == ("laplace", 3, 20)


@pytest.fixture
def counts(folder: Path) -> str:
    """The name of a file of counts with a long tail."""
    lines = [f"i{rank},{round(2000 / rank)}" for rank in range(1, 1001)]
    (folder / "counts.csv").write_text("item,count\n" + "\n".join(lines) + "\n")
    return "counts.csv"


def run(line: str) -> Any:
    return CliRunner().invoke(app, line.split())


def test_forecast_of_an_unknown_domain_shows_the_items_to_expect(counts: str) -> None:
    overview = run(f"forecast {counts} -k 10 --domain unknown --delta 1e-7 --draws 20")
    assert overview.exit_code == 0
    assert "ε = 0.1" in overview.stdout
    assert "not private" in overview.stderr
    at = run(f"forecast {counts} -k 10 --domain unknown --delta 1e-7 --epsilon 1 --draws 20")
    assert [name for name in ("restricted", "limited", "top-stable", "P(all k)") if name not in at.stdout] == []
    assert "9.96" in at.stdout
    data = json.loads(
        run(f"forecast {counts} -k 10 --domain unknown --delta 1e-7 --epsilon 1 --draws 0 --format json").stdout
    )
    limited = data["mechanisms"][1]
    assert limited["mechanism"]["pool"] == 100
    assert limited["returned"]["value"] == pytest.approx(9.96, abs=0.005)
    assert data["mechanisms"][0]["returned"] is None
    rows = run(f"forecast {counts} -k 10 --domain unknown --delta 1e-7 --pool 50 --draws 20 --ordered --format csv")
    assert rows.stdout.splitlines()[0].startswith("label,epsilon,returned,returned_low")
    assert len(rows.stdout.splitlines()) == 1 + 2 * 4


def test_forecast_counts_the_rows_of_people_whose_items_cannot_be_listed(folder: Path) -> None:
    asked = "-k 3 --item query --person user --domain unknown --delta 1e-6 --epsilon 8 --draws 20 --format json"
    data = json.loads(run(f"forecast queries.csv {asked}").stdout)
    assert [row["full"]["value"] > 0.9 for row in data["mechanisms"]] == [True, True, True]
    nobody = json.loads(run(f"forecast nobody.csv {asked}").stdout)
    assert [row["returned"]["value"] < 1e-5 for row in nobody["mechanisms"]] == [True, True, True]


def test_plan_for_an_unknown_domain_from_public_facts(folder: Path) -> None:
    result = run("plan -k 10 --epsilon 1 --delta 1e-7 --domain unknown")
    assert result.exit_code == 0
    assert "50%" in result.stdout
    facts = json.loads(run("plan -k 10 --epsilon 1 --delta 1e-7 --domain unknown --format json").stdout)["mechanisms"]
    expected = dpselect.forecast.full_answer_gap(
        dpselect.Restricted(inner=dpselect.Joint(k=10, epsilon=0.5), test_epsilon=0.5, test_delta=0.5e-7)
    )
    assert facts[0]["full"] == pytest.approx(expected)
    rows = run("plan -k 10 --epsilon 1 --delta 1e-7 --domain unknown --format csv").stdout.splitlines()
    assert rows[0] == "mechanism,half,likely,full,for_tests"


@pytest.mark.slow
def test_plan_with_a_look_alike_shows_the_items_or_the_epsilon_for_them(counts: str) -> None:
    asked = f"plan -k 5 --delta 1e-7 --domain unknown --like {counts}"
    assert "items returned" in run(f"{asked} --epsilon 1").stdout
    assert "private" not in json.loads(run(f"{asked} --epsilon 1 --format json").stdout)
    assert "Epsilon needed for 4 of 5" in run(f"{asked} --expect 4 --ordered").stdout
    rows = run(f"{asked} --expect 4 --ordered --format csv").stdout.splitlines()
    assert [row.partition(",")[0] for row in rows] == ["label", "restricted", "limited"]


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("plan -k 10 --domain unknown --delta 1e-7", "--epsilon"),
        ("plan -k 10 --domain unknown --delta 1e-7 --epsilon 1 --expect 4", "--expect"),
        ("plan -k 10 --domain unknown --delta 1e-7 --like counts.csv", "--epsilon"),
        ("plan -k 10 --domain unknown --delta 1e-7 --epsilon 1 --gap 5", "--gap"),
        ("plan -k 10 --domain unknown --epsilon 1", "--delta"),
        ("plan -k 10 --domain films.csv --epsilon 1", "--domain"),
        ("plan -k 10 --pool 20 --epsilon 1", "--pool"),
        ("plan -k 10 --expect 4 --epsilon 1", "--expect"),
        ("forecast counts.csv -k 10 --domain unknown --delta 1e-7 --plot out.svg", "--plot"),
        ("forecast counts.csv -k 10 --pool 20", "--pool"),
        ("forecast counts.csv -k 10 --domain unknown", "--delta"),
    ],
)
def test_options_that_do_not_fit_an_unknown_domain_are_refused(counts: str, line: str, option: str) -> None:
    result = run(line)
    assert result.exit_code != 0
    assert f"{option} must be" in result.stderr
    assert "None" not in result.stderr


def test_the_inner_mechanism_and_the_share_of_the_tests_can_be_named(folder: Path) -> None:
    named = ["--inner", "joint", "--test-share", "0.25", "--format", "json"]
    for mechanism in (["--mechanism", "restricted"], []):  # auto means restricted on an unknown domain
        result = ask("queries.csv", *mechanism, *named)
        assert result.exit_code == 0, result.stderr
        described = json.loads(result.stdout)["mechanism"]
        assert described["inner"]["name"] == "joint"
        assert described["test_epsilon"] == described["epsilon"] / 4
    for options, words in (("--inner magic", "--inner 'magic'"), ("--test-share 1.5", "--test-share 1.5")):
        result = ask("queries.csv", *options.split())
        assert (result.exit_code, result.stdout) == (2, "")
        assert words.split()[0] in result.stderr
        assert words.split()[1] in result.stderr
    result = ask("queries.csv", "--mechanism", "limited", "--inner", "joint")
    assert "--inner must be left out unless the mechanism is restricted, got 'joint'" in result.stderr
    result = ask("queries.csv", "--inner", "canonical", "--gamma", "0.25", "--no-margin")
    assert "restricted around canonical, exponential noise, gamma 0.25, no margin" in " ".join(result.stdout.split())
    result = ask("queries.csv", "--inner", "peeling", "--no-margin")
    assert result.stderr == "dpselect: --no-margin must be left out with inner = peeling, which does not have it\n"


def test_a_forecast_says_what_a_discovery_would_list(folder: Path) -> None:
    counts = "".join(f"{query},{count}\n" for query, count in SHARED.items())
    Path("counts.csv").write_text(f"item,count\n{counts}")
    line = ["counts.csv", "-k", "2", "--epsilon", "4", "--delta", "1e-6", "--domain", "unknown"]
    for command in (["forecast", *line], ["plan", "-k", "2", "--like", *line[:1], *line[3:]]):
        limited = [*command, "--max-items-per-person", "3"]
        said = " ".join(CliRunner().invoke(app, limited).stdout.split())
        assert "dpselect domain would list 3 items at this epsilon and delta, if everybody has 3 items" in said
        assert "dpselect domain" not in CliRunner().invoke(app, command).stdout
    data = json.loads(
        CliRunner().invoke(app, ["forecast", *line, "--max-items-per-person", "3", "--format", "json"]).stdout
    )
    assert data["discovery"]["listed"] == pytest.approx(3, abs=1e-6)
    assert [each["mechanism"]["name"] for each in data["mechanisms"]][-1] == "discovered"
