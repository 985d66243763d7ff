"""What a release costs: sensitivities and guarantees, and what several cost together."""

from dpselect.privacy.composition import compose
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.ledger import Ledger
from dpselect.privacy.sensitivity import COUNTS, Sensitivity

__all__ = ["COUNTS", "Guarantee", "Ledger", "Sensitivity", "compose"]
