"""What a release published: the chosen items with their guarantee, and what was stated about the possible items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dpselect._format import shown_cost
from dpselect._printed import Printed, frame_of
from dpselect.items import item_of, plain_item
from dpselect.mechanisms import Mechanism, described_mechanism
from dpselect.privacy.guarantee import Guarantee

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


def on_negated_scores(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism with the sensitivity of the negated scores."""
    return replace(mechanism, sensitivity=mechanism.sensitivity.negated())
