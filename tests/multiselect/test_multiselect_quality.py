"""Choosing by a quality: the first of the best, clear errors that show nothing private, and models as plain data."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.multiselect import Client, FeatureClient, FeatureResult, QualityModel, Result

SHOPS = [Result("harbour", 0.4), Result("market", 3.1), Result("mill", 7.9)]
SECRET = 61.8034


def client_at(value: float) -> Client:
    client = Client(1.0, seed=1)
    client.signal(value)
    return client


def test_the_best_by_quality_is_kept_and_the_first_of_equals() -> None:
    client = client_at(3.0)
    stars = {"harbour": 2, "market": 1, "mill": 2}
    assert client.choose(SHOPS).item == "market"
    assert client.choose(SHOPS, quality=lambda _, shop: stars[shop.item]).item == "harbour"
    assert client.choose(SHOPS[::-1], quality=lambda _, shop: stars[shop.item]).item == "mill"
    assert client.choose(SHOPS, quality=lambda _, shop: math.pi).item == "harbour"
    assert client.choose({"results": [shop.to_dict() for shop in SHOPS]}, lambda _, shop: shop["position"])["item"] == (
        "mill"
    )


def test_a_quality_sees_the_private_value_as_it_was_given() -> None:
    seen: list[Any] = []
    client_at(SECRET).choose(SHOPS, quality=lambda value, _: seen.append(value) or 1)
    assert seen == [SECRET] * 3
    client = FeatureClient(1.0, 2, seed=1)
    client.signal([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        client.choose([FeatureResult("film", np.zeros(2))], quality=lambda taste, _: taste.fill(0))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, None, "3", [1.0], True], ids=str)
def test_a_quality_that_is_no_finite_number_is_refused_without_showing_anything(wrong: Any) -> None:
    client = client_at(SECRET)
    with pytest.raises(dps.InvalidInput) as error:
        client.choose(SHOPS, quality=lambda value, result: wrong if result.item == "mill" else value)
    assert str(error.value) == (
        "quality must return a finite number for every result, the higher the better, "
        "got a function that returned something else (not shown)"
    )
    assert error.value.__cause__ is None
    with pytest.raises(dps.InvalidInput, match="quality must be a function"):
        client.choose(SHOPS, quality="nearest")  # type: ignore[arg-type]


def test_a_model_is_plain_data_and_computes_its_formula() -> None:
    generator = np.random.default_rng(0)
    matrix, linear, squares = generator.normal(size=(3, 2)), generator.normal(size=2), generator.normal(size=2)
    model = QualityModel(matrix, linear, squares)
    copy = QualityModel.of(json.loads(json.dumps(model.to_dict())))
    user, result = generator.normal(size=3), generator.normal(size=2)
    expected = user @ matrix @ result + linear @ result + squares @ result**2
    for given in ({"vector": result.tolist()}, FeatureResult("film", result)):
        assert model(user, given) == copy(user, given) == pytest.approx(expected)


def test_on_a_line_a_model_can_stand_for_the_nearest() -> None:
    nearest = QualityModel(2.0, squares=-1.0)
    for value in (-5.0, 1.7, 1.8, 5.4, 5.6, 100.0):
        client = client_at(value)
        assert client.choose(SHOPS, quality=nearest) == client.choose(SHOPS)


MODELS: list[Any] = [
    ({"bilinear": math.nan}, "bilinear"),
    ({"bilinear": "code()"}, "bilinear"),
    ({"bilinear": [1.0, 2.0]}, "bilinear"),
    ({"bilinear": [[1.0], [1.0, 2.0]]}, "bilinear"),
    ({"bilinear": []}, "bilinear"),
    ({"bilinear": 1.0, "linear": [1.0, 2.0]}, "linear must be 1 finite numbers"),
    ({"bilinear": 1.0, "squares": math.inf}, "squares"),
    ({"linear": 1.0}, "model"),
    ({"bilinear": 1.0, "code": "x"}, "model"),
    (None, "model"),
    ([1.0], "model"),
]


def test_a_model_that_is_no_model_is_refused() -> None:
    for data, message in MODELS:
        with pytest.raises(dps.InvalidInput) as error:
            QualityModel.of(data)
        assert str(error.value).startswith(message), data


def test_a_model_for_another_kind_of_result_is_refused_without_showing_the_value() -> None:
    model = QualityModel(np.eye(2))
    with pytest.raises(dps.InvalidInput) as error:
        client_at(SECRET).choose(SHOPS, quality=model)
    assert "value must be 2 numbers for this model" in str(error.value)
    assert "61.8" not in str(error.value)
    with pytest.raises(dps.InvalidInput, match="results must be 2 numbers"):
        model([1.0, 2.0], {"item": "bare"})
