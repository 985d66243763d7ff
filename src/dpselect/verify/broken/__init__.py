"""Broken twins: mechanisms with one deliberate mistake each, which the checks must reject.

They are mistakes that are easily made. None of them can be reached from `select`; they show that the checks can fail.
"""

from dpselect.verify.broken import composite, discovery, exact, groups, noisy_scores, subsets, unknown
from dpselect.verify.broken.base import Altered, Result, Twin

TWINS: list[Twin] = [
    *noisy_scores.TWINS,
    *subsets.TWINS,
    *unknown.TWINS,
    *discovery.TWINS,
    *composite.TWINS,
    *groups.TWINS,
    *exact.TWINS,
]
"""Every twin."""

__all__ = ["TWINS", "Altered", "Result", "Twin"]
