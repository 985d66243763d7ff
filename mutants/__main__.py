"""Apply mutants one at a time to a copy of the package, and see which checks and tests fail."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
LIMIT = 60
"""Processor seconds for the checks of one mutant, and again for its tests; independent of the load of the machine."""

PATIENCE = 900
"""Seconds after which a run that waits instead of computing is stopped."""

LIMITED = (
    "import os, resource, sys;"
    f"resource.setrlimit(resource.RLIMIT_CPU, ({LIMIT}, {LIMIT}));"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)

MISSED, SURVIVED, OUT_OF_TIME, NONE = "missed", "survived", "no end", "–"


@dataclass(frozen=True)
class Mutant:
    """One edit of the package, `old` to `new` in a file, and the mechanisms and tests that should fail.

    `survives` explains a mutant that need not be caught: it is equivalent, or errs on the safe side.
    """

    id: str
    room: str
    file: str
    what: str
    old: str
    new: str
    verify: tuple[str, ...]
    tests: tuple[str, ...]
    survives: str = ""

    def applied(self, text: str) -> str:
        """Return the text of the file with the edit; the old text must occur exactly once."""
        count = text.count(self.old)
        if count != 1:
            raise SystemExit(
                f"mutant {self.id}: its text occurs {count} times in {self.file}, once is needed; "
                f"bring mutants.toml up to date:\n{self.old}"
            )
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Outcome:
    """Which of the checks and tests caught a mutant."""

    mutant: Mutant
    quick: str
    tests: str

    @property
    def noticed(self) -> bool:
        """Whether the checks or the tests failed, or the checks ran out of time."""
        return self.quick.startswith("caught") or self.quick == OUT_OF_TIME or self.tests == "caught"


def main() -> int:
    """Run the selected mutants, print the table, and return 1 if one survives without an explanation."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--list", action="store_true", help="show the mutants and whether they still apply")
    parser.add_argument("--only", metavar="ID,ID", help="run these only")
    parser.add_argument("--room", help="run those of one room only, as sampling or privacy")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (1)")
    options = parser.parse_args()
    mutants = chosen(read(), options.only, options.room)
    for mutant in mutants:
        mutant.applied((SOURCE / "dpselect" / mutant.file).read_text())
    if options.list:
        print(table([(m.id, m.room, m.file, m.what, " ".join(m.verify) or NONE) for m in mutants]))
        print(f"{len(mutants)} mutants, all of which apply")
        return 0
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(tried, mutants):
            outcomes.append(outcome)
            print(f"{outcome.mutant.id:5} {outcome.quick:18} {outcome.tests:9} {outcome.mutant.what}", flush=True)
    return report(outcomes)


def read() -> list[Mutant]:
    """Return all mutants; those without tests of their own get the tests of their room."""
    data = tomllib.loads((ROOT / "mutants" / "mutants.toml").read_text())
    mutants = []
    for entry in data["mutant"]:
        tests = entry.pop("tests", None) or data["tests"][entry["room"]]
        mutants.append(Mutant(**{**entry, "verify": tuple(entry.get("verify", ())), "tests": tuple(tests)}))
    repeated = {mutant.id for mutant in mutants if sum(mutant.id == other.id for other in mutants) > 1}
    if repeated:
        raise SystemExit(f"ids that occur twice in mutants.toml: {', '.join(sorted(repeated))}")
    return mutants


def chosen(mutants: list[Mutant], only: str | None, room: str | None) -> list[Mutant]:
    """Return the mutants with the given ids and of the given room."""
    ids = None if only is None else only.split(",")
    unknown = set(ids or ()) - {mutant.id for mutant in mutants}
    rooms = {mutant.room for mutant in mutants}
    if unknown or room not in (None, *rooms):
        raise SystemExit(f"no mutant {', '.join(sorted(unknown))}" if unknown else f"--room is one of {sorted(rooms)}")
    return [mutant for mutant in mutants if (ids is None or mutant.id in ids) and room in (None, mutant.room)]


@cache
def check_unchanged(*arguments: str) -> None:
    """Stop if the checks or tests fail on the unchanged package: then a failure with a mutant means nothing."""
    status, printed = run(SOURCE, *arguments)
    if status != 0:
        raise SystemExit(f"python {' '.join(arguments)} does not pass on the package as it is:\n{printed}")


def tried(mutant: Mutant) -> Outcome:
    """Run the checks and tests on a mutant."""
    checks = ("-m", "mutants.quick", *mutant.verify)
    tests_of_room = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "not long", *mutant.tests)
    check_unchanged(*tests_of_room)
    with package(mutant) as source:
        quick = NONE
        if mutant.verify:
            check_unchanged(*checks)
            status, printed = run(source, *checks)
            quick = OUT_OF_TIME if status is None else f"caught ({printed or 'error'})" if status else MISSED
        status, printed = run(source, *tests_of_room)
        if status not in (0, 1, None):
            raise SystemExit(f"mutant {mutant.id}: its tests cannot be run ({' '.join(mutant.tests)}):\n{printed}")
        tests = OUT_OF_TIME if status is None else "caught" if status else SURVIVED
    return Outcome(mutant, quick, tests)


@contextmanager
def package(mutant: Mutant) -> Iterator[Path]:
    """Yield a folder with a copy of the package that has the mutant in it."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "dpselect"
        shutil.copytree(SOURCE / "dpselect", copy, ignore=shutil.ignore_patterns("__pycache__"))
        changed = copy / mutant.file
        changed.write_text(mutant.applied(changed.read_text()))
        yield Path(folder)


def run(source: Path, *arguments: str) -> tuple[int | None, str]:
    """Run Python with the copy in place of the package; return its exit status (None if out of time) and last line."""
    paths = os.pathsep.join([str(source), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", LIMITED, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""
    ended = process.returncode not in (-signal.SIGXCPU, -signal.SIGKILL)
    return process.returncode if ended else None, printed.strip().rpartition("\n")[2]


def report(outcomes: list[Outcome]) -> int:
    """Print the table and the survivors; return 1 if one of them is not explained."""
    rows = [(o.mutant.id, o.mutant.file, o.mutant.what, o.quick, o.tests) for o in outcomes]
    print("\n" + table([("id", "file", "what changes", "quick", "tests"), *rows]))
    survivors = [outcome for outcome in outcomes if not outcome.noticed]
    quick = [outcome for outcome in outcomes if outcome.quick != NONE]
    print(
        f"{len(outcomes)} mutants; verify --quick caught {sum(o.quick.startswith('caught') for o in quick)} of "
        f"{len(quick)}, the tests {sum(o.tests == 'caught' for o in outcomes)} of {len(outcomes)}; "
        f"{len(survivors)} survive both"
    )
    for outcome in survivors:
        print(f"  {outcome.mutant.id}: {outcome.mutant.what}: {outcome.mutant.survives or 'NOT EXPLAINED'}")
    return int(any(not outcome.mutant.survives for outcome in survivors))


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows as text in columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


if __name__ == "__main__":
    sys.exit(main())
