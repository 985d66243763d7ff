"""The wheel and the sdist, built and installed as users do: in clean environments, on each Python that is here.

They download packages and take minutes, so `make test-long` runs them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import dpselect

ROOT = Path(__file__).parent.parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
EXTRAS = "pandas,polars,plot,postgresql,serve,spark"

DEPENDING = ["tests/sources", "tests/cli", "tests/ledger", "tests/service", "tests/desk", "tests/engines"]
"""Tests of whatever touches a dependency."""

WITHOUT_EXTRAS = """
import dpselect as dps
print(dps.__version__)
assert dps.select({"tea": 900, "milk": 3}, k=1, epsilon=1.0).items == ["tea"]
for call, extra in (
    (lambda: dps.top("postgresql://127.0.0.1:1/shop", table_name="orders", item="a", person="b", k=1, epsilon=1.0,
                     domain=["x"]), "postgresql"),
    (lambda: __import__("dpselect.desk").desk.SharedDesk, "serve"),
):
    try:
        call()
    except dps.DpSelectError as error:
        assert f"dpselect[{extra}]" in str(error), error
    else:
        raise AssertionError(extra)
"""
WITH_EXTRAS = """
import pandas, polars, dpselect as dps
from dpselect.desk import create_app
rows = {"film": ["Heat"] * 99, "viewer": list(range(99))}
for table in (pandas.DataFrame(rows), polars.DataFrame(rows)):
    release = dps.top(table, item="film", person="viewer", k=1, epsilon=1.0, domain=["Heat", "Up"])
    assert release.items == ["Heat"]
"""

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("distribution")]


def run(*command: str | Path, **options: object) -> str:
    """Run a command in a clean environment; return what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    finished = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        env=clean,
        timeout=1800,
        **options,  # type: ignore[call-overload]
    )
    assert finished.returncode == 0, f"{command}\n{finished.stdout[-4000:]}{finished.stderr[-4000:]}"
    return str(finished.stdout)


def uv(*arguments: str | Path) -> str:
    return run(sys.executable, "-m", "uv", *arguments)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--out-dir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


def environment(folder: Path, python: str, *installed: str) -> Path:
    """Make an environment with what is named; return its folder of programs. Skip a Python that is not here."""
    found = shutil.which(f"python{python}")
    if found is None or subprocess.run([found, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"no Python {python} on this machine")
    uv("venv", "--quiet", "--python", found, folder)
    uv("pip", "install", "--quiet", "--python", folder / "bin" / "python", *installed)
    uv("pip", "check", "--python", folder / "bin" / "python")
    return folder / "bin"


def test_both_have_what_users_need_and_the_version_of_the_package(built: Path, wheel: Path) -> None:
    assert wheel.name == f"dpselect-{dpselect.__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    shipped = {str(path.relative_to(source)) for path in (source / "dpselect").rglob("*") if path.is_file()}
    assert {name for name in shipped if "__pycache__" not in name} <= names
    assert {"dpselect/py.typed", "dpselect/mechanisms/canonical.md", "dpselect/desk/static/index.html"} <= names
    assert {name.partition("/")[0] for name in names} == {"dpselect", f"dpselect-{dpselect.__version__}.dist-info"}
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", "README.md", "LICENSE", "pyproject.toml", "docs/index.md", "tests/conftest.py"} <= files
    assert not {name for name in files if name.startswith((".venv", "build", "demo/"))}


@pytest.mark.parametrize("python", PYTHONS)
def test_the_wheel_alone_answers_and_names_the_extra_that_is_missing(wheel: Path, python: str, tmp_path: Path) -> None:
    programs = environment(tmp_path / "env", python, str(wheel))
    printed = run(programs / "python", "-W", "error", "-c", WITHOUT_EXTRAS, cwd=tmp_path)
    assert printed.strip() == dpselect.__version__
    assert "private answer" in run(programs / "dpselect", "demo", cwd=tmp_path)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_wheel_with_all_extras(wheel: Path, python: str, tmp_path: Path) -> None:
    programs = environment(tmp_path / "env", python, f"{wheel}[{EXTRAS}]")
    run(programs / "python", "-c", WITH_EXTRAS, cwd=tmp_path)


@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_the_oldest_and_the_newest_dependencies_that_are_supported(
    built: Path, wheel: Path, resolution: str, tmp_path: Path
) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(tmp_path.glob("dpselect-*"))
    # The oldest are those of what is named here: for a wheel that would be the wheel alone.
    named = ["-r", str(source / "pyproject.toml"), *(f"--extra={extra}" for extra in EXTRAS.split(","))]
    programs = environment(tmp_path / "env", "3.11", *named, "--resolution", resolution)
    uv("pip", "install", "--quiet", "--python", programs / "python", f"{wheel}[test]")
    oldest = re.search(r'"numpy>=([\d.]+)"', (source / "pyproject.toml").read_text())
    assert oldest is not None
    has_oldest = f"numpy=={oldest[1]}." in uv("pip", "freeze", "--python", programs / "python")
    assert has_oldest == (resolution == "lowest-direct")
    run(programs / "python", "-m", "pytest", "-q", "-m", "not long and not slow", *DEPENDING, cwd=source)
