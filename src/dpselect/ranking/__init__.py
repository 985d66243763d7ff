"""The k best items from pairwise comparisons, without revealing any one person's votes (proof: ranking.md).

Comparisons become a random walk that moves from losers to winners. Its stationary distribution scores the items, and
any mechanism selects among them. Public caps, which are enforced, bound how far one comparison can move the scores.
"""

from dpselect.ranking.bounds import DEFAULT_DAMPING, Bounds
from dpselect.ranking.rank import rank

__all__ = ["DEFAULT_DAMPING", "Bounds", "rank"]
