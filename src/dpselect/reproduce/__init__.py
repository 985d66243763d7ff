"""The papers' figures and tables, computed again: `dpselect reproduce PAPER --data DIR --out DIR`.

A paper is a module with a list of studies, one per figure or table. `study.py` defines what a study and a verdict are;
`run.py` computes the points, caches them, and writes numbers, picture (`drawing.py`) and verdict. To add a study,
write what it computes, draws and judges in the paper's module, and add it to the list there.
"""

from __future__ import annotations

from dpselect.reproduce.run import PAPERS, Outcome, reproduce
from dpselect.reproduce.study import Paper, Study, Verdict

__all__ = ["PAPERS", "Outcome", "Paper", "Study", "Verdict", "reproduce"]
