"""Differentially private selection: the top-k items of data about people, exactly and fast.

A map of the house, along the path that every release takes:

* `sources`     people's rows in files, frames and databases: who counts how often
* `scores`      how many items have which score
* `mechanisms`  which items to return; each file has its proof beside it
* `sampling`    random decisions whose law is exactly the one in the proofs
* `release`     what was returned and promised
* `privacy`     what it costs
* `ledger`      what a data set may cost, and every release charged to it
* `verify`      exact checks of every promise on small domains
* `forecast`    how likely the right answer is, and which epsilon it takes
* `multiselect` recommendations that never see the user
* `ranking`     the best items from pairwise comparisons
* `cli`         the `dpselect` command

`select` runs that path on scores you have, `top` on a table of people's rows, `rank` on pairwise comparisons.
"""

from importlib import import_module
from typing import Any

from dpselect.errors import BudgetExceeded, DpSelectError, InvalidInput, SourceError
from dpselect.mechanisms import (
    Canonical,
    Gamma,
    Gaussian,
    Joint,
    LimitedDomain,
    Mechanism,
    OneShot,
    Peeling,
    Restricted,
    RestrictedGumbel,
    RestrictedNormal,
    TopStable,
)
from dpselect.privacy import COUNTS, Guarantee, Sensitivity
from dpselect.rank import rank
from dpselect.release import Release
from dpselect.scores import Scores
from dpselect.select import select
from dpselect.sources import UNKNOWN, Unseen
from dpselect.top import top

__version__ = "0.1.0"

__all__ = [
    "COUNTS",
    "UNKNOWN",
    "BudgetExceeded",
    "Canonical",
    "DpSelectError",
    "Gamma",
    "Gaussian",
    "Guarantee",
    "InvalidInput",
    "Joint",
    "LimitedDomain",
    "Mechanism",
    "OneShot",
    "Peeling",
    "Release",
    "Restricted",
    "RestrictedGumbel",
    "RestrictedNormal",
    "Scores",
    "Sensitivity",
    "SourceError",
    "TopStable",
    "Unseen",
    "rank",
    "select",
    "top",
]


def __getattr__(name: str) -> Any:
    """Load a room such as `dpselect.forecast` when first asked for: most programs never need it."""
    if name in ("forecast", "ledger", "multiselect", "ranking", "verify"):
        return import_module(f"dpselect.{name}")
    raise AttributeError(f"module 'dpselect' has no attribute {name!r}")
