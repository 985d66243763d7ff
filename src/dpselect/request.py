"""What a release will do and cost, settled before any data is seen.

`ReleaseRequest` holds what the caller asked for, `ReleasePlan` the mechanism, the noise on published scores and the
cost that follow from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

from dpselect._arrays import Array
from dpselect._numbers import exact_fraction, float_below, positive_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms import (
    FOR_UNKNOWN_DOMAINS,
    MECHANISMS,
    Gaussian,
    Laplace,
    Mechanism,
    NoisyVector,
    UnknownDomain,
    check_options,
    mechanism_for,
)
from dpselect.mechanisms.auto import noisy_vectors, resolution
from dpselect.periods import Period, protected_unit
from dpselect.privacy.composition import compose
from dpselect.privacy.groups import Share, cost_of_groups, share_of_group
from dpselect.privacy.guarantee import WHERE_OTHERS_HAVE_THE_SAME, Guarantee, probability_of_failure
from dpselect.privacy.naming import Naming
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.release import Release, StatedDomain, on_negated_scores
from dpselect.sampling import BitSource
from dpselect.scores import Members, Scores
from dpselect.values import (
    IncludedValues,
    NoisyValues,
    ValueNoise,
    epsilon_beside,
    included_values,
    split_epsilon,
    value_noise,
)


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """What the caller asks for; all of it is public.

    delta: None means 0, or what a mechanism object states. max_items_per_person: the limit that the
    caller enforces. number_of_items: set if only the number of possible items is public; the rows then name the items.
    pool: how many items a mechanism for unknown domains considers. options: further arguments of a named mechanism.
    lowest: whether the lowest scores are asked for. groups_per_person: with groups, in how many of them one person
    counts; each group is answered with a share of ε and δ. period: the period that the rows are of. details: further
    parameters for the ledger.
    """

    mechanism: str | Mechanism
    k: int | None
    epsilon: float | None
    delta: float | None = None
    sensitivity: Sensitivity
    ordered: bool = False
    aim: str = "most"
    values: float | bool | None = None
    protects: str = "one person"
    neighbours: str = "add or remove"
    max_items_per_person: int | None = None
    number_of_items: int | None = None
    pool: int | None = None
    options: Mapping[str, Any] | None = None
    lowest: bool = False
    groups_per_person: int | None = None
    period: Period | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def plan(self) -> ReleasePlan:
        """Choose mechanism and noise; for people in several groups, those of one group, and the cost of all."""
        number = self.groups_per_person or 1
        if number == 1:
            return self._plan()
        in_one = replace(self, groups_per_person=1)
        if isinstance(self.mechanism, Mechanism):
            part = replace(in_one, epsilon=None)._plan()
            whole = cost_of_groups(part.guarantee, number, self.delta)
            self._check_total(whole.epsilon)
            return replace(part, request=self, guarantee=whole)
        epsilon, delta = positive_number("epsilon", self.epsilon), probability_of_failure(self.delta or 0.0)

        def plan_for(share: Share) -> ReleasePlan:
            return replace(in_one, epsilon=share.epsilon, delta=share.delta)._plan()

        share = share_of_group(epsilon, delta, number, lambda share: plan_for(share).guarantee)
        part = self._with_share(plan_for, share)
        whole = cost_of_groups(part.guarantee, number, delta)
        return replace(part, request=self, guarantee=replace(whole, epsilon=epsilon))

    def _with_share(self, plan_for: Callable[[Share], ReleasePlan], share: Share) -> ReleasePlan:
        """Return the plan of one group; an error about the share of δ says that it is one."""
        try:
            return plan_for(share)
        except InvalidInput as error:
            if error.argument != "delta":
                raise
            accepted = error.accepted
        raise InvalidInput(
            "delta",
            self.delta,
            f"{accepted}; this is for each of the {self.groups_per_person} groups that a person may be in",
        )

    def _plan(self) -> ReleasePlan:
        """Choose mechanism and noise. With a share as `values`, ε is split by it and δ in half, rounded down.

        A mechanism object states what the choice costs, and the values cost their share of the total beside it. They
        use the rest of δ if a total is given.
        """
        if not (isinstance(self.protects, str) and self.protects.strip() and self.protects.isprintable()):
            raise InvalidInput(
                "protects", self.protects, "must be the unit of protection, such as 'one person' or 'one household'"
            )
        self._check_lowest()
        check_options(self.mechanism, self.options or {})
        allowed = 0.0 if self.delta is None else self.delta
        stated_by_object = Naming(0.0, covers_all=self.number_of_items is None)
        if self.values is None or self.values is True:
            if isinstance(self.mechanism, Mechanism):
                naming = stated_by_object
                chosen = self._choose(self.epsilon, self.delta)
            else:
                naming = self._naming(self.epsilon, allowed)
                chosen = self._choose(self.epsilon, naming.left_of(allowed))
            included = included_values(chosen, negated=self.lowest) if self.values else None
            return ReleasePlan(self, chosen, included, self._stated(chosen.guarantee, chosen, naming))
        if isinstance(self.mechanism, NoisyVector) or self.mechanism in (Laplace.name, Gaussian.name):
            raise InvalidInput(
                "values",
                self.values,
                "must be True (--values included) with laplace and gaussian, whose release includes the values",
            )
        if isinstance(self.mechanism, Mechanism):
            naming = stated_by_object
            chosen = self._choose(None, self.delta)
            for_values = epsilon_beside(chosen.guarantee.epsilon, self.values)
            rest = 0.0 if self.delta is None else float_below(Fraction(allowed) - Fraction(chosen.guarantee.delta))
        else:
            for_choice, for_values = split_epsilon(positive_number("epsilon", self.epsilon), self.values)
            naming = self._naming(for_choice, allowed)
            rest = float_below(Fraction(probability_of_failure(naming.left_of(allowed))) / 2)
            chosen = self._choose(for_choice, rest)
        noise = value_noise(
            k=chosen.k,
            epsilon=for_values,
            delta=rest,
            sensitivity=chosen.sensitivity.negated() if self.lowest else chosen.sensitivity,
            max_items_per_person=self.max_items_per_person,
        )
        together = compose([chosen.guarantee, noise.guarantee], route="basic")
        if isinstance(self.mechanism, Mechanism):
            self._check_total(together.epsilon)
        return ReleasePlan(self, chosen, noise, self._stated(together, chosen, naming))

    def question(self) -> dict[str, Any]:
        """Return what identifies the request as plain data; what has its default value is left out.

        So a later version with more arguments recognises the question.
        """
        is_object = isinstance(self.mechanism, Mechanism)
        asked = replace(self, delta=self.delta if is_object else self.delta or None, options=self.options or None)
        stated = {each.name: getattr(asked, each.name) for each in fields(self)}
        defaults = {each.name: each.default for each in fields(self)}
        return {name: plain_argument(value) for name, value in stated.items() if value != defaults[name]}

    def _check_lowest(self) -> None:
        if not isinstance(self.lowest, bool):
            raise InvalidInput("lowest", self.lowest, "must be True or False")
        named = isinstance(self.mechanism, str) and self.mechanism in FOR_UNKNOWN_DOMAINS
        unlisted = named or isinstance(self.mechanism, UnknownDomain) or self.number_of_items is not None
        if self.lowest and unlisted:
            raise InvalidInput(
                "lowest",
                True,
                "must be left out unless the possible items are listed; if they are unknown or only their number is "
                "stated, the lowest scores are those of items that nobody has",
            )

    def _check_total(self, stated: float) -> None:
        """Refuse an epsilon that is not the sum of what the mechanism object and the values cost."""
        if self.epsilon is None or math.isclose(positive_number("epsilon", self.epsilon), stated, rel_tol=1e-12):
            return
        raise InvalidInput(
            "epsilon",
            self.epsilon,
            f"must be {stated:.17g} (that of the mechanism object and the values); leave it out",
        )

    def _choose(self, epsilon: float | None, delta: float | None) -> Mechanism:
        """Return the mechanism for a share of the budget; if the lowest are asked for, for the negated scores."""
        more: dict[str, Any] = dict(self.options or {})
        mechanism = self.mechanism
        if isinstance(mechanism, str) and mechanism == "auto" and self.values is True:
            mechanism = self._including(epsilon, delta)
        if isinstance(mechanism, str) and self.max_items_per_person is not None:
            kind = {**MECHANISMS, **FOR_UNKNOWN_DOMAINS}.get(mechanism)
            # A share of ε for the values is refused by the mechanisms that include them, so "auto" does not take these.
            if hasattr(kind, "max_items_per_person") or (mechanism == "auto" and self.values is None):
                more["max_items_per_person"] = self.max_items_per_person
        if self.pool is not None:
            more["pool"] = self.pool
        chosen = mechanism_for(
            mechanism,
            k=self.k,
            epsilon=epsilon,
            delta=delta,
            sensitivity=self.sensitivity,
            ordered=self.ordered,
            aim=self.aim,
            **more,
        )
        return on_negated_scores(chosen) if self.lowest else chosen

    def _including(self, epsilon: float | None, delta: float | None) -> Mechanism:
        """Return what "auto" means if the answer is to include its values."""
        if self.max_items_per_person is None:
            raise InvalidInput(
                "values",
                True,
                "must be a share of epsilon, such as 0.3; only laplace and gaussian include their values, and need a "
                "max_items_per_person: state it too",
            )
        shared = {"k": self.k, "epsilon": epsilon, "sensitivity": self.sensitivity}
        return min(noisy_vectors(shared, self.max_items_per_person, delta or 0.0), key=resolution)

    def _naming(self, epsilon: float | None, delta: float) -> Naming:
        if self.number_of_items is None:
            return Naming(0.0, covers_all=True)
        return Naming.of(
            epsilon,
            delta,
            k=self.k,
            size=self.number_of_items,
            max_items_per_person=self.max_items_per_person,
            low=self.sensitivity.low,
        )

    def _stated(self, guarantee: Guarantee, chosen: Mechanism, naming: Naming) -> Guarantee:
        """Return the guarantee with its unit of protection, its promise, and the cost of naming the items."""
        protects = self.protects if self.period is None else protected_unit(self.protects, self.period.unit)
        stated = replace(guarantee, protects=protects, neighbours=self.neighbours)
        named = naming.added_to(stated, chosen.guarantee.delta)
        if named.neighbours == WHERE_OTHERS_HAVE_THE_SAME and self.groups_per_person is not None:
            named = replace(named, neighbours=f"{named.neighbours} in the same groups")
        promised = f", if the promise holds that {chosen.promise}" if chosen.promise else ""
        return replace(named, neighbours=named.neighbours + promised)


def plain_argument(value: Any) -> Any:
    """Return an argument as plain data: equal numbers in one form, objects by their parameters."""
    if isinstance(value, Mechanism):
        return plain_argument(value.describe())
    if isinstance(value, Mapping):
        return {str(name): plain_argument(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_argument(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain_argument(asdict(value))
    if isinstance(value, Real | Decimal) and not isinstance(value, bool):
        return str(exact_fraction(value))
    return value


@dataclass(frozen=True)
class ReleasePlan:
    """The mechanism that chooses, the noise on published scores if any, and what both cost together."""

    request: ReleaseRequest
    mechanism: Mechanism
    noise: ValueNoise | IncludedValues | None
    guarantee: Guarantee

    def describe(self) -> dict[str, Any]:
        """Return the parameters of the release as plain data."""
        described = {**self.mechanism.describe(), **self.request.details}
        if self.request.lowest:
            described["lowest"] = True
        if self.request.period is not None:
            described["period"] = self.request.period.name
        return described if self.noise is None else {**described, "values": self.noise.noise}

    @property
    def budget(self) -> tuple[float, float] | None:
        """The epsilon and delta that were asked for; None if a mechanism object states its own cost."""
        if isinstance(self.request.mechanism, Mechanism):
            return None
        return positive_number("epsilon", self.request.epsilon), probability_of_failure(self.request.delta or 0.0)

    def with_budget(self, epsilon: float, delta: float) -> ReleasePlan:
        """Return the plan of the same request for another epsilon and delta."""
        return replace(self.request, epsilon=epsilon, delta=delta).plan()

    def question(self) -> dict[str, Any]:
        """Return what identifies the request as plain data."""
        return self.request.question()

    def answer_of(self, data: Mapping[str, Any], *, repeated: bool = True) -> Release:
        """Return the release that a ledger stored as plain data."""
        return replace(Release.from_dict(data), repeated=repeated)

    def seen(self, scores: Scores) -> Scores:
        """Return the scores as the mechanism sees them: negated if the lowest are asked for."""
        return scores.negated() if self.request.lowest else scores

    def scores_of(self, members: Members) -> Array:
        """Return the scores of the chosen items, with their own sign. They are private."""
        return -members.values if self.request.lowest else members.values

    def draw(self, scores: Scores, bits: BitSource) -> tuple[Members, NoisyValues | None]:
        """Return the chosen items among scores as seen, and their noisy scores if the answer includes them."""
        if isinstance(self.noise, IncludedValues):
            return self.noise.draw(scores, bits)
        return self.mechanism.draw(scores, bits), None

    def release(
        self,
        items: list[Any],
        scores: Iterable[Any],
        bits: BitSource,
        domain: StatedDomain,
        noisy: NoisyValues | None = None,
    ) -> Release:
        """Return the release of the chosen items, with the noisy scores drawn with them, or with planned fresh ones."""
        release = Release(
            items=items,
            ordered=self.mechanism.ordered,
            guarantee=self.guarantee,
            mechanism=self.mechanism,
            secure=bits.secure and self.mechanism.exact,
            domain=domain,
            lowest=self.request.lowest,
            max_groups_per_person=self.request.groups_per_person,
            period=None if self.request.period is None else self.request.period.name,
        )
        if isinstance(self.noise, ValueNoise):
            noisy = self.noise.release(scores, bits)
        if noisy is None:
            return release
        return replace(release, values=noisy.values, intervals=noisy.intervals, confidence=noisy.confidence)


def check_covers(
    mechanism: Mechanism,
    needed: Sensitivity,
    max_items_per_person: int | None = None,
    *,
    values: float | bool | None = None,
) -> None:
    """Refuse a mechanism object whose noise is too small for the sensitivity or the items per person.

    Choosing needs the spread only; noise on the scores themselves, as on published values, needs both bounds.
    """
    stated = mechanism.sensitivity
    relies_on = getattr(mechanism, "max_items_per_person", None)
    covered = stated.spread >= needed.spread
    # What is promised for some moves says nothing of others, nor does the noise on values.
    if relies_on is not None or values is not None or mechanism.promise:
        covered = stated.low <= needed.low and needed.high <= stated.high
    if not covered:
        raise InvalidInput("mechanism", stated, f"must have sensitivity={needed!r}")
    if relies_on is not None and relies_on != max_items_per_person:
        raise InvalidInput(
            "max_items_per_person",
            max_items_per_person,
            f"must be {relies_on}, the limit that the noise of the mechanism assumes; state it here too, to enforce it",
        )
