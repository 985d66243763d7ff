"""Run the studies of a paper: compute what is not finished yet, then write numbers, picture and verdict."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.reproduce.data import Data
from dpselect.reproduce.drawing import check_plotting, picture
from dpselect.reproduce.papers import PAPERS
from dpselect.reproduce.store import Store, as_csv, write_result
from dpselect.reproduce.study import Paper, Row, Study
from dpselect.reproduce.verdict import Verdict
from dpselect.writing import is_same_file

PLOT_FORMATS = ("svg", "png")


@dataclass(frozen=True)
class Outcome:
    """What became of one study: its verdict and the files that hold it."""

    paper: str
    study: Study
    verdict: Verdict
    files: Sequence[Path]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "paper": self.paper,
            "study": self.study.name,
            "title": self.study.title,
            "claim": self.study.claim,
            "holds": self.verdict.holds,
            "held": self.verdict.held,
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
    """Yield the outcome of every study of a paper, or of one, and write its files to the folder OUT/PAPER.

    Finished points are kept there and not computed again, so that an interrupted run goes on where it stopped.
    The folder of data sets may be left out where no study reads one.
    """
    chosen = paper_named(paper)
    studies = studies_named(chosen, figure)
    if plot_format not in PLOT_FORMATS:
        raise InvalidInput("plot_format", plot_format, f"{' or '.join(PLOT_FORMATS)} is needed")
    check_plotting()
    needed = dict.fromkeys(name for study in studies for name in study.data)
    if data is None and needed:
        raise InvalidInput("data", plain("nothing"), f"the folder with the data sets {', '.join(needed)} is needed")
    source, folder = Data(Path(data or ".")), Path(out) / chosen.name
    read = [source.file_of(name) for name in needed]
    for study in studies:
        for path in (_points_file(folder, study), *_files(folder, study, plot_format)):
            if any(is_same_file(path, file) for file in read):
                raise InvalidInput("out", str(path), "it is also a data set, which would be lost; name another folder")
    return _outcomes(chosen, studies, source, folder, quick, plot_format, progress or (lambda _: None))


def paper_named(name: str) -> Paper:
    """Return a paper by its short name."""
    if name not in PAPERS:
        raise InvalidInput("paper", name, f"one of {', '.join(PAPERS)} is needed")
    return PAPERS[name]


def studies_named(paper: Paper, figure: str | None) -> Sequence[Study]:
    """Return all studies of a paper, or the one that "4", "figure-4", "table-1" or, of a theorem, "2.2" names."""
    if figure is None:
        return paper.studies
    wanted = str(figure).strip().lower().replace(" ", "-")
    for study in paper.studies:
        if study.name in (wanted, f"figure-{wanted}", f"theorem-{wanted}"):
            return [study]
    names = [study.name.removeprefix("figure-") for study in paper.studies]
    raise InvalidInput("figure", figure, f"one of {', '.join(names)} is needed for the {paper.name} paper")


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
                # What is kept passes through JSON, so that a resumed run has the same numbers as an unbroken one.
                finished = json.loads(json.dumps([*study.compute(point, data)], default=_plain_number))
                store.keep(point, finished)
            rows += finished
            done += 1
        yield _written(paper, study, rows, folder, quick, plot_format)


def _written(paper: Paper, study: Study, rows: list[Row], folder: Path, quick: bool, plot_format: str) -> Outcome:
    verdict = study.judge(rows)
    files = _files(folder, study, plot_format)
    write_result(files[0], as_csv(rows))
    write_result(files[1], paragraph(paper, study, verdict, quick))
    if study.draw is not None:
        write_result(files[-1], picture(study.draw(rows), plot_format))
    return Outcome(paper.name, study, verdict, files)


def _points_file(folder: Path, study: Study) -> Path:
    return folder / f"{study.kept_as or study.name}.points.json"


def _files(folder: Path, study: Study, plot_format: str) -> list[Path]:
    """Return where the numbers, the verdict and the picture of a study go, if it has one."""
    endings = ["csv", "md"] if study.draw is None else ["csv", "md", plot_format]
    return [folder / f"{study.name}.{ending}" for ending in endings]


def paragraph(paper: Paper, study: Study, verdict: Verdict, quick: bool) -> str:
    """Return the verdict as a page of its own."""
    note = " Computed with --quick: fewer points or draws." if quick else ""
    texts = [f"The paper: {study.claim}", f"Here the claim {verdict.word}. {verdict.text}{note}"]
    heading = f"# {paper.name}, {study.name.replace('-', ' ')}: {study.title}"
    return "\n\n".join([heading, *("\n".join(textwrap.wrap(text, 110)) for text in texts)]) + "\n"


def _fingerprint(study: Study, data: Data) -> str:
    from dpselect import __version__

    return json.dumps([__version__, {name: data.digest(name) for name in study.data}])


def _plain_number(value: Any) -> Any:
    """Turn a NumPy number into one of Python's."""
    return value.item()
