"""The notebooks of the manual run, and show what is stored in them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"


def shown(notebook: Any) -> list[list[dict[str, str]]]:
    """Return the outputs of each cell; numbers that are drawn anew, and times, become #."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[_texts(output) for output in cell.outputs] for cell in cells]


def _texts(output: Any) -> dict[str, str]:
    data = {"stream": output.text} if output.output_type == "stream" else output.data
    return {kind: re.sub(r"\d+", "#", text) for kind, text in data.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.name for path in sorted(FOLDER.glob("*.ipynb"))])
def test_a_notebook_shows_what_is_stored_in_it(name: str, tmp_path: Path) -> None:
    """The answers are drawn anew; another order, or a value without three digits, has a probability below 1e-6."""
    nbformat = pytest.importorskip("nbformat")
    stored = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(stored)
    program = (
        "import sys, nbformat, nbclient; book = nbformat.read(sys.argv[1], as_version=4); "
        "nbclient.NotebookClient(book, record_timing=False, timeout=300).execute(); nbformat.write(book, sys.argv[2])"
    )
    command = [sys.executable, "-c", program, str(FOLDER / name), str(tmp_path / name)]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert shown(nbformat.read(tmp_path / name, as_version=4)) == shown(stored)
    assert [cell.execution_count for cell in stored.cells if cell.cell_type == "code"] == list(
        range(1, 1 + len(shown(stored)))
    )
