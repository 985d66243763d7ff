"""Files, frames and databases: how many items have which score, and which items these are.

`open_counts` answers both questions with Ibis expressions: the engine that holds the rows counts, and Python receives
only the histogram of scores and the chosen items. This package knows no mechanism.

A file format is added in `files.FileTable`; an engine is derived from `engine.ThreadedEngine`, and opened in `rows`.
"""

from dpselect.items import Unseen
from dpselect.sources.contributions import Contribution, fresh_key
from dpselect.sources.counted import read_counts
from dpselect.sources.counts import Counts, open_counts
from dpselect.sources.domain import UNKNOWN, Domain, Unknown
from dpselect.sources.files import column_names, read_columns
from dpselect.sources.groups import Groups
from dpselect.sources.identity import check_not_rows, files_of, has_unknown_files, share_file
from dpselect.sources.kept import HeldCounts, KeptCounts
from dpselect.sources.paths import would_read
from dpselect.sources.rows import public_name
from dpselect.sources.times import PeriodFilter
from dpselect.sources.weights import Weights, open_weights

__all__ = [
    "UNKNOWN",
    "Contribution",
    "Counts",
    "Domain",
    "Groups",
    "HeldCounts",
    "KeptCounts",
    "PeriodFilter",
    "Unknown",
    "Unseen",
    "Weights",
    "check_not_rows",
    "column_names",
    "files_of",
    "fresh_key",
    "has_unknown_files",
    "open_counts",
    "open_weights",
    "public_name",
    "read_columns",
    "read_counts",
    "share_file",
    "would_read",
]
