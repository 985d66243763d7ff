"""The k best items from pairwise comparisons, without revealing any one person's votes (proof: ranking.md).

Comparisons become a random walk that moves from losers to winners; its stationary distribution scores the items, and
any mechanism chooses among them. What one comparison can change follows from public caps, which are enforced.
"""

from dpselect.ranking.rank import rank
from dpselect.ranking.sensitivity import DEFAULT_DAMPING, Bounds

__all__ = ["DEFAULT_DAMPING", "Bounds", "rank"]
