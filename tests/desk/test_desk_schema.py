"""schemathesis against the desk's OpenAPI document: no failure inside, and no answer that the document leaves out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from desks import RunningDesk, served, served_app, write_config, write_data
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dpselect.desk import AloneDesk, create_app

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
CALLS = [
    ("GET", "/v1/session"),
    ("GET", "/v1/datasets"),
    ("POST", "/v1/datasets/{name}/estimate"),
    ("POST", "/v1/datasets/{name}/preview"),
    ("POST", "/v1/datasets/{name}/releases"),
    ("GET", "/v1/datasets/{name}/releases"),
    ("GET", "/v1/datasets/{name}/releases/{key}"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
]
CALLS_ALONE = [("POST", f"/v1/datasets/{{name}}/{call}") for call in ("describe", "discover", "look")]
EXAMPLES = 20


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[RunningDesk]:
    with served(write_config(folder, epsilon=1e6, delta=0.5, max_items_per_person=5)) as desk:
        yield desk


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[RunningDesk]:
    write_data(folder)
    desk = AloneDesk(folder, [folder / "views.csv", folder / "films.csv"])
    with served_app(create_app(desk)) as url:
        found = RunningDesk(url, desk.token, folder)
        described = {"person": "viewer", "epsilon": 1000.0, "delta": 0.5, "items": {"film": "films.csv"}}
        described |= {"groups": {"country": "countries.csv"}, "filters": {"adults": "CAST(age AS INTEGER) >= 18"}}
        assert found.send("POST", "/v1/datasets/views/describe", described)[0] == 200
        yield found


@pytest.fixture(scope="module", params=[shared, alone], ids=["shared", "alone"])
def desk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    with request.param(tmp_path_factory.mktemp("desk")) as found:
        yield found


def document(desk: RunningDesk) -> Any:
    return desk.send("GET", "/openapi.json", token="")[2]


def calls_of(desk: RunningDesk) -> set[tuple[str, str]]:
    mode = desk.send("GET", "/v1/session")[2]["mode"]
    return {*CALLS, *(CALLS_ALONE if mode == "alone" else [])}


def test_the_document_describes_every_call(desk: RunningDesk) -> None:
    paths = document(desk)["paths"]
    assert {(method.upper(), path) for path, calls in paths.items() for method in calls} == calls_of(desk)
    for path, calls in paths.items():
        for call in calls.values():
            assert ("security" in call) == path.startswith("/v1/")
            assert "422" not in call["responses"]


SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def call(desk: RunningDesk, method: str, path: str) -> Any:
    """Return an operation of the document."""
    schema = schemathesis.openapi.from_dict(document(desk))
    schema.config.update(base_url=desk.url)
    return schema[path][method]


def sent(desk: RunningDesk, case: Any) -> Any:
    """Return the answer to a request, checked against the document."""
    return case.call_and_validate(checks=CHECKS, headers={"Authorization": f"Bearer {desk.token}"}, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), [*CALLS, *CALLS_ALONE], ids=" ".join)
def test_answers_are_as_the_document_says(desk: RunningDesk, method: str, path: str) -> None:
    if (method, path) not in calls_of(desk):
        pytest.skip("a shared desk has no such call")

    @SETTINGS
    @given(call(desk, method, path).as_strategy(), st.sampled_from(["views", "views", None]))
    def conforms(case: Any, name: str | None) -> None:
        if name is not None and "name" in case.path_parameters:
            case.path_parameters["name"] = name
        sent(desk, case)

    conforms()


QUESTIONS = st.fixed_dictionaries(
    {
        "item": st.just("film"),
        "k": st.integers(1, 13),
        "epsilon": st.one_of(st.floats(1e-12, 1000), st.floats(0, 1e-3, exclude_min=True)),
    },
    optional={
        "delta": st.one_of(st.floats(0, 1, exclude_max=True), st.floats(0, 1e-5)),
        "ordered": st.booleans(),
        "aim": st.sampled_from(["most", "exact"]),
        "values": st.one_of(st.none(), st.just(True), st.floats(0, 1, exclude_min=True, exclude_max=True)),
        "filter": st.sampled_from([None, "adults"]),
        "by": st.sampled_from([None, "country"]),
        "purpose": st.text(max_size=500),
    },
)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "lead": st.floats(0, 1e12, exclude_min=True),
        "accuracy": st.floats(0, 1, exclude_min=True, exclude_max=True),
    },
)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["estimate", "preview", "releases"])
def test_any_question_is_answered_or_refused_with_a_reason(desk: RunningDesk, what: str) -> None:
    operation = call(desk, "POST", f"/v1/datasets/{{name}}/{what}")
    found = set()

    @SETTINGS
    @given(QUESTIONS, WISHES, st.integers(0, 10**9))
    def conforms(question: dict[str, Any], wishes: dict[str, Any], key: int) -> None:
        body = question | wishes if what == "estimate" else question
        headers = {"Idempotency-Key": f"key-{key}"} if what == "releases" else {}
        reply = sent(desk, operation.Case(path_parameters={"name": "views"}, body=body, headers=headers))
        assert reply.status_code in (200, 201, 400, 409), (body, reply.text)
        found.add(reply.status_code)

    conforms()
    assert found & {200, 201}


def test_refusals_have_the_shape_that_the_document_says(desk: RunningDesk) -> None:
    estimate = call(desk, "POST", "/v1/datasets/{name}/estimate").Case(path_parameters={"name": "views"})
    for token, content, status in [("wrong", b"{}", 401), (desk.token, b"x" * 3_000, 400)]:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        assert estimate.call_and_validate(checks=CHECKS, headers=headers, data=content).status_code == status
