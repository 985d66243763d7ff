"""Make docs/gallery.md and its pictures: run `python docs/images/gallery.py DATA [OUT]`.

DATA is the folder with the data sets, OUT a folder for the results (default: reproduced), from which an interrupted
run continues.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from dpselect.reproduce import PAPERS, Outcome, reproduce

IMAGES = Path(__file__).parent
PAGE = IMAGES.parent / "gallery.md"
SENTENCES = 3
"""How long a paragraph may be."""
INTRODUCTION = """# The papers' figures, computed again

Each figure below was computed by this package and is compared with the claim of the paper. A table
for each paper names its claims, our figures, and in how many settings a claim holds, fails, or is
undecided. The text names the settings in which it fails.

Where figures are drawn at random, a setting is undecided if the draws do not tell: all decided
settings of a study are right together with probability 0.99. Exact figures are undecided only
within their tolerance.

From a folder with the data sets, these commands make the page with its figures, one paper with its
numbers as CSV, and one figure:

<!-- example: not run; needs the data sets of the papers -->

```sh
python docs/images/gallery.py DATA
dpselect reproduce canonical --data DATA --out reproduced
dpselect reproduce joint --figure 1 --data DATA --quick
```

`--quick` uses fewer points or draws, and takes about a minute per paper; its verdicts name what
they leave out. An interrupted run continues where it stopped.

A mechanism has the same colour and marker in all figures, its forms differ in dash, and grey lines
stand for no mechanism. Where pools are compared, the marker stands for the pool and the dash for
the mechanism. The figures can be read without colour. If a data set of a paper is not available,
the text names its replacement. Times are those of the machine that ran this.
"""


def section(outcome: Outcome) -> str:
    """Return what the page says about a study: its title, claim, verdict and picture."""
    study, verdict = outcome.study, outcome.verdict
    title = study.title[0].upper() + study.title[1:]
    texts = [f"**The paper:** {study.claim}", f"**Here:** {verdict.word}.", *paragraphs(verdict.text)]
    parts = [f"### {label(outcome)}: {title}", *(wrapped(text) for text in texts)]
    if study.draw is not None:
        parts.append(f"![{title}](images/{picture_name(outcome)})")
    return "\n\n".join(parts)


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the claims of a paper with our figures and the verdicts, as a table."""
    head = ["| | the paper's claim | here | settings | holds | fails | undecided |", "|---|---|---|--:|--:|--:|--:|"]
    rows = []
    for one in outcomes:
        counts = (one.verdict.settings, one.verdict.held, one.verdict.failed, one.verdict.undecided)
        cells = (label(one), one.study.short, one.verdict.figure, *(number or "" for number in counts))
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*head, *rows])


def paragraphs(text: str) -> list[str]:
    """Return a text in short paragraphs: a sentence that lists three things or more becomes a table or a list."""
    parts: list[str] = []
    plain: list[str] = []
    for sentence in re.split(r"(?<=\.) (?=[A-Z])", text):
        head, colon, items = sentence.rstrip(".").partition(": ")
        if colon and "; " not in head and (items.count("; ") >= 2 or head == "Exceptions"):
            parts += [" ".join(plain), f"{head}:", listed(items.split("; "))]
            plain = []
        else:
            plain.append(sentence)
            if len(plain) == SENTENCES:
                parts.append(" ".join(plain))
                plain = []
    parts.append(" ".join(plain))
    return [part for part in parts if part]


def listed(items: list[str]) -> str:
    """Return things as a table if each has a name before a colon, else as a list.

    "k = 10: Joint 3, Peeling 6" has columns for Joint and Peeling if the others have them too.
    """
    if any(item.count(": ") != 1 for item in items):
        return "\n".join(f"* {item}" for item in items)
    settings, texts = zip(*(item.split(": ") for item in items), strict=True)
    rows = [dict(part.rpartition(" ")[::2] for part in text.split(", ")) for text in texts]
    heads = list(rows[0])
    if len(heads) < 2 or any(row.keys() != set(heads) for row in rows):
        heads, rows = ["here"], [{"here": text} for text in texts]
    lines = [["setting", *heads], ["---", *["--:" if len(heads) > 1 else "---"] * len(heads)]]
    lines += [[setting, *(row[head] for head in heads)] for setting, row in zip(settings, rows, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wrapped(text: str) -> str:
    """Break lines for reading in an editor, except those of tables."""
    if text.startswith("|"):
        return text
    breaks = textwrap.TextWrapper(100, break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in text.split("\n"):
        breaks.subsequent_indent = "  " if line.startswith("* ") else ""
        lines += breaks.wrap(line)
    return "\n".join(lines)


def label(outcome: Outcome) -> str:
    """Return "Figure 4" for figure-4."""
    return outcome.study.name.replace("-", " ").capitalize()


def picture_name(outcome: Outcome) -> str:
    """Return the name of a study's picture beside this file."""
    return f"{outcome.paper}-{outcome.study.name}.svg"


def page(outcomes: Iterable[Outcome]) -> str:
    """Return the whole page."""
    parts = [INTRODUCTION.rstrip()]
    for paper, found in groupby(outcomes, lambda outcome: outcome.paper):
        own = list(found)
        parts += [f"## {paper}: {PAPERS[paper].title}", table(own), *(section(outcome) for outcome in own)]
    return "\n\n".join(parts) + "\n"


def main(data: str, out: str = "reproduced") -> None:
    """Compute every study, copy its picture, and write the page."""
    outcomes = []
    for paper in PAPERS.values():
        for outcome in reproduce(paper.name, data=data, out=out):
            print(f"{outcome.paper}, {outcome.study.name}: {outcome.verdict.word}", file=sys.stderr)
            for path in outcome.files:
                if path.suffix == ".svg":
                    shutil.copyfile(path, IMAGES / picture_name(outcome))
            outcomes.append(outcome)
    PAGE.write_text(page(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
