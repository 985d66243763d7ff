"""What a release costs: sensitivities and guarantees."""

from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.sensitivity import COUNTS, Sensitivity

__all__ = ["COUNTS", "Guarantee", "Sensitivity"]
