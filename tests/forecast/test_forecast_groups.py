"""forecast_groups: each group's answer at its share of the epsilon of all groups together."""

from __future__ import annotations

import json
from typing import Any

import pandas
import pytest

import dpselect as dps
from dpselect.forecast import forecast, forecast_groups

SCORES = {"DE": [90, 70, 40, 10, 0], "FR": [9, 7, 4, 1, 0], "IS": [0, 0, 0, 0, 0]}


def test_one_group_per_person_is_a_forecast_of_each_group_at_the_whole_epsilon() -> None:
    found = forecast_groups(SCORES, 2, epsilon=0.5)
    assert found.epsilon == found.mechanism.guarantee.epsilon == 0.5
    for group, scores in SCORES.items():
        assert found.forecasts[group].figures() == forecast(scores, dps.Canonical(k=2, epsilon=0.5)).figures()


def test_several_groups_per_person_share_the_epsilon() -> None:
    found = forecast_groups(SCORES, 2, epsilon=0.5, max_groups_per_person=2)
    assert (found.epsilon, found.mechanism.guarantee.epsilon) == (0.5, 0.25)
    assert found.forecasts["FR"].exact == forecast(SCORES["FR"], dps.Canonical(k=2, epsilon=0.25)).exact


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"ordered": True},
        {"ordered": True, "aim": "exact"},
        {"delta": 1e-6, "max_groups_per_person": 3},
        {"delta": 1e-6, "max_items_per_person": 1, "max_groups_per_person": 2},
    ],
    ids=str,
)
def test_the_mechanism_is_the_one_that_top_takes(asked: dict[str, Any]) -> None:
    rows = pandas.DataFrame({"film": ["Heat", "Up"], "viewer": [1, 2], "country": ["DE", "FR"]})
    answered = dps.top(
        rows,
        item="film",
        person="viewer",
        domain=list("abcde"),
        by="country",
        groups=list(SCORES),
        k=2,
        epsilon=0.5,
        seed=1,
        **asked,
    )
    found = forecast_groups(SCORES, 2, epsilon=0.5, **asked)
    assert found.mechanism == answered.groups["DE"].mechanism
    assert (found.epsilon, found.delta) == (answered.guarantee.epsilon, answered.guarantee.delta)


def test_a_look_alike_is_scaled_to_the_number_of_people() -> None:
    found = forecast_groups(SCORES, 1, epsilon=0.1, people=1000, like_people=100)
    tenfold = forecast([10 * score for score in SCORES["FR"]], dps.Canonical(k=1, epsilon=0.1, gamma=1.0))
    assert found.forecasts["FR"].exact == tenfold.exact


def test_plain_data_and_repr() -> None:
    found = forecast_groups(SCORES, 1, epsilon=0.1, draws=0)
    data = json.loads(json.dumps(found.to_dict()))
    assert [row["group"] for row in data["groups"]] == ["DE", "FR", "IS"]
    assert data["private"] is False
    assert data["groups"][1]["forecast"]["exact"]["value"] == found.forecasts["FR"].exact.value  # type: ignore[union-attr]
    assert repr(found) == "<GroupForecasts of 3 groups, k = 1>"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": {}}, "must map each group to its scores"),
        ({"scores": [1, 2]}, "must map each group to its scores"),
        ({"k": 6}, r"k must be at most 5 \(the number of items of the group 'DE'\)"),
        ({"epsilon": 0}, "epsilon must be a positive"),
        ({"max_groups_per_person": 0}, "max_groups_per_person"),
        ({"like_people": 5}, "people must be given with like_people"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    asked = {"scores": SCORES, "k": 2, "epsilon": 0.5, **changes}
    with pytest.raises(dps.InvalidInput, match=message):
        forecast_groups(asked.pop("scores"), asked.pop("k"), **asked)
