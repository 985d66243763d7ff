"""Counts of files that are kept in memory between questions, for a service that answers many of them.

What is kept is private, and nothing but a mechanism may use it. Only files are kept, because only files show cheaply
that they have not changed; databases are asked each time.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.errors import SourceError
from dpselect.sources.conditions import Condition
from dpselect.sources.contributions import in_numbers
from dpselect.sources.counts import CHANGED, Counts, Histogram, check_k, open_counts, shown_item
from dpselect.sources.domain import Domain
from dpselect.sources.engine import Progress
from dpselect.sources.groups import Groups
from dpselect.sources.identity import files_of
from dpselect.sources.rows import is_url

MOST_ITEMS = 200_000
"""Items, in all groups together, above which counts are not kept: to read them all would delay the first answer."""

MOST_BYTES = 128 << 20
"""Memory of all counts that are kept together."""

BYTES_OF_GROUP = 600
"""Memory of the objects that hold the scores of a group: three arrays, a tuple and a label."""

BYTES_OF_LEVEL = 24
"""Memory of a distinct score, with the number and the place of its items: three numbers in arrays."""

BYTES_OF_QUESTION = 10_000
"""Memory of the objects that hold the counts of a question."""

SETTLED_SECONDS = 2
"""Age of a file's last change from which a further change is certain to show: file systems count time in steps."""

Fingerprint = tuple[tuple[str | int, ...], ...]
"""What files looked like: for each its path, device, inode, size, and times of the last change."""


class HeldCounts:
    """The counts of a listed domain, read once and as a whole; otherwise like `Counts`, with the same answers.

    No row is read before the first call of a method, except for the digests, which are of public lists.
    """

    def __init__(self, counts: Counts, domain: Domain) -> None:
        self.groups = counts.groups
        self.sizes = counts.sizes
        self._unit = counts.unit
        self._domain = domain
        self._counts: Counts | None = counts

    def domain_digest(self) -> str:
        """Return what `Counts.domain_digest` returns."""
        return self._digests[0]

    def groups_digest(self) -> str | None:
        """Return what `Counts.groups_digest` returns."""
        return self._digests[1]

    def histograms(self) -> list[Histogram]:
        """Return the histogram of each group."""
        return [(in_numbers(units.tolist(), self._unit), items.tolist()) for units, items, _ in self._levels]

    def chosen(self, asked: Sequence[tuple[Sequence[Any], Sequence[int]]]) -> list[list[Any]]:
        """Return the items at the scores and indexes asked for in each group."""
        items = []
        for (scores, indexes), (units, _, starts) in zip(asked, self._levels, strict=True):
            wanted = np.array([int(Fraction(score) / self._unit) for score in scores], np.int64)
            places = starts[np.searchsorted(-units, -wanted)] + np.asarray(indexes, np.int64)
            found = self._ranked.select(["item", "text"]).take(places).to_pylist()
            items.append([shown_item(row, self._domain, False) for row in found])
        return items

    @property
    def was_read(self) -> bool:
        """Whether rows were read."""
        return "_ranked" in self.__dict__

    @cached_property
    def size_in_memory(self) -> int:
        """At most how many bytes the items and scores take, with the objects that hold them.

        It is counted as if all scores differed: which counts are forgotten first, which shows in the time of an answer,
        must not depend on the rows.
        """
        content = int(self._ranked.nbytes) + BYTES_OF_LEVEL * len(self._ranked)
        return content + BYTES_OF_GROUP * len(self.sizes) + BYTES_OF_QUESTION

    def let_go(self) -> None:
        """Keep what was read, without the engine that read it."""
        _ = self._digests, self._levels
        self._counts = None

    @cached_property
    def _digests(self) -> tuple[str, str | None]:
        return self._of_engine.domain_digest(), self._of_engine.groups_digest()

    @cached_property
    def _ranked(self) -> Any:
        """All items as an Arrow table, group by group, highest score first."""
        ranked = self._of_engine.ranked()
        if len(ranked) != sum(map(_stated, self.sizes)):
            raise SourceError(CHANGED)
        return ranked

    @cached_property
    def _levels(self) -> list[tuple[Array, Array, Array]]:
        """For each group: its distinct scores in units, highest first; how many items have each; where they start."""
        scores, start, levels = self._ranked.column("score").to_numpy(), 0, []
        for size in map(_stated, self.sizes):
            units, items = (part[::-1].copy() for part in np.unique(scores[start : start + size], return_counts=True))
            levels.append((units, items, start + np.cumsum(items) - items))
            start += size
        return levels

    @property
    def _of_engine(self) -> Counts:
        assert self._counts is not None
        return self._counts


class KeptCounts:
    """Opens counts like `open_counts`, and keeps those of files until a file changes or others need the memory.

    Counts are found again by everything that they are computed from: the columns, the condition, the period, the
    bounds, the lists, and the fingerprints of all files. A file that changed while it was read, or so recently that
    its times may not show a further change, is not kept; nor are unknown domains, lists in memory, databases, and
    conditions that may hold for other rows later, such as one with current_date.

    With `max_items_per_person` or `max_groups_per_person`, the random choice is kept with the counts: all releases
    from them share the choice. That is as private as a new choice for each. The key of the choice is drawn
    independently of the rows, and given the key, what is kept of a person depends on that person's own rows alone. So
    one person changes the counts within the same bounds, each release has its guarantee given the key, and the
    guarantees add up given the key, as the ledger adds them. The law of one release does not change either.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[Any, ...], tuple[Fingerprint, HeldCounts]] = OrderedDict()
        self._lock = Lock()

    @contextlib.contextmanager
    def open_counts(
        self,
        table: Any,
        *,
        domain: Domain,
        k: int,
        groups: Groups | None = None,
        key: str = "",
        progress: Progress | None = None,
        **asked: Any,
    ) -> Iterator[Counts | HeldCounts]:
        """Yield what `open_counts` yields, from memory if it is kept; the arguments are the same."""
        shape = (table, domain, groups, *sorted(asked.items()))
        lists = [each.path for each in (domain, None if groups is None else groups.listed) if each is not None]
        before = _fingerprint(table, lists) if _is_timeless(asked.get("where")) else None
        found = None if before is None else self._found(shape, before)
        if found is not None:
            check_k(k, found.sizes, found.groups)
            yield found
            return
        opened = time.time_ns()
        with open_counts(table, domain=domain, k=k, groups=groups, key=key, progress=progress, **asked) as counts:
            if before is None or sum(map(_stated, counts.sizes)) > MOST_ITEMS:
                yield counts
                return
            held = HeldCounts(counts, domain)
            yield held
            if held.was_read:
                held.let_go()
                if _is_settled(before, opened) and _fingerprint(table, lists) == before:
                    self._keep(shape, before, held)

    def _found(self, shape: tuple[Any, ...], fingerprint: Fingerprint) -> HeldCounts | None:
        with self._lock:
            kept, held = self._held.get(shape, (None, None))
            if held is None or kept != fingerprint:
                self._held.pop(shape, None)
                return None
            self._held.move_to_end(shape)
            return held

    def _keep(self, shape: tuple[Any, ...], fingerprint: Fingerprint, held: HeldCounts) -> None:
        with self._lock:
            self._held[shape] = fingerprint, held
            self._held.move_to_end(shape)
            total = sum(each.size_in_memory for _, each in self._held.values())
            while total > MOST_BYTES:
                _, (_, oldest) = self._held.popitem(last=False)
                total -= oldest.size_in_memory


def _stated(size: int | None) -> int:
    """Return the number of items of a group, which is listed."""
    assert size is not None
    return size


def _is_timeless(where: str | None) -> bool:
    """Whether a condition on the rows of a file, if there is one, holds for the same rows at any time."""
    return where is None or Condition.of(where, "duckdb").is_timeless


def _fingerprint(table: Any, lists: Sequence[Path | None]) -> Fingerprint | None:
    """Return what the files of rows and lists look like; None if one of them is something else than files."""
    if not isinstance(table, str | os.PathLike) or is_url(table) or None in lists:
        return None
    found: list[tuple[str | int, ...]] = []
    for given in (table, *lists):
        files = files_of(given)
        if not files:
            return None
        for file in files:
            try:
                status = file.stat()
            except OSError:
                return None
            times = status.st_mtime_ns, status.st_ctime_ns
            found.append((str(file), status.st_dev, status.st_ino, status.st_size, *times))
    return tuple(found)


def _is_settled(fingerprint: Fingerprint, opened: int) -> bool:
    """Whether no file had changed lately when it was opened. Whoever sets a file's times changes its ctime."""
    return all(int(ctime) < opened - SETTLED_SECONDS * 10**9 for *_, ctime in fingerprint)
