"""No connection to a file is open while the process forks.

SQLite remembers, per process, which locks it holds on a file and which index of the log is in use. A child inherits the
memory but not the locks. What it opens then, even anew, relies on locks that nobody holds, and on an index that the
parent may have removed: child and others would spend without seeing each other. So a fork waits for transactions that
are under way, and closes what is open; parent and child open the file again when they need it.
"""

from __future__ import annotations

import os
import threading
import weakref

import sqlalchemy as sql

in_use = threading.RLock()
"""Held whenever a connection to a file is opened or used."""

_engines: weakref.WeakSet[sql.Engine] = weakref.WeakSet()


def watch(engine: sql.Engine) -> None:
    """Close the connections of an engine before each fork."""
    _engines.add(engine)


def _before() -> None:
    in_use.acquire()
    for engine in list(_engines):
        engine.dispose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=in_use.release, after_in_child=in_use.release)
