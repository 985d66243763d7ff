"""The OpenAPI document of the service, made from the offers, so that it names the values that are accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dpselect
from dpselect.service.settings import PublicSettings

NUMBER: dict[str, Any] = {"type": "number"}
NUMBERS: dict[str, Any] = {"type": "array", "items": NUMBER}
WHOLE: dict[str, Any] = {"type": "integer"}
TEXT: dict[str, Any] = {"type": "string"}
DESCRIPTION = (
    "Multi-selection: a client adds noise to its private position or feature vector, sends this signal, and keeps the "
    "best of the k results that come back without saying which. Privacy is that of the client's noise. "
    "Requests are not logged, and no error repeats what was sent."
)
REFUSALS = {
    "400": "The request is not valid HTTP, or its headers are too long. The connection is closed.",
    "404": "No such catalogue.",
    "408": "The body did not arrive in time.",
    "413": "The body is longer than any signal of this catalogue.",
    "422": "Something else than a signal, or settings that are not on offer.",
    "500": "The service failed. Nothing of the request was kept.",
    "503": "Too many open connections.",
}
PLAIN = ("400", "503")
"""Statuses that the HTTP server answers itself, in plain text."""


def openapi_document(offers: Mapping[str, PublicSettings]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a service with these offers.

    If there are several, the accepted values of k, epsilon and the signal are those of all of them; what one catalogue
    accepts is in its description.
    """
    anywhere = ["400", "500", "503"]
    answer = {
        "operationId": "answer",
        "summary": "Answer a signal with k results",
        "requestBody": {"required": True, "content": _json({"$ref": "#/components/schemas/Signal"})},
        "responses": _responses("The k results.", "Answer", ["404", "408", "413", "422", *anywhere]),
    }
    paths = {
        "/v1/multiselect": {
            "get": {
                "operationId": "catalogues",
                "summary": "List the catalogues",
                "responses": _responses("All catalogues with their public settings.", "Catalogues", ["422", *anywhere]),
            }
        },
        "/v1/multiselect/{catalogue}": {
            "parameters": _settings(offers),
            "get": {
                "operationId": "description",
                "summary": "Describe a catalogue for one k and epsilon",
                "responses": _responses(
                    "The public settings, and what a client needs.",
                    "Description",
                    ["404", "422", *anywhere],
                ),
            },
            "post": answer,
        },
        "/healthz": {
            "get": {
                "operationId": "health",
                "summary": "Say that the service is running",
                "responses": _responses("It is running.", "Health", anywhere),
            }
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dpselect",
            "version": dpselect.__version__,
            "summary": "Results near a private position or taste, found by a noisy signal",
            "description": DESCRIPTION,
        },
        "paths": paths,
        "components": {"schemas": _schemas(offers)},
    }


def _settings(offers: Mapping[str, PublicSettings]) -> list[dict[str, Any]]:
    """Return the parameters of a catalogue's URL."""
    most = max((offer.most for offer in offers.values()), default=1)
    epsilons = sorted({each for offer in offers.values() for each in offer.epsilons})
    names = {"schema": {**TEXT, "enum": list(offers)}} if offers else {"schema": TEXT}
    k = {"schema": {**WHOLE, "minimum": 1, "maximum": most}}
    epsilon = {"schema": {**NUMBER, "enum": epsilons} if epsilons else NUMBER}
    return [
        {"name": "catalogue", "in": "path", "required": True, "description": "Name of the catalogue.", **names},
        {"name": "k", "in": "query", "description": "Number of results. Default: the catalogue's.", **k},
        {"name": "epsilon", "in": "query", "description": "Epsilon of the client's noise. Default: the catalogue's."}
        | epsilon,
    ]


def _schemas(offers: Mapping[str, PublicSettings]) -> dict[str, Any]:
    """Return the schemas of all bodies."""
    forms: list[Mapping[str, Any]] = []
    for offer in offers.values():
        forms += [offer.signal_schema] if offer.signal_schema not in forms else []
    public = {
        "name": TEXT,
        "title": TEXT,
        "results": {**WHOLE, "description": "Number of results."},
        "unit": {**TEXT, "description": "Unit of distances."},
        "k": {**WHOLE, "description": "The k that holds if none is asked for; in a description, the one asked for."},
        "most": {**WHOLE, "description": "The largest k on offer."},
        "epsilon": {**NUMBER, "description": "Likewise for epsilon, per unit of distance."},
        "epsilons": {**NUMBERS, "description": "The values of epsilon on offer."},
    }
    grid = {"grid": {**NUMBER, "description": "Step of the grid on which signals lie."}}
    kinds: dict[str, dict[str, Any]] = {
        "line": {**grid, "shown": NUMBERS, "landmarks": {"type": "object", "additionalProperties": NUMBER}},
        "ring": {"circumference": NUMBER, "places": WHOLE},
        "vectors": {**grid, "dimensions": WHOLE, "noise": TEXT, "delta": NUMBER, "search_dimensions": WHOLE},
    }
    answers = {"k": WHOLE, "offsets": NUMBERS, "expected_cost": NUMBER, "average_distance": NUMBER, "margin": NUMBER}
    details: dict[str, dict[str, Any]] = {
        "line": {"simulated_users": WHOLE, "answers": {"type": "array", "items": _object(answers)}},
        "ring": {"heights": NUMBERS, "answers": {"type": "array", "items": WHOLE}, "expected_cost": NUMBER},
        "vectors": {},
    }
    model = _object({"bilinear": {"type": "array", "items": NUMBERS}, "linear": NUMBERS, "squares": NUMBERS})
    item = {"description": "What the result is: text, a number, or a list or mapping of these."}
    result = {"oneOf": [_object({"item": item, "position": NUMBER}), _object({"item": item, "vector": NUMBERS})]}
    listed, described = [], []
    for kind, own in kinds.items():
        common = {**public, "kind": {"const": kind}, **own}
        listed.append(_object(common))
        described.append(_object({**common, **details[kind]}, optional={"model": model}))
    return {
        "Signal": _object({"signal": {"anyOf": forms} if len(forms) > 1 else forms[0] if forms else NUMBER}),
        "Answer": _object({"results": {"type": "array", "items": result}, "k": WHOLE, "epsilon": NUMBER}),
        "Catalogues": _object({"catalogues": {"type": "array", "items": {"oneOf": listed}}}),
        "Description": {"oneOf": described},
        "Health": _object({"status": {"const": "ok"}}),
        "Error": _object({"error": {**TEXT, "description": "What is accepted; never what was sent."}}),
    }


def _object(properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the schema of an object with these fields and no others."""
    fields = {**properties, **(optional or {})}
    return {"type": "object", "properties": fields, "required": list(properties), "additionalProperties": False}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _responses(description: str, schema: str, refusals: list[str]) -> dict[str, Any]:
    """Return the responses of an operation: success, and these refusals."""
    responses = {"200": {"description": description, "content": _json({"$ref": f"#/components/schemas/{schema}"})}}
    for status in refusals:
        error = _json({"$ref": "#/components/schemas/Error"})
        content = {"text/plain": {"schema": TEXT}} if status in PLAIN else error
        responses[status] = {"description": REFUSALS[status], "content": content}
    return responses
