"""Feature vectors with Gaussian noise: the paper's rate in d' dimensions, on ratings that are generated here.

The study is ours: the paper refers to ratings of films that we do not have (multi-selection, section 1.1.1 and
extension A).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._format import three_digits
from dpselect._pictures import greys
from dpselect.multiselect import FeatureClient, FeatureServer
from dpselect.reproduce.data import Data
from dpselect.reproduce.drawing import legend, line, log_axis, panels
from dpselect.reproduce.judging import Mean, is_more
from dpselect.reproduce.study import Claim, Point, Row, Study, Verdict, counted, seed_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VIEWERS, FILMS, FEATURES = 600, 2000, 10
TRAINING_SHARE, SEEN_SHARE = 0.75, 0.1
EPSILONS, DELTA = (4.0, 16.0, 64.0), 1e-6
DIMENSIONS = (1, 2, 3)
ANSWERS = (1, 2, 4, 8, 16, 32)


def generated_ratings() -> tuple[FloatArray, FloatArray]:
    """Return stars from 1 to 5 of viewers for films, centred by film, and which of them were given (1 or 0).

    Tastes and films are normal vectors whose later coordinates matter less, and some films are seen more often.
    """
    generator = np.random.default_rng(0)
    weights = 1 / np.sqrt(np.arange(1, FEATURES + 1))
    tastes = generator.normal(size=(VIEWERS, FEATURES)) * weights
    films = generator.normal(size=(FILMS, FEATURES)) * weights
    opinions = 3 + tastes @ films.T / 2 + generator.normal(size=(VIEWERS, FILMS)) / 2
    fame = generator.exponential(SEEN_SHARE, FILMS)
    seen = (generator.uniform(size=(VIEWERS, FILMS)) < fame).astype(np.float64)
    stars = np.clip(np.round(opinions), 1, 5)
    means = (stars * seen).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return (stars - means) * seen, seen


@lru_cache(maxsize=1)
def films_and_viewers() -> tuple[FloatArray, FloatArray]:
    """Return the vectors of films, and of viewers who were not in the training data.

    A film's vector is its direction in the leading factors of the training viewers' stars. A viewer's vector is the
    mean of the vectors of the films they rated, weighted by their stars. The unit is the mean Euclidean distance
    between two viewers.
    """
    centred, _ = generated_ratings()
    trained, held_out = np.split(centred, [int(TRAINING_SHARE * VIEWERS)])
    _, strengths, directions = np.linalg.svd(trained, full_matrices=False)
    factors = (directions[:FEATURES] * strengths[:FEATURES, None]).T
    films = factors / np.maximum(np.linalg.norm(factors, axis=1, keepdims=True), 1e-12)
    viewers = held_out @ films / np.maximum(np.abs(held_out).sum(axis=1, keepdims=True), 1e-12)
    unit = np.linalg.norm(viewers - np.roll(viewers, 1, axis=0), axis=1).mean()
    return films / unit, viewers / unit


def zador_bound(k: int, dimensions: int, sigma: float) -> float:
    """Return Zador's bound on the cost of k points for normal noise of standard deviation σ in d' dimensions.

    `σ k^{−1/d'} Γ(1 + 1/d') V^{−1/d'} (∫ f^{d'/(d'+1)})^{(d'+1)/d'}`, V the volume of the unit ball and f the standard
    normal density, for which the last factor is `√(2π) ((d'+1)/d')^{(d'+1)/2}`. It holds as k grows.
    """
    ball = math.pow(math.pi, dimensions / 2) / math.gamma(dimensions / 2 + 1)
    spread = math.sqrt(2 * math.pi) * math.pow((dimensions + 1) / dimensions, (dimensions + 1) / 2)
    shrunk = math.pow(k * ball, -1 / dimensions)
    return sigma * shrunk * math.gamma(1 + 1 / dimensions) * spread


def _points(quick: bool) -> list[Point]:
    epsilons, dimensions = ((16.0,), (1, 2)) if quick else (EPSILONS, DIMENSIONS)
    answers, draws = ((1, 4, 16), 2) if quick else (ANSWERS, 10)
    return [
        {"epsilon": epsilon, "dimensions": own, "answers": list(answers), "draws": draws}
        for epsilon in epsilons
        for own in dimensions
    ]


def _errors(point: Point, data: Data) -> Iterator[Row]:
    """Yield for each k how much farther the kept film is than the best one, in d' dimensions: mean, standard error."""
    films, viewers = films_and_viewers()
    epsilon, dimensions = point["epsilon"], point["dimensions"]
    settings: dict[str, Any] = {"noise": "gaussian", "delta": DELTA}
    client = FeatureClient(epsilon, FEATURES, seed=seed_of(point), **settings)
    signals = [[client.signal(viewer) for _ in range(point["draws"])] for viewer in viewers]
    first = FeatureServer(films, 1, epsilon, dimensions=dimensions, **settings)
    reduced = first.reduce(films)
    distances = np.linalg.norm(reduced - first.reduce(viewers)[:, None], axis=2)
    for k in point["answers"]:
        server = first.resized(k, epsilon)
        kept = [
            np.mean([own[server.places(signal)].min() for signal in sent])
            for own, sent in zip(distances, signals, strict=True)
        ]
        excess = np.array(kept) - distances.min(axis=1)
        yield {
            "epsilon": epsilon,
            "dimensions": dimensions,
            "k": k,
            "sigma": client.scale,
            "error": excess.mean(),
            "standard_error": excess.std(ddof=1) / math.sqrt(len(excess)),
            "viewers": len(excess),
            "bound": zador_bound(k, dimensions, client.scale),
        }


def _judge(rows: list[Row]) -> Verdict:
    checks = [
        Claim(
            f"epsilon = {row['epsilon']:g}, d' = {row['dimensions']}, k =",
            f"{row['k']}",
            is_more(Mean(row["bound"]), Mean(row["error"], row["standard_error"], row["viewers"]), len(rows)),
        )
        for row in rows
    ]
    worst = max(rows, key=lambda row: row["error"] / row["bound"])
    unsure = max(row["standard_error"] / row["error"] for row in rows)
    shown = [row for row in rows if row["epsilon"] == 16]
    falls = "; ".join(
        f"d' = {own[0]['dimensions']}: " + ", ".join(f"{three_digits(row['error'])} (k = {row['k']})" for row in own)
        for dimensions in sorted({row["dimensions"] for row in shown})
        for own in [[row for row in shown if row["dimensions"] == dimensions]]
    )
    figure = f"the error is at most {worst['error'] / worst['bound']:.2f} of Zador's bound, c sigma / k^(1/d')"
    text = (
        f"Over all settings {figure}. The error is how much farther the kept film is than the best film, in the d' "
        f"directions in which the server searches. Errors are means over {worst['viewers']} viewers, with standard "
        f"errors of at most {100 * unsure:.0f}% of the mean. The paper's epsilon is the inverse of the mean noise, so "
        f"it is proportional to 1/sigma; ours is that of the guarantee with delta = {DELTA:g}. At epsilon = 16, in "
        f"units of the mean distance between two viewers, the error is: {falls}. This study is ours: the stars of "
        f"{VIEWERS} viewers for {FILMS:,} films are generated. A quarter of the viewers are not in the training data "
        "and send their vectors with exact noise."
    )
    return counted(checks, figure, text)


def _draw(rows: list[Row]) -> Figure:
    dimensions = sorted({row["dimensions"] for row in rows})
    figure, axes = panels(1, len(dimensions), height=2.9, sharey=True)
    for place, count in zip(axes.flat, dimensions, strict=True):
        epsilons = sorted({row["epsilon"] for row in rows})
        for epsilon, style in zip(epsilons, greys(len(epsilons)), strict=True):
            own = [row for row in rows if (row["dimensions"], row["epsilon"]) == (count, epsilon)]
            answers = [row["k"] for row in own]
            line(place, answers, [row["error"] for row in own], style, f"epsilon = {epsilon:g}")
            plain = {"color": style.color, "linestyle": style.linestyle, "linewidth": 0.6}
            place.plot(answers, [row["bound"] for row in own], **plain, label="_")
        place.plot([], [], color="0.3", linewidth=0.6, label="Zador's bound (thin)")
        place.set_title(f"d' = {count}", fontsize=10)
        place.set_xlabel("k", fontsize=9)
        log_axis(place)
        log_axis(place, "y")
    axes[0, 0].set_ylabel("mean error in d' dimensions", fontsize=9)
    legend(figure, axes[0, 0], columns=4)
    return figure


STUDY = Study(
    name="features",
    title="feature vectors with Gaussian noise, on generated ratings (ours)",
    claim="If users add Gaussian noise to every feature and the server searches in d' dimensions, the error of the "
    "best of k results is O(1/(epsilon k^(1/d'))).",
    short="an error of O(1/(epsilon k^(1/d')))",
    data=(),
    points=_points,
    compute=_errors,
    judge=_judge,
    draw=_draw,
    quick_only="epsilon = 16, d' = 1, 2 and k = 1, 4, 16 only",
)
