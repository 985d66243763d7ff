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

Use `select` for scores that you have, `top` for a table of people's rows, `discover` if nobody can list the items of
such a table, and `rank` for pairwise comparisons.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpselect import forecast as forecast
    from dpselect import ledger as ledger
    from dpselect import multiselect as multiselect
    from dpselect import privacy as privacy
    from dpselect import ranking as ranking
    from dpselect import verify as verify
    from dpselect._discover import DomainRelease, discover
    from dpselect._rank import rank
    from dpselect._select import select
    from dpselect._top import top
    from dpselect.errors import BudgetExceeded, DpSelectError, InvalidInput, KeyReused, SourceError
    from dpselect.mechanisms import (
        BlackBox,
        Canonical,
        Discovered,
        Discovery,
        Gamma,
        Gaussian,
        Joint,
        Laplace,
        LimitedDomain,
        Lipschitz,
        Mechanism,
        OneShot,
        Peeling,
        Restricted,
        RestrictedGumbel,
        RestrictedNormal,
        TopStable,
    )
    from dpselect.privacy import COUNTS, Guarantee, Sensitivity
    from dpselect.release import Release
    from dpselect.scores import Scores
    from dpselect.sources import UNKNOWN, Unseen

__version__ = "0.2.0"

_HOMES = {
    "BudgetExceeded": "errors",
    "COUNTS": "privacy",
    "DomainRelease": "_discover",
    "DpSelectError": "errors",
    "Guarantee": "privacy",
    "InvalidInput": "errors",
    "KeyReused": "errors",
    "Release": "release",
    "Scores": "scores",
    "Sensitivity": "privacy",
    "SourceError": "errors",
    "UNKNOWN": "sources",
    "Unseen": "sources",
    "discover": "_discover",
    "rank": "_rank",
    "select": "_select",
    "top": "_top",
}
"""The modules of the public names that are not in `mechanisms`."""

_PACKAGES = ("forecast", "ledger", "multiselect", "privacy", "ranking", "verify")

__all__ = [
    "COUNTS",
    "UNKNOWN",
    "BlackBox",
    "BudgetExceeded",
    "Canonical",
    "Discovered",
    "Discovery",
    "DomainRelease",
    "DpSelectError",
    "Gamma",
    "Gaussian",
    "Guarantee",
    "InvalidInput",
    "Joint",
    "KeyReused",
    "Laplace",
    "LimitedDomain",
    "Lipschitz",
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
    "discover",
    "rank",
    "select",
    "top",
]


if not TYPE_CHECKING:  # checkers of types then report a name that does not exist

    def __getattr__(name: str) -> Any:
        """Import what a public name stands for on its first use, so that `import dpselect` itself takes no time."""
        if name in _PACKAGES:
            return import_module(f"dpselect.{name}")
        if name in __all__:
            module = import_module(f"dpselect.{_HOMES.get(name, 'mechanisms')}")
            return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module 'dpselect' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names only."""
    return sorted([*__all__, *_PACKAGES, "__version__"])
