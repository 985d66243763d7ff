"""The command `python -m benchmarks`: a table of measurements; exit status 1 when a limit is missed."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import dpselect
from benchmarks import desk, discovery, engines, groups, ledger, ranking, selection, service, startup, unknown
from benchmarks.timing import Result

SUITES = {
    "selection": selection.measurements,
    "ledger": ledger.measurements,
    "engines": engines.measurements,
    "unknown": unknown.measurements,
    "discovery": discovery.measurements,
    "groups": groups.measurements,
    "ranking": ranking.measurements,
    "service": service.measurements,
    "desk": desk.measurements,
    "startup": startup.measurements,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    options = _parser().parse_args(arguments)
    results: list[Result] = []
    with Console(stderr=True).status("measuring …") as status:
        for name in options.only or SUITES:
            for result in SUITES[name](options.quick):
                results.append(result)
                status.update(f"measured {result.case} …")
    Console(width=max(110, Console().width)).print(_table(results))
    if options.json:
        report = {"environment": _environment(), "results": [result.to_dict() for result in results]}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if all(result.met for result in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure dpselect as ratios to baselines in the same run; exit status 1 if a limit is missed.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, once, without verdicts")
    parser.add_argument("--only", action="append", choices=list(SUITES), help="run this suite only; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the measurements to FILE")
    return parser


def _table(results: list[Result]) -> Table:
    table = Table(
        caption="selection: base is numpy.bincount; exp and gumbel are ratios to NumPy noise of that kind on every "
        "score and argpartition. slope: of log time against log d or log k; 1 when time is proportional to it",
        box=SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
    )
    table.add_column("case")
    for heading in ("d", "k", "base ms", "ours ms", "ratio", "limit", "verdict", "exp", "gumbel"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        colour = "" if result.limit is None else "green" if result.met else "red"
        table.add_row(
            result.case,
            "" if result.size is None else f"{result.size:.3g}".replace("e+0", "e"),
            "" if result.k is None else f"{result.k:,}",
            _milliseconds(result.baseline_seconds),
            _milliseconds(result.our_seconds),
            f"{result.measured:.3g}{result.unit}",
            "" if result.limit is None else f"{result.limit:g}{result.unit}",
            f"[{colour}]{result.verdict}[/]" if colour else result.verdict,
            *("" if ratio is None else f"{ratio:.3g}x" for ratio in (result.to_exponential, result.to_gumbel)),
        )
        if result.note:
            table.add_row(f"  {result.note}")
    return table


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{1000 * seconds:.3g}" if seconds < 1 else f"{1000 * seconds:,.0f}"


def _environment() -> dict[str, str]:
    return {
        "dpselect": dpselect.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": platform.system(),
        "machine": platform.machine(),
    }


if __name__ == "__main__":
    sys.exit(main())
