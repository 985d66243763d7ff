"""Which files a command reads, so that nothing it writes takes their place."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from dpselect import InvalidInput
from dpselect.cli.output import check_output
from dpselect.sources import files_of, has_unknown_files, would_read
from dpselect.writing import is_same_file, is_stream

_BESIDE_LEDGER = ("", "-wal", "-shm", "-journal")


def check_answer(
    output: Path | None,
    source: str,
    *,
    table: str | None = None,
    domain: Any = None,
    groups: Any = None,
    ledger: str | None = None,
) -> None:
    """Refuse an --output that cannot be written, or that would overwrite a file that is or may be read."""
    if output is None:
        return
    read = files_read(source, table=table, domain=domain, groups=groups, ledger=ledger)
    check_output("output", output, read)
    if any(is_same_file(output.resolve().parent, place) for place in read):
        raise InvalidInput("output", str(output), "Spark reads whatever is in its folder; name a file elsewhere")
    if would_read(source, output):
        raise InvalidInput("output", str(output), "it would be read with the rows the next time; name a file elsewhere")
    named = [table, *(listed.removeprefix("table:") for listed in (domain, groups) if isinstance(listed, str))]
    if output.exists() and not is_stream(output) and any(has_unknown_files(source, name) for name in named):
        raise InvalidInput(
            "output",
            str(output),
            "it exists and may be one of the files that are read, which cannot be listed for a view or a pattern with "
            "{, [ or \\; name a new file",
        )


def files_read(
    source: str, *, table: str | None = None, domain: Any = None, groups: Any = None, ledger: str | None = None
) -> list[Path]:
    """Return the files of the rows, of the lists of items and groups and of the ledger, if they are on this machine."""
    files = files_of(source, table)
    for listed in (domain, groups):
        in_engine = isinstance(listed, str) and listed.startswith("table:")
        files += files_of(source, listed.removeprefix("table:")) if in_engine else files_of(listed)
    return [*files, *_ledger_files(ledger)]


def _ledger_files(place: str | None) -> list[Path]:
    """Return the file of a SQLite ledger with its logs, which lie beside the file that a symbolic link leads to."""
    from dpselect.ledger import ledger_file

    with contextlib.suppress(InvalidInput):  # whoever opens it says what is wrong with it
        file = ledger_file(place) if place is not None else None
        if file is not None:
            return [Path(f"{os.path.realpath(file)}{ending}") for ending in _BESIDE_LEDGER]
    return []
