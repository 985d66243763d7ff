"""The demo's invented viewers and films: always the same, made without looking at any real data."""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from dpselect._arrays import IntArray
from dpselect.writing import write_whole

FILMS = 2_000
VIEWERS = 50_000
_DATA_SEED = 20_240_229


_MARK = {"made by": "dpselect demo"}
"""Metadata by which the demo knows its own Parquet file."""


def _is_marked(path: Path) -> bool:
    import pyarrow
    import pyarrow.parquet

    try:
        found = pyarrow.parquet.read_schema(path).metadata or {}
    except (OSError, pyarrow.ArrowException):
        return False
    return all(found.get(key.encode()) == value.encode() for key, value in _MARK.items())


def _words(text: str) -> list[str]:
    return text.split()


_QUALITIES = _words(
    "Silent Golden Broken Distant Hidden Electric Paper Crimson Restless Borrowed Frozen Patient Hollow Midnight "
    "Wandering Velvet Forgotten Burning Gentle Seventh"
)
_THINGS = _words(
    "Harbour Orchard Lantern Compass Winter Mirror Garden River Staircase Violin Satellite Island Letter Carnival "
    "Lighthouse Shadow Kingdom Machine Promise Horizon Sparrow Archive Desert Engine Tide"
)
_PLACES = _words("Almarin Port-Vesper Kestrel-Bay Ostrova Tallow-Street Mirabel Saint-Orrin Dunmere Calyx Halden")
_PATTERNS = (
    ("The {} {}", _QUALITIES, _THINGS),
    ("{} {}", _QUALITIES, [thing + "s" for thing in _THINGS]),
    ("The {} of {}", _THINGS, _PLACES),
    ("A {} in {}", [thing for thing in _THINGS if thing[0] not in "AEIO"], _PLACES),
    ("{} and the {}", _PLACES, _THINGS),
    ("Return to {}: {}", _PLACES, _THINGS),
    ("My {} {}", _QUALITIES, _THINGS),
)


@dataclass(frozen=True)
class DemoData:
    """Who viewed which film: one row a viewing, so that a viewer and a film can meet more than once."""

    titles: list[str]
    viewers: IntArray
    films: IntArray

    @classmethod
    def generate(cls, rows: int) -> DemoData:
        """Draw `rows` viewings: popularity of the r-th film ∝ 1/(r + 5)^0.9, some viewers far busier than others."""
        random = np.random.default_rng(_DATA_SEED)
        every = [pattern.format(*words) for pattern, *lists in _PATTERNS for words in product(*lists)]
        titles = [str(title).replace("-", " ") for title in random.permutation(every)[:FILMS]]
        popularity = (np.arange(1, FILMS + 1) + 5.0) ** -0.9
        busyness = random.exponential(size=VIEWERS) + 0.05
        films = random.choice(FILMS, size=rows, p=popularity / popularity.sum())
        viewers = random.choice(VIEWERS, size=rows, p=busyness / busyness.sum())
        return cls(titles, viewers, films)

    def strangers(self, folder: Path) -> list[str]:
        """Return which of the demo's file names are taken in a folder by files that the demo did not make."""
        made = {"views.parquet": _is_marked, "films.csv": self._lists_films}
        return [name for name, is_ours in made.items() if (folder / name).exists() and not is_ours(folder / name)]

    def _lists_films(self, path: Path) -> bool:
        lines = "".join(f'"{line}"\n' for line in ["film", *sorted(self.titles)])
        return path.is_file() and path.read_bytes() == lines.encode()

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write views.parquet (private) and films.csv (public), and return their paths."""
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet

        views, films = folder / "views.parquet", folder / "films.csv"
        seen = pyarrow.DictionaryArray.from_arrays(self.films.astype("int32"), self.titles).cast(pyarrow.string())
        rows = pyarrow.table({"viewer": self.viewers, "film": seen}).replace_schema_metadata(_MARK)
        for path, table, write in (
            (views, rows, pyarrow.parquet.write_table),
            (films, pyarrow.table({"film": sorted(self.titles)}), pyarrow.csv.write_csv),
        ):
            content = io.BytesIO()
            write(table, content)
            write_whole(path, content.getvalue())
        return views, films

    def true_top(self, k: int) -> list[tuple[str, int]]:
        """Return the k films with most viewers and their numbers, each viewer counted once per film."""
        pairs = np.unique(self.films * VIEWERS + self.viewers)
        counts = np.bincount(pairs // VIEWERS, minlength=FILMS)
        best = np.argsort(-counts, kind="stable")[:k]
        return [(self.titles[film], int(counts[film])) for film in best]
