"""Black boxes with known laws, to check what `BlackBox` adds to a function: the shuffle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, permutations
from typing import Any

import numpy as np

from dpselect.mechanisms import BlackBox, Mechanism
from dpselect.mechanisms.base import Law

FunctionLaw = Callable[[Sequence[Fraction]], Law]
"""The law of a function: probabilities by tuple of positions, for scores in the order in which it sees them."""


@dataclass(frozen=True, kw_only=True)
class KnownBox(BlackBox):
    """A black box whose function has a known law."""

    function_law: FunctionLaw

    def orders(self, values: Sequence[Fraction]) -> list[tuple[int, ...]]:
        """Return the orders in which the function may see the scores, all equally likely."""
        return list(permutations(range(len(values))))

    def law(self, scores: Any) -> Law:
        """Return the average of the function's laws over the orders of the scores, in the labels of the items."""
        values = self.small_domain(scores).exact()
        orders = self.orders(values)
        kind = tuple if self.ordered else frozenset
        law: Law = {}
        for order in orders:
            for positions, probability in self.function_law([values[place] for place in order]).items():
                outcome = kind(order[position] for position in positions)
                law[outcome] = law.get(outcome, 0.0) + probability / len(orders)
        return law


class UnshuffledBox(KnownBox):
    """Gives the function the scores in descending order, as a pool lists them; only ties are in random order."""

    def orders(self, values: Sequence[Fraction]) -> list[tuple[int, ...]]:
        """Return the orders in which the scores descend."""
        ranked = sorted(values, reverse=True)
        return [order for order in super().orders(values) if [values[place] for place in order] == ranked]


def box_around(mechanism: Mechanism) -> KnownBox:
    """Return a box whose function is one of our mechanisms; it draws with seeds 0, 1, 2, …"""
    seeds = count()

    def law(scores: Sequence[Fraction]) -> Law:
        return {tuple(outcome): probability for outcome, probability in mechanism.law(list(scores)).items()}

    def choose(scores: Any, k: int) -> Any:
        return mechanism.select(scores, seed=next(seeds))

    return KnownBox(
        k=mechanism.k,
        epsilon=mechanism.guarantee.epsilon,
        delta=mechanism.guarantee.delta,
        sensitivity=mechanism.sensitivity,
        ordered=mechanism.ordered,
        choose=choose,
        function_law=law,
    )


FAVOUR = 50.0
"""How many times as likely the first position is as it would be without the preference."""


def favouring_box(kind: type[KnownBox], epsilon: float) -> KnownBox:
    """Return a box for one item with probabilities in proportion to e^{ε x_i}, times FAVOUR for the first position.

    On a fixed list of items the factor is a constant: the function is ε-DP for counts and not symmetric in labels.
    """
    generator = np.random.default_rng(26)

    def law(scores: Sequence[Any]) -> Law:
        highest = max(scores)
        weights = [math.exp(epsilon * float(score - highest)) for score in scores]
        weights[0] *= FAVOUR
        return {(place,): weight / math.fsum(weights) for place, weight in enumerate(weights)}

    def choose(scores: Any, k: int) -> list[int]:
        return [int(generator.choice(len(scores), p=list(law(scores.tolist()).values())))]

    return kind(k=1, epsilon=epsilon, choose=choose, function_law=law)
