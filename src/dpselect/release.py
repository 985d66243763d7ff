"""What a release will do and cost, settled before any data is seen, and what it published.

`ReleaseRequest` holds what the caller asked for, `ReleasePlan` the mechanism, the noise on published scores and the
cost that follow from it, and `Release` the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

from dpselect._arrays import Array
from dpselect._format import shown_cost
from dpselect._numbers import exact_fraction, float_below, positive_number
from dpselect._printed import Printed, frame_of
from dpselect.errors import InvalidInput
from dpselect.items import item_of, plain_item
from dpselect.mechanisms import (
    FOR_UNKNOWN_DOMAINS,
    MECHANISMS,
    Gaussian,
    Laplace,
    Mechanism,
    NoisyVector,
    UnknownDomain,
    check_options,
    described_mechanism,
    mechanism_for,
)
from dpselect.mechanisms.auto import noisy_vectors, resolution
from dpselect.periods import Period, protected_unit
from dpselect.privacy.composition import compose
from dpselect.privacy.groups import Share, cost_of_groups, share_of_group
from dpselect.privacy.guarantee import WHERE_OTHERS_HAVE_THE_SAME, Guarantee, probability_of_failure
from dpselect.privacy.naming import Naming
from dpselect.privacy.sensitivity import Sensitivity
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

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType

    from dpselect.forecast import Reach

PUBLIC, NUMBER, UNKNOWN, ROWS = "public", "number", "unknown", "rows"


@dataclass(frozen=True)
class StatedDomain:
    """What the caller stated about the possible items, on which the guarantee rests.

    `stated` is "public" if the items were listed, "number" if only their number was given, "unknown" if it is private
    which items exist, and "rows" if the rows name the items. `items` is the number of items if that is public.
    """

    items: int | None
    stated: str

    def __str__(self) -> str:
        """Say it in words."""
        if self.items is None:
            return "named by the rows" if self.stated == ROWS else "unknown; which items exist is private"
        number = f"{self.items:,}" if self.items < 10**15 else f"{self.items:.0e}"
        items = f"{number} item{'' if self.items == 1 else 's'}"
        return f"{items}, stated as public" if self.stated == PUBLIC else f"{items}, only their number stated as public"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"items": self.items, "stated": self.stated}


@dataclass(frozen=True)
class Release(Printed):
    """The chosen items with their guarantee; everything in it may be published.

    `print` and notebooks show it as the table that the command line prints.

    Parameters
    ----------
    items
        The chosen items: k of them, or fewer from an unknown domain.
    ordered
        Whether the order of `items` is part of the private output; if not, it is random.
    guarantee
        What the release costs, published scores included.
    mechanism
        The mechanism that chose, with its parameters.
    secure
        False if a seed was given: whoever knows the seed can undo the noise, so the release protects nobody. Also if
        the caller brought noise or a mechanism that does not draw exactly.
    values, intervals, confidence
        If noisy scores were asked for: a score for each item, a pair (low, high) for each that holds the true score
        with probability `confidence`, and that probability (docs/values.md).
    domain
        What was stated about the possible items.
    lowest
        Whether the lowest scores were asked for. The mechanism then chose the highest of the negated scores, and its
        sensitivity is that of these; the values have the sign of the scores.
    period
        The day, week or month whose rows were read, such as "2026-W46"; None if all were.
    repeated
        Whether this is the stored answer to a question that was asked before under the same key (`once`).
    groups
        If an answer for each group was asked for (`by` in `top`): a dict group → Release, in the order of the public
        list. Each of them states the guarantee of all together. `items` are then pairs (group, item), and `values` and
        `intervals` those of all groups (docs/groups.md).
    max_groups_per_person
        With groups, in how many of them each person counts.

    Examples
    --------
    >>> import dpselect as dps
    >>> release = dps.select({"tea": 90, "coffee": 80, "milk": 3}, k=2, epsilon=1.0, seed=1)
    >>> release.k, release.guarantee.epsilon, release.secure
    (2, 1.0, False)
    """

    items: list[Any]
    ordered: bool
    guarantee: Guarantee
    mechanism: Mechanism
    secure: bool
    values: list[Any] | None = None
    intervals: list[tuple[Any, Any]] | None = None
    confidence: float | None = None
    domain: StatedDomain | None = None
    lowest: bool = False
    period: str | None = None
    repeated: bool = field(default=False, compare=False)
    groups: dict[Any, Release] | None = None
    max_groups_per_person: int | None = None

    @classmethod
    def of_groups(cls, groups: dict[Any, Release]) -> Release:
        """Return the release of answers for groups, which share mechanism and guarantee."""
        parts = list(groups.values())
        has_values = parts[0].values is not None
        return replace(
            parts[0],
            items=[(group, item) for group, part in groups.items() for item in part.items],
            values=[value for part in parts for value in part.values or []] if has_values else None,
            intervals=[pair for part in parts for pair in part.intervals or []] if has_values else None,
            domain=parts[0].domain if all(part.domain == parts[0].domain for part in parts) else None,
            groups=groups,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Release:
        """Return the release of the plain data that `to_dict` returned.

        Parameters
        ----------
        data
            The plain data. Items are as JSON holds them: a date is its text, for example.

        Returns
        -------
        A release whose `to_dict` returns the same data.

        Examples
        --------
        >>> import dpselect as dps, json
        >>> release = dps.select({"tea": 90, "coffee": 80, "milk": 3}, k=2, epsilon=1.0, seed=1)
        >>> dps.Release.from_dict(json.loads(json.dumps(release.to_dict()))) == release
        True
        """
        if "groups" in data:
            # The order is stated by itself, because JSON objects have none.
            return cls.of_groups(
                {item_of(name): cls.from_dict(data["groups"][str(name)]) for name in data["group_order"]}
            )
        intervals = data.get("intervals")
        return cls(
            items=[item_of(item) for item in data["items"]],
            ordered=data["ordered"],
            guarantee=Guarantee(**data["guarantee"]),
            mechanism=described_mechanism(data["mechanism"]),
            secure=data["secure"],
            values=data["values"],
            intervals=None if intervals is None else [(low, high) for low, high in intervals],
            confidence=data.get("confidence"),
            domain=None if data["domain"] is None else StatedDomain(**data["domain"]),
            lowest=data.get("lowest", False),
            max_groups_per_person=data.get("max_groups_per_person"),
            period=data.get("period"),
        )

    @property
    def k(self) -> int:
        """How many items were asked for, in each group if there are groups."""
        return self.mechanism.k

    @property
    def stopped(self) -> bool:
        """Whether the mechanism returned fewer than k items to protect privacy; only from an unknown domain."""
        if self.groups is not None:
            return any(part.stopped for part in self.groups.values())
        return len(self.items) < self.k

    @property
    def reach(self) -> Reach | None:
        """What the mechanism could tell apart, from public facts; None if the number of items is not public."""
        from dpselect.forecast.reach import reach

        items = None if self.domain is None else self.domain.items
        mechanism = on_negated_scores(self.mechanism) if self.lowest else self.mechanism
        found = None if items is None else reach(mechanism, items, protects=self.guarantee.protects)
        return replace(found, lowest=self.lowest) if found else None

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain data that json.dumps accepts."""
        reach = self.reach
        data = {
            "items": [plain_item(item) for item in self.items],
            "ordered": self.ordered,
            "values": self.values,
            "mechanism": self.mechanism.describe(),
            "guarantee": self.guarantee.to_dict(),
            "domain": None if self.domain is None else self.domain.to_dict(),
            "reach": None if reach is None else reach.to_dict(),
            "secure": self.secure,
            "k": self.k,
        }
        if self.lowest:
            data["lowest"] = True
        if self.max_groups_per_person is not None:
            data["max_groups_per_person"] = self.max_groups_per_person
        if self.period is not None:
            data["period"] = self.period
        if self.mechanism.may_stop:
            data["stopped"] = self.stopped
        if self.intervals is not None:
            data["intervals"] = [list(interval) for interval in self.intervals]
            data["confidence"] = self.confidence
        if self.groups is None:
            return data
        for name in ("items", "values", "intervals"):
            data.pop(name, None)
        parts = {str(plain_item(group)): part.to_dict() for group, part in self.groups.items()}
        return {"groups": parts, "group_order": [plain_item(group) for group in self.groups], **data}

    def to_frame(self) -> pandas.DataFrame:
        """Return the answer as a pandas DataFrame, in the order of `items`.

        Returns
        -------
        pandas.DataFrame
            The column `item`; with values also `value`, `low` and `high`, and with groups `group` before them.

        Raises
        ------
        InvalidInput
            If pandas is not installed.

        Examples
        --------
        >>> import dpselect as dps
        >>> votes = {"tea": 900, "coffee": 500, "milk": 3}
        >>> print(dps.select(votes, k=2, epsilon=1.0, ordered=True).to_frame())
             item
        0     tea
        1  coffee
        """
        from dpselect._release_text import release_columns, release_rows

        return frame_of(release_rows(self), [name for name in release_columns(self) if name != "rank"])

    def __repr__(self) -> str:
        """Say in one line what was released, without the items."""
        groups = "" if self.groups is None else f" of each of {len(self.groups):,} groups"
        insecure = "" if self.secure else ", not secure"
        asked = f"{'lowest' if self.lowest else 'top'} {self.k}{groups}"
        cost = shown_cost(self.guarantee.epsilon, self.guarantee.delta)
        return f"<Release: {asked} by {self.mechanism.name}, {cost}{insecure}>"

    def _tables(self) -> list[RenderableType]:
        from dpselect._release_text import release_tables

        return release_tables(self)


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


def on_negated_scores(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism with the sensitivity of the negated scores."""
    return replace(mechanism, sensitivity=mechanism.sensitivity.negated())


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
