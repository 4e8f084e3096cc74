"""``/openapi.json``, made from the table of endpoints and the structs they speak: it cannot say what is not so."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tisat import __version__
from tisat.utils.types import JsonDict, Params
from tisat_serve.api.table import ENDPOINTS, Endpoint
from tisat_serve.structs import Outcomes, Row


class ErrorAnswer(msgspec.Struct):
    """Why a request was refused, in one sentence."""

    error: str
    parameter: str | None = None  # the one to blame, where there is one


REFUSALS = {
    "400": "What was asked cannot be, and why.",
    "401": "A token is needed.",
    "403": "The token does not allow it.",
    "404": "There is no such thing.",
    "408": "The body did not come in time.",
    "409": "It is too late or too early for that: somebody else was first.",
    "413": "The body is too large.",
    "415": "The kind of body is not known.",
    "422": "A parameter or a field is not what it must be.",
    "429": "Too many rows wait; Retry-After says how long to.",
    "500": "A fault of the service.",
    "503": "The service cannot take this now.",
    "507": "The disk is full.",
}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999}


def description() -> JsonDict:
    """The OpenAPI 3.1 document."""
    types: list[Any] = [Row, list[Row], Outcomes, ErrorAnswer]
    for endpoint in ENDPOINTS:
        types += [endpoint.answer, *([endpoint.body] if endpoint.body is not None else [])]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema = {str(kind): found for kind, found in zip(types, schemas, strict=True)}
    paths: JsonDict = {}
    for endpoint in ENDPOINTS:
        path = re.sub(r"\{(\w+):path\}", r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, schema)
    paths["/api/v1/rows"] = {"post": _rows(schema)}
    for path, summary in (
        ("/healthz", "Whether the process lives."),
        ("/readyz", "Whether rows are taken."),
        ("/metrics", "Figures for Prometheus."),
    ):
        answers = _answers("yes", {"text/plain": {"type": "string"}}, schema)
        paths[path] = {"get": {"summary": summary, "operationId": path.strip("/"), "responses": answers}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tisat serve",
            "version": __version__,
            "description": "Anomaly alarms within a budget. Times are seconds since 1970.",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _content(kinds: JsonDict) -> JsonDict:
    return {kind: {"schema": schema} for kind, schema in kinds.items()}


def _answers(said: str, kinds: Params, schema: Params) -> Params:
    """The good answer and every refusal."""
    body = _content({"application/json": schema[str(ErrorAnswer)]})
    refusals = {code: {"description": why, "content": body} for code, why in REFUSALS.items()}
    return {"200": {"description": said, "content": _content(kinds)}, **refusals}


def _operation(one: Endpoint, schema: JsonDict) -> JsonDict:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": NUMBER if name == "number" else {"type": "string", "minLength": 1},
        }
        for name in re.findall(r"\{(\w+)(?::path)?\}", one.path)
    ]
    for field in msgspec.structs.fields(one.query):
        kind = msgspec.json.schema(field.type)
        options = kind.get("anyOf", [kind])
        plain = next(option for option in options if option.get("type") != "null")  # nothing is said by leaving it out
        parameters.append({"name": field.encode_name, "in": "query", "required": False, "schema": plain})
    operation: JsonDict = {
        "summary": one.summary,
        "operationId": re.sub(r"\W+", "_", f"{one.method.lower()}_{one.path.removeprefix('/api/v1/')}").strip("_"),
        "description": f"Needs a token with the scope {one.scope!r} where tokens are set.",
        "parameters": parameters,
        "responses": _answers("The answer.", {"application/json": schema[str(one.answer)]}, schema),
    }
    if one.body is not None:
        operation["requestBody"] = {"required": True, "content": _content({"application/json": schema[str(one.body)]})}
    return operation


def _rows(schema: JsonDict) -> JsonDict:
    text = {"type": "string"}
    kinds = {"application/json": schema[str(list[Row])], "application/x-ndjson": text, "text/csv": text}
    summary = "The entity of a csv without a column 'entity'."
    return {
        "summary": "Rows in, one outcome each; answered when they are on the disk and judged.",
        "operationId": "post_rows",
        "parameters": [{"name": "entity", "in": "query", "required": False, "description": summary, "schema": text}],
        "requestBody": {"required": True, "content": _content(kinds)},
        "responses": _answers("One outcome a row, in order.", {"application/json": schema[str(Outcomes)]}, schema),
    }
