"""Differentially private selection: the top-k items of data about people, exactly and fast.

The packages, in the order in which a release uses them:

* `sources`     reads people's rows from files, data frames and databases
* `scores`      how many items have which score
* `mechanisms`  choose the items to release; each module has its proof beside it
* `sampling`    random decisions with exactly the law that the proofs assume
* `release`     the items with their guarantee
* `privacy`     sensitivities, guarantees and their composition
* `ledger`      the budget of a data set, and every release charged to it

and around that path:

* `verify`      exact checks of every guarantee on small domains
* `forecast`    the probability of a right answer, and the epsilon it needs
* `multiselect` private recommendations
* `ranking`     the best items from pairwise comparisons
* `cli`         the `dpselect` command

Use `select` for scores that you have, `top` for a table of people's rows, `rank` for pairwise comparisons.
"""

from importlib import import_module
from typing import Any

from dpselect.errors import BudgetExceeded, DpSelectError, InvalidInput, SourceError
from dpselect.mechanisms import (
    Canonical,
    Gamma,
    Gaussian,
    Joint,
    Laplace,
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
    "Laplace",
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
    """Import a subpackage such as `dpselect.forecast` on first use; most programs do not need it."""
    if name in ("forecast", "ledger", "multiselect", "ranking", "verify"):
        return import_module(f"dpselect.{name}")
    raise AttributeError(f"module 'dpselect' has no attribute {name!r}")
