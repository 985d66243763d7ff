"""A user's own mechanism: any function that chooses k of several scores, with the guarantee that the user states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array, IntArray
from dpselect._numbers import positive_integer
from dpselect.errors import DpSelectError, InvalidInput, plain
from dpselect.mechanisms.base import Mechanism, in_random_order
from dpselect.privacy.guarantee import Guarantee
from dpselect.sampling import BitSource, shuffled
from dpselect.scores import Members, Ranking, Scores

LARGEST = 10**7
"""Maximum number of items, whose scores are one array in memory."""


@dataclass(frozen=True, kw_only=True)
class BlackBox(Mechanism):
    """A user's own mechanism, for known domains and inside `Restricted`.

    The scores are shuffled before `choose` sees them, so that it cannot prefer some items over others: this makes any
    private function symmetric in labels, as `Restricted` requires, and keeps its guarantee. What the function does is
    **not checked**: every release says in its guarantee what it takes on trust. Restricted, section 5.1; proof in
    black_box.md.

    Parameters
    ----------
    k, sensitivity
        As in `Mechanism`.
    epsilon, delta
        The guarantee of `choose`, **promised by the caller**: for scores of any two neighbours, its answers and
        whether it fails are (ε, δ)-DP.
    choose
        A function (scores, k) → the positions of k different scores. `scores` is a NumPy array in random order; inside
        `Restricted` it has as many entries as the pool. The function must draw fresh randomness in every call.
    ordered
        Whether the order of the positions is part of the private answer; if not, it is discarded.
    max_items_per_person
        m, if the promise is about people who change at most m scores each.
    exact
        Also promises that the answers follow the law of the proof exactly: no float approximates the noise, and all
        randomness is the operating system's. Otherwise a release is marked `secure=False`, and no ledger takes it.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    Report noisy max, for one item:

    >>> import dpselect as dps
    >>> import numpy as np
    >>> def noisy_max(scores, k):
    ...     return [int(np.argmax(scores + np.random.default_rng().exponential(1 / 0.5, len(scores))))]
    >>> box = dps.BlackBox(k=1, epsilon=0.5, choose=noisy_max)
    >>> release = dps.select({"tea": 900, "coffee": 700, "milk": 1}, mechanism=box)
    >>> release.items, release.secure
    (['tea'], False)
    >>> print(box.promise)
    noisy_max is private with epsilon = 0.5 if a person moves each score by 0 to 1
    """

    name: ClassVar[str] = "black-box"

    choose: Callable[[Array, int], Any]
    delta: float = 0.0
    ordered: bool = False
    max_items_per_person: int | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        claim = Guarantee(self.epsilon, self.delta)  # rounds up, as it is a claim and not a target
        object.__setattr__(self, "epsilon", claim.epsilon)
        object.__setattr__(self, "delta", claim.delta)
        super().__post_init__()
        if not callable(self.choose):
            raise InvalidInput("choose", self.choose, "must be a function (scores, k) that returns k positions")
        for argument in ("ordered", "exact"):
            if not isinstance(getattr(self, argument), bool):
                raise InvalidInput(argument, getattr(self, argument), "must be True or False")
        if self.max_items_per_person is not None:
            most = positive_integer("max_items_per_person", self.max_items_per_person)
            object.__setattr__(self, "max_items_per_person", most)

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ), as promised."""
        return Guarantee(self.epsilon, self.delta)

    @property
    def function(self) -> str:
        """The name of `choose`."""
        return str(getattr(self.choose, "__name__", type(self.choose).__name__))

    @property
    def promise(self) -> str:
        """What is taken on trust: the guarantee of the function, and that its draws are exact if `exact`."""
        claim = f"epsilon = {self.epsilon:g}" + (f" and delta = {self.delta:g}" if self.delta else "")
        low, high = self.sensitivity.low, self.sensitivity.high
        most = "" if self.max_items_per_person is None else f" and {self.max_items_per_person} of them at most"
        moved = f"a person moves each score by {low:g} to {high:g}{most}"
        return f"{self.function} is private with {claim} if {moved}" + (", and draws exactly" if self.exact else "")

    def describe(self) -> dict[str, Any]:
        """Return the name, all parameters and the promise as plain data; the function by its name."""
        parameters = {field.name: getattr(self, field.name) for field in fields(self)}
        stated = {"choose": self.function, "sensitivity": asdict(self.sensitivity), "promise": self.promise}
        return {"name": self.name, **parameters, **stated}

    def check_size(self, size: int) -> None:
        """Raise InvalidInput for fewer than k items, or more than fit into an array."""
        super().check_size(size)
        if size > LARGEST:
            raise InvalidInput(
                "scores", plain(f"{size} items"), f"must have at most {LARGEST} items for a black box, one score each"
            )

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the items that the function chooses."""
        self.check_size(scores.size)
        ranked = np.repeat(scores.values, scores.multiplicities.astype(np.int64))
        order = shuffled(len(ranked), bits)
        ranks = order[_answer(self.choose, ranked[order], self.k)]
        return Ranking.of(scores.distinct).members(ranks if self.ordered else in_random_order(ranks, bits))


def _answer(choose: Callable[[Array, int], Any], scores: Array, k: int) -> IntArray:
    """Return the chosen positions. Whatever the function raises or returns instead, the error is the same."""
    size = len(scores)
    try:
        positions = np.asarray(choose(scores, k))
        whole = positions.dtype.kind in "iu" and positions.shape == (k,)
        if whole and int(positions.min()) >= 0 and int(positions.max()) < size and len(np.unique(positions)) == k:
            return positions.astype(np.int64)
    except Exception:
        pass  # it may quote scores; the error below is raised outside, so that it does not carry this one along
    raise DpSelectError(
        "the function of the black box failed, or did not return k different positions as whole numbers; "
        "call it on made-up scores to see why"
    )
