"""Many trials of a user, a signal and k answers: the cost that was met against the one computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray, IndexArray
from dpselect._numbers import positive_integer, positive_number, seed_or_none
from dpselect.errors import InvalidInput
from dpselect.multiselect.costs import expected_cost
from dpselect.multiselect.disutility import as_disutility
from dpselect.multiselect.moments import checked_rate
from dpselect.multiselect.offsets import checked_answers, optimal_offsets
from dpselect.multiselect.server import Server

_NORMAL = 1.959963984540054
"""The standard normal lies between minus and plus this with probability 0.95."""
_BATCH = 1_000_000


@dataclass(frozen=True)
class Simulation:
    """The mean cost of many trials with its interval of 95%, and the cost in theory."""

    k: int
    epsilon: float
    disutility: str
    trials: int
    cost: float
    low: float
    high: float
    theory: float

    def to_dict(self) -> dict[str, Any]:
        """Return the simulation as plain data."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class Simulations:
    """Simulations for several k, to be shown together."""

    parts: tuple[Simulation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the simulations as plain data."""
        return {"simulations": [part.to_dict() for part in self.parts]}

    def plot(self, axes: Any = None) -> Any:
        """Draw the costs against k, and return the axes."""
        from dpselect.multiselect.picture import draw_costs

        return draw_costs(self.parts, axes)

    def _repr_html_(self) -> str:
        from dpselect._html import table_html

        rows = [
            [str(part.k), f"{part.cost:.4g}", f"{part.low:.4g} to {part.high:.4g}", f"{part.theory:.4g}"]
            for part in self.parts
        ]
        title = f"Expected cost at epsilon = {self.parts[0].epsilon:g}"
        return table_html(title, ["answers", "simulated", "95% interval", "theory"], rows)


def simulate(
    k: int,
    epsilon: float,
    disutility: object = "linear",
    *,
    trials: int = 100_000,
    grid: float | None = None,
    seed: int | None = None,
) -> Simulation:
    """Return the mean of `min_i h(|s + a_i − u|)` over many signals s of users u.

    Without a grid the noise is Laplace(1/ε), whose theory is `expected_cost`. With one, users lie anywhere, round to
    the grid and add two-sided geometric noise, as `Client` does: as the step falls the cost tends to the same theory.
    The noise comes from NumPy: it is for estimates, never for a signal that is sent.
    """
    k, epsilon = checked_answers(k), checked_rate(epsilon)
    trials = positive_integer("trials", trials)
    step = None if grid is None else positive_number("grid", grid)
    if step is not None and not 1e-100 <= epsilon * step <= 1e100:
        raise InvalidInput("grid", grid, f"a step between {1e-100 / epsilon:g} and {1e100 / epsilon:g} is needed")
    wanted = as_disutility(disutility)
    generator = np.random.default_rng(seed_or_none(seed))
    offsets = optimal_offsets(k, epsilon, wanted)
    theory = expected_cost(k, epsilon, wanted)
    # In units of the theory, so that squares of large or small costs stay within floats.
    unit = theory or 1.0
    count, total, squares = 0, 0.0, 0.0
    while count < trials:
        size = min(_BATCH, trials - count)
        costs = wanted(_misses(_noise(epsilon, step, size, generator), offsets)) / unit
        count, total, squares = count + size, total + costs.sum(), squares + np.square(costs).sum()
    mean = float(total / trials)
    variance = max(float(squares / trials) - mean**2, 0.0) * trials / max(trials - 1, 1)
    error = _NORMAL * math.sqrt(variance / trials) if trials > 1 else math.inf
    low, high = max(mean - error, 0.0), mean + error
    return Simulation(k, epsilon, wanted.name, trials, mean * unit, low * unit, high * unit, theory)


def simulate_up_to(k: int, epsilon: float, disutility: object = "linear", **settings: Any) -> Simulations:
    """Return simulations for 1, 2, 3 … k answers, or for about a dozen numbers up to k where it is large.

    The settings are those of `simulate`.
    """
    k = checked_answers(k)
    steps = range(1, k + 1) if k <= 12 else sorted({round(size) for size in np.geomspace(1, k, 12).tolist()})
    return Simulations(tuple(simulate(size, epsilon, disutility, **settings) for size in steps))


def simulate_catalogue(
    server: Server, stretch: tuple[float, float], *, grid: float, users: int = 4000, seed: int = 0
) -> tuple[float, float]:
    """Return the mean distance from users to the result they keep, and half the width of its interval of 95%.

    The users are spread evenly over a public stretch. Each sends one signal on the grid and keeps the nearest of the
    results that the server answers with. So the mean is over positions and noise, and, unlike `expected_cost`, it
    depends on how far apart the results of the catalogue lie.
    """
    assert server.catalogue is not None
    positions = server.catalogue.positions
    generator = np.random.default_rng(seed_or_none(seed))
    share = (np.arange(users) + 0.5) / users
    places = stretch[0] * (1 - share) + stretch[1] * share
    signals = places + _noise(server.epsilon, grid, users, generator)
    by_distance = server.offsets[np.argsort(np.abs(server.offsets), kind="stable")]
    kept = positions[_nearest_of_each(positions, signals[:, None] + by_distance)]
    distances = np.abs(kept - places[:, None]).min(axis=1)
    # In units of the largest, so that squares stay within floats.
    unit = float(distances.max()) or 1.0
    return float(distances.mean()), _NORMAL * float(np.std(distances / unit)) * unit / math.sqrt(users)


def _nearest_of_each(positions: FloatArray, targets: FloatArray) -> IndexArray:
    """Return what `Catalogue.nearest` returns for each row of targets, for many rows at once."""
    start, last = np.searchsorted(positions, targets), len(positions)
    chosen = np.empty_like(start)
    for column in range(targets.shape[1]):
        target, taken = targets[:, column], chosen[:, :column]
        below, above = start[:, column] - 1, start[:, column]
        while (used := (taken == below[:, None]).any(axis=1)).any():
            below = below - used
        while (used := (taken == above[:, None]).any(axis=1)).any():
            above = above + used
        down = np.where(below >= 0, target - positions[below], np.inf)
        up = np.where(above < last, positions[np.minimum(above, last - 1)] - target, np.inf)
        chosen[:, column] = np.where(down <= up, below, above)
    return chosen


def _noise(epsilon: float, step: float | None, size: int, generator: np.random.Generator) -> FloatArray:
    """Return what separates signals from their users."""
    if step is None:
        return generator.laplace(scale=1 / epsilon, size=size)
    # The whole part of an exponential variable is geometric; as a float it has no largest value.
    steps = np.subtract(*np.floor(generator.exponential(1 / (epsilon * step), (2, size))))
    rounding = generator.uniform(-0.5, 0.5, size)
    return np.asarray((steps + rounding) * step, dtype=np.float64)


def _misses(noise: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the distance from each user, at −noise from their signal, to the nearest answer."""
    middles = (offsets[1:] + offsets[:-1]) / 2
    return np.asarray(np.abs(-noise - offsets[np.searchsorted(middles, -noise)]), dtype=np.float64)
