"""The time of `import dpselect` in a new interpreter, and the heavy packages that it loads (none)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.timing import Result

HEAVY = [
    "duckdb",
    "fastapi",
    "flint",
    "ibis",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "rich",
    "scipy",
    "sqlalchemy",
    "sqlglot",
    "typer",
    "uvicorn",
]

CPU_LIMIT = 0.5
"""Seconds of processor time."""

PROGRAM = """
import json, sys, time
start = time.process_time()
import dpselect
print(json.dumps([time.process_time() - start, sorted(sys.modules)]))
"""


def fresh_import() -> tuple[float, list[str]]:
    """Return the processor time of the import in seconds, and the heavy packages that were loaded."""
    finished = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    seconds, modules = json.loads(finished.stdout)
    return seconds, [name for name in HEAVY if name in modules]


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the processor time, best of several, and the number of heavy packages."""
    runs = [fresh_import() for _ in range(1 if quick else 5)]
    seconds = min(seconds for seconds, _ in runs)
    yield Result("startup", "import, CPU seconds", seconds, " s", limit=None if quick else CPU_LIMIT)
    heavy = runs[0][1]
    yield Result(
        "startup",
        "import, heavy packages",
        len(heavy),
        "",
        limit=None if quick else 0,
        note=", ".join(heavy),
    )
