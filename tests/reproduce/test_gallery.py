"""The gallery shows every study, with pictures that are there and small."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from dpselect.reproduce import PAPERS, Outcome, Verdict

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")
STUDIES = [(paper, study) for paper in PAPERS.values() for study in paper.studies]
MAKER = runpy.run_path(str(DOCS / "images" / "gallery.py"))


def test_every_study_is_shown() -> None:
    for paper, study in STUDIES:
        made = MAKER["section"](Outcome(paper.name, study, Verdict(1, 1, ""), []))
        heading, claim, _, *image = made.split("\n\n")
        row = f"| {study.name.replace('-', ' ').capitalize()} | {study.short} |"
        for part in (heading, claim, row, *image):
            assert part in PAGE, f"{paper.name}, {study.name}: the page is out of date; make it again"


def test_pictures_are_there_and_small() -> None:
    pictures = re.findall(r"\]\(images/([^)]*)\)", PAGE)
    assert len(pictures) == sum(study.draw is not None for _, study in STUDIES)
    for name in pictures:
        assert 1000 < (DOCS / "images" / name).stat().st_size < 150_000, name
        assert "<text" in (DOCS / "images" / name).read_text(encoding="utf-8"), "text stays text"


def test_figures_for_several_settings_become_a_table_with_their_columns() -> None:
    alike = MAKER["listed"](["k = 1: Joint 3, Peeling 6", "k = 2: Peeling 7,000, Joint 4"]).splitlines()
    assert alike[0] == "| setting | Joint | Peeling |"
    assert alike[2:] == ["| k = 1 | 3 | 6 |", "| k = 2 | 4 | 7,000 |"]
    assert MAKER["listed"](["k = 1: 3 of 4", "k = 2: none"]).splitlines()[2:] == [
        "| k = 1 | 3 of 4 |",
        "| k = 2 | none |",
    ]
    assert MAKER["listed"](["Foods, k = 5", "Games"]) == "* Foods, k = 5\n* Games"


def test_no_number_on_the_page_was_computed_in_a_hurry() -> None:
    assert "Computed with --quick" not in PAGE


def test_every_verdict_in_a_table_is_the_one_of_the_text() -> None:
    rows = re.findall(r"^\| ([A-Z].*?) \| .* \| .+ \| (\d+) \| (\d*) \| (\d*) \| (\d*) \|$", PAGE, re.M)
    assert [label for label, *_ in rows] == [study.name.replace("-", " ").capitalize() for _, study in STUDIES]
    words = re.findall(r"^\*\*Here:\*\* ([^.]*)\.$", PAGE, re.M)
    for (_, *cells), word in zip(rows, words, strict=True):
        settings, held, failed, undecided = (int(cell or 0) for cell in cells)
        assert settings == held + failed + undecided
        assert Verdict(held, settings, "", undecided=undecided).word == word
