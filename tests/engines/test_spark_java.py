"""Where the machine has no Java, Spark runs on the one that a package brings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from engine_cases import BUYERS, GOODS

import dpselect as dps
import servers
from dpselect.sources.spark import java_runtime

PROGRAM = """
import json, sys
import dpselect
file, goods = sys.argv[1:]
release = dpselect.top(
    "spark+local://2", table_name=file, item="item", person="person", k=2, epsilon=1.0, domain=json.loads(goods), seed=3
)
print(json.dumps(release.items))
"""


def without_java(folder: Path) -> str:
    """Return a search path with every program of the machine but java."""
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            link = folder / program.name
            if program.name != "java" and not link.exists() and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_spark_starts_on_a_machine_without_java(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(BUYERS, tmp_path / "orders.parquet")
    (tmp_path / "bin").mkdir()
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    environment["PATH"] = without_java(tmp_path / "bin")
    environment["JDK_JAVA_OPTIONS"] = servers.BRIEF_JAVA
    line = [sys.executable, "-c", PROGRAM, str(tmp_path / "orders.parquet"), json.dumps(GOODS)]
    (tmp_path / "here").mkdir()
    finished = subprocess.run(
        line, env=environment, cwd=tmp_path / "here", capture_output=True, text=True, check=False, timeout=300
    )
    assert finished.returncode == 0, finished.stderr
    assert os.listdir(tmp_path / "here") == []
    arguments = {"item": "item", "person": "person", "k": 2, "epsilon": 1.0, "domain": GOODS, "seed": 3}
    assert json.loads(finished.stdout) == dps.top(BUYERS, **arguments).items


def test_a_java_that_is_there_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/some java")
    with java_runtime():
        assert os.environ["JAVA_HOME"] == "/opt/some java"
    assert os.environ["JAVA_HOME"] == "/opt/some java"


def test_another_java_is_set_for_the_time_of_the_start_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    with java_runtime():
        home = os.environ["JAVA_HOME"]
        line = [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
        finished = subprocess.run(line, capture_output=True, text=True, check=True)
        assert 'version "21' in finished.stderr
    assert "JAVA_HOME" not in os.environ
    assert not Path(home).exists()
