"""Files, frames and databases: how many items have which number of people, and which items are these.

`open_counts` answers both questions with Ibis expressions, so that the engine that holds the rows does the counting
and Python receives the histogram of counts and the chosen items, nothing else. The room knows no mechanism.
"""

from dpselect.sources.contributions import Contribution, fresh_key
from dpselect.sources.counts import Counts, open_counts
from dpselect.sources.domain import UNKNOWN, Domain, Unknown, Unseen
from dpselect.sources.identity import check_not_rows, files_of, has_unknown_files

__all__ = [
    "UNKNOWN",
    "Contribution",
    "Counts",
    "Domain",
    "Unknown",
    "Unseen",
    "check_not_rows",
    "files_of",
    "fresh_key",
    "has_unknown_files",
    "open_counts",
]
