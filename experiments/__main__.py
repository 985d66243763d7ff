"""The command `python -m experiments`: compute, print a table, and write it as CSV with --out."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dpselect import InvalidInput
from dpselect._format import three_digits
from dpselect._pictures import picture
from experiments import (
    auto,
    discovered,
    domain_size,
    features,
    inside,
    margin,
    ordered,
    ordered_margin,
    private_pool,
    ranking,
    ring,
    unknown,
)

EXPERIMENTS = {
    "auto": auto,
    "margin": margin,
    "ordered": ordered,
    "ordered-margin": ordered_margin,
    "unknown": unknown,
    "discovered": discovered,
    "inside": inside,
    "private-pool": private_pool,
    "domain-size": domain_size,
    "ranking": ranking,
    "ring": ring,
    "features": features,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment and return the exit status."""
    options = _parser().parse_args(arguments)
    experiment: Any = EXPERIMENTS[options.name]
    if getattr(experiment, "NEEDS_DATA", True) and (options.data is None or not options.data.is_dir()):
        where = "--data is missing" if options.data is None else f"there is no folder {options.data}"
        print(f"skipped: {options.name} needs the real data sets, and {where}")
        return 0
    quick = {"quick": True} if options.quick else {}
    if quick and not getattr(experiment, "HAS_QUICK", False):
        _parser().error(f"--quick: {options.name} has no quick form")
    rows: list[dict[str, Any]] = []
    with Console(stderr=True).status(f"computing {options.name} …") as status:
        try:
            for row in experiment.rows(options.data, **quick):
                rows.append(row)
                status.update(f"computed {row['data']}, k = {row['k']} …")
        except InvalidInput as missing:
            print(f"skipped: {options.name} needs a data set that is missing: {missing}")
            return 0
    for title, lines in experiment.summary(rows) if hasattr(experiment, "summary") else [(experiment.TITLE, rows)]:
        Console().print(_table(title, lines))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        with (options.out / f"{options.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        if hasattr(experiment, "figure"):
            (options.out / f"{options.name}.svg").write_bytes(picture(experiment.figure(rows), "svg"))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Compute a table about the mechanisms.")
    parser.add_argument("name", choices=list(EXPERIMENTS), help="the experiment")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the real data sets")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="also write DIR/NAME.csv and, if there is a picture, DIR/NAME.svg"
    )
    parser.add_argument("--quick", action="store_true", help="fewer data sets and settings (auto only)")
    return parser


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    """Return the rows as a table, transposed if it has more columns than rows."""
    lines = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    if len(rows[0]) > len(rows):
        lines = [list(line) for line in zip(*lines, strict=True)]
    table = Table(title=title, box=SIMPLE_HEAD, padding=0)
    for place, heading in enumerate(lines[0]):
        table.add_column(
            heading, justify="right" if place else "left", no_wrap=place == 0, overflow="fold", min_width=7
        )
    for line in lines[1:]:
        table.add_row(*line)
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return three_digits(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main())
