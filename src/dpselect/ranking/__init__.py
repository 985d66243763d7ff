"""The k best items from pairwise comparisons, without revealing any one person's votes (proof: ranking.md).

Comparisons become a random walk that moves from losers to winners. Its stationary distribution scores the items, and
any mechanism selects among them. Public caps, which are enforced, bound how far one comparison can move the scores.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpselect.ranking.bounds import DEFAULT_DAMPING, Bounds

if TYPE_CHECKING:
    from dpselect._rank import rank

__all__ = ["DEFAULT_DAMPING", "Bounds", "rank"]


if not TYPE_CHECKING:  # checkers of types then report a name that does not exist

    def __getattr__(name: str) -> Any:
        """Return `dpselect.rank`, which is built on this package, on first use."""
        if name == "rank":
            return import_module("dpselect._rank").rank
        raise AttributeError(f"module 'dpselect.ranking' has no attribute {name!r}")
