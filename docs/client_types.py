"""The types of the JavaScript client, from the OpenAPI description: `js/client.d.ts`."""

from __future__ import annotations

import json
import re
from typing import Any

from manul.service.http.openapi import document

HEADER = """// The types of client.js. `docs/generate.py` generates this file from the OpenAPI description of the service.
"""
# What each method takes and returns; the names of bodies are those of the reference (docs/reference/http.md).
CLASS = """
/** The service rejects a request or cannot be reached; `code` identifies the error for programs. */
export declare class ServiceError extends Error {
  status: number | null
  code: string
  field: string | null
}

export interface ClientOptions {
  token?: string | null
  /** Seconds of one attempt. */
  timeout?: number
  retries?: number
  fetch?: typeof fetch
  /** Waits so many seconds between attempts. */
  wait?: (seconds: number) => Promise<void>
}

export type DecisionAt = Omit<NewDecision, "at"> & { at?: Date | string | null }

export type DecisionOrId = { id: string } | string

export declare class Client {
  constructor(url: string, options?: ClientOptions)
  create(settings: NewLoop): Promise<Status>
  loops(): Promise<Status[]>
  status(loop: string): Promise<Status>
  decide(loop: string, context?: NewDecision["context"], options?: Omit<DecisionAt, "context">): Promise<Decision>
  decideMany(loop: string, decisions: DecisionAt[]): Promise<Decision[]>
  reportLoss(loop: string, decision: DecisionOrId, told: NewLoss): Promise<Loss>
  reportLosses(loop: string, losses: (NewLoss & ({ decision: DecisionOrId } | { id: string }))[]): Promise<Loss[]>
  observe(loop: string, observation: NewObservation): Promise<Observed>
  observeMany(loop: string, observations: NewObservation[]): Promise<Observed[]>
  pause(loop: string): Promise<Status>
  resume(loop: string): Promise<Status>
  changeBudget(loop: string, amount: number): Promise<Status>
  promote(loop: string): Promise<Status>
  startRollout(loop: string, settings: NewRollout): Promise<Rollout>
  rollout(loop: string): Promise<Rollout>
  pauseRollout(loop: string): Promise<Rollout>
  resumeRollout(loop: string): Promise<Rollout>
  abortRollout(loop: string): Promise<Rollout>
  reset(loop: string): Promise<Status>
  delete(loop: string): Promise<Deleted>
  replace(loop: string, model: Uint8Array): Promise<Status>
  report(loop: string): Promise<Report>
  log(loop: string): Promise<Uint8Array>
  model(loop: string): Promise<Uint8Array>
}
"""


def client_types() -> str:
    """The text of the file: an interface per body, and the class."""
    schemas = document()["components"]["schemas"]
    return "\n".join([HEADER, *(_interface(name, schemas[name]) for name in sorted(schemas))]) + CLASS


def _interface(name: str, schema: dict[str, Any]) -> str:
    comment = [f"/** {_line(schema['description'])} */"] if "description" in schema else []
    lines = [*comment, f"export interface {name} {{"]
    required = schema.get("required", ())
    for field, kind in schema["properties"].items():
        if "description" in kind:
            lines.append(f"  /** {_line(kind['description'])} */")
        lines.append(f"  {field}{'' if field in required else '?'}: {_kind(kind)}")
    return "\n".join([*lines, "}\n"])


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("*/", "* /").strip()


def _kind(schema: dict[str, Any]) -> str:
    """A schema as a type."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_kind(each) for each in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        inner = _kind(schema.get("items", {}))
        if schema.get("minItems") == schema.get("maxItems") == 2:
            return f"[{inner}, {inner}]"
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind == "object":
        values = schema.get("additionalProperties", {})
        return f"Record<string, {_kind(values) if isinstance(values, dict) and values else 'unknown'}>"
    known = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}
    return known[kind] if isinstance(kind, str) else "unknown"
