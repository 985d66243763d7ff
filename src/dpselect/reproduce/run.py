"""Runs the studies of a paper: computes the points that are not cached, then writes numbers, picture and verdict."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpselect._pictures import picture, set_title
from dpselect.errors import InvalidInput, plain
from dpselect.reproduce import canonical, joint, multi_selection, oneshot, restricted
from dpselect.reproduce.data import Data
from dpselect.reproduce.drawing import check_plotting
from dpselect.reproduce.study import Paper, Point, Row, Study, Verdict, key_of
from dpselect.writing import is_same_file, write_whole

PLOT_FORMATS = ("svg", "png")

PAPERS = {
    paper.name: paper
    for paper in (canonical.PAPER, joint.PAPER, oneshot.PAPER, restricted.PAPER, multi_selection.PAPER)
}
"""The papers whose figures and tables can be computed again, by short name."""


@dataclass(frozen=True)
class Outcome:
    """The verdict of one study, and the files that were written for it.

    Examples
    --------
    >>> study = PAPERS["oneshot"].studies[0]
    >>> Outcome("oneshot", study, Verdict(4, 4, "All are true."), []).to_dict()["holds"]
    True
    """

    paper: str
    study: Study
    verdict: Verdict
    files: Sequence[Path]

    @property
    def line(self) -> str:
        """The paper's claim, our figure and the verdict, in one line."""
        return line_of(self.study, self.verdict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json.dumps accepts."""
        return {
            "paper": self.paper,
            "study": self.study.name,
            "title": self.study.title,
            "claim": self.study.claim,
            "short_claim": self.study.short,
            "figure": self.verdict.figure,
            "judgement": self.verdict.word,
            "holds": self.verdict.holds,
            "held": self.verdict.held,
            "failed": self.verdict.failed,
            "undecided": self.verdict.undecided,
            "settings": self.verdict.settings,
            "verdict": self.verdict.text,
            "files": [str(path) for path in self.files],
        }


def reproduce(
    paper: str,
    *,
    data: str | Path | None = None,
    out: str | Path,
    figure: str | None = None,
    quick: bool = False,
    plot_format: str = "svg",
    progress: Callable[[float], None] | None = None,
) -> Iterator[Outcome]:
    """Compute the studies of a paper again and write their files to the folder OUT/PAPER.

    Finished points are cached in that folder, so an interrupted run continues where it stopped.

    Parameters
    ----------
    paper : str
        Short name of the paper, a key of `PAPERS`.
    data : str or Path, optional
        Folder with the data sets. Not needed if no study reads one.
    out : str or Path
        Folder for the results.
    figure : str, optional
        Compute only this study: "4", "figure-4", "table-1", or "2.2" and "7.3" for a theorem and a section. Default:
        all.
    quick : bool
        Compute fewer points and draws.
    plot_format : str
        "svg" or "png".
    progress : callable, optional
        Called with the share of points finished, from 0 to 1.

    Returns
    -------
    iterator of Outcome
        One outcome per study. A study is computed when its outcome is asked for.

    Raises
    ------
    InvalidInput
        If an argument is not accepted or a data set is missing. Raised before anything is computed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [outcome] = reproduce("oneshot", out=folder, figure="2.2", quick=True)
    >>> outcome.verdict.holds
    True
    """
    chosen = paper_named(paper)
    studies = studies_named(chosen, figure)
    if plot_format not in PLOT_FORMATS:
        raise InvalidInput("plot_format", plot_format, f"must be {' or '.join(PLOT_FORMATS)}")
    check_plotting()
    needed = dict.fromkeys(name for study in studies for name in study.data)
    if data is None and needed:
        raise InvalidInput("data", plain("nothing"), f"must be the folder with the data sets {', '.join(needed)}")
    source, folder = Data(Path(data or ".")), Path(out) / chosen.name
    read = [source.file_of(name) for name in needed]
    for study in studies:
        for path in (_points_file(folder, study), *_files(folder, study, plot_format)):
            if any(is_same_file(path, file) for file in read):
                raise InvalidInput("out", str(path), "must not be a file of a data set; name another folder")
    return _outcomes(chosen, studies, source, folder, quick, plot_format, progress or (lambda _: None))


def paper_named(name: str) -> Paper:
    """Return a paper by its short name."""
    if name not in PAPERS:
        raise InvalidInput("paper", name, f"must be one of {', '.join(PAPERS)}")
    return PAPERS[name]


def studies_named(paper: Paper, figure: str | None) -> Sequence[Study]:
    """Return all studies of a paper, or the one named "4", "figure-4", "table-1", or "2.2" for a theorem or section."""
    if figure is None:
        return paper.studies
    wanted = str(figure).strip().lower().replace(" ", "-")
    for study in paper.studies:
        if study.name in (wanted, *(f"{kind}-{wanted}" for kind in ("figure", "theorem", "section"))):
            return [study]
    names = [study.name.removeprefix("figure-") for study in paper.studies]
    raise InvalidInput("figure", figure, f"must be one of {', '.join(names)} for the {paper.name} paper")


def _outcomes(
    paper: Paper,
    studies: Sequence[Study],
    data: Data,
    folder: Path,
    quick: bool,
    plot_format: str,
    progress: Callable[[float], None],
) -> Iterator[Outcome]:
    total = sum(len(study.points(quick)) for study in studies)
    done = 0
    for study in studies:
        store = Store(_points_file(folder, study), _fingerprint(study, data))
        rows: list[Row] = []
        for point in study.points(quick):
            progress(done / total)
            finished = store.rows(point)
            if finished is None:
                # Through JSON, so that a resumed run has exactly the same numbers as an uninterrupted one.
                finished = json.loads(json.dumps([*study.compute(point, data)], default=lambda number: number.item()))
                store.keep(point, finished)
            rows += finished
            done += 1
        yield _written(paper, study, rows, folder, quick, plot_format)


def _written(paper: Paper, study: Study, rows: list[Row], folder: Path, quick: bool, plot_format: str) -> Outcome:
    verdict = replace(study.judge(rows), only=study.quick_only if quick else "")
    files = _files(folder, study, plot_format)
    write_result(files[0], as_table(rows))
    write_result(files[1], _page(paper, study, verdict, quick))
    if study.draw is not None:
        figure = study.draw(rows)
        set_title(figure, study.title[:1].upper() + study.title[1:] + (f": {verdict.figure}" if verdict.figure else ""))
        write_result(files[-1], picture(figure, plot_format))
    return Outcome(paper.name, study, verdict, files)


def _files(folder: Path, study: Study, plot_format: str) -> list[Path]:
    """Return the files of a study: numbers, verdict and, if it has one, picture."""
    endings = ["csv", "md"] if study.draw is None else ["csv", "md", plot_format]
    return [folder / f"{study.name}.{ending}" for ending in endings]


def _page(paper: Paper, study: Study, verdict: Verdict, quick: bool) -> str:
    """Return the verdict as a page in Markdown: one line, then the claim and the numbers."""
    note = " Computed with --quick: fewer points or draws." if quick else ""
    texts = [f"The paper: {study.claim}", f"Here: {verdict.text}{note}"]
    heading = f"# {paper.name}, {study.name.replace('-', ' ')}: {study.title}"
    paragraphs = ["\n".join(textwrap.wrap(text, 110)) for text in texts]
    return "\n\n".join([heading, line_of(study, verdict), *paragraphs]) + "\n"


def line_of(study: Study, verdict: Verdict) -> str:
    """Return the paper's claim, our figure and the verdict, in one line."""
    return f"Claim: {study.short} · Here: {verdict.figure} · Verdict: {verdict.word}"


def as_table(rows: Sequence[Row]) -> str:
    """Return rows as CSV text; a column that a row lacks stays empty."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_result(path: Path, content: str | bytes) -> None:
    """Write a result atomically; the folder is created if needed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content.encode() if isinstance(content, str) else content)
    except OSError:
        raise InvalidInput("out", str(path.parent), "must be a folder with free space and write permission") from None


class Store:
    """The finished points of a study, cached in a file beside its numbers.

    `fingerprint` covers what the numbers depend on besides a point's settings, such as the data. Points with another
    fingerprint are dropped.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self._finished = self._load()

    def rows(self, point: Point) -> list[Row] | None:
        """Return the rows of a finished point, None for one that has not been computed."""
        return self._finished.get(key_of(point))

    def keep(self, point: Point, rows: list[Row]) -> None:
        """Add the rows of a point, and keep those that another run has added meanwhile."""
        self._finished = {**self._load(), **self._finished, key_of(point): rows}
        kept = {"fingerprint": self.fingerprint, "finished": self._finished}
        write_result(self.path, json.dumps(kept, ensure_ascii=False, indent=0))

    def _load(self) -> dict[str, list[Row]]:
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            return dict(kept["finished"]) if kept["fingerprint"] == self.fingerprint else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def _points_file(folder: Path, study: Study) -> Path:
    return folder / f"{study.kept_as or study.name}.points.json"


def _fingerprint(study: Study, data: Data) -> str:
    from dpselect import __version__

    return json.dumps([__version__, {name: data.digest(name) for name in study.data}])
