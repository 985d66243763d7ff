"""Type information for users: a program is checked by mypy and pyright against the package as it is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import dpselect

ROOT = Path(__file__).parent.parent

PROGRAM = """
from typing import Any, assert_type

import dpselect as dps
from dpselect.ledger import Ledger, Statement

rows = "views.csv"
release = dps.top(rows, item="film", person="viewer", k=1, epsilon=1.0, domain=["Heat", "Up"], seed=1)
assert_type(release, dps.Release)
assert_type(release.items, list[Any])
assert_type(release.guarantee, dps.Guarantee)
assert_type(release.guarantee.epsilon, float)
assert_type(release.mechanism, dps.Mechanism)
assert_type(release.to_dict(), dict[str, Any])
print(release, release.to_frame())
for part in (release.groups or {}).values():
    assert_type(part, dps.Release)
chosen = dps.select({"tea": 2, "milk": 1}, k=1, epsilon=0.5, mechanism=dps.Canonical(k=1, epsilon=0.5))
ranked = dps.rank([("a", "b")], k=1, epsilon=1.0, comparisons_per_pair=1, max_degree=1, domain=["a", "b"])
assert_type([chosen, ranked], list[dps.Release])
found = dps.discover(rows, item="film", person="viewer", epsilon=1.0, delta=1e-6, max_items_per_person=1)
assert_type(found, dps.DomainRelease)
try:
    with Ledger("budget.sqlite") as ledger:
        ledger.create("films", epsilon=1.0, every="week")
        assert_type(ledger.statement("films"), Statement)
        assert_type(dps.privacy.compose([release.guarantee, chosen.guarantee]), dps.Guarantee)
except dps.BudgetExceeded as refusal:
    assert_type(refusal.difference, float)
assert_type(dps.forecast.plan(1, epsilon=1.0, items=9), dps.forecast.Plan | dps.forecast.Leads)
assert_type(dps.ranking.DEFAULT_DAMPING, float)
"""
WRONG = """
import dpselect as dps
dps.selct({}, k=1, epsilon=1.0)
dps.privacy.Leger("x")
dps.select({}, k="1", epsilon=1.0)
dps.select({}, k=1, epsilom=1.0)
dps.Canonical(k=1, epsilon=1.0).epsilon = 2.0
"""
"""A mistake in every line from the third one on."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has this package installed from its wheel, and the other packages of this one."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "python", with_pip=False)
    place = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "python")}))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(place)]
    subprocess.run([*pip, *options, str(ROOT)], check=True, capture_output=True, text=True)
    assert (place / "dpselect" / "py.typed").exists()
    (place / "others.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "python" / "bin" / "python"


def run(command: list[str], folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    command = [sys.executable, "-m", *command]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout


def lines_with_errors(command: list[str], folder: Path) -> set[tuple[str, int]]:
    """Return file and line of each error that a checker finds in the right program and in the wrong one."""
    (folder / "program.py").write_text(PROGRAM)
    (folder / "wrong.py").write_text(WRONG)
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    said = run([*command, "program.py", "wrong.py"], folder)
    found = re.findall(r"(\w+\.py):(\d+)(?::\d+)?(?: -|:) error", said)
    return {(name, int(line)) for name, line in found}


EXPECTED = {("wrong.py", line) for line in range(3, 8)}


@pytest.mark.slow
def test_mypy_accepts_a_right_program_and_finds_mistakes(python: Path, tmp_path: Path) -> None:
    assert lines_with_errors(["mypy", "--strict", "--python-executable", str(python)], tmp_path) == EXPECTED


@pytest.mark.slow
def test_pyright_accepts_a_right_program_and_finds_mistakes(python: Path, tmp_path: Path) -> None:
    """Pyright needs Node, and a download on its first use."""
    pytest.importorskip("pyright")
    if "pyright" not in run(["pyright", "--version"], tmp_path):
        pytest.skip("pyright does not run here")
    assert lines_with_errors(["pyright", "--pythonpath", str(python)], tmp_path) == EXPECTED


def test_dir_shows_public_names_only() -> None:
    shown = dir(dpselect)
    assert set(dpselect.__all__) < set(shown)
    assert {"rank", "ledger", "privacy", "forecast"} < set(shown)
    assert [name for name in shown if name.startswith("_")] == ["__version__"]
    assert not {"TYPE_CHECKING", "Any", "import_module"} & set(shown)
