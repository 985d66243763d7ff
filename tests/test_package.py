"""The package as a whole: what it exports, imports and says about itself."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpselect
from dpselect.cli.app import COMMANDS, PAGE_OF, imported
from dpselect.mechanisms import FOR_UNKNOWN_DOMAINS, MECHANISMS

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "src").rglob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_rooms_import_only_what_they_may() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def loaded_by(program: str) -> set[str]:
    """Return the packages that are loaded after a program."""
    program = f"{program}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(finished.stdout.splitlines()[-1].split())


def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    heavy = {"duckdb", "fastapi", "flint", "ibis", "matplotlib", "pandas", "pyarrow", "scipy", "sqlalchemy", "sqlglot"}
    shell = {"rich", "typer"}
    assert not loaded_by("import dpselect") & {*heavy, *shell, "numpy"}
    assert not loaded_by("from dpselect import select, top, rank, Canonical, Guarantee") & {*heavy, *shell}
    listing = "from dpselect.cli import app\ntry: app(['--help'])\nexcept SystemExit: pass"
    assert not loaded_by(listing) & {*heavy, "numpy"}


def test_counting_a_file_loads_the_embedded_engine_and_no_other_heavy_package(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("item,person\na,1\nb,2\n")
    program = (
        f"import dpselect; print(dpselect.top({str(rows)!r}, item='item', person='person', k=1, epsilon=1, domain=3))"
    )
    loaded = loaded_by(program)
    assert "duckdb" in loaded
    assert not loaded & {"fastapi", "matplotlib", "pandas", "polars", "pyspark", "scipy", "sqlalchemy"}


def test_the_list_of_commands_says_what_each_command_says() -> None:
    for name, command in COMMANDS.items():
        assert command.help == (imported(name).help or "").split("\n\n")[0].replace("\n", " "), name


def test_every_public_name_exists_and_says_what_it_is() -> None:
    assert len(dpselect.__all__) == len(set(dpselect.__all__))
    for name in dpselect.__all__:
        assert inspect.getdoc(getattr(dpselect, name)), name


def test_every_module_and_public_function_says_what_it_is() -> None:
    for module in modules():
        assert inspect.getdoc(module), module.__name__
        for name, member in inspect.getmembers(module):
            if inspect.isroutine(member) and member.__module__ == module.__name__ and not name.startswith("_"):
                assert inspect.getdoc(member), f"{module.__name__}.{name}"


def modules() -> list[object]:
    found = pkgutil.walk_packages(dpselect.__path__, "dpselect.")
    return [dpselect, *(importlib.import_module(module.name) for module in found)]


@pytest.mark.slow
def test_examples_in_docstrings_are_true() -> None:
    results = [doctest.testmod(module) for module in modules()]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) > 0


@pytest.mark.parametrize("name", ["", ".forecast", ".ledger", ".multiselect", ".privacy", ".ranking", ".verify"])
def test_every_public_name_has_the_sections_that_the_reference_shows(name: str) -> None:
    module = importlib.import_module(f"dpselect{name}")
    for public in module.__all__:
        thing = getattr(module, public)
        text = inspect.getdoc(thing) or ""
        if inspect.isclass(thing):
            assert re.search(r"^(Parameters|Attributes|Examples)\n---", text, re.MULTILINE), public
        elif inspect.isfunction(thing):
            assert not inspect.signature(thing).parameters or "\nParameters\n---" in text, public
            assert re.search(r"^(Returns|Yields|Raises)\n---", text, re.MULTILINE), public


def test_the_version_stands_in_one_place_and_in_the_changelog() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/dpselect/__init__.py"
    released = re.findall(r"^## \[(\d\S*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert dpselect.__version__ == released[0]


def test_every_mechanism_has_its_proof_beside_it() -> None:
    for name, kind in {**MECHANISMS, **FOR_UNKNOWN_DOMAINS}.items():
        source = Path(inspect.getfile(kind))
        assert source.stem == name.replace("-", "_")
        proof = source.with_suffix(".md").read_text()
        for part in ("Precondition", "Postcondition", "Proof"):
            assert part in proof, f"{name}.md has no {part}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}, link


def test_errors_name_pages_that_exist() -> None:
    for argument, link in PAGE_OF.items():
        path, _, anchor = link.partition("#")
        headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, (argument, link)


def test_the_tree_holds_no_note_to_self_and_no_path_of_one_machine() -> None:
    forbidden = re.compile(
        r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|(?<![\w.:/-])/(home|root|Users|work|tmp)/\w",
    )
    folders = ["src", "tests", "benchmarks", "docs", ".ci"]
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.suffix in (".md", ".toml") or path.name == "Makefile"]
    for path in files:
        if path.suffix in (".py", ".md", ".toml", ".svg", "") and "__pycache__" not in path.parts:
            found = forbidden.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path.relative_to(ROOT)}: {found}"
