"""The papers' figures and tables, computed again: `dpselect reproduce PAPER --data DIR --out DIR`.

A paper (`papers.py`) is a list of studies (`study.py`), one a figure or table. `run.py` computes their points, keeps
what is finished (`store.py`), and writes the picture (`drawing.py`), the numbers and a verdict (`verdict.py`). To
add a study, write what it computes, draws and judges in the paper's own module and list it there.
"""

from __future__ import annotations

from dpselect.reproduce.papers import PAPERS
from dpselect.reproduce.run import Outcome, reproduce
from dpselect.reproduce.study import Paper, Study
from dpselect.reproduce.verdict import Verdict

__all__ = ["PAPERS", "Outcome", "Paper", "Study", "Verdict", "reproduce"]
