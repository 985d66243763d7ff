"""Every example of the manual runs and prints what its page says (CONTRIBUTING.md, "Examples in the manual")."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "src").rglob("*.md"))]
KINDS = ("compared", "any order", "random", "not compared", "not run", "file")
BLOCK = re.compile(
    r"(?:^<!-- example: (?P<kind>[\w ]+); (?P<reason>[^>]+) -->\n+)?"
    r"^```(?P<language>\w+)\n(?P<text>.*?)^```$"
    r"(?:\n+^```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
ENGINES = re.compile(r"(?<![\w.])(postgresql|spark)(\+local)?://")
POSTGRESQL = re.compile(r"postgresql://[^\s\"'`)]*")
SERVER = re.compile(r"dpselect (serve|desk)\b(?! (token|config|accounts)| --help)")
PORTS = ("8417", "8000")
CLOCK = re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?")
LIMIT = 300.0
"""Seconds after which a command that hangs is ended."""


@dataclass(frozen=True)
class Example:
    """One block of a page, and how it is checked."""

    page: Path
    line: int
    language: str
    text: str
    printed: str | None
    kind: str
    reason: str

    def __str__(self) -> str:
        """Say where it is."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def steps(self) -> list[tuple[str, str]]:
        """Return the commands of a console block, each with what the page shows below it."""
        found: list[tuple[str, str]] = []
        lines = iter(self.text.splitlines())
        for line in lines:
            if not line.startswith("$ "):
                found[-1] = (found[-1][0], found[-1][1] + line + "\n")
                continue
            command = line[2:]
            end = re.search(r"<<'?(\w+)'?", command)
            while command.endswith("\\") or (end and not command.endswith(f"\n{end[1]}")):
                command += "\n" + next(lines)
            found.append((command, ""))
        return found


def examples(page: Path) -> list[Example]:
    """Return the blocks of a page that are run, in order, and the files that it states."""
    text = page.read_text()
    return [
        Example(
            page,
            text.count("\n", 0, found.start("language")) + 1,
            *found.group("language", "text", "printed"),
            kind=found["kind"] or "compared",
            reason=found["reason"] or "",
        )
        for found in BLOCK.finditer(text)
        if found["language"] in ("python", "console") or found["kind"]
    ]


def agrees(example: Example, shown: str, printed: str) -> bool:
    """Return whether what was printed is what the page shows; … stands for lines, or the rest of a line."""
    shown, printed = (CLOCK.sub("TIME", text).rstrip() for text in (shown, printed))
    if example.kind == "not compared" or not shown:
        return True
    if example.kind == "random":
        shown, printed = (re.sub(r"-?[\d,.]*\d", "#", re.sub("[ ─━]+", " ", text)) for text in (shown, printed))
    lines, wanted = ([line.strip() for line in text.splitlines()] for text in (printed, shown))
    if example.kind in ("any order", "random"):
        missing = Counter(wanted) - Counter([*lines, *["…"] * wanted.count("…")])
        return not missing and ("…" in wanted or len(lines) == len(wanted))
    pattern = (r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in wanted)
    return re.fullmatch("".join(pattern), "".join(f"{line}\n" for line in lines)) is not None


class Shell:
    """A bash in which the commands of a page run one after the other, and a server goes on until the next one."""

    def __init__(self, folder: Path, ports: dict[str, str]) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        keep = {name: value for name, value in os.environ.items() if not name.startswith("DPSELECT_")}
        self.folder, self.ports, self.servers = folder, ports, 0
        self.bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env={**keep, "PATH": path, "HOME": str(folder), "COLUMNS": "80"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.run("shopt -s expand_aliases; set -m")

    def run(self, command: str) -> tuple[str, int]:
        """Run a command; return what it printed, and its exit status."""
        assert self.bash.stdin is not None
        assert self.bash.stdout is not None
        self.bash.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n=%s=\\n' $?\n")
        self.bash.stdin.flush()
        printed = ""
        watch = threading.Timer(LIMIT, self.bash.kill)
        watch.start()
        for line in self.bash.stdout:
            printed += line
            if ended := re.fullmatch(r"=(\d+)=\n", line):
                watch.cancel()
                return printed.removesuffix(line).removesuffix("\n"), int(ended[1])
        raise AssertionError(f"{command} does not end\n{printed}")

    def serve(self, command: str, lines: int) -> str:
        """Start a server and return what it printed once it has said that much, or has ended."""
        self.stop_servers()
        self.servers += 1
        said = self.folder / f"server-{self.servers}.txt"
        command = command.removesuffix("&")
        command += "" if "--port" in command else f" --port {self.ports[PORTS['serve' in command]]}"
        said.touch()
        self.run(f"{command} >{said.name} 2>&1 &")
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline and self.run("kill -0 $!")[1] == 0:
            if len(said.read_text().splitlines()) >= max(lines, 1):
                break
            time.sleep(0.1)
        return said.read_text()

    def stop_servers(self) -> None:
        """Stop what is still running, as a user does with Ctrl-C."""
        self.run("for job in $(jobs -p); do kill -INT $job; done; wait")

    def close(self) -> None:
        """Stop the servers, and then the shell."""
        self.stop_servers()
        self.bash.communicate("exit\n", timeout=LIMIT)


class Reader:
    """Somebody who tries the examples of a page from top to bottom, in one folder, one shell and one Python."""

    def __init__(self, folder: Path, postgresql: str | None) -> None:
        self.folder, self.postgresql = folder, postgresql
        self.ports = {port: free_port() for port in PORTS}
        self.shell = Shell(folder, self.ports)
        self.names: dict[str, Any] = {}

    def tries(self, example: Example) -> None:
        """Run one example, and compare."""
        if example.kind == "file":
            path = self.folder / example.reason
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(example.text)
            path.chmod(0o755 if example.text.startswith("#!") else 0o644)
        elif example.language == "python":
            self.compare(example, "", example.printed or "", self.python(example))
        else:
            for command, shown in example.steps():
                if SERVER.match(command):
                    printed, status = self.shell.serve(self.here(command), len(shown.splitlines())), 0
                else:
                    printed, status = self.shell.run(self.here(command))
                self.compare(example, command, shown, printed)
                assert shown or status == 0, f"{example}: {command}\n{printed}"

    def python(self, example: Example) -> str:
        """Run a block of Python; return what it printed."""
        printed = io.StringIO()
        code = compile("\n" * example.line + self.here(example.text), str(example.page), "exec")
        with contextlib.chdir(self.shell.run("pwd")[0].strip()), contextlib.redirect_stdout(printed):
            exec(code, self.names)
        return printed.getvalue()

    def here(self, text: str) -> str:
        """Return an example with the server and the ports of this test."""
        for port, free in self.ports.items():
            text = re.sub(rf"\b{port}\b", free, text)
        return POSTGRESQL.sub(lambda _: self.postgresql or "", text)

    def compare(self, example: Example, command: str, shown: str, printed: str) -> None:
        """Fail unless what was printed is what the page shows."""
        for port, free in self.ports.items():
            printed = printed.replace(free, port)
        assert agrees(example, shown, printed), f"{example}: {command}\n--- shown\n{shown}--- printed\n{printed}"


def free_port() -> str:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `dpselect demo --out demo`."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    subprocess.run([sys.executable, "-m", "dpselect", "demo", "--out", str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def cinema(demo: Path, postgresql_server: str) -> str:
    """The URL of a database with the demo's tables."""
    import duckdb
    import psycopg

    url = postgresql_server.replace("/postgres?", "/cinema?")
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS cinema WITH (FORCE)")
        connection.execute("CREATE DATABASE cinema")
    with contextlib.closing(duckdb.connect()) as files, psycopg.connect(url) as connection:
        for path in [demo / "views.parquet", *demo.glob("*.csv")]:
            rows = files.sql(f"FROM '{path}'")
            columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(rows.columns, rows.types, strict=True))
            connection.execute(f'CREATE TABLE "{path.stem}" ({columns})')
            text = demo.parent / "rows.csv"
            rows.write_csv(str(text), header=False)
            with connection.cursor().copy(f'COPY "{path.stem}" FROM STDIN (FORMAT csv)') as copy:
                copy.write(text.read_bytes())
    return url


def read(page: Path, folder: Path, demo: Path, postgresql: str | None) -> None:
    """Try every example of a page; without a server, those that need none."""
    shutil.copytree(demo, folder / "demo")
    reader = Reader(folder, postgresql)
    try:
        for example in examples(page):
            if example.kind != "not run" and (postgresql or not ENGINES.search(example.text)):
                reader.tries(example)
    finally:
        reader.shell.close()


WITH_EXAMPLES = [page for page in PAGES if examples(page)]
WITH_ENGINES = [page for page in WITH_EXAMPLES if any(ENGINES.search(each.text) for each in examples(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, demo: Path) -> None:
    read(page, tmp_path, demo, None)


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_ENGINES, ids=lambda page: f"{page.name}-on-postgresql-and-spark")
def test_the_examples_of_a_page_run_on_servers(page: Path, tmp_path: Path, demo: Path, cinema: str) -> None:
    read(page, tmp_path, demo, cinema)


def test_few_examples_are_excused_and_each_says_why() -> None:
    every = [example for page in PAGES for example in examples(page)]
    kinds = Counter(example.kind for example in every)
    assert set(kinds) <= set(KINDS)
    assert kinds["not run"] + kinds["not compared"] <= len(every) // 7, kinds


def test_every_block_on_a_page_is_run_or_says_why_not_or_is_text() -> None:
    for page in PAGES:
        checked = {example.line for example in examples(page)}
        for token in MarkdownIt().parse(page.read_text()):
            if token.type == "fence" and token.info != "text":
                assert token.map is not None
                assert token.map[0] + 1 in checked, f"{page}:{token.map[0] + 1}: {token.info or 'no language'}"


@pytest.mark.parametrize(
    ("kind", "shown", "printed", "same"),
    [
        ("compared", "one\ntwo\n", "one\ntwo\n", True),
        ("compared", "one\ntwo\n", "two\none\n", False),
        ("compared", "one\n…\nfour\n", "one\ntwo\nthree\nfour\n", True),
        ("compared", "one\n…\nfive\n", "one\ntwo\nthree\nfour\n", False),
        ("compared", "key …\n", "key 4711\n", True),
        ("compared", "at 2026-11-15 20:29:35\n", "at 2027-01-01 00:00:01\n", True),
        ("any order", "one\ntwo\n", "two\none\n", True),
        ("any order", "one\ntwo\n", "two\none\nthree\n", False),
        ("any order", "one\n…\n", "two\none\n", True),
        ("any order", "one\n…\n", "two\nthree\n", False),
        ("compared", "…\ntwo\n…\n", "one\ntwo\nthree\n", True),
        ("random", "tea 1,596\nmilk -3\n", "milk 12\ntea 9\n", True),
        ("random", "tea 1,596\n", "milk 1,596\n", False),
    ],
)
def test_an_example_is_compared_with_what_it_prints(kind: str, shown: str, printed: str, same: bool) -> None:
    example = Example(ROOT / "README.md", 1, "console", "", None, kind, "")
    assert agrees(example, shown, printed) is same
