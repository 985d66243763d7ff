"""What whoever runs the service sees: logs of one JSON object per line, counters, and the limit on requests.

Nothing here has a value from the rows. The counters, which need no token, have no names of data sets or analysts, no
budgets and no times.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

MOST_CALLERS = 10_000
"""Callers above which those are forgotten that have asked nothing for a minute."""


class Log:
    """Writes events as lines of JSON."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def __call__(self, event: str, **facts: Any) -> None:
        """Write one event."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, **facts}, ensure_ascii=True)
        # A release must not fail because nobody reads the log.
        with self._lock, suppress(OSError):
            print(line, file=self._stream or sys.stderr, flush=True)


class Metrics:
    """Counts requests by call and status, and shows them in the text format of Prometheus."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._lock = threading.Lock()

    def count(self, method: str, path: str, status: int) -> None:
        """Count a request; `path` is the template of its path, without names."""
        method = method if method in ("GET", "POST") else "other"
        with self._lock:
            self._requests[method, path, status] += 1

    def text(self) -> str:
        """Return all counters."""
        with self._lock:
            found = sorted(self._requests.items())
        lines = [
            "# HELP dpselect_desk_requests_total Requests by method, path and status.",
            "# TYPE dpselect_desk_requests_total counter",
        ]
        lines += [
            f'dpselect_desk_requests_total{{method="{method}",path="{path}",status="{status}"}} {number}'
            for (method, path, status), number in found
        ]
        return "\n".join(lines) + "\n"


class RateLimit:
    """Allows each caller a number of requests per minute, saved up to one minute's worth."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def wait(self, caller: str) -> float:
        """Return 0 and count a request, or return the seconds after which the caller may ask again."""
        if not self._per_minute:
            return 0.0
        now, rate = time.monotonic(), self._per_minute / 60
        with self._lock:
            if len(self._left) > MOST_CALLERS:
                self._left = {each: state for each, state in self._left.items() if now - state[1] < 60}
            left, at = self._left.get(caller, (float(self._per_minute), now))
            left = min(float(self._per_minute), left + (now - at) * rate)
            if left < 1:
                self._left[caller] = (left, now)
                return (1 - left) / rate
            self._left[caller] = (left - 1, now)
        return 0.0
