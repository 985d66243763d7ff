"""The `dpselect` command: one module per family of sub-commands.

Results go to standard output, everything else to standard error. To add a sub-command, write its function in a module
of this package and register it in `app.py`.
"""

from __future__ import annotations

from dpselect.cli.app import app, main

__all__ = ["app", "main"]
