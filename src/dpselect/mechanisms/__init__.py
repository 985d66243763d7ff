"""The mechanisms, one module each with its proof beside it."""

from dpselect.mechanisms.auto import automatic_for_unknown
from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.black_box import BlackBox
from dpselect.mechanisms.canonical import Canonical
from dpselect.mechanisms.discovered import Discovered
from dpselect.mechanisms.discovery import Discovery
from dpselect.mechanisms.gamma import Gamma
from dpselect.mechanisms.gaussian import Gaussian
from dpselect.mechanisms.joint import Joint
from dpselect.mechanisms.laplace import Laplace
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.lipschitz import Lipschitz
from dpselect.mechanisms.noisy_vector import NoisyVector
from dpselect.mechanisms.oneshot import OneShot
from dpselect.mechanisms.peeling import Peeling
from dpselect.mechanisms.registry import (
    FOR_UNKNOWN_DOMAINS,
    MECHANISMS,
    check_options,
    described_mechanism,
    mechanism_for,
)
from dpselect.mechanisms.restricted import Restricted, RestrictedGumbel, RestrictedNormal
from dpselect.mechanisms.top_stable import TopStable
from dpselect.mechanisms.unknown import PooledDomain, UnknownDomain

__all__ = [
    "FOR_UNKNOWN_DOMAINS",
    "MECHANISMS",
    "BlackBox",
    "Canonical",
    "Discovered",
    "Discovery",
    "Gamma",
    "Gaussian",
    "Joint",
    "Laplace",
    "LimitedDomain",
    "Lipschitz",
    "Mechanism",
    "NoisyVector",
    "OneShot",
    "Peeling",
    "PooledDomain",
    "Restricted",
    "RestrictedGumbel",
    "RestrictedNormal",
    "TopStable",
    "UnknownDomain",
    "automatic_for_unknown",
    "check_options",
    "described_mechanism",
    "mechanism_for",
]
