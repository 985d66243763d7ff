"""Recommendations without revealing the user: a noisy signal goes out, k results come back, the user keeps the best.

* `optimal_offsets(k, epsilon)`, `expected_cost(k, epsilon)`: where the k answers should lie, and what they cost
* `Client(epsilon)`, `Server(catalogue, k, epsilon)`: the user's side adds noise and chooses, the server's side answers
* `optimal_ring(k, epsilon)`, `laplace_ring(k, epsilon)`: both sides on a `Ring`, where Laplace noise is not the best
* `FeatureClient(epsilon, dimensions)`, `FeatureServer(vectors, k, epsilon)`: both sides with feature vectors

The proofs are in `multiselect.md`, `noise.md`, `ring.md` and `features.md`.
"""

from dpselect.multiselect.catalogue import Catalogue, Result, catalogue_cost, shift_needed
from dpselect.multiselect.client import Client
from dpselect.multiselect.disutility import Disutility, as_disutility
from dpselect.multiselect.features import FeatureClient, FeatureResult, FeatureServer
from dpselect.multiselect.noise import Geographic, GridNoise
from dpselect.multiselect.offsets import Answers, best_answers, expected_cost, optimal_offsets
from dpselect.multiselect.quantiles import Noise, noise_cost, quantile_bound, quantile_offsets
from dpselect.multiselect.ring import Ring, laplace_ring, optimal_ring
from dpselect.multiselect.server import Server, checked_signal
from dpselect.multiselect.simulation import Simulation, simulate, simulate_catalogue, simulate_up_to

__all__ = [
    "Answers",
    "Catalogue",
    "Client",
    "Disutility",
    "FeatureClient",
    "FeatureResult",
    "FeatureServer",
    "Geographic",
    "GridNoise",
    "Noise",
    "Result",
    "Ring",
    "Server",
    "Simulation",
    "as_disutility",
    "best_answers",
    "catalogue_cost",
    "checked_signal",
    "expected_cost",
    "laplace_ring",
    "noise_cost",
    "optimal_offsets",
    "optimal_ring",
    "quantile_bound",
    "quantile_offsets",
    "shift_needed",
    "simulate",
    "simulate_catalogue",
    "simulate_up_to",
]
