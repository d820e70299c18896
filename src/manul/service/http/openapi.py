"""The OpenAPI 3.1 description, generated from the route table and the structs."""

from __future__ import annotations

import re
from typing import Any

import msgspec

import manul
from manul.service import wire
from manul.service.errors import KINDS
from manul.service.http.route_table import OPERATIONS, Operation

ERRORS = {kind.status: kind.__doc__ or "" for kind in sorted(KINDS, key=lambda kind: kind.status)}
REFERENCE = "#/components/schemas/{name}"


def document(*, tokens: bool = True) -> dict[str, Any]:
    """The description of a service with tokens, or of one without."""
    kinds = {kind for each in OPERATIONS for kind in (each.asks, each.answers) if isinstance(kind, type)}
    ordered = sorted({*kinds, wire.Error}, key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=REFERENCE)
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, tokens=tokens)
    for kind in (wire.NewLoss, wire.LossOf):
        components[kind.__name__]["anyOf"] = [{"required": [name]} for name in ("loss", "reward", "parts")]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "manul",
            "version": manul.__version__,
            "summary": "Contextual bandits with continuous actions: decisions, losses and models.",
        },
        "paths": paths,
        "components": {"schemas": _portable(components)}
        | ({"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}} if tokens else {}),
    }


def _operation(each: Operation, *, tokens: bool) -> dict[str, Any]:
    answer = {"description": "Success.", "content": _content(each.answers)}
    responses = {str(status): answer for status in each.status}
    responses |= {
        str(status): {"description": summary, "content": _content(wire.Error)} for status, summary in ERRORS.items()
    }
    described: dict[str, Any] = {
        "operationId": each.name,
        "summary": each.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", each.path)
        ]
        + _query(each),
        "responses": responses,
        "security": [{"token": [each.right]}] if tokens and each.right is not None else [],
    }
    if each.asks is not None:
        described["requestBody"] = {"required": True, "content": _content(each.asks)}
    return described


def _query(each: Operation) -> list[dict[str, Any]]:
    described = []
    for query in each.queries:
        values = {"type": "string"} | ({"enum": list(query.choices)} if query.choices else {})
        described.append({"name": query.name, "in": "query", "description": query.summary, "schema": values})
    return described


def _content(kind: type | str) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string"} | ({} if kind.startswith("text/") else {"format": "binary"})}}
    return {"application/json": {"schema": {"$ref": REFERENCE.format(name=kind.__name__)}}}


def _portable(value: Any) -> Any:
    r"""Rewrite what many tools do not support: `\Z` becomes `$`, pairs become arrays, and arrays of anything say so."""
    if isinstance(value, list):
        return [_portable(each) for each in value]
    if not isinstance(value, dict):
        return value
    portable = {name: _portable(each) for name, each in value.items()}
    if isinstance(portable.get("pattern"), str):
        portable["pattern"] = portable["pattern"].replace(r"\Z", "$")
    if "prefixItems" in portable:
        kinds = [kind for each in portable.pop("prefixItems") for kind in each.get("anyOf", [each])]
        distinct = [kind for place, kind in enumerate(kinds) if kind not in kinds[:place]]
        portable["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    if portable.get("type") == "array":
        portable.setdefault("items", {})
    return portable
