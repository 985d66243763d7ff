"""Users and results in different sets: what the answers cost when only some positions have a result of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpselect._arrays import FloatArray
from dpselect._numbers import finite_number
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.costs import given_offsets
from dpselect.multiselect.disutility import as_disutility
from dpselect.multiselect.moments import checked_rate
from dpselect.multiselect.offsets import checked_answers, optimal_offsets


def shift_needed(user: float, results: npt.ArrayLike) -> FloatArray:
    """Return for each result, by ascending position, how far the user would have to move for it to be their best.

    A result m is best for whoever is nearest to it: `inf {|u − u'| : OPT(u') = m}`. Source: multi-selection,
    definition 3.
    """
    borders = _borders(results)
    low, high = np.concatenate([[-np.inf], borders]), np.concatenate([borders, [np.inf]])
    place = float(finite_number("user", user))
    return np.maximum(np.maximum(low - place, place - high), 0.0)


def catalogue_cost(
    user: float,
    results: npt.ArrayLike,
    answers: int | npt.ArrayLike,
    epsilon: float,
    disutility: object = "linear",
) -> float:
    """Return the exact expected cost for one user when the answers to s are the results nearest to `s + a_i`.

    `E min_i h(inf {|u − u'| : OPT(u') = OPT(s + a_i)})` with s ~ Laplace(1/ε) about u. The set of answers changes
    with s at finitely many places, so that this is a finite sum. It is at most `expected_cost(answers, …)` for every
    user and all results. Source: multi-selection, theorem 25; multiselect.md.
    """
    epsilon, h = checked_rate(epsilon), as_disutility(disutility)
    whole = np.ndim(answers) == 0
    offsets = optimal_offsets(checked_answers(answers), epsilon, h) if whole else given_offsets(answers)
    borders = _borders(results)
    moves = h(shift_needed(user, results))
    place = float(finite_number("user", user))
    changes = np.unique(np.subtract.outer(borders, offsets)) - place
    ends = np.concatenate([[-np.inf], changes, [np.inf]])
    middles = np.concatenate([changes[:1] - 1, (changes[1:] + changes[:-1]) / 2, changes[-1:] + 1])
    if not len(changes):
        return float(moves.min())
    chosen = np.searchsorted(borders, np.add.outer(middles + place, offsets))
    return float(_masses(ends, epsilon) @ moves[chosen].min(axis=1))


def _borders(results: npt.ArrayLike) -> FloatArray:
    """Return the places halfway between neighbouring results."""
    try:
        positions = np.unique(np.asarray(results, dtype=np.float64))
    except (TypeError, ValueError):
        positions = np.array([])
    if not positions.size or not np.isfinite(positions).all():
        raise InvalidInput("results", plain("something else"), "a list of at least one finite position is needed")
    return np.asarray((positions[1:] + positions[:-1]) / 2)


def _masses(ends: FloatArray, epsilon: float) -> FloatArray:
    """Return the probability of each interval between ends under Laplace(1/ε), each side by itself to keep digits."""
    scaled = epsilon * ends
    below = np.exp(np.minimum(scaled, 0)) / 2
    above = np.exp(-np.maximum(scaled, 0)) / 2
    return np.asarray(np.diff(below) - np.diff(above))
