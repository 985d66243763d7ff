"""docs/papers.md: every command parses, every name takes the arguments shown; a long test runs every command."""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import importlib
import inspect
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

import dpselect as dps
from dpselect.cli import app
from dpselect.reproduce.run import PAPERS, paper_named, studies_named

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "papers.md").read_text()
DATA = Path(os.environ.get("DPSELECT_DATA", ROOT.parent / "shared" / "data"))
STATUSES = ("works", "deviates", "not built")
USUAL = {"k": 2, "epsilon": 1.0}
"""Arguments that the page leaves out."""

QUESTIONS = (dps.select, dps.top, dps.rank)
"""Functions that need data; only the names of their arguments are checked."""


@dataclass(frozen=True)
class Part:
    """One row of a table."""

    paper: str
    place: str
    names: tuple[str, ...]
    commands: tuple[int, ...]
    status: str
    reason: str

    @property
    def id(self) -> str:
        """The paper and the place, for the report."""
        return f"{self.paper}: {self.place}"


def sections() -> dict[str, str]:
    """Return the text of each paper, by short name."""
    found = re.split(r"^## (.*)$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def parts() -> list[Part]:
    """Return the rows of all tables."""
    found = []
    for paper, text in sections().items():
        for row in re.findall(r"^\|(.*)\|$", text, re.MULTILINE)[2:]:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)]
            assert len(cells) == 5, f"{paper}: {row}"
            place, names, commands, status, reason = cells
            numbers = tuple(int(number) for number in commands.split(", ")) if commands else ()
            found.append(Part(paper, place, tuple(re.findall(r"`([^`]+)`", names)), numbers, status, reason))
    return found


def commands() -> dict[tuple[str, int], str]:
    """Return every command line, by paper and number."""
    return {
        (paper, int(number)): line
        for paper, text in sections().items()
        for number, line in re.findall(r"^(\d+)\. `([^`]+)`$", text, re.MULTILINE)
    }


LINES = [pytest.param(line, id=f"{paper}-{number}") for (paper, number), line in commands().items()]
NAMES = sorted({name for part in parts() for name in part.names})


def check_command(line: str) -> None:
    """Raise an error unless a command line parses: known options, all required ones, and values of the right type."""
    words = shlex.split(line)
    if words[:2] == ["python", "-c"] and len(words) == 3:
        return check_code(words[2])
    if words[0] != "dpselect":
        raise ValueError(f"neither dpselect nor python -c: {line}")
    command: Any = get_command(app)
    context = command.make_context("dpselect", words[1:])
    while isinstance(command, TyperGroup):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    if context.info_name == "reproduce":
        studies_named(paper_named(context.params["paper"]), context.params["figure"])
    context.close()
    return None


def check_code(code: str) -> None:
    """Raise an error unless the names of a line of Python exist and its calls take the arguments shown."""
    tree = ast.parse(code)
    known: dict[str, Any] = {}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), "imports", "exec"), known)
    local = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    local |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in {*local, *known, *vars(builtins)}:
            raise NameError(node.id)
        if isinstance(node, ast.Attribute) and _root(node) in known:
            _resolved(node, known)
        if isinstance(node, ast.Call) and _root(node.func) in known:
            with contextlib.suppress(ValueError):  # functions written in C have no signature
                signature = inspect.signature(_resolved(node.func, known))
                named = {keyword.arg: None for keyword in node.keywords if keyword.arg}
                signature.bind(*(None for _ in node.args), **named)


def _root(node: ast.expr) -> str | None:
    """Return the first name of a dotted one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _resolved(node: ast.expr, known: dict[str, Any]) -> Any:
    """Return what a dotted name stands for."""
    if isinstance(node, ast.Attribute):
        owner = _resolved(node.value, known)
        if dataclasses.is_dataclass(owner) and node.attr in {field.name for field in dataclasses.fields(owner)}:
            return None
        if inspect.ismodule(owner) and not hasattr(owner, node.attr):
            return importlib.import_module(f"{owner.__name__}.{node.attr}")
        return getattr(owner, node.attr)
    assert isinstance(node, ast.Name)
    return known[node.id]


def check_name(expression: str) -> Any:
    """Return the value of a name of the page, or of a call with the arguments shown and the usual others."""
    return _value(ast.parse(expression, mode="eval").body)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return _resolved(ast.Attribute(ast.Name("dpselect"), node.id), {"dpselect": dps})
    if isinstance(node, ast.Attribute):
        return _resolved(ast.Attribute(ast.Name("owner"), node.attr), {"owner": _value(node.value)})
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    function = _value(node.func)
    signature = inspect.signature(function)
    shown = {keyword.arg or "": _value(keyword.value) for keyword in node.keywords}
    if function in QUESTIONS:
        return signature.bind_partial(**shown)
    needed = [name for name, each in signature.parameters.items() if each.default is each.empty and name not in shown]
    return function(**{name: USUAL[name] for name in needed}, **shown)


def test_the_page_has_every_paper_and_every_study() -> None:
    assert set(sections()) == set(PAPERS)
    lines = set(commands().values())
    for paper in PAPERS.values():
        for study in paper.studies:
            names = {study.name, study.name.removeprefix("figure-")}
            shown = [line for line in lines if line.startswith(f"dpselect reproduce {paper.name} ")]
            assert any(shlex.split(line)[4] in names for line in shown), f"{paper.name} {study.name}"


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.id)
def test_every_part_says_where_it_is_or_why_not(part: Part) -> None:
    assert part.status in STATUSES
    assert part.place
    if part.status == "not built":
        assert part.reason
        assert not part.names
        assert not part.commands
    else:
        assert part.commands
        assert part.reason or part.status == "works"
    assert set(part.commands) <= {number for paper, number in commands() if paper == part.paper}


def test_every_command_belongs_to_a_part() -> None:
    used = {(part.paper, number) for part in parts() for number in part.commands}
    assert used == set(commands())
    for paper in PAPERS:
        numbers = [number for each, number in commands() if each == paper]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("line", LINES)
def test_every_command_parses(line: str) -> None:
    check_command(line)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_exists_and_takes_the_arguments_shown(name: str) -> None:
    check_name(name)


TOP = "dpselect top rows.csv --item film --person viewer --domain films.csv -k 5 --epsilon 1"


@pytest.mark.parametrize(
    "line",
    [
        TOP + " --nois gumbel",
        TOP + " --no-margins",
        TOP.replace(" --epsilon 1", ""),
        TOP.replace(" -k 5", ""),
        TOP.replace("top", "tops"),
        TOP.replace(" rows.csv", ""),
        TOP + " --format yaml",
        "dpselect multiselect offset -k 5 --epsilon 1",
        "dpselect multiselect offsets --epsilon 1",
        "dpselekt demo",
        "dpselect reproduce joint --figure 7",
        'python -c "import dpselect as dps; dps.Cannonical(k=1, epsilon=1.0)"',
        'python -c "import dpselect as dps; dps.Canonical(k=1, epsilon=1.0, gama=1.0)"',
        'python -c "import dpselect as dps; dps.Canonical(k=1)"',
        'python -c "import dpselect as dps; print(dps.forecast.plans)"',
        'python -c "from dpselect.multiselect import Clients"',
        'python -c "from dpselect.multiselect import *; Klient(epsilon=1.0)"',
        'python -c "print("',
    ],
)
def test_a_mistake_in_a_command_is_found(line: str) -> None:
    with pytest.raises((Exception, SystemExit)):
        check_command(line)


@pytest.mark.parametrize("line", [TOP, TOP + " --noise gumbel", "dpselect demo", "dpselect ledger show books"])
def test_a_right_command_passes(line: str) -> None:
    check_command(line)


@pytest.mark.parametrize(
    "name",
    [
        "Cannonical",
        "forecast.plans",
        "Canonical(gama=1.0)",
        'OneShot(noise="cauchy")',
        "Canonical.clases",
        "LimitedDomain(pool=2)",
        "select(lowst=True)",
    ],
)
def test_a_mistake_in_a_name_is_found(name: str) -> None:
    with pytest.raises((AttributeError, TypeError, ModuleNotFoundError, dps.InvalidInput)):
        check_name(name)


def test_superiority_at_epsilon_over_gamma_holds_for_the_top_set_only() -> None:
    """Canonical, lemma 5.1 and corollary 5.2, by exact laws: what the page says of them."""
    scores, top = [11, 8, 6, 5, 1], frozenset({0, 1})
    low = dps.Canonical(k=2, epsilon=0.4, gamma=0.75, noise="gumbel", margin=False).law(scores)
    one = dps.Canonical(k=2, epsilon=0.3, gamma=1.0, noise="gumbel", margin=False).law(scores)
    assert low[top] > one[top]
    first, second = frozenset({2, 3}), frozenset({3, 4})
    assert low[first] - low[second] < 0.9 * (one[first] - one[second])


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the first commands of the page have run."""
    folder = tmp_path_factory.mktemp("papers")
    block = re.search(r"```console\n(.*?)```", PAGE, re.DOTALL)
    assert block
    for line in re.findall(r"^\$ (.*)$", block[1], re.MULTILINE):
        finished = run(line, folder)
        assert finished.returncode == 0, finished.stderr
    return folder


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line in a shell that finds dpselect and python beside this interpreter."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        line, shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )


@pytest.mark.long
@pytest.mark.parametrize("line", LINES)
def test_every_command_runs(line: str, place: Path, tmp_path: Path) -> None:
    if "DATA" in line and not DATA.is_dir():
        pytest.skip("the real data are not there; DPSELECT_DATA names their folder")
    line = line.replace("DATA", shlex.quote(str(DATA)))
    if line.startswith("dpselect reproduce"):
        line += f" --quick --out {shlex.quote(str(tmp_path))}"
    if line.startswith("dpselect serve"):
        return interrupted(line.replace("--port 8000", "--port 0"), place)
    finished = run(line, place)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout
    return None


def interrupted(line: str, folder: Path) -> None:
    """Start the service and stop it as a user does once it has shown its address."""
    command = [sys.executable, "-c", "from dpselect.cli import main; main()", *shlex.split(line)[1:]]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert any("the page is at" in line for line in process.stderr)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            assert process.returncode == 130
        finally:
            process.kill()
