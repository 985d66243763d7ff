"""Recommendations without revealing the user: a noisy signal goes out, k results come back, the user keeps the best.

* `optimal_offsets(k, epsilon)`, `expected_cost(k, epsilon)`: where the k answers should lie, and what they cost
* `Client(epsilon)`, `Server(catalogue, k, epsilon)`: the user's side adds noise and chooses, the server's side answers
* `optimal_ring(k, epsilon)`, `RingClient(ring)`, `RingServer(catalogue, ring)`: the same on a ring, where Laplace noise
  is not the best (`compare_rings`)
* `FeatureClient(epsilon, dimensions)`, `FeatureServer(vectors, k, epsilon)`: the same with feature vectors
* `QualityModel(bilinear)`: a model that a server may send, by which `choose` finds the best result
* `Geographic(g)`, `quantile_answers(k, noise)`: other promises, and answers to other noises

The proofs are in `multiselect.md`, `noise.md`, `ring.md` and `features.md`.
"""

from dpselect.multiselect.around import RingClient, RingServer
from dpselect.multiselect.catalogue import Catalogue, Result, catalogue_cost, shift_needed
from dpselect.multiselect.client import Client
from dpselect.multiselect.comparison import RingComparison, compare_rings
from dpselect.multiselect.disutility import Disutility, as_disutility
from dpselect.multiselect.features import FeatureClient, FeatureResult, FeatureServer
from dpselect.multiselect.noise import Geographic, GridNoise
from dpselect.multiselect.offsets import Answers, best_answers, expected_cost, optimal_offsets
from dpselect.multiselect.quality import QualityModel
from dpselect.multiselect.quantiles import (
    Noise,
    QuantileAnswers,
    noise_cost,
    quantile_answers,
    quantile_bound,
    quantile_offsets,
)
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
    "QualityModel",
    "QuantileAnswers",
    "Result",
    "Ring",
    "RingClient",
    "RingComparison",
    "RingServer",
    "Server",
    "Simulation",
    "as_disutility",
    "best_answers",
    "catalogue_cost",
    "checked_signal",
    "compare_rings",
    "expected_cost",
    "laplace_ring",
    "noise_cost",
    "optimal_offsets",
    "optimal_ring",
    "quantile_answers",
    "quantile_bound",
    "quantile_offsets",
    "shift_needed",
    "simulate",
    "simulate_catalogue",
    "simulate_up_to",
]
