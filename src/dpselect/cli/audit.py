"""The report of `dpselect verify --audit`."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dpselect.cli.output import Format, as_csv, as_json, as_text, failure, note, progress_bar, publish
from dpselect.cli.stdin import signals_as_exits
from dpselect.verify import ERROR, POWER, Audited, open_audit, run_audit

_FAILED = 1


class _Run(NamedTuple):
    """What the report states about itself: the seed, the answers on all inputs, and the time they took."""

    seed: int | None
    answers: int
    seconds: float
    processor_seconds: float

    def __str__(self) -> str:
        """Say it in a line."""
        drawn = "randomness of the operating system" if self.seed is None else f"seed {self.seed}"
        minutes, computed = (f"{seconds / 60:.1f}" for seconds in (self.seconds, self.processor_seconds))
        return f"{self.answers:,} answers, {drawn}, {minutes} minutes ({computed} of one processor)"


def _computed() -> float:
    """Return the processor seconds of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


def audit_command(mechanism: str | None, *, quick: bool, seed: int | None, form: Format) -> None:
    """Run the audit, print its report, and exit with status 1 if a row fails."""
    began, computed = time.perf_counter(), _computed()
    with (
        signals_as_exits(),
        open_audit(mechanism, quick=quick) as (probes, skipped),
        progress_bar("Asking") as progress,
    ):
        rows = run_audit(probes, seed=seed, processes=0 if quick else os.cpu_count() or 1, progress=progress)
    answers = 2 * sum(row.answers for row in rows)
    run = _Run(seed, answers, time.perf_counter() - began, _computed() - computed)
    for engine, reason in skipped.items():
        note(f"{engine} is not audited: {reason}")
    publish(_report(rows, run, skipped, form), None)
    failed = sum(not row.passed for row in rows)
    if failed:
        failure(f"{failed} of {len(rows)} rows failed; do not publish results of the mechanisms concerned")
        raise typer.Exit(_FAILED)


def _report(rows: list[Audited], run: _Run, skipped: dict[str, str], form: Format) -> str:
    plain = [_row(row) for row in rows]
    if form is Format.json:
        passed = all(row.passed for row in rows)
        stated = {"passed": passed, "error": ERROR, "power": POWER, **run._asdict()}
        return as_json({**stated, "skipped": skipped, "audit": plain})
    if form is Format.csv:
        return as_csv(plain)
    sound = [row for row in rows if not row.probe.flaw]
    broken = [row for row in rows if row.probe.flaw]
    summary = (
        f"{sum(row.passed for row in sound)} of {len(sound)} claims are compatible with the answers, "
        f"{sum(row.passed for row in broken)} of {len(broken)} broken mechanisms were rejected. "
        f"A sound claim is called broken in any row with probability {ERROR:g} at most; a violation of the size in the "
        f"column detects is found with probability {POWER:g}."
    )
    return as_text(Text(str(run)), "", _table(rows), "", Text(summary))


def _row(row: Audited) -> dict[str, Any]:
    evidence = row.evidence
    return {
        "asked": row.probe.door,
        "question": row.probe.name,
        "epsilon": evidence.epsilon,
        "delta": evidence.delta,
        "lower_bound": evidence.lower_bound,
        "answers": row.answers,
        "deciding": evidence.runs,
        "first": evidence.first,
        "second": evidence.second,
        "detects_epsilon": evidence.detectable_epsilon,
        "detects_delta": evidence.detectable_delta,
        "flaw": row.probe.flaw,
        "verdict": _verdict(row),
    }


def _table(rows: list[Audited]) -> Table:
    table = Table(
        title="Lower bounds on epsilon, from releases alone",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("asked", "question", "claim>", "epsilon\nat least>", "answers>", "detects>", "verdict>"):
        number = heading.endswith(">")
        table.add_column(heading.removesuffix(">"), justify="right" if number else "left", no_wrap=number)
    doors = [row.probe.door for row in rows]
    for place, row in enumerate(rows):
        evidence, door = row.evidence, doors[place]
        table.add_row(
            "" if place and doors[place - 1] == door else door,
            row.probe.name + (f": {row.probe.flaw}" if row.probe.flaw else ""),
            f"{evidence.epsilon:g}, {evidence.delta:.2g}" if evidence.delta else f"{evidence.epsilon:g}",
            f"{evidence.lower_bound:.2f}",
            str(row.answers),
            _detects(row),
            Text(_verdict(row), "green" if row.passed else "bold red"),
            end_section=doors[place + 1 : place + 2] != [door],
        )
    return table


def _detects(row: Audited) -> str:
    """Return the smallest violation that the row would have found: an epsilon, or else a delta."""
    if row.evidence.detectable_epsilon is not None:
        return f"{row.evidence.detectable_epsilon:.2f}"
    if row.evidence.detectable_delta is not None:
        return f"delta {row.evidence.detectable_delta:.2f}"
    return "nothing"


def _verdict(row: Audited) -> str:
    if row.probe.flaw:
        return "rejected" if row.passed else "MISSED"
    return "holds" if row.passed else "BROKEN"
