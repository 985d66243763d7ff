"""What a release costs: sensitivities and guarantees, and what several cost together.

`dpselect.privacy.Ledger` is `dpselect.ledger.Ledger`, loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpselect.privacy.composition import compose
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.sensitivity import COUNTS, Sensitivity

if TYPE_CHECKING:
    from dpselect.ledger import Ledger

__all__ = ["COUNTS", "Guarantee", "Ledger", "Sensitivity", "compose"]


if not TYPE_CHECKING:  # checkers of types then report a name that does not exist

    def __getattr__(name: str) -> Any:
        """Load the ledger when first asked for: it needs SQLAlchemy, and most programs need neither."""
        if name == "Ledger":
            return import_module("dpselect.ledger").Ledger
        raise AttributeError(f"module 'dpselect.privacy' has no attribute {name!r}")
