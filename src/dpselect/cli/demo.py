"""`dpselect demo`: the whole path on generated data, which are always the same and contain no real person."""

from __future__ import annotations

import contextlib
import io
import shlex
import tempfile
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

import dpselect
from dpselect._arrays import IntArray
from dpselect._release_text import facts
from dpselect.cli.options import Epsilon, ResultFormat, Seed, examples, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, note, note_seed, progress_bar, publish
from dpselect.writing import write_whole

EXAMPLES = examples("dpselect demo --out demo", title="Example, which keeps its files in the folder demo:")

FILMS = 2_000
VIEWERS = 50_000
COUNTRIES = {
    "Brazil": 21,
    "Germany": 17,
    "Japan": 15,
    "Mexico": 14,
    "France": 13,
    "Poland": 9,
    "Kenya": 7,
    "Portugal": 3,
    "Iceland": 1,
}
"""The countries, with the share of viewers who live there in percent."""

FIRST_DAY = date(2026, 10, 5)
"""A Monday, the first day of week 41."""

WEEKS = 6
_DATA_SEED = 20_240_229
_HOME_INTEREST = 4.0
"""How much more a film is watched in the country where it was made."""

_WEEKLY_TREND = 0.3
"""Standard deviation of the logarithm of the factor by which the interest in a film grows or shrinks each week."""

_ABROAD = 0.01
"""Share of viewings away from home."""

_WEEKDAYS = (3.0, 3.0, 3.0, 3.0, 4.0, 6.0, 5.0)
"""Relative numbers of viewings, Monday to Sunday."""

_MARK = {"made by": "dpselect demo"}
"""Metadata by which the demo recognises its own Parquet file."""


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
    """Who viewed which film in which country on which day, one row per viewing, possibly several of the same film.

    `films` and `countries` are places in `titles` and `COUNTRIES`, and `days` count from `FIRST_DAY`.
    """

    titles: list[str]
    viewers: IntArray
    films: IntArray
    countries: IntArray
    days: IntArray

    @classmethod
    def generate(cls, rows: int) -> DemoData:
        """Draw `rows` viewings.

        The popularity of the r-th film is ∝ 1/(r + 5)^0.9, and higher in the country where it was made; that of
        viewers is exponential + 0.05. The interest in a film grows or shrinks by the same factor every week.
        """
        random = np.random.default_rng(_DATA_SEED)
        every = [pattern.format(*words) for pattern, *lists in _PATTERNS for words in product(*lists)]
        titles = [str(title).replace("-", " ") for title in random.permutation(every)[:FILMS]]
        share = np.array(list(COUNTRIES.values())) / sum(COUNTRIES.values())
        busyness = random.exponential(size=VIEWERS) + 0.05
        viewers = random.choice(VIEWERS, size=rows, p=busyness / busyness.sum())
        homes = random.choice(len(share), size=VIEWERS, p=share)[viewers]
        films = _films_by_taste(random, homes, made_in=random.choice(len(share), size=FILMS, p=share))
        abroad = random.random(rows) < _ABROAD
        countries = np.where(abroad, random.choice(len(share), size=rows, p=share), homes)
        return cls(titles, viewers, films, countries, _days(random, films))

    def foreign_files(self, folder: Path) -> list[str]:
        """Return which of the demo's files exist in a folder but were not written by the demo."""
        places = {name: folder / name for name in ("views.parquet", *self._lists())}
        return [name for name, path in places.items() if path.exists() and not self._is_ours(path)]

    def _is_ours(self, path: Path) -> bool:
        if path.name == "views.parquet":
            return _is_marked(path)
        return path.is_file() and path.read_bytes() == self._lists()[path.name]

    def _lists(self) -> dict[str, bytes]:
        """Return the public lists: the content of films.csv and of countries.csv."""
        listed = {"film": sorted(self.titles), "country": sorted(COUNTRIES)}
        names = {"film": "films.csv", "country": "countries.csv"}
        return {
            names[column]: "".join(f'"{line}"\n' for line in [column, *lines]).encode()
            for column, lines in listed.items()
        }

    def write(self, folder: Path) -> tuple[Path, Path, Path]:
        """Write views.parquet (private), films.csv and countries.csv (public), and return their paths."""
        import pyarrow
        import pyarrow.parquet

        def text(places: IntArray, words: list[str]) -> Any:
            return pyarrow.DictionaryArray.from_arrays(places.astype("int32"), words).cast(pyarrow.string())

        rows = pyarrow.table(
            {
                "viewer": self.viewers,
                "film": text(self.films, self.titles),
                "country": text(self.countries, list(COUNTRIES)),
                "day": np.datetime64(FIRST_DAY) + self.days,
            }
        )
        content = io.BytesIO()
        pyarrow.parquet.write_table(rows.replace_schema_metadata(_MARK), content)
        files = {"views.parquet": content.getvalue(), **self._lists()}
        for name, whole in files.items():
            write_whole(folder / name, whole)
        return folder / "views.parquet", folder / "films.csv", folder / "countries.csv"

    def true_top(self, k: int) -> list[tuple[str, int]]:
        """Return the k films with most viewers and the numbers of viewers, each counted once per film."""
        pairs = np.unique(self.films * VIEWERS + self.viewers)
        counts = np.bincount(pairs // VIEWERS, minlength=FILMS)
        best = np.argsort(-counts, kind="stable")[:k]
        return [(self.titles[film], int(counts[film])) for film in best]


def _films_by_taste(random: np.random.Generator, homes: IntArray, made_in: IntArray) -> IntArray:
    """Return a film for each viewing: its popularity, times `_HOME_INTEREST` if it was made in the viewer's home."""
    popularity = (np.arange(1, FILMS + 1) + 5.0) ** -0.9
    films = np.empty(len(homes), dtype=np.int64)
    for country in range(len(COUNTRIES)):
        taste = popularity * np.where(made_in == country, _HOME_INTEREST, 1.0)
        here = homes == country
        films[here] = random.choice(FILMS, size=int(here.sum()), p=taste / taste.sum())
    return films


def _days(random: np.random.Generator, films: IntArray) -> IntArray:
    """Return a day for each viewing: a week by the trend of its film, and a day of the week."""
    trend = random.normal(scale=_WEEKLY_TREND, size=FILMS)
    interest = np.exp(np.outer(trend, np.arange(WEEKS)))
    until = np.cumsum(interest / interest.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    weeks = (until[films] < random.random((len(films), 1))).sum(axis=1)
    weekdays = random.choice(len(_WEEKDAYS), size=len(films), p=np.array(_WEEKDAYS) / sum(_WEEKDAYS))
    days: IntArray = weeks * len(_WEEKDAYS) + weekdays
    return days


def demo_command(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder in which to keep the generated files. Default: none are kept.", metavar="FOLDER"),
    ] = None,
    rows: Annotated[
        int, typer.Option(parser=whole_number, help="Number of viewings to generate.", metavar="N")
    ] = 1_000_000,
    k: Annotated[int, typer.Option("-k", parser=whole_number, help="Number of films to publish.", metavar="N")] = 10,
    epsilon: Epsilon = 1.0,
    seed: Seed = None,
    form: ResultFormat = Format.table,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files in --out that the demo did not write.")
    ] = False,
) -> None:
    """Generate viewers and films, publish the private top 10, and show it beside the true one."""
    if not isinstance(rows, int) or rows < 1:
        raise dpselect.InvalidInput("rows", rows, "must be a whole number of at least 1")
    with contextlib.ExitStack() as stack:
        folder = out if out is not None else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpselect-")))
        data = DemoData.generate(rows)
        views, films, countries = _write(data, folder, force)
        progress = stack.enter_context(progress_bar("Counting viewers per film"))
        release = dpselect.top(
            views, item="film", person="viewer", k=k, epsilon=epsilon, domain=films, seed=seed, progress=progress
        )
    note_seed(release)
    truth = data.true_top(k)
    publish(_demo_text(release, truth, rows, form, out), None)
    if out is not None:
        note(f"the files of the example are {views} (private rows), {films} and {countries} (public lists)")


def demo_files(folder: Path) -> list[Path]:
    """Return the files of the demo in a folder, generated unless they are there."""
    files = [folder / name for name in ("views.parquet", "films.csv", "countries.csv")]
    if not all(file.is_file() for file in files):
        files = list(_write(DemoData.generate(1_000_000), folder, force=False))
    return files


def _write(data: DemoData, folder: Path, force: bool) -> tuple[Path, Path, Path]:
    foreign_files: list[str] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not force:
            foreign_files = data.foreign_files(folder)
        if not foreign_files:
            return data.write(folder)
    except (OSError, ValueError):
        pass
    if foreign_files:
        raise dpselect.InvalidInput(
            "out",
            str(folder),
            f"must not contain a {' or '.join(foreign_files)} that the demo did not write; name another folder, or "
            "overwrite with --force",
        )
    raise dpselect.InvalidInput("out", str(folder), "must be a folder with write permission")


def _demo_text(
    release: dpselect.Release, truth: list[tuple[str, int]], rows: int, form: Format, out: Path | None
) -> str:
    true_items = [title for title, _ in truth]
    found = sum(item in true_items for item in release.items)
    if form is Format.json:
        return as_json({**release.to_dict(), "true_items": true_items, "found": found})
    if form is Format.csv:
        return as_csv([{"item": item, "in_true_top": item in true_items} for item in release.items])
    return as_text(
        f"{rows:,} viewings by {VIEWERS:,} generated viewers in {len(COUNTRIES)} countries and {WEEKS} weeks; "
        f"{FILMS:,} films, whose titles are public.\n",
        _comparison(release, truth),
        f"The private answer has [bold]{found} of {release.k}[/bold] films of the true top {release.k}.\n",
        facts(release),
        "",
        "[bold]Protected[/bold]: every viewer, with everything they watched. The private answer hardly depends on "
        "whether any one viewer is in the data. "
        "[bold]Not protected[/bold]: the list of films, the name of the file, and what is true of viewers in general. "
        "The true top is shown only because these viewers are generated.\n",
        *_next_steps(release, out or Path("demo"), kept=out is not None),
    )


def _comparison(release: dpselect.Release, truth: list[tuple[str, int]]) -> Table:
    table = Table()
    table.add_column("private answer\n(in random order)", overflow="fold")
    table.add_column(f"true top {release.k}\n(secret)", overflow="fold")
    table.add_column("viewers\n(secret)", justify="right")
    table.add_column("found", justify="center", vertical="bottom")
    for item, (title, viewers) in zip(release.items, truth, strict=True):
        table.add_row(Text(str(item)), Text(title), f"{viewers:,}", "yes" if title in release.items else "no")
    return table


def _next_steps(release: dpselect.Release, folder: Path, *, kept: bool) -> list[Any]:
    views, films = folder / "views.parquet", folder / "films.csv"
    epsilon = repr(release.guarantee.epsilon).removesuffix(".0")
    command = (
        f"dpselect top {shlex.quote(str(views))} --item film --person viewer \\\n"
        f"      -k {release.k} --epsilon {epsilon} --domain {shlex.quote(str(films))}"
    )
    python = (
        f'dpselect.top({str(views)!r}, item="film", person="viewer",\n'
        f"               k={release.k}, epsilon={epsilon}, domain={str(films)!r})"
    )
    first = [] if kept else [Text("  dpselect demo --out demo")]
    return [
        Text("Next steps, on the command line", style="bold"),
        *first,
        Text(f"  {command}"),
        Text("with a chart for each country, if you add", style="bold"),
        Text(f"      --by country --groups {shlex.quote(str(folder / 'countries.csv'))}"),
        Text("or in Python", style="bold"),
        Text(f"  {python}"),
    ]
