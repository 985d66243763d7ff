"""The papers whose figures and tables can be computed again."""

from __future__ import annotations

from dpselect.reproduce import canonical, joint, multi_selection, oneshot, restricted

PAPERS = {
    paper.name: paper
    for paper in (canonical.PAPER, joint.PAPER, oneshot.PAPER, restricted.PAPER, multi_selection.PAPER)
}
