"""The data sets of the papers' experiments, read from a folder that the caller names."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect.errors import InvalidInput, SourceError


class Data:
    """A folder of data sets: NAME.csv.gz or NAME/counts.csv.gz (item,count) or NAME/pairs.csv.gz (user,item)."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InvalidInput("data", str(folder), "must be an existing folder with the data sets")
        self.folder = folder
        self._counts: dict[str, Array] = {}
        self._codes: dict[str, tuple[Array, Array]] = {}

    def file_of(self, name: str) -> Path:
        """Return the file of a data set."""
        places = [f"{name}.csv.gz", f"{name}/counts.csv.gz", f"{name}/pairs.csv.gz"]
        for place in places:
            if (self.folder / place).is_file():
                return self.folder / place
        raise InvalidInput("data", str(self.folder), f"must contain the data set {name}, as {' or '.join(places)}")

    def digest(self, name: str) -> str:
        """Return a hash of the data set, to detect changes."""
        return hashlib.sha256(self.file_of(name).read_bytes()).hexdigest()

    def counts(self, name: str, more_than: int = 0) -> Array:
        """Return the number of people per item, highest first; a data set with at most `more_than` items is refused."""
        if name not in self._counts:
            path = self.file_of(name)
            table = self._read(path)
            if path.name == "pairs.csv.gz":
                column = table.group_by("item").aggregate([("item", "count")]).column("item_count")
            else:
                column = table.column("count")
            self._counts[name] = np.sort(np.asarray(column, dtype=np.int64))[::-1]
        return self._long_enough(name, self._counts[name], more_than)

    def people(self, name: str) -> int:
        """Return the number of people in a data set of pairs."""
        return int(self._pairs(name)[0].max(initial=-1)) + 1

    def bounded_counts(self, name: str, most: int, more_than: int = 0) -> Array:
        """Return the counts, highest first, after keeping at most `most` random items per person (fixed seed)."""
        _, items = self.bounded_pairs(name, most)
        counts = np.bincount(items)
        return self._long_enough(name, np.sort(counts[counts > 0])[::-1], more_than)

    def bounded_pairs(self, name: str, most: int) -> tuple[Array, Array]:
        """Return the person and the item of each pair after keeping at most `most` random items per person."""
        people, items = self._pairs(name)
        mixed = np.random.default_rng(0).permutation(len(people))
        order = mixed[np.argsort(people[mixed], kind="stable")]
        grouped = people[order]
        starts = np.flatnonzero(np.append(True, grouped[1:] != grouped[:-1]))
        place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        return grouped[place < most], items[order[place < most]]

    def _long_enough(self, name: str, counts: Array, more_than: int) -> Array:
        if len(counts) <= more_than:
            raise InvalidInput(
                "data",
                str(self.folder),
                f"must contain more than {more_than} items in the data set {name}, which has {len(counts)}",
            )
        return counts

    def _pairs(self, name: str) -> tuple[Array, Array]:
        """Return the person and the item of each pair, both numbered from 0."""
        if name not in self._codes:
            path = self.folder / name / "pairs.csv.gz"
            if not path.is_file():
                raise InvalidInput("data", str(self.folder), f"must contain {name}/pairs.csv.gz")
            table = self._read(path).combine_chunks()
            user, item = (table.column(part).combine_chunks().dictionary_encode() for part in ("user", "item"))
            self._codes[name] = np.asarray(user.indices), np.asarray(item.indices)
        return self._codes[name]

    def _read(self, path: Path) -> Any:
        import pyarrow
        from pyarrow import csv

        columns = ["user", "item"] if path.name == "pairs.csv.gz" else ["count"]
        kinds = {"user": pyarrow.string(), "item": pyarrow.string(), "count": pyarrow.int64()}
        wanted = csv.ConvertOptions(include_columns=columns, column_types=kinds)
        try:
            return csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=wanted)
        except (pyarrow.ArrowException, OSError):
            needed = "user,item" if len(columns) == 2 else "item,count"
            raise SourceError(
                f"{path} cannot be read; it must be a gzipped CSV file with the columns {needed}"
            ) from None


def zipf(size: int, exponent: float, total: float = 1.5e8) -> Array:
    """Return scores by Zipf's law: `total · i**−s / Σ_j j**−s` (canonical, section 7.2)."""
    shares = np.arange(1, size + 1) ** -exponent
    return np.asarray(total * shares / shares.sum())


def look_alike(size: int, highest: float, bend: float, steepness: float, droop: float = 0.0) -> Array:
    """Counts with a long tail, `round(highest · (1 + i/bend)**−steepness · (1 − i/(size + 1))**droop · e^(0.05 z_i))`.

    Each is at least 1; highest first. i is the rank and z_i standard normal noise from a fixed seed, which makes the
    gaps between ranks uneven, as in real data; droop lowers the last ranks.
    """
    ranks = np.arange(1, size + 1)
    noise = np.random.default_rng(0).standard_normal(size)
    smooth = highest * (1 + ranks / bend) ** -steepness * (1 - ranks / (size + 1)) ** droop
    return np.sort(np.maximum(np.round(smooth * np.exp(0.05 * noise)), 1).astype(np.int64))[::-1]


def as_histogram(counts: Array) -> dps.Scores:
    """Return counts as a histogram of scores, so that the cost of a draw depends on the number of distinct values."""
    values, sizes = np.unique(counts, return_counts=True)
    return dps.Scores.from_histogram(list(zip(values.tolist(), sizes.tolist(), strict=True)))
