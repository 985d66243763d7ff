"""Small data sets in the form of the papers', for all tests of reproduce."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_sets import write_sets


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every data set."""
    return write_sets(tmp_path_factory.mktemp("sets"))
