"""Ranking from comparisons: which share of the true top k is found, with known strengths (oneshot, section 3).

Items meet by the model of Bradley, Terry and Luce. Five ways to rank them: ours (damped walk, canonical mechanism),
ours with little damping, the published route (a promised ρ, one-shot Laplace), the walk without noise, and greatest
likelihood. The published route is promised the true ergodicity coefficient of the private walk, which nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dpselect as dps
from dpselect._arrays import FloatArray
from dpselect._pictures import greys, look, set_title
from dpselect.ranking import DEFAULT_DAMPING, Bounds
from dpselect.ranking.simulate import (
    Contests,
    ergodicity_coefficient,
    ladder,
    simulate_comparisons,
    strengths_of_greatest_likelihood,
)
from dpselect.ranking.walk import Pairs, Walk, stationary
from dpselect.reproduce.drawing import legend, line, log_axis, panels
from dpselect.sampling import bit_source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "share of the true top k that is found, means over simulated comparisons and seeded draws"
NEEDS_DATA = False
SEEDS, DRAWS = 8, 10
LITTLE_DAMPING = 0.1
RATIO = 20.0
"""Strength of the best item divided by that of the last."""

AXES = {"ε": "ε", "items": "items", "comparisons per pair": "L", "damping": "α"}
"""What each panel varies, and the column that holds it."""

STYLE = {
    "ours": look("canonical", default=True),
    "little damping": look("canonical, gumbel"),
    "published, true ρ": look("oneshot, laplace"),
    "walk without noise": greys(2)[0],
    "likelihood without noise": greys(2)[1],
}
"""How each way is drawn: as the mechanism that draws its answer; grey without one."""

HARDLY_ANY = 0.02
"""Share of the best items that hardly counts."""


@dataclass(frozen=True)
class Setting:
    """One point of the grid; `panel` says what is varied around the middle."""

    panel: str
    items: int = 50
    per_pair: int = 20
    share_of_pairs: float = 1.0
    epsilon: float = 1.0
    damping: float = DEFAULT_DAMPING
    k: int = 5

    @property
    def max_degree(self) -> int:
        """A public cap: all others, or a third more than a random schedule gives an item on average."""
        return min(self.items - 1, int(np.ceil(4 / 3 * self.share_of_pairs * (self.items - 1))))


MIDDLE = Setting("")
SETTINGS = [
    *(replace(MIDDLE, panel="ε", epsilon=value) for value in (0.03, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0)),
    *(replace(MIDDLE, panel="items", items=value) for value in (10, 20, 50, 100, 200, 400)),
    *(replace(MIDDLE, panel="comparisons per pair", per_pair=value) for value in (1, 3, 10, 30, 100, 300, 1000)),
    *(
        replace(MIDDLE, panel="damping", share_of_pairs=0.3, per_pair=100, damping=value)
        for value in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)
    ),
]


def rows(data: Path | None = None, settings: list[Setting] = SETTINGS, seeds: int = SEEDS) -> Iterator[dict[str, Any]]:
    """Yield for each setting the mean share that each way finds; `data` is not needed."""
    for setting in settings:
        found = [shares(setting, seed) for seed in range(seeds)]
        yield {
            "data": setting.panel,
            "k": setting.k,
            "items": setting.items,
            "L": setting.per_pair,
            "D": setting.max_degree,
            "ε": setting.epsilon,
            "α": setting.damping,
            **{way: float(np.mean([share[way] for share in found])) for way in found[0]},
        }


def shares(setting: Setting, seed: int) -> dict[str, float]:
    """Return the share of the true top k that each way finds in one simulated set of comparisons."""
    contests = simulate_comparisons(
        ladder(setting.items, ratio=RATIO),
        comparisons_per_pair=setting.per_pair,
        share_of_pairs=setting.share_of_pairs,
        seed=seed,
    )
    caps = partial(Bounds, comparisons_per_pair=setting.per_pair, max_degree=setting.max_degree)
    damped = caps(damping=setting.damping)
    promised = caps(promised_rho=min(ergodicity(walk_of(contests, caps(damping=0.5))), 0.999))
    chosen = partial(dps.Canonical, k=setting.k, epsilon=setting.epsilon)
    laplace = partial(dps.OneShot, k=setting.k, epsilon=setting.epsilon, noise="laplace")
    return {
        "ours": drawn(contests, damped, chosen, setting.k),
        "little damping": drawn(contests, caps(damping=LITTLE_DAMPING), chosen, setting.k),
        "published, true ρ": drawn(contests, promised, laplace, setting.k),
        "walk without noise": of_the_top(scores(contests, damped), setting.k),
        "likelihood without noise": of_the_top(strengths_of_greatest_likelihood(contests), setting.k),
    }


def drawn(contests: Contests, bounds: Bounds, mechanism: Any, k: int) -> float:
    """Return the mean share of the true top k in seeded draws."""
    found = scores(contests, bounds)
    chosen = mechanism(sensitivity=bounds.sensitivity(contests.items))
    return float(np.mean([np.mean(chosen.select(found, seed=seed) < k) for seed in range(DRAWS)]))


def scores(contests: Contests, bounds: Bounds) -> FloatArray:
    """Return the stationary distribution of the comparisons."""
    return stationary(walk_of(contests, bounds), bounds)


def walk_of(contests: Contests, bounds: Bounds) -> Walk:
    """Return the walk of the comparisons, whose items are numbered from the strongest down."""
    never = np.zeros_like(contests.wins)
    pairs = Pairs(contests.items, contests.first, contests.second, contests.wins, contests.losses, never)
    return Walk.of(pairs, bounds, bit_source(1))


def of_the_top(found: FloatArray, k: int) -> float:
    """Return the share of the true top k among the k highest scores."""
    return float(np.mean(np.argsort(-found, kind="stable")[:k] < k))


def ergodicity(walk: Walk) -> float:
    """Return `τ₁(P) = ½ max_ij Σ_l |P_il − P_jl|`, which only the private comparisons tell."""
    matrix = walk.into_winners.toarray().T / walk.denominator
    matrix[np.diag_indices(walk.size)] = 1 - walk.lost / walk.denominator
    return ergodicity_coefficient(matrix)


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw what is found against ε, the number of items, comparisons per pair, and damping."""
    drawing, places = panels(2, 2, width=4.2, height=2.7, sharey=True)
    for axes, (panel, column) in zip(places.flat, AXES.items(), strict=True):
        held = [row for row in rows if row["data"] == panel]
        for way, style in STYLE.items():
            line(axes, [row[column] for row in held], [row[way] for row in held], style, way)
        axes.set_xlabel(panel, fontsize=9)
        axes.set_ylim(-0.03, 1.03)
        if panel != "damping":
            log_axis(axes)
    for axes in places[:, 0]:
        axes.set_ylabel("share of the true top 5", fontsize=9)
    lost = {row["ε"]: row["walk without noise"] - row["ours"] for row in rows if row["data"] == "ε"}
    enough = min((one for one in lost if all(lost[more] <= HARDLY_ANY for more in lost if more >= one)), default=None)
    title = "How many of the true top 5 are found, with noise and without"
    if enough is not None:
        title = f"From epsilon = {enough:g} on, noise costs ours at most {HARDLY_ANY} of the true top 5"
    set_title(drawing, title)
    legend(drawing, places[0, 0])
    return drawing
