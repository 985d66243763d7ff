"""Recommendations that never see the user: a noisy signal goes out, k results come back, the user keeps the best.

* `optimal_offsets(k, epsilon)`, `expected_cost(k, epsilon)`: where the k answers should lie, and what they cost
* `Client(epsilon)`, `Server(catalogue, k, epsilon)`: the user's side, which adds the noise and chooses, and the other
* `optimal_ring(k, epsilon)`, `laplace_ring(k, epsilon)`: both sides on a `Ring`, where Laplace noise is not the best
* `FeatureClient(epsilon, dimensions)`, `FeatureServer(vectors, k, epsilon)`: both sides with feature vectors

Each name is loaded when first asked for. The proofs are in `multiselect.md`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpselect.multiselect.answers import Answers as Answers
    from dpselect.multiselect.answers import best_answers as best_answers
    from dpselect.multiselect.catalogue import Catalogue as Catalogue
    from dpselect.multiselect.catalogue import Result as Result
    from dpselect.multiselect.client import Client as Client
    from dpselect.multiselect.costs import expected_cost as expected_cost
    from dpselect.multiselect.disutility import Disutility as Disutility
    from dpselect.multiselect.disutility import as_disutility as as_disutility
    from dpselect.multiselect.feature_server import FeatureResult as FeatureResult
    from dpselect.multiselect.feature_server import FeatureServer as FeatureServer
    from dpselect.multiselect.features import FeatureClient as FeatureClient
    from dpselect.multiselect.geographic import Geographic as Geographic
    from dpselect.multiselect.offsets import optimal_offsets as optimal_offsets
    from dpselect.multiselect.quantiles import Noise as Noise
    from dpselect.multiselect.quantiles import noise_cost as noise_cost
    from dpselect.multiselect.quantiles import quantile_bound as quantile_bound
    from dpselect.multiselect.quantiles import quantile_offsets as quantile_offsets
    from dpselect.multiselect.ring import Ring as Ring
    from dpselect.multiselect.ring import laplace_ring as laplace_ring
    from dpselect.multiselect.ring import optimal_ring as optimal_ring
    from dpselect.multiselect.server import Server as Server
    from dpselect.multiselect.server import checked_signal as checked_signal
    from dpselect.multiselect.sets import catalogue_cost as catalogue_cost
    from dpselect.multiselect.sets import shift_needed as shift_needed
    from dpselect.multiselect.simulation import Simulation as Simulation
    from dpselect.multiselect.simulation import simulate as simulate
    from dpselect.multiselect.simulation import simulate_catalogue as simulate_catalogue
    from dpselect.multiselect.simulation import simulate_up_to as simulate_up_to

_HOMES = {
    "Answers": "answers",
    "best_answers": "answers",
    "Geographic": "geographic",
    "Noise": "quantiles",
    "noise_cost": "quantiles",
    "quantile_bound": "quantiles",
    "quantile_offsets": "quantiles",
    "catalogue_cost": "sets",
    "shift_needed": "sets",
    "Simulation": "simulation",
    "simulate": "simulation",
    "simulate_catalogue": "simulation",
    "simulate_up_to": "simulation",
    "Catalogue": "catalogue",
    "Client": "client",
    "Disutility": "disutility",
    "as_disutility": "disutility",
    "expected_cost": "costs",
    "optimal_offsets": "offsets",
    "Result": "catalogue",
    "FeatureClient": "features",
    "FeatureResult": "feature_server",
    "FeatureServer": "feature_server",
    "Ring": "ring",
    "laplace_ring": "ring",
    "optimal_ring": "ring",
    "Server": "server",
    "checked_signal": "server",
}
"""Which module of this package each public name is in."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Load the module that a public name is in."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted([*globals(), *_HOMES])
