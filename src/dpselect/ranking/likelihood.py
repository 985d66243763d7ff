"""Strengths of greatest likelihood: what one would use without privacy, to compare with. Nothing here is private."""

from __future__ import annotations

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._numbers import positive_number
from dpselect.errors import DpSelectError
from dpselect.ranking.simulate import Contests


def strengths_of_greatest_likelihood(contests: Contests, *, prior: float = 0.1) -> FloatArray:
    """Return the strengths ω under which the comparisons are most likely. NOT private: never publish what rests on it.

    Maximises `Σ_ij n_ij log(ω_i / (ω_i + ω_j))` in log ω, a concave function; n_ij: how often i won against j. So that
    a maximum exists where items never met, never lost or never won, each item also wins and loses `prior` comparisons
    with an imaginary item of strength 1. Model: Bradley and Terry (1952).

    >>> from dpselect.ranking.simulate import ladder, simulate
    >>> contests = simulate(ladder(4, ratio=8.0), comparisons_per_pair=1000, seed=1)
    >>> strengths_of_greatest_likelihood(contests).argsort()[::-1].tolist()
    [0, 1, 2, 3]
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    pull = positive_number("prior", prior)
    first, second, items = contests.first, contests.second, contests.items
    met = contests.wins + contests.losses
    scale = 1 / (met.sum() / items + pull)

    def loss(logarithms: FloatArray) -> tuple[float, FloatArray]:
        lead = logarithms[first] - logarithms[second]
        value = contests.wins @ np.logaddexp(0.0, -lead) + contests.losses @ np.logaddexp(0.0, lead)
        value += pull * (np.logaddexp(0.0, -logarithms) + np.logaddexp(0.0, logarithms)).sum()
        slope = met * expit(lead) - contests.wins
        gradient = pull * (2 * expit(logarithms) - 1)
        gradient += np.bincount(first, slope, items)  # where nobody met, NumPy counts in integers
        gradient -= np.bincount(second, slope, items)
        return scale * float(value), scale * gradient

    options = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(loss, np.zeros(items), jac=True, method="L-BFGS-B", options=options)
    if not found.success and np.abs(found.jac).max() > 1e-6:
        raise DpSelectError("the likelihood was not maximised: too many comparisons for too few steps")
    strengths: FloatArray = np.exp(found.x)
    return strengths
