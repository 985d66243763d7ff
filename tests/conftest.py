"""Settings shared by all tests."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import servers

# Tests do not depend on the speed of the machine, and a failure is reproducible.
settings.register_profile("dpselect", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dpselect")


def pytest_configure() -> None:
    """Handle SIGINT even if a shell started the run in the background, where it is ignored; some tests send it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give temporary files a folder that is removed at the end: processes that tests kill leave theirs behind."""
    tmp_path_factory.getbasetemp()  # this one stays where it is, for a look at it
    folder = tempfile.mkdtemp(prefix="dpselect-tests-")
    os.chmod(folder, 0o711)  # some tests are about other users
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    # After multiprocessing has removed its own folder, which has the priority -100.
    Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=-200)


@pytest.fixture(scope="session")
def postgresql_server(_temporary_folder: None) -> Iterator[str]:
    """Yield the URL of a real PostgreSQL server, one per test process."""
    if sys.version_info >= (3, 13):
        pytest.importorskip("pgserver", reason="pgserver has no wheels for this version of Python")
    with servers.postgresql() as url:
        yield url


@pytest.fixture(scope="session")
def spark_session(_temporary_folder: None) -> Iterator[Any]:
    """Yield a real Spark session, one per test process."""
    before = set(Path().iterdir())
    with servers.spark() as session:
        yield session
    assert not [path.name for path in set(Path().iterdir()) - before if "warehouse" in path.name]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of servers as slow, and run all tests of Spark in one process."""
    for item in items:
        # A test with a URL in its name is about a refusal and starts nothing.
        starts_spark = re.search(r"(?<!py)spark(?!(\+local)?://)", item.name) or "spark_session" in _fixtures(item)
        if starts_spark or "postgresql" in item.name:
            item.add_marker(pytest.mark.slow)
        if starts_spark:
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def _fixtures(item: pytest.Item) -> tuple[str, ...]:
    return tuple(getattr(item, "fixturenames", ()))


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Collect the sockets that PySpark leaves open while the test that opened them is still running."""
    if item.get_closest_marker("xdist_group") is not None:
        gc.collect()
