"""What a release will do and cost, settled from public facts before any data is seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpselect.errors import InvalidInput
from dpselect.mechanisms import Mechanism, mechanism_for
from dpselect.privacy.composition import compose
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.release import Release
from dpselect.sampling import BitSource
from dpselect.validation import float_below
from dpselect.values import ValueNoise, split_epsilon, value_noise


@dataclass(frozen=True)
class Plan:
    """The mechanism that chooses, the noise on the scores that are published, if any, and what both cost together."""

    mechanism: Mechanism
    noise: ValueNoise | None
    guarantee: Guarantee

    def describe(self) -> dict[str, Any]:
        """Return the parameters of the release as plain data."""
        described = self.mechanism.describe()
        return described if self.noise is None else {**described, "values": self.noise.noise}

    def release(self, items: list[Any], scores: Iterable[Any], bits: BitSource) -> Release:
        """Return the release of the chosen items, with noisy scores if they were planned."""
        release = Release(
            items=items,
            ordered=self.mechanism.ordered,
            guarantee=self.guarantee,
            mechanism=self.mechanism,
            secure=bits.secure,
        )
        if self.noise is None:
            return release
        noisy = self.noise.release(scores, bits)
        return replace(release, values=noisy.values, intervals=noisy.intervals, confidence=noisy.confidence)


def plan_release(
    mechanism: str | Mechanism,
    *,
    k: int | None,
    epsilon: float | None,
    delta: float,
    sensitivity: Sensitivity,
    ordered: bool,
    values: float | None,
) -> Plan:
    """Settle a release. With values, ε is split by their share and δ in halves, and the costs add up to no more."""
    if values is None:
        chosen = mechanism_for(mechanism, k=k, epsilon=epsilon, delta=delta, sensitivity=sensitivity, ordered=ordered)
        return Plan(chosen, None, chosen.guarantee)
    if isinstance(mechanism, Mechanism) or epsilon is None:
        raise InvalidInput(
            "values", values, "name the mechanism and give epsilon: it is the total, of which values take their share"
        )
    for_choice, for_values = split_epsilon(epsilon, values)
    half = float_below(Fraction(probability_of_failure(delta)) / 2)
    chosen = mechanism_for(mechanism, k=k, epsilon=for_choice, delta=half, sensitivity=sensitivity, ordered=ordered)
    noise = value_noise(k=chosen.k, epsilon=for_values, delta=half, sensitivity=chosen.sensitivity)
    return Plan(chosen, noise, _together(chosen.guarantee, noise.guarantee))


def _together(choice: Guarantee, values: Guarantee) -> Guarantee:
    """Return the guarantee of both parts: ε and δ add up, and so do ρ and the rounds where a part states its own."""
    total = compose([choice, values], route="basic")
    if any(part.rho is not None or part.ranges for part in (choice, values)):
        return total
    # Two parts that are pure and nothing more make a release that says so, in the same words as one without values.
    return replace(total, rho=None, ranges=())
