"""How good one answer is, from the true scores alone.

Notation: `top` holds the k highest scores `x_[1] >= … >= x_[k]`, `chosen` the true scores `y_1 … y_n` of the items of
one answer, n <= k. Items with equal scores are interchangeable: an answer is judged by its scores, never by which of
several tied items it holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpselect._arrays import Array


def items_returned(top: Array, chosen: Array) -> float:
    """Return n, how many items the answer holds.

    Parameters
    ----------
    top : numpy.ndarray
        The k highest scores, in descending order.
    chosen : numpy.ndarray
        The true scores of the items of one answer.

    Returns
    -------
    float
        The number.

    Examples
    --------
    >>> import dpselect as dps
    >>> import numpy as np
    >>> dps.forecast.items_returned(np.array([100, 90, 80]), np.array([100, 80]))
    2.0
    """
    return float(len(chosen))


def number_correct(top: Array, chosen: Array) -> float:
    """True positives: chosen items with scores above x_[k], and those tied with it, up to their number in the top k."""
    border = top[-1]
    room = int((top == border).sum())
    return float((chosen > border).sum() + min(int((chosen == border).sum()), room))


def f1_score(top: Array, chosen: Array) -> float:
    """Return `F1 = 2 TP / (2 TP + FP + FN) = 2 TP / (n + k)`; restricted, appendix G.

    Parameters
    ----------
    top : numpy.ndarray
        The k highest scores, in descending order.
    chosen : numpy.ndarray
        The true scores of the items of one answer.

    Returns
    -------
    float
        A number from 0 to 1.

    Examples
    --------
    >>> import dpselect as dps
    >>> import numpy as np
    >>> dps.forecast.f1_score(np.array([100, 90, 80]), np.array([100, 80, 10]))
    0.6666666666666666
    """
    return 2.0 * number_correct(top, chosen) / (len(chosen) + len(top))


def score_ratio(top: Array, chosen: Array) -> float:
    """Return `Σ y_i / Σ x_[i]`, or 1 if the denominator is 0; restricted, section 8.3.

    Parameters
    ----------
    top : numpy.ndarray
        The k highest scores, in descending order.
    chosen : numpy.ndarray
        The true scores of the items of one answer.

    Returns
    -------
    float
        The ratio.

    Examples
    --------
    >>> import dpselect as dps
    >>> import numpy as np
    >>> dps.forecast.score_ratio(np.array([100, 90, 80]), np.array([100, 80, 9]))
    0.7
    """
    best = top.sum()
    return float(chosen.sum() / best) if best else 1.0


def largest_error(top: Array, chosen: Array) -> float:
    """Return `ℓ∞ = max_i |x_[i] − y_i|`; joint, Definition 2.2. Sort a set in descending order first.

    Parameters
    ----------
    top : numpy.ndarray
        The k highest scores, in descending order.
    chosen : numpy.ndarray
        The true scores of the items of one answer, place by place.

    Returns
    -------
    float
        The error, at least 0.

    Examples
    --------
    >>> import dpselect as dps
    >>> import numpy as np
    >>> dps.forecast.largest_error(np.array([100, 90, 80]), np.array([100, 80, 10]))
    70.0
    """
    return float(np.abs(top - chosen).max())


def total_error(top: Array, chosen: Array) -> float:
    """Return `ℓ1 = Σ_i |x_[i] − y_i|`; joint, Definition 2.2. Sort a set in descending order first.

    Parameters
    ----------
    top : numpy.ndarray
        The k highest scores, in descending order.
    chosen : numpy.ndarray
        The true scores of the items of one answer, place by place.

    Returns
    -------
    float
        The error, at least 0.

    Examples
    --------
    >>> import dpselect as dps
    >>> import numpy as np
    >>> dps.forecast.total_error(np.array([100, 90, 80]), np.array([100, 80, 10]))
    80.0
    """
    return float(np.abs(top - chosen).sum())


def signed_error(top: Array, chosen: Array) -> float:
    """Return `max_i (x_[i] − y_i)`: how far an answer falls short in its worst place (joint, footnote 2).

    Unlike ℓ∞ it ignores places whose item has too high a score, so that a sequence of the top items in another order
    is not rated below one that lacks some of them. For a set in descending order it equals ℓ∞.

    Parameters
    ----------
    top : numpy.ndarray
        The k highest scores, in descending order.
    chosen : numpy.ndarray
        The true scores of an answer of k items, place by place. Sort a set in descending order first.

    Returns
    -------
    float
        The error, at least 0.

    Examples
    --------
    >>> import dpselect as dps
    >>> import numpy as np
    >>> top = np.array([100, 90, 80, 70, 60])
    >>> reordered, missing = np.array([100, 80, 70, 60, 90]), np.array([100, 80, 70, 60, 50])
    >>> dps.forecast.signed_error(top, reordered), dps.forecast.signed_error(top, missing)
    (10.0, 10.0)
    >>> dps.forecast.largest_error(top, reordered), dps.forecast.largest_error(top, missing)
    (30.0, 10.0)
    """
    return float((top - chosen).max())


def relative_error(top: Array, chosen: Array) -> float:
    """Return the k-relative error `max_i (x_[k] − y_i)`; joint, Definition 2.2.

    Parameters
    ----------
    top : numpy.ndarray
        The k highest scores, in descending order.
    chosen : numpy.ndarray
        The true scores of the items of one answer.

    Returns
    -------
    float
        The error, at least 0 for an answer of k items.

    Examples
    --------
    >>> import dpselect as dps
    >>> import numpy as np
    >>> dps.forecast.relative_error(np.array([100, 90, 80]), np.array([100, 75, 10]))
    70.0
    """
    return float((top[-1] - chosen).max())


def is_exact(top: Array, chosen: Array) -> bool:
    """Whether every place holds the true score; sort a set in descending order first."""
    return bool(len(chosen) == len(top) and (top == chosen).all())


def is_within(top: Array, chosen: Array, *, held: int, lowest: Any) -> bool:
    """Whether the `held` highest scores are all there, and none is below `lowest`.

    With `held = ⌈k/10⌉` and the score of rank `⌊11k/10⌋` the answer is *great*, with `⌈k/100⌉` and `⌊3k/2⌋` *good*
    (canonical, section A.2, where ranks are compared; here scores, so that tied items are interchangeable).
    """
    descending = np.sort(chosen)[::-1]
    return bool(len(chosen) == len(top) and (descending[:held] == top[:held]).all() and (descending >= lowest).all())


def great_ranks(k: int, size: int) -> tuple[int, int]:
    """⌈k/10⌉ and ⌊11k/10⌋, at most the number of items."""
    return -(-k // 10), min(k + k // 10, size)


def good_ranks(k: int, size: int) -> tuple[int, int]:
    """⌈k/100⌉ and ⌊3k/2⌋, at most the number of items."""
    return -(-k // 100), min(k + k // 2, size)
