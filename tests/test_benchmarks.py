"""The benchmarks run; how fast things are is for `make bench` to say, never for a test."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

ROOT = Path(__file__).parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True)


SUITES = {"selection", "service", "startup", "ledger", "unknown", "discovery", "groups", "ranking", "desk"}
"""All suites but engines, which starts PostgreSQL and Spark."""


@pytest.mark.long
@pytest.mark.parametrize("suites", [SUITES, {"engines"}], ids=["embedded", "engines"])
def test_every_suite_runs_and_reports(suites: set[str], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    finished = run("--quick", "--json", str(report), *(part for suite in suites for part in ("--only", suite)))
    assert finished.returncode == 0, finished.stderr
    results = json.loads(report.read_text())["results"]
    assert {result["suite"] for result in results} == suites
    assert all(math.isfinite(result["measured"]) and result["case"] in finished.stdout for result in results)
    assert {result["verdict"] for result in results} == {"-"}


def test_a_missed_limit_is_told_apart_from_one_that_is_met() -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.timing import Result
    finally:
        sys.path.remove(str(ROOT))
    assert Result("s", "c", measured=2.0, unit="x", limit=1.0).verdict == "missed"
    assert Result("s", "c", measured=1.0, unit="x", limit=1.0).verdict == "met"
    assert Result("s", "c", measured=9.0, unit="x").met


def test_the_histogram_of_the_growth_curves_is_that_of_the_array() -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.baseline import long_tail
        from benchmarks.growth import histogram
    finally:
        sys.path.remove(str(ROOT))
    values, held = histogram(300_000)
    counted, times = np.unique(long_tail(300_000), return_counts=True)
    assert values.tolist() == counted[::-1].tolist()
    assert held.tolist() == times[::-1].tolist()


def test_the_table_of_peers_shows_ratios_limits_and_failures() -> None:
    """From given times: nothing is installed."""
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.peers import OURS, PEERS, TASKS, WORKS, Timing, abilities, time_tables
    finally:
        sys.path.remove(str(ROOT))
    console = Console(width=250, record=True, file=StringIO())
    timings = [
        Timing("dpselect", "gumbel", 10_000, 200, 0.002),
        Timing("opendp", "gumbel", 10_000, 200, 4.0),
        Timing("dpselect", "gumbel", 166_000, 200, 0.004),
        Timing("opendp", "gumbel", 166_000, 200, 60.0, beyond=True),
        Timing("diffprivlib", "gumbel", 166_000, 200, None),
    ]
    (table,) = time_tables(timings)
    console.print(table)
    console.print(abilities([OURS, *PEERS], {peer.name: "1.0" for peer in (OURS, *PEERS)}))
    shown = console.export_text().replace(" ", "")
    assert "|opendp|4s,2,000x|>60s,>15,000x|" in shown
    assert "|diffprivlib|–|failed|" in shown
    assert all(peer.name in shown for peer in PEERS)
    assert set(TASKS) == set(WORKS)
