"""Classes of subsets and levels of sequences: their sizes and probabilities, computed without sampling.

The subsets of a class, and the sequences of a level, have the same loss and so the same location. Notation for
`class_probabilities`: class c has `M_c` alternatives at location `ℓ_c <= 0`, the best at 0; `p_c = exp(ℓ_c)`,
`W_c = M_c p_c`, `W = Σ W_c`.

- Gumbel noise: `P(c) = W_c / W`.
- Exponential noise (permute-and-flip): `P(c) = W_c ∫_0^1 exp(Λ(u)) / (1 − p_c u) du` with
  `Λ(u) = Σ_c M_c log(1 − p_c u)`. Substituting `u = v/W` and `ω_c = W_c/W` gives `Λ = −v Σ_c ω_c φ(p_c v/W)`,
  `φ(y) = −log(1 − y)/y`, which does not overflow for any M. Beyond v = 60 the integrand is below e^{−60}.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._arrays import Array, BoolArray, FloatArray
from dpselect.errors import InvalidInput, plain
from dpselect.sampling.bounds import rounded_location, scaled
from dpselect.sampling.laws import gauss_legendre, single_law
from dpselect.sampling.noise import NOISES
from dpselect.sampling.sequences import log_subsets
from dpselect.scores import Ranking, Scores

if TYPE_CHECKING:
    from dpselect.mechanisms.canonical import Canonical
    from dpselect.mechanisms.joint import Joint

MOST_CLASSES = 30_000_000
"""Maximum number of classes or steps; more would not fit in memory."""

_MOST_EMPTY = 8
"""Whole-numbered losses are looked up in a table if it has at most this many entries per loss."""

_REACH = 60.0
"""Upper end of the integral over v."""

_SERIES_BELOW = 1e-3
"""Arguments of φ below this use four terms of its series, with an error of less than 1e-12."""

_CHUNK = 1 << 22
"""Numbers in the largest intermediate table."""

_FEW = 200
"""Up to this many alternatives, probabilities are computed one by one."""

_NODES = 24
"""Gauss–Legendre nodes per panel."""


@dataclass(frozen=True, repr=False)
class Classes:
    """The classes of k-subsets by head and tail (canonical, Definition 3.4); tails with equal scores are merged.

    The subsets of a class contain all ranks 1..head, lack rank head + 1, and their last rank is in
    first_tails..last_tails; ranks count from 1. The top set is the class with head = k. Classes are computed from the
    scores without any noise: do not release them.
    """

    k: int
    heads: Array
    first_tails: Array
    last_tails: Array
    losses: FloatArray
    exact: BoolArray
    log_sizes: FloatArray
    probabilities: FloatArray

    def probability_of_top(self) -> float:
        """Return P[exact]: the answer has the k highest scores; ties count as exact."""
        return float(self.probabilities[self.exact].sum())

    def within(self, least_head: int, last_tail: int) -> float:
        """Return the probability that the answer contains the top `least_head` and nothing beyond rank `last_tail`.

        The subsets of a class are equally likely, so a class that extends beyond `last_tail` counts in proportion.
        """
        fitting = (self.heads >= least_head) & (self.first_tails <= last_tail)
        heads, ends = self.heads[fitting], np.minimum(self.last_tails[fitting], last_tail)
        cut, _ = log_subsets(self.first_tails[fitting] - heads - 2, ends - heads - 1, self.k - heads)
        share = np.where(heads == self.k, 1.0, np.exp(np.minimum(cut - self.log_sizes[fitting], 0.0)))
        return float((self.probabilities[fitting] * share).sum())

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.heads)

    def __repr__(self) -> str:
        """Show the number of classes."""
        return f"<Classes: {len(self)} classes of subsets of size {self.k}>"


@dataclass(frozen=True, repr=False)
class Levels:
    """The levels of loss of k-sequences with their sizes and probabilities, the best first.

    Levels are computed from the scores without any noise: do not release them.
    """

    k: int
    losses: FloatArray
    log_sizes: FloatArray
    probabilities: FloatArray

    def probability_of_best(self) -> float:
        """Return P[the top k in order]; ties count as exact."""
        return float(self.probabilities[0])

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.losses)

    def __repr__(self) -> str:
        """Show the number of levels."""
        return f"<Levels: {len(self)} levels of sequences of length {self.k}>"


def classes_of(mechanism: Canonical, scores: Any) -> Classes:
    """Return every class of subsets of a canonical mechanism."""
    check_unrounded(mechanism)
    table = Scores.of(scores)
    mechanism.check_size(table.size)
    k, ranking = mechanism.k, Ranking.of(table.distinct)
    if table.size == k:
        one = np.array([k])
        return Classes(k, one, one, one, np.zeros(1), one > 0, np.zeros(1), np.ones(1))
    geometry = mechanism.geometry(ranking)
    tails = geometry.tails
    _check_count(k * len(tails.ends))
    heads = np.arange(k)
    missing = ranking.scores(heads) - ranking.scores(np.array([geometry.stand_in]))
    head, run = (part.ravel() for part in np.indices((k, len(tails.ends))))
    before = np.where(run > 0, tails.ends[run - 1], k)
    log_sizes, _ = log_subsets(before - head - 1, tails.ends[run] - head - 1, k - head)
    penalties = scaled(missing, geometry.head_rate)[head] + tails.penalty[run]
    penalties, log_sizes = np.append(0.0, penalties), np.append(0.0, log_sizes)
    probabilities = class_probabilities(-penalties, log_sizes, mechanism.noise)
    return Classes(
        k,
        heads=np.append(k, head),
        first_tails=np.append(k, before + 1),
        last_tails=np.append(k, tails.ends[run]),
        losses=np.append(0.0, _losses(mechanism, missing, ranking, head, run)),
        exact=np.append(True, _tied_with_top(ranking, k, head, run)),
        log_sizes=log_sizes,
        probabilities=probabilities,
    )


def check_unrounded(mechanism: Canonical) -> None:
    """Raise InvalidInput for rounded losses, which are not a sum of a part of the head and a part of the tail."""
    if mechanism.rounded:
        raise InvalidInput("rounded", True, "must be False for classes and forecasts; only select and law take True")


def levels_of(mechanism: Joint, scores: Any) -> Levels:
    """Return every level of loss of a joint mechanism."""
    table = Scores.of(scores)
    mechanism.check_size(table.size)
    ranking = Ranking.of(table.distinct)
    steps, lead = LevelSteps.of(mechanism.k, ranking), mechanism.smallest_gap(ranking)
    locations = np.append(0.0, -penalties(steps.losses[1:], lead, mechanism.rate))
    probabilities = class_probabilities(locations, steps.log_sizes, mechanism.noise)
    losses = np.append(float(-lead), steps.losses[1:].astype(np.float64))
    return Levels(mechanism.k, losses, steps.log_sizes, probabilities)


def penalties(losses: Array, lead: Fraction, rate: Fraction) -> FloatArray:
    """Return rate · (loss + lead), by how much sequences with a loss are behind the best; each part cut as `scaled`."""
    behind: FloatArray = scaled(losses, rate) + rounded_location(rate * lead)
    return behind


def _losses(mechanism: Canonical, missing: Array, ranking: Ranking, head: Array, run: Array) -> FloatArray:
    """Return the loss of each class relative to the top set: (1 − γ) · missing score + γ · gap of the tail."""
    gaps = _tail_gaps(ranking, mechanism.k)
    gamma = mechanism.gamma
    return (1 - gamma) * missing[head].astype(np.float64) + gamma * gaps[run].astype(np.float64)


def _tail_gaps(ranking: Ranking, k: int) -> Array:
    """Return x_[k] minus the score of each run of tails."""
    gaps: Array = ranking.scores(np.array([k - 1])) - ranking.grouping.values[int(ranking.groups(k)) :]
    return gaps


def _tied_with_top(ranking: Ranking, k: int, head: Array, run: Array) -> BoolArray:
    """Return which classes lack nothing better than rank k and contain nothing worse."""
    heads_tied = ranking.scores(np.arange(k)) == ranking.scores(np.array([k - 1]))
    tails_tied = _tail_gaps(ranking, k) == 0
    tied: BoolArray = (heads_tied[head] & tails_tied[run]).astype(bool)
    return tied


@dataclass(frozen=True, repr=False)
class LevelSteps:
    """The losses that k-sequences can have, and the scores that each row may contain up to each loss.

    Row r may contain scores of at least `x_[r] − s` if the loss is at most s (mathematics, section 4). As s grows, a
    row admits one group of tied items after another: the group of score v at the loss `x_[r] − v`. That is a step.
    Rows and groups count from 0.

    `losses` are 0 and all losses between two bounds; `log_within` and `log_sizes` are the logarithms of the number of
    sequences with at most, and exactly, each loss. Row r admits groups up to `first[r]` before its first step; its
    steps, one group each, start at `offsets[r]` and happen at the losses with the numbers `levels`.
    """

    losses: Array
    log_within: FloatArray
    log_sizes: FloatArray
    first: Array
    offsets: Array
    levels: Array

    @classmethod
    def of(cls, k: int, ranking: Ranking, nearest: Any = None, farthest: Any = None) -> LevelSteps:
        """Return all losses, or those above `nearest` and up to `farthest`.

        A step at which row r gains the m items of a group multiplies the number of sequences by `(t + m − r)/(t − r)`;
        the running sum of the logarithms of these factors is `log N(s)` at every level.
        """
        values, ends = ranking.grouping.values, ranking.ends.astype(np.float64)
        own, top = ranking.groups(np.arange(k)), ranking.scores(np.arange(k))
        first = own if nearest is None else _lowest_groups(values, top - nearest)
        last = np.full(k, len(values) - 1) if farthest is None else _lowest_groups(values, top - farthest)
        offsets = np.append(0, np.cumsum(last - first))
        _check_count(int(offsets[-1]))
        losses, gains = np.empty(offsets[-1], dtype=values.dtype), np.empty(offsets[-1])
        sizes = np.diff(ranking.ends).astype(np.float64)
        for row, (start, stop, offset) in enumerate(zip(first.tolist(), last.tolist(), offsets.tolist(), strict=False)):
            steps = slice(offset, offset + stop - start)
            np.subtract(top[row], values[start + 1 : stop + 1], out=losses[steps])
            np.divide(sizes[start:stop], ends[start:stop] - row, out=gains[steps])
        raw, levels = _numbered(losses)
        grown = np.bincount(levels, np.log1p(gains, out=gains), minlength=len(raw) + 1)[1:]
        best, inner = (float(np.log(ends[groups] - np.arange(k)).sum()) for groups in (own, first))
        log_within = inner + np.append(0.0, np.cumsum(grown))
        # log(N − N⁻) from log N⁻ and log N − log N⁻; for a ratio beyond e^700 it is log N.
        log_sizes = log_within[:-1] + np.where(grown > 700.0, grown, np.log(np.expm1(np.minimum(grown, 700.0))))
        return cls(
            np.concatenate([top[:1] - top[:1], raw]),
            np.append(best, log_within[1:]),
            np.append(best, log_sizes),
            first,
            offsets,
            levels,
        )


def _lowest_groups(values: Array, scores: Array) -> Array:
    """Return, for each score, the last group of the descending `values` that is at least as high."""
    places: Array = np.searchsorted(np.ascontiguousarray(values[::-1]), scores, side="left")
    return len(values) - 1 - places


def _numbered(losses: Array) -> tuple[Array, Array]:
    """Return the distinct losses, ascending, and the number of each given loss, from 1; overwrites `losses`."""
    if losses.dtype == np.int64 and len(losses):
        low, high = int(losses.min()), int(losses.max())
        if high - low < _MOST_EMPTY * len(losses):
            seen = np.zeros(high - low + 1, dtype=bool)
            losses -= low
            seen[losses] = True
            return np.flatnonzero(seen) + low, np.cumsum(seen)[losses]
    distinct, places = np.unique(losses, return_inverse=True)
    return distinct, places + 1


def class_probabilities(locations: FloatArray, log_sizes: FloatArray, noise: str) -> FloatArray:
    """Return the probability that the winner belongs to each class, with a relative error of about 1e-11."""
    log_weights = locations + log_sizes
    highest = float(log_weights.max())
    shares = np.exp(log_weights - highest)
    total = float(shares.sum())
    if noise == "gumbel":
        return shares / total
    shares /= total
    log_total = highest + np.log(total)
    return shares * _integrals(np.exp(locations), shares, log_total)


def winner_law(locations: list[float], noise: str) -> FloatArray:
    """Return the probability that each single alternative wins."""
    if len(locations) <= _FEW:
        return single_law(locations, NOISES[noise])
    relative = np.array(locations) - max(locations)
    return class_probabilities(relative, np.zeros(len(relative)), noise)


def _integrals(weights: FloatArray, shares: FloatArray, log_total: float) -> FloatArray:
    """Return `∫_0^min(W, 60) exp(Λ) / (1 − p_c v/W) dv` for each class."""
    per_unit = float(np.exp(-log_total)) if log_total < 700 else 0.0
    reach = min(_REACH, float(np.exp(min(log_total, 10.0))))
    nodes, node_weights = (part.ravel() for part in gauss_legendre(_panels(reach), _NODES))
    heights = nodes * per_unit
    direct = np.flatnonzero(weights * per_unit * reach >= _SERIES_BELOW)
    rest = np.ones(len(weights), dtype=bool)
    rest[direct] = False
    power_sums = [float((shares[rest] * powers).sum()) for powers in _powers(weights[rest])]
    slope = sum(power_sum * heights**power / (power + 1) for power, power_sum in enumerate(power_sums))
    exponent = -nodes * slope
    with np.errstate(divide="ignore"):
        for start, stop in _pieces(len(direct), len(nodes)):
            part = direct[start:stop]
            products = np.outer(weights[part], heights)
            exponent += (shares[part] / (weights[part] * per_unit)) @ np.log1p(-np.minimum(products, 1.0))
    mass = node_weights * np.exp(exponent)
    moments = [float((mass * heights**power).sum()) for power in range(4)]
    result: FloatArray = np.polynomial.polynomial.polyval(weights, moments).astype(np.float64, copy=False)
    for start, stop in _pieces(len(direct), len(nodes)):
        part = direct[start:stop]
        result[part] = (1.0 / (1.0 - np.outer(weights[part], heights))) @ mass
    return result


def _powers(numbers: FloatArray) -> list[FloatArray]:
    """Return the powers 0 to 3; products are ten times faster than the general power function."""
    square = numbers * numbers
    return [np.ones_like(numbers), numbers, square, square * numbers]


def _panels(reach: float) -> FloatArray:
    """Return the edges of the panels of [0, reach]."""
    return np.linspace(0.0, reach, max(4, int(np.ceil(reach))) + 1)


def _pieces(length: int, width: int) -> list[tuple[int, int]]:
    """Return the ends of pieces of a few megabytes of a table of `length` rows."""
    step = max(1, _CHUNK // width)
    return [(start, min(start + step, length)) for start in range(0, length, step)]


def _check_count(count: int) -> None:
    """Raise InvalidInput if there are too many classes or steps."""
    if count > MOST_CLASSES:
        raise InvalidInput(
            "scores",
            plain(f"{count}"),
            f"must have at most {MOST_CLASSES} classes (k times the number of distinct scores); use a smaller k",
        )
