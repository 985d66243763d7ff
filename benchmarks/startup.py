"""Processor time of short commands in a new interpreter, the start of Python included, and what `import` loads."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Result

IMPORT = "import dpselect"
BASELINE = "import numpy"
SELECT = "import dpselect; dpselect.select([3, 2, 1], k=1, epsilon=1)"
COMMAND = "import sys; from dpselect.cli import main; sys.argv[0] = 'dpselect'; main()"

LARGEST_RATIO = 1.5
"""`import dpselect` may take this many times as long as `import numpy`."""

LIMITS = {"--version": 0.3, "--help": 0.3, "select() of 3 scores": 0.6, "top of 10 rows": 1.0}
"""Seconds of processor time."""


def cpu_seconds(program: str, *arguments: str) -> float:
    """Return the processor time of a Python program in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ten_rows(folder: Path) -> list[str]:
    """Write ten rows and a list of items, and return the arguments that ask about them."""
    (folder / "rows.csv").write_text("item,person\n" + "".join(f"{row % 3},{row}\n" for row in range(10)))
    (folder / "items.csv").write_text("item\n0\n1\n2\n")
    named = ["--item", "item", "--person", "person", "--domain", str(folder / "items.csv")]
    return ["top", str(folder / "rows.csv"), *named, "-k", "2", "--epsilon", "1"]


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the best processor time of several interleaved rounds for each command."""
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            "--version": (COMMAND, "--version"),
            "--help": (COMMAND, "--help"),
            "select() of 3 scores": (SELECT,),
            "top of 10 rows": (COMMAND, *ten_rows(Path(folder))),
        }
        programs = {BASELINE: (BASELINE,), IMPORT: (IMPORT,), **cases}
        rounds = [{name: cpu_seconds(*call) for name, call in programs.items()} for _ in range(1 if quick else 7)]
    best = {name: min(found[name] for found in rounds) for name in programs}
    limit = None if quick else LARGEST_RATIO
    yield Result("startup", f"{IMPORT} / {BASELINE}", best[IMPORT] / best[BASELINE], "x", limit=limit)
    for name in cases:
        yield Result("startup", f"{name}, CPU seconds", best[name], " s", limit=None if quick else LIMITS[name])
