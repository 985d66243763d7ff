"""How much of the stationary distribution one item can hold: little, under strong damping, whatever the comparisons."""

from __future__ import annotations

from fractions import Fraction


def largest_share(*, items: int, max_degree: int, damping: Fraction) -> Fraction:
    """Return a bound M on every entry of π, from public facts alone; 1 where nothing better is known.

    `M = α / (d (1 − (1−α) c))` with `c = 1 + (d−1)/D`, if `(1−α) c < 1`. d: items, D: max_degree, α: damping.

    Proof: `π = (α/d) Σ_t (1−α)^t 1ᵀP^t`. Column j of P adds up to `1 + (wins of j − losses of j)/(DL) <= c`, because
    each of d−1 others keeps at most L comparisons with j. So no entry of `1ᵀP^t` exceeds `c^t`: a geometric series.

    What it is for: one comparison of i and j changes π by at most `(1−α)/α · (π_i + π_j) · 2/(DL)` in L1, and
    `π_i + π_j <= min(1, 2M)`, about 2/d in place of 1.

    >>> largest_share(items=101, max_degree=100, damping=Fraction(3, 4))
    Fraction(3, 202)
    """
    c = 1 + Fraction(items - 1, max_degree)
    left = 1 - (1 - damping) * c
    return min(Fraction(1), damping / (items * left)) if left > 0 else Fraction(1)
