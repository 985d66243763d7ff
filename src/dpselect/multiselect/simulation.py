"""Simulated users, signals and answers: the mean cost of many trials beside the expected cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray, IndexArray
from dpselect._numbers import NORMAL_95, positive_integer, positive_number, seed_or_none
from dpselect.errors import InvalidInput
from dpselect.multiselect.disutility import as_disutility, checked_rate
from dpselect.multiselect.offsets import checked_answers, expected_cost, optimal_offsets
from dpselect.multiselect.server import Server

_BATCH = 1_000_000


@dataclass(frozen=True)
class Simulation:
    """The mean cost of many trials, and the expected cost; made by `simulate`.

    Attributes
    ----------
    k, epsilon, disutility, trials
        What was simulated; the disutility by its name.
    cost
        Mean cost of the trials.
    low, high
        The 95% confidence interval of the mean.
    theory
        The expected cost, for noise without a grid.

    Examples
    --------
    >>> from dpselect.multiselect import simulate
    >>> simulate(3, epsilon=1.0, trials=1000, seed=1).theory
    0.5
    """

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
    """Simulations for several k, ascending; made by `simulate_up_to`."""

    parts: tuple[Simulation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the simulations as plain data."""
        return {"simulations": [part.to_dict() for part in self.parts]}

    def plot(self, axes: Any = None) -> Any:
        """Draw the costs against k, and return the axes."""
        from dpselect.multiselect.picture import draw_costs

        return draw_costs(self.parts, axes)

    def _repr_html_(self) -> str:
        from dpselect._show import table_html

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

    Without a grid the noise is Laplace(1/ε), and the theory is `expected_cost`. With a grid, users are at any position,
    round to the grid and add two-sided geometric noise, as `Client` does; the finer the grid, the nearer the cost is to
    the same theory. The noise comes from NumPy: never send it as a signal.

    Parameters
    ----------
    k, epsilon, disutility
        As in `optimal_offsets`.
    trials
        Number of simulated users.
    grid
        Step of the grid; None for continuous noise.
    seed
        For reproducible trials.

    Returns
    -------
    Simulation

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import simulate
    >>> found = simulate(3, epsilon=1.0, trials=10_000, seed=1)
    >>> found.low < found.theory < found.high
    True
    """
    k, epsilon = checked_answers(k), checked_rate(epsilon)
    trials = positive_integer("trials", trials)
    step = None if grid is None else positive_number("grid", grid)
    if step is not None and not 1e-100 <= epsilon * step <= 1e100:
        raise InvalidInput("grid", grid, f"must be from {1e-100 / epsilon:g} to {1e100 / epsilon:g}")
    wanted = as_disutility(disutility)
    generator = np.random.default_rng(seed_or_none(seed))
    offsets = optimal_offsets(k, epsilon, wanted)
    theory = expected_cost(k, epsilon, wanted)
    # In units of the theory, so that squares of large or small costs stay within floats.
    unit = theory or 1.0
    count, total, squares = 0, 0.0, 0.0
    while count < trials:
        size = min(_BATCH, trials - count)
        costs = wanted(_answer_distances(_draw_noise(epsilon, step, size, generator), offsets)) / unit
        count, total, squares = count + size, total + costs.sum(), squares + np.square(costs).sum()
    mean = float(total / trials)
    variance = max(float(squares / trials) - mean**2, 0.0) * trials / max(trials - 1, 1)
    error = NORMAL_95 * math.sqrt(variance / trials) if trials > 1 else math.inf
    low, high = max(mean - error, 0.0), mean + error
    return Simulation(k, epsilon, wanted.name, trials, mean * unit, low * unit, high * unit, theory)


def simulate_up_to(k: int, epsilon: float, disutility: object = "linear", **settings: Any) -> Simulations:
    """Return simulations for 1, 2, 3 … k answers, or for about a dozen numbers up to k if k is larger than 12.

    Parameters
    ----------
    k
        Largest number of answers.
    epsilon, disutility, settings
        As in `simulate`.

    Returns
    -------
    Simulations

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import simulate_up_to
    >>> len(simulate_up_to(500, epsilon=1.0, trials=10, seed=1).parts) <= 12
    True
    """
    k = checked_answers(k)
    steps = range(1, k + 1) if k <= 12 else sorted({round(size) for size in np.geomspace(1, k, 12).tolist()})
    return Simulations(tuple(simulate(size, epsilon, disutility, **settings) for size in steps))


def simulate_catalogue(
    server: Server, stretch: tuple[float, float], *, grid: float, users: int = 4000, seed: int = 0
) -> tuple[float, float]:
    """Return the mean distance from users to the result they keep, and half the width of its 95% interval.

    The users are spread evenly over a public range. Each sends one signal on the grid and keeps the nearest of the
    results in the answer. Unlike `expected_cost`, the mean depends on the distances between results of the catalogue.

    Parameters
    ----------
    server
        A server with a catalogue.
    stretch
        Lowest and highest position of a user.
    grid
        Step of the grid that signals lie on.
    users
        Number of simulated users.
    seed
        For reproducible noise.

    Returns
    -------
    tuple[float, float]

    Examples
    --------
    >>> from dpselect.multiselect import Server, simulate_catalogue
    >>> shops = Server([0.4, 3.1, 5.0, 7.9, 9.6], k=5, epsilon=1.0)
    >>> mean, margin = simulate_catalogue(shops, (0.4, 9.6), grid=0.01)
    >>> round(mean, 2)
    0.6
    """
    assert server.catalogue is not None
    positions = server.catalogue.positions
    generator = np.random.default_rng(seed_or_none(seed))
    share = (np.arange(users) + 0.5) / users
    places = stretch[0] * (1 - share) + stretch[1] * share
    signals = places + _draw_noise(server.epsilon, grid, users, generator)
    by_distance = server.offsets[np.argsort(np.abs(server.offsets), kind="stable")]
    kept = positions[_nearest_by_row(positions, signals[:, None] + by_distance)]
    distances = np.abs(kept - places[:, None]).min(axis=1)
    # In units of the largest, so that squares stay within floats.
    unit = float(distances.max()) or 1.0
    return float(distances.mean()), NORMAL_95 * float(np.std(distances / unit)) * unit / math.sqrt(users)


def _nearest_by_row(positions: FloatArray, targets: FloatArray) -> IndexArray:
    """Return what `Catalogue.nearest` returns, for many rows of targets at once."""
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


def _draw_noise(epsilon: float, step: float | None, size: int, generator: np.random.Generator) -> FloatArray:
    """Return differences between signals and their users."""
    if step is None:
        return generator.laplace(scale=1 / epsilon, size=size)
    # The whole part of an exponential variable is geometric; as a float it cannot overflow.
    steps = np.subtract(*np.floor(generator.exponential(1 / (epsilon * step), (2, size))))
    rounding = generator.uniform(-0.5, 0.5, size)
    return np.asarray((steps + rounding) * step, dtype=np.float64)


def _answer_distances(noise: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the distance from each user, who is at −noise from the signal, to the nearest answer."""
    middles = (offsets[1:] + offsets[:-1]) / 2
    return np.asarray(np.abs(-noise - offsets[np.searchsorted(middles, -noise)]), dtype=np.float64)
