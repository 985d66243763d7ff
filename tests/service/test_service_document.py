"""The OpenAPI document says what the service accepts and what it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from serving import Served, send, served

from dpselect.multiselect import QualityModel
from dpselect.service import Offer, RingOffer, VectorOffer
from dpselect.service.document import openapi_document
from dpselect.service.settings import PublicSettings

MODEL = QualityModel([[1.0]], linear=[0.5], squares=[-1.0])
OFFERS: dict[str, PublicSettings] = {
    "line": Offer([0.0, 1.0, 2.0], k=2, epsilon=0.7, unit="km", landmarks={"pier": 1.0}, model=MODEL),
    "ring": RingOffer({"early": 5.0, "late": 23.0}, circumference=24.0, k=1, places=24),
    "films": VectorOffer([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], ["a", "b", "c"], k=1),
}
TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(OFFERS) as running:
        yield running


@pytest.fixture(scope="module")
def document(service: Served) -> Any:
    return json.loads(send(service, "GET", "/openapi.json")[2])


def fits(data: Any, schema: Any, document: Any) -> bool:
    """Return whether data keeps the part of JSON Schema that the document uses."""
    if "$ref" in schema:
        return fits(data, document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], document)
    if "oneOf" in schema or "anyOf" in schema:
        matching = [fits(data, each, document) for each in schema.get("oneOf", schema.get("anyOf"))]
        return sum(matching) == 1 if "oneOf" in schema else any(matching)
    if "const" in schema:
        return bool(data == schema["const"])
    if not isinstance(data, TYPES.get(schema.get("type"), object)) or isinstance(data, bool):
        return False
    if isinstance(data, list):
        size = schema.get("minItems", 0) <= len(data) <= schema.get("maxItems", len(data))
        return size and all(fits(each, schema.get("items", {}), document) for each in data)
    if isinstance(data, dict) and "properties" in schema:
        known = set(schema["required"]) <= data.keys() <= schema["properties"].keys()
        return known and all(fits(each, schema["properties"][name], document) for name, each in data.items())
    if isinstance(data, int | float):
        low, high = schema.get("minimum", -float("inf")), schema.get("maximum", float("inf"))
        return bool(low <= data <= high and abs(data) < schema.get("exclusiveMaximum", float("inf")))
    return True


def operation(document: Any, method: str, path: str) -> Any:
    name = path if path in document["paths"] else "/v1/multiselect/{catalogue}"
    return document["paths"][name][method.lower()]


REQUESTS: list[tuple[str, str, Any, int]] = [
    ("GET", "/healthz", None, 200),
    ("GET", "/v1/multiselect", None, 200),
    ("GET", "/v1/multiselect?x=1", None, 422),
    ("GET", "/v1/multiselect/line", None, 200),
    ("GET", "/v1/multiselect/ring?k=2", None, 200),
    ("GET", "/v1/multiselect/films?epsilon=5", None, 200),
    ("GET", "/v1/multiselect/line?k=99", None, 422),
    ("GET", "/v1/multiselect/unknown", None, 404),
    ("POST", "/v1/multiselect/line", {"signal": 1.5}, 200),
    ("POST", "/v1/multiselect/ring", {"signal": 23}, 200),
    ("POST", "/v1/multiselect/films", {"signal": [1e100, -1e100]}, 200),
    ("POST", "/v1/multiselect/films", {"signal": [2e100, 0.0]}, 422),
    ("POST", "/v1/multiselect/line", {"signal": "x"}, 422),
    ("POST", "/v1/multiselect/line", {"signal": 1, "rest": "x" * 300}, 413),
    ("POST", "/v1/multiselect/unknown", {"signal": 1}, 404),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), REQUESTS, ids=lambda value: str(value)[:40])
def test_every_answer_is_as_documented(
    service: Served, document: Any, method: str, path: str, body: Any, status: int
) -> None:
    found, _, content = send(service, method, path, None if body is None else json.dumps(body))
    assert found == status
    documented = operation(document, method, path.split("?")[0])["responses"][str(status)]
    schema = documented["content"]["application/json"]["schema"]
    assert fits(json.loads(content), schema, document)
    assert not fits({**json.loads(content), "more": 1}, schema, document)


@pytest.mark.parametrize(("name", "signal"), [("line", 1e299), ("ring", 23), ("films", [1.0, 2.0])])
def test_a_signal_of_each_kind_is_documented(name: str, signal: Any) -> None:
    alone = openapi_document({name: OFFERS[name]})
    schema = {"$ref": "#/components/schemas/Signal"}
    assert fits({"signal": signal}, schema, alone)
    for other in (1e300, 24.5 if name == "ring" else "x", [1.0], [1.0, 2.0, 3.0], None):
        assert not fits({"signal": other}, schema, alone)


def test_the_document_has_no_field_for_a_private_value(document: Any) -> None:
    posted = operation(document, "POST", "/v1/multiselect/line")["requestBody"]["content"]["application/json"]["schema"]
    body = document["components"]["schemas"][posted["$ref"].rsplit("/", 1)[1]]
    assert list(body["properties"]) == ["signal"]
    assert body["additionalProperties"] is False
    parameters = {
        each["name"]: each["schema"] for each in document["paths"]["/v1/multiselect/{catalogue}"]["parameters"]
    }
    assert parameters["catalogue"]["enum"] == ["line", "ring", "films"]
    assert parameters["k"]["maximum"] == 3
    assert 0.7 in parameters["epsilon"]["enum"]
    assert set(parameters) == {"catalogue", "k", "epsilon"}


def test_the_document_says_what_the_service_is(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    assert document["info"]["title"] == "dpselect"
    assert "noise" in document["info"]["description"]
    names = [
        each["operationId"] for path in document["paths"].values() for each in path.values() if "responses" in each
    ]
    assert sorted(names) == ["answer", "catalogues", "description", "health"]
