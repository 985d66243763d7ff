"""A categorical draw from log-weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpselect._arrays import Array
from dpselect.sampling.bits import BitSource
from dpselect.sampling.field import Field
from dpselect.sampling.noise import NOISES
from dpselect.sampling.topk import Widths, top_k


def categorical(
    log_weights: Array,
    bits: BitSource,
    *,
    multiplicities: Array | None = None,
    scale: Fraction = Fraction(1),
    widths: Widths | None = None,
) -> int:
    """Return i with probability proportional to `multiplicities[i] · exp(scale · log_weights[i])`, exactly.

    The index of the largest of log-weight plus Gumbel noise has that law, and the weights never need to be
    formed, so nothing overflows. With multiplicities the log-weights must be distinct and descending.
    """
    field = Field(np.asarray(log_weights), scale, multiplicities, winners=1)
    return int(top_k(field, NOISES["gumbel"], bits, widths=widths)[0])
