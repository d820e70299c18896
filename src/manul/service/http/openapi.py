"""The OpenAPI 3.1 description, made from the table of routes and the structs."""

from __future__ import annotations

import re
from typing import Any

import msgspec

import manul
from manul.service import schema
from manul.service.http.route_table import OPERATIONS, Operation

ERRORS = {
    400: "A request that is not HTTP, or a body that is not JSON.",
    401: "No token, or one that nobody was given.",
    403: "A token without the right; without tokens, a foreign host name or a request of another site.",
    404: "A path, loop or decision that does not exist.",
    405: "Another method.",
    408: "A request that did not arrive in time.",
    409: "Something else is there already.",
    413: "A body beyond the limit.",
    422: "A value that cannot be used.",
    431: "A head beyond the limit.",
    500: "A fault of the service.",
    503: "The store or the service cannot take anything more at the moment; nothing was changed. Try again.",
}
REFERENCE = "#/components/schemas/{name}"


def document() -> dict[str, Any]:
    """The whole description.

    >>> document()["openapi"]
    '3.1.0'
    """
    kinds = {kind for each in OPERATIONS for kind in (each.asks, each.answers) if isinstance(kind, type)}
    ordered = sorted({*kinds, schema.Error}, key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=REFERENCE)
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "manul",
            "version": manul.__version__,
            "summary": "Decisions that loops learn to make better.",
        },
        "paths": paths,
        "components": {
            "schemas": _portable(components),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(each: Operation) -> dict[str, Any]:
    answer = {"description": "Done.", "content": _content(each.answers)}
    responses = {str(status): answer for status in each.status}
    responses |= {
        str(status): {"description": says, "content": _content(schema.Error)} for status, says in ERRORS.items()
    }
    described: dict[str, Any] = {
        "operationId": each.name,
        "summary": each.says,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", each.path)
        ]
        + _query(each),
        "responses": responses,
        "security": [] if each.right is None else [{"token": [each.right]}],
    }
    if each.asks is not None:
        described["requestBody"] = {"required": True, "content": _content(each.asks)}
    return described


def _query(each: Operation) -> list[dict[str, Any]]:
    if each.query is None:
        return []
    values = {"type": "string"} | ({"enum": list(each.query.choices)} if each.query.choices else {})
    return [{"name": each.query.name, "in": "query", "description": each.query.says, "schema": values}]


def _content(kind: type | str) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string"} | ({} if kind.startswith("text/") else {"format": "binary"})}}
    return {"application/json": {"schema": {"$ref": REFERENCE.format(name=kind.__name__)}}}


def _portable(value: Any) -> Any:
    """What many tools read: `$` for the end of a text, and pairs as arrays of two."""
    if isinstance(value, list):
        return [_portable(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {name: _portable(each) for name, each in value.items()}
    if isinstance(made.get("pattern"), str):
        made["pattern"] = made["pattern"].replace(r"\Z", "$")
    if "prefixItems" in made:
        made["items"] = made.pop("prefixItems")[0]
    return made
