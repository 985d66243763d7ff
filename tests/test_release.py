"""A release is plain data that may be published as it is."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError
from datetime import date
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpselect as dps
from dpselect.cli.output import as_json


def released(items: list[object]) -> dps.Release:
    mechanism = dps.OneShot(k=max(len(items), 1), epsilon=1.0)
    return dps.Release(items=items, ordered=False, guarantee=mechanism.guarantee, mechanism=mechanism, secure=True)


def test_plain_data_has_the_promised_keys() -> None:
    release = dps.select({"tea": 90, "coffee": 80, "milk": 3}, k=2, epsilon=0.5, mechanism="oneshot", seed=1)
    data = json.loads(json.dumps(release.to_dict()))
    assert data == {
        "items": release.items,
        "ordered": False,
        "values": None,
        "mechanism": {
            "name": "oneshot",
            "k": 2,
            "epsilon": 0.5,
            "sensitivity": {"low": 0, "high": 1},
            "noise": "exponential",
            "ordered": False,
        },
        "guarantee": {"epsilon": 0.5, "delta": 0.0, "protects": "one person", "neighbours": "add or remove"},
        "domain": {"items": 3, "stated": "public"},
        "reach": {"probability": 0.9, "lead": 8, "items": 3},
        "secure": False,
        "k": 2,
    }


ITEMS: list[tuple[object, object]] = [
    ("tea", "tea"),
    (7, 7),
    (2.5, 2.5),
    (True, True),
    (None, None),
    (np.int64(7), 7),
    (np.float32(0.5), 0.5),
    (np.str_("tea"), "tea"),
    (np.bool_(True), True),
    (("a", np.int64(1)), ["a", 1]),
    (date(2020, 1, 2), "2020-01-02"),
    (pd.Timestamp("2020-01-02"), "2020-01-02T00:00:00"),
    (np.datetime64("2020-01-02T03:04:05.000000006"), "2020-01-02T03:04:05.000000006"),
    (np.datetime64("2020-01-02T03", "ns"), "2020-01-02T03:00:00.000000000"),
    (np.timedelta64(5, "ns"), "5 nanoseconds"),
    (np.datetime64("2020-01-02"), "2020-01-02"),
    (Fraction(1, 3), "1/3"),
    (10**400, 10**400),
    (math.inf, "inf"),
    (np.float32("-inf"), "-inf"),
]


def test_any_item_becomes_json() -> None:
    data = json.loads(json.dumps(released([item for item, _ in ITEMS]).to_dict(), allow_nan=False))
    assert data["items"] == [plain for _, plain in ITEMS]


def test_the_command_prints_no_number_that_json_has_no_word_for() -> None:
    printed = as_json({"losses": [{"worst": math.inf, "least": -math.inf}, math.nan, 0.5], "passed": False})
    assert json.loads(printed, parse_constant=pytest.fail) == {
        "losses": [{"worst": "inf", "least": "-inf"}, "nan", 0.5],
        "passed": False,
    }


def test_labels_of_a_series_become_json() -> None:
    for index in (["a", "b", "c"], [5, 6, 7], [0.5, 1.5, 2.5], pd.date_range("2020-01-01", periods=3)):
        release = dps.select(pd.Series([1, 2, 3], index=index), k=3, epsilon=1.0)
        assert len(set(json.loads(json.dumps(release.to_dict()))["items"])) == 3


def test_a_release_cannot_be_changed_but_can_be_copied() -> None:
    release = dps.select({"a": 1, "b": 2}, k=1, epsilon=1.0)
    with pytest.raises(FrozenInstanceError):
        release.secure = True  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(release)) == release
    assert copy.deepcopy(release) == release


def test_the_reach_rests_on_public_facts_only() -> None:
    near, far = (dps.select(scores, k=2, epsilon=0.5) for scores in ([5, 5, 4, 0], [10**9, 7, 7, -3]))
    assert near.reach == far.reach == dps.forecast.reach(dps.Canonical(k=2, epsilon=0.5), 4)
    assert dps.select([5, 4, 0], k=2, mechanism=dps.TopStable(k=2, epsilon=1.0, delta=0.01, pool=2)).reach is None
    assert released(["tea"]).reach is None
    household = dps.select([5, 4, 0], k=1, epsilon=1.0, protects="one household").reach
    assert "a score of 3" in str(household)
    week = dps.select([5, 4, 0], k=1, epsilon=1.0, period="2024-W46").reach
    assert "by 3 people" in str(week)


def test_a_release_shows_no_score() -> None:
    """Neither the text of a release nor its data may depend on the scores, other than through the items."""
    release = dps.select({"a": 123456789, "b": 987654321}, k=2, epsilon=1.0)
    shown = repr(release) + json.dumps(release.to_dict())
    assert "123456789" not in shown
    assert "987654321" not in shown
