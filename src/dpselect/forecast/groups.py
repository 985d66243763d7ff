"""Forecasts for answers about several groups: what each group's answer is worth, at the ε of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.forecast.outcome import TITLES, WARNING, Forecast, forecast
from dpselect.forecast.plan import scaled_to
from dpselect.items import plain_item
from dpselect.mechanisms import Mechanism
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.request import ReleaseRequest
from dpselect.scores import Scores


@dataclass(frozen=True, repr=False)
class GroupForecasts:
    """What to expect of each group's answer; computed from the scores, so **not private**.

    Attributes
    ----------
    forecasts : dict
        A forecast for each group.
    mechanism : Mechanism
        The mechanism that answers each group, with the group's share of ε.
    epsilon, delta : float
        What all groups together cost.
    max_groups_per_person : int
        In how many groups a person counts.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.forecast.forecast_groups({"DE": [90, 70, 5], "FR": [9, 7, 5]}, 1, epsilon=0.5)
    <GroupForecasts of 2 groups, k = 1>
    """

    forecasts: dict[Any, Forecast]
    mechanism: Mechanism
    epsilon: float
    delta: float
    max_groups_per_person: int
    warning: str = WARNING

    def to_dict(self) -> dict[str, Any]:
        """Return the forecasts as plain data that json.dumps accepts."""
        return {
            "k": self.mechanism.k,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "max_groups_per_person": self.max_groups_per_person,
            "mechanism": self.mechanism.describe(),
            "private": False,
            "groups": [
                {
                    "group": plain_item(group),
                    "size": outlook.size,
                    "forecast": {key: value for key, value in outlook.to_dict().items() if key in TITLES},
                }
                for group, outlook in self.forecasts.items()
            ],
        }

    def __repr__(self) -> str:
        """Show how many groups there are."""
        return f"<GroupForecasts of {len(self.forecasts)} groups, k = {self.mechanism.k}>"


def forecast_groups(
    scores: Mapping[Any, Any],
    k: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    max_groups_per_person: int = 1,
    mechanism: str = "auto",
    aim: str = "most",
    ordered: bool = False,
    sensitivity: Sensitivity = COUNTS,
    max_items_per_person: int | None = None,
    people: int | None = None,
    like_people: int | None = None,
    draws: int = 200,
) -> GroupForecasts:
    """Return what to expect of the answer for each group, as `dpselect.top` with `by` makes it; not private.

    Parameters
    ----------
    scores : mapping
        The scores of each group, as for `dpselect.select`.
    k : int
        The number of items for each group.
    epsilon, delta : float
        What all groups together cost.
    max_groups_per_person : int
        In how many groups a person counts; ε and δ are shared by that many.
    mechanism, aim, ordered, sensitivity, max_items_per_person
        As in `dpselect.select`.
    people, like_people : int, optional
        The numbers of people in your data and behind the scores, which are scaled from one to the other if both are
        stated.
    draws : int
        Draws for figures without an exact form.

    Returns
    -------
    GroupForecasts
        A forecast for each group.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or a group has fewer than k items.

    Examples
    --------
    >>> import dpselect as dps
    >>> charts = dps.forecast.forecast_groups({"DE": [90, 70, 5], "FR": [9, 7, 5]}, 1, epsilon=0.5)
    >>> {country: str(outlook.exact) for country, outlook in charts.forecasts.items()}
    {'DE': '>0.999', 'FR': '0.765'}
    """
    if not isinstance(scores, Mapping) or not scores:
        raise InvalidInput("scores", plain("no groups"), "must map each group to its scores")
    most = positive_integer("max_groups_per_person", max_groups_per_person)
    plan = ReleaseRequest(
        mechanism=mechanism,
        k=k,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        ordered=ordered,
        aim=aim,
        max_items_per_person=max_items_per_person,
        groups_per_person=most,
    ).plan()
    found = {}
    for group, part in scores.items():
        table = scaled_to(Scores.of(part), people, like_people)
        if plan.mechanism.k > table.size:
            raise InvalidInput("k", k, f"must be at most {table.size} (the number of items of the group {group!r})")
        found[group] = forecast(table, plan.mechanism, draws=draws, ordered=ordered)
    return GroupForecasts(found, plan.mechanism, plan.guarantee.epsilon, plan.guarantee.delta, most)
