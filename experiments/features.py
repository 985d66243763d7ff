"""Feature vectors: the error of the best of k results, against k, ε and the dimensions in which the server looks.

Films of MovieLens (or generated results) have vectors of ten numbers; viewers who were not in the training data send
theirs with noise. Multi-selection claims an error of O(1/(ε k^{1/d'})) in d' dimensions.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._pictures import greys, set_title
from dpselect.multiselect import FeatureServer
from dpselect.multiselect.features import offset_cost
from dpselect.multiselect.vectors import VectorNoise
from dpselect.reproduce.drawing import legend, line, log_axis, panels
from dpselect.sampling import bit_source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLE = "feature vectors: mean distances to the best of k results, in mean ℓ1 distances between two viewers"
NEEDS_DATA = False
DATA_SET = "ml_latest_small"
FEATURES, FEWEST_VIEWERS, TRAINING_SHARE = 10, 5, 0.75
DIMENSIONS = (1, 2, 3)
EPSILONS = (4.0, 16.0, 64.0)
RESULTS = (1, 2, 4, 8, 16, 32)


def films(path: Path) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of films and of viewers who were held out, from rows user,item.

    The matrix of viewers and films is divided by the roots of the sums of its rows and columns, and factored for three
    quarters of the viewers. A film's vector is its direction in the leading factors, without the first, which measures
    popularity. A viewer's vector is the mean of the vectors of their films.
    """
    from scipy import sparse
    from scipy.sparse.linalg import svds

    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        pairs = [(row["user"], row["item"]) for row in csv.DictReader(file)]
    viewers, users = np.unique([user for user, _ in pairs], return_inverse=True)
    names, items = np.unique([item for _, item in pairs], return_inverse=True)
    seen = sparse.csr_matrix((np.ones(len(pairs)), (users, items)), shape=(len(viewers), len(names)))
    mixed = np.random.default_rng(0).permutation(len(viewers))
    trained, held_out = np.split(mixed, [int(TRAINING_SHARE * len(mixed))])
    often = np.asarray(seen[trained].sum(axis=0)).ravel() >= FEWEST_VIEWERS
    matrix = seen[trained][:, often]
    scales = [1 / np.sqrt(np.maximum(np.asarray(matrix.sum(axis=axis)).ravel(), 1)) for axis in (1, 0)]
    balanced = sparse.diags(scales[0]) @ matrix @ sparse.diags(scales[1])
    _, strengths, directions = svds(balanced, k=FEATURES + 1, v0=np.ones(min(balanced.shape)))
    factors = (directions * strengths[:, None])[np.argsort(-strengths)].T
    vectors = factors[:, 1:] / np.linalg.norm(factors, axis=1, keepdims=True)
    own = seen[held_out][:, often]
    counts = np.asarray(own.sum(axis=1)).ravel()
    return _in_units(vectors, np.asarray(own @ vectors)[counts > 0] / counts[counts > 0, None])


def generated(size: int = 3000, people: int = 160) -> tuple[FloatArray, FloatArray]:
    """Return generated vectors that vary mostly in a few directions, and people near some of them."""
    generator = np.random.default_rng(0)
    spread = 1 / np.sqrt(np.arange(1, FEATURES + 1))
    vectors = generator.normal(size=(size, FEATURES)) * spread
    return _in_units(vectors, 0.5 * vectors[:people] + 0.1 * generator.normal(size=(people, FEATURES)) * spread)


def _in_units(vectors: FloatArray, people: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both in units of the mean ℓ1 distance between two people."""
    unit = np.abs(people - np.roll(people, 1, axis=0)).sum(axis=1).mean()
    return vectors / unit, people / unit


def measured(
    server: FeatureServer, people: FloatArray, signals: FloatArray, vectors: FloatArray
) -> tuple[float, float]:
    """Return the mean distances of people to their best result: in the server's dimensions, and in all."""
    answers = np.array([server.places(signal) for signal in signals])
    reduced = np.linalg.norm(server.reduce(vectors)[answers] - server.reduce(people)[:, None], axis=2).min(axis=1)
    whole = np.linalg.norm(vectors[answers] - people[:, None], axis=2).min(axis=1)
    return float(reduced.mean()), float(whole.mean())


def rows(
    data: Path | None, epsilons: tuple[float, ...] = EPSILONS, results: tuple[int, ...] = RESULTS
) -> Iterator[dict[str, Any]]:
    """Yield the errors for each data set, d', ε and k, with the exact noise of the client from a seed."""
    sets = {"generated": generated()}
    path = None if data is None else data / DATA_SET / "pairs.csv.gz"
    if path is not None and path.is_file():
        sets = {DATA_SET: films(path), **sets}
    for name, (vectors, people) in sets.items():
        nearest = float(np.mean([np.linalg.norm(vectors - person, axis=1).min() for person in people]))
        for epsilon in epsilons:
            noise, bits = VectorNoise(epsilon, FEATURES), bit_source(1)
            signals = np.array([noise.position(noise.draw(noise.nearest(person), bits)) for person in people])
            for dimensions in DIMENSIONS:
                for k in results:
                    server = FeatureServer(vectors, k, epsilon, dimensions=dimensions)
                    error, whole = measured(server, people, signals, vectors)
                    yield {
                        "data": name,
                        "k": k,
                        "ε": epsilon,
                        "d'": dimensions,
                        "error in d'": error,
                        "of the offsets": offset_cost(server.offsets, epsilon, server.directions),
                        "ε k^(1/d') error": epsilon * k ** (1 / dimensions) * error,
                        "error in all": whole,
                        "without noise": nearest,
                    }


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw the error in the server's dimensions against k, a panel for each d', and the error due to noise alone."""
    name = rows[0]["data"]
    dimensions, falls = sorted({row["d'"] for row in rows}), []
    drawn, axes = panels(1, len(dimensions), height=2.9, sharey=True)
    for place, count in zip(axes.flat, dimensions, strict=True):
        epsilons = sorted({row["ε"] for row in rows})
        for epsilon, style in zip(epsilons, greys(len(epsilons)), strict=True):
            own = [row for row in rows if (row["data"], row["d'"], row["ε"]) == (name, count, epsilon)]
            errors = [row["error in d'"] for row in own]
            line(place, [row["k"] for row in own], errors, style, f"epsilon = {epsilon:g}")
            theory = [row["of the offsets"] for row in own]
            place.plot([row["k"] for row in own], theory, color="0.6", linewidth=0.8, label="_")
        falls.append(f"{errors[0] / errors[-1]:.2g} times for d' = {count}")
        place.plot([], [], color="0.6", linewidth=0.8, label="due to noise alone")
        place.set_title(f"{name}, d' = {count}", fontsize=10)
        place.set_xlabel("k", fontsize=9)
        log_axis(place)
        log_axis(place, "y")
    axes[0, 0].set_ylabel("mean error in d' dimensions", fontsize=9)
    title = f"From k = {own[0]['k']} to {own[-1]['k']} at epsilon = {epsilon:g} the error falls {', '.join(falls)}"
    set_title(drawn, title)
    legend(drawn, axes[0, 0], columns=4)
    return drawn
