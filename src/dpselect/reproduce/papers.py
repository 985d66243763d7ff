"""The papers whose figures and tables can be computed again."""

from __future__ import annotations

from dpselect.reproduce import canonical, joint, oneshot, restricted
from dpselect.reproduce.study import Paper

MULTI_SELECTION = Paper(
    "multi-selection",
    "Differential privacy under multiple selections",
    [],
    coming="its figures come with the multi-selection engine, which this version does not have yet; "
    "canonical, joint, oneshot and restricted can be computed",
)

PAPERS = {
    paper.name: paper for paper in (canonical.PAPER, joint.PAPER, oneshot.PAPER, restricted.PAPER, MULTI_SELECTION)
}
