"""Processes that compute curves for look-alikes, so that a long computation neither delays a release nor outlives
whoever asked for it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from dpselect.desk.room import FairRoom
from dpselect.errors import InvalidInput, plain

MOST_WORKERS = 2
"""Curves that are computed at the same time; others wait."""

MOST_TRIES = 4
"""Curves that one analyst may have under way, waiting ones included."""

LONGEST = 120.0
"""Seconds after which a computation is ended."""


class Workers:
    """Runs `worker` in processes of their own; a cancelled task ends its process."""

    def __init__(self) -> None:
        self._room = FairRoom(MOST_WORKERS, MOST_TRIES)

    async def run(self, task: dict[str, Any], analyst: str) -> dict[str, Any]:
        """Return the curve of a task."""
        async with self._room.place(analyst):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "dpselect.desk.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                async with asyncio.timeout(LONGEST):
                    written, _ = await process.communicate(json.dumps(task).encode())
            except TimeoutError:
                raise _refused(f"it took more than {LONGEST:g} s; use fewer items or a smaller k") from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode != 0:
            raise _refused("nothing can be computed for them; use others, fewer of them, or a smaller k")
        found: dict[str, Any] = json.loads(written)
        return found


def _refused(why: str) -> InvalidInput:
    return InvalidInput("like", plain("these counts"), why)
