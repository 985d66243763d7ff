"""The same work by other packages from PyPI, side by side: `python -m benchmarks.peers`.

Each package is installed by pip in a virtual environment of its own, outside the repository, on first use. Every case
runs in a process of its own (`peer_work.py`) and is cut off at a limit. Times are those of the best of several runs,
from data in memory to the answer: processor times on one thread, and wall times from rows, where engines of several
threads and processes take part.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.box import MARKDOWN
from rich.progress import Console
from rich.table import Table

WORK = Path(__file__).parent / "peer_work.py"

FOLDER = Path(tempfile.gettempdir()) / "dpselect-peers"


@dataclass(frozen=True)
class Peer:
    """A package from PyPI: what to install, and what it can do that bears on a top-k."""

    name: str
    requirements: tuple[str, ...]
    top_k: str
    ordered: str
    noise: str
    draws: str
    unlisted: str
    reads: str


OURS = Peer(
    "dpselect",
    (),
    top_k="one call",
    ordered="yes",
    noise="w/ε (canonical, joint), or k w/ε",
    draws="exact",
    unlisted="yes, with a δ",
    reads="memory, files, DuckDB, PostgreSQL, Spark",
)

PEERS = [
    Peer(
        "opendp",
        ("opendp", "numpy"),
        top_k="one call",
        ordered="yes",
        noise="k w/ε",
        draws="exact",
        unlisted="not in a top-k",
        reads="memory, files; databases in an early form",
    ),
    Peer(
        "diffprivlib",
        # Later versions of scikit-learn lack a name that diffprivlib 0.6.6 imports.
        ("diffprivlib", "scikit-learn<1.6"),
        top_k="one item a call",
        ordered="by k calls",
        noise="k w/ε",
        draws="float64",
        unlisted="no",
        reads="memory",
    ),
    Peer(
        "pipeline-dp",
        ("pipeline-dp",),
        top_k="noisy counts only",
        ordered="by noisy counts",
        noise="m/ε for m items a person",
        draws="Google's C++ library",
        unlisted="yes, with a δ",
        reads="memory, Beam, Spark",
    ),
    Peer(
        "smartnoise-sql",
        ("smartnoise-sql",),
        top_k="noisy counts only, by SQL",
        ordered="by noisy counts",
        noise="m/ε for m items a person",
        draws="exact, by opendp",
        unlisted="yes, with a δ",
        reads="memory, databases, Spark",
    ),
    Peer(
        "tmlt.analytics",
        ("tmlt.analytics",),
        top_k="noisy counts only",
        ordered="by noisy counts",
        noise="m/ε for m items a person",
        draws="exact",
        unlisted="yes, with a δ",
        reads="Spark",
    ),
]

TASKS = {
    "permute-and-flip": "k rounds of permute-and-flip",
    "gumbel": "k rounds of the exponential mechanism",
    "rows": "noisy counts of 1,000 listed items from rows, 5 items a person, and the k largest",
}

WORKS = {
    "permute-and-flip": ["opendp", "diffprivlib"],
    "gumbel": ["opendp", "diffprivlib"],
    "rows": ["pipeline-dp", "smartnoise-sql", "tmlt.analytics"],
}
"""Which packages can do which task."""

SIZES = {
    "permute-and-flip": [(10_000, 10), (10_000, 200), (166_000, 200), (1_000_000, 200)],
    "gumbel": [(10_000, 10), (10_000, 200), (166_000, 200), (1_000_000, 200)],
    "rows": [(100_000, 10), (1_000_000, 10)],
}
"""Numbers of items or rows, and k."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one package for one task: None if it failed, the limit if it was cut off `beyond` it."""

    package: str
    task: str
    size: int
    k: int
    seconds: float | None
    beyond: bool = False

    def shown(self, ours: float | None) -> str:
        """Return the seconds and their ratio to ours."""
        if self.seconds is None:
            return "failed"
        more = ">" if self.beyond else ""
        return f"{more}{_short(self.seconds)} s" + (f", {more}{_short(self.seconds / ours)}x" if ours else "")


def _short(number: float) -> str:
    """Return a number with two digits, and no exponent."""
    return f"{float(f'{number:.2g}'):,g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Install, measure and print."""
    options = _parser().parse_args(arguments)
    progress = Console(stderr=True)
    progress.print(f"Packages are installed by pip under {options.folder}; delete the folder when you are done.")
    peers, versions, timings = (
        [OURS],
        {"dpselect": version("dpselect")},
        list(measured(OURS, sys.executable, options, progress)),
    )
    for peer in PEERS:
        if not options.only or peer.name in options.only:
            try:
                interpreter, versions[peer.name] = installed(peer, options.folder, progress)
            except subprocess.SubprocessError as failure:
                progress.print(f"{peer.name} could not be installed: {failure}")
                continue
            peers.append(peer)
            timings += measured(peer, interpreter, options, progress)
    output = Console(width=200)
    for table in (*time_tables(timings), abilities(peers, versions)):
        output.print(table)
    return 0


def measured(peer: Peer, interpreter: str, options: argparse.Namespace, progress: Console) -> Iterator[Timing]:
    """Yield the times of a package for all tasks that it can do."""
    for task, packages in WORKS.items():
        if peer is OURS or peer.name in packages:
            for size, k in SIZES[task]:
                progress.print(f"{peer.name}: {TASKS[task]}, {size:,}, k = {k}", soft_wrap=True)
                yield timed(interpreter, peer.name, task, size, k, options.limit)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description="Install other packages from PyPI, each in an environment of its own, and compare them with ours.",
    )
    names = [peer.name for peer in PEERS]
    parser.add_argument("--only", action="append", choices=names, help="compare with this one only; may be repeated")
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS", help="cut a case off here (60)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where the environments are ({FOLDER})")
    return parser


def installed(peer: Peer, folder: Path, progress: Console) -> tuple[str, str]:
    """Return the interpreter of the environment of a package, and its version; install it if it is not there."""
    place = folder / peer.name
    python = place / "bin" / "python"
    if not python.exists():
        progress.print(f"{peer.name}: pip install {' '.join(peer.requirements)} in {place}")
        venv.create(place, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements]
        try:
            subprocess.run(command, check=True, timeout=900)
        except subprocess.SubprocessError:
            shutil.rmtree(place)
            raise
    asked = f"from importlib.metadata import version; print(version({peer.name!r}))"
    return str(python), subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()


def timed(interpreter: str, package: str, task: str, size: int, k: int, limit: float) -> Timing:
    """Run one case in a process of its own; one that exceeds the limit is stopped."""
    command = [interpreter, str(WORK), f"{package} {task}", str(size), str(k), str(limit)]
    try:
        # Making the data and starting Java are not part of the work.
        run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit + 30)
    except subprocess.TimeoutExpired:
        return Timing(package, task, size, k, limit, beyond=True)
    except subprocess.CalledProcessError as failure:
        print(failure.stderr, file=sys.stderr)
        return Timing(package, task, size, k, None)
    return Timing(package, task, size, k, float(json.loads(run.stdout.splitlines()[-1])))


def time_tables(timings: Iterable[Timing]) -> list[Table]:
    """Return a table for each task: seconds of each package and their ratio to ours."""
    found = {(timing.package, timing.task, timing.size, timing.k): timing for timing in timings}
    tables = []
    for task, said in TASKS.items():
        sizes = [size for size in SIZES[task] if ("dpselect", task, *size) in found]
        packages = [name for name in WORKS[task] if any((name, task, *size) in found for size in sizes)]
        if not packages:
            continue
        table = Table(title=said, box=MARKDOWN, title_justify="left")
        table.add_column("package")
        for size, k in sizes:
            table.add_column(f"{size:,}, k = {k}", justify="right")
        ours = [found["dpselect", task, *size].seconds for size in sizes]
        table.add_row("dpselect", *(found["dpselect", task, *size].shown(None) for size in sizes))
        for name in packages:
            cells = [found.get((name, task, *size)) for size in sizes]
            table.add_row(
                name, *("–" if cell is None else cell.shown(own) for cell, own in zip(cells, ours, strict=True))
            )
        tables.append(table)
    return tables


def abilities(peers: Iterable[Peer], versions: dict[str, str]) -> Table:
    """Return what each package can do that bears on a top-k; w is how far a person moves scores apart."""
    table = Table(title="what each can do", box=MARKDOWN, title_justify="left")
    for heading in ("package", "version", "top-k", "ordered", "scale of noise", "draws", "items not listed", "reads"):
        table.add_column(heading)
    for peer in peers:
        said = (peer.top_k, peer.ordered, peer.noise, peer.draws, peer.unlisted, peer.reads)
        table.add_row(peer.name, versions[peer.name], *said)
    return table


if __name__ == "__main__":
    sys.exit(main())
