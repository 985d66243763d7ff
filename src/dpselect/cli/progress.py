"""A bar on standard error for work that takes longer than a second."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_PATIENCE_SECONDS = 1.0


@contextlib.contextmanager
def progress_bar(description: str) -> Iterator[Callable[[float | None], None]]:
    """Yield a function that is told the share done (None: not known); nothing shows unless stderr is a terminal."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    started = time.monotonic()
    task = bar.add_task(description, total=None)
    best = 0.0

    def report(share: float | None) -> None:
        nonlocal best
        if not bar.console.is_terminal or time.monotonic() - started < _PATIENCE_SECONDS:
            return
        bar.start()
        if share is not None and share > best:
            best = share
            bar.update(task, total=1.0, completed=share)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()
