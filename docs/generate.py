"""Generates reference pages from the code: `python docs/generate.py`. The tests compare them with the committed ones."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from manul.cli import main
from manul.service.http.openapi import document

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from client_types import client_types  # noqa: E402 - beside this file, also if the tests load it

WIDTH = 100
CLI = """# Command line

Options have the same names as the keyword arguments in Python. Numbers may be written as fractions, such as `1/16`. Results are
printed to standard output, as JSON with `--json`; progress bars and notes go to standard error. An error prints one line and exits with
status 2 for wrong usage and 1 otherwise. `docs/generate.py` generates this page from the commands.
"""
HTTP = """# HTTP

The routes of `manul serve`. `docs/generate.py` generates this page from the OpenAPI 3.1 description that the service returns at
`GET /openapi.json`. `GET /docs` is an interactive API reference, and `GET /` the dashboard. [The service](../service.md) describes the
guarantees, and [the tutorial](../tutorials/service.md) the life of a loop.

Bodies are JSON in UTF-8; unknown fields are rejected. If the service has tokens, send `Authorization: Bearer TOKEN`. The token must have
the right in the table; `admin` includes the others.
"""
ERRORS = """
## Errors

Every error response has the body [Error](#error): a machine-readable code, a message, and the field, if there is one.
After a 4xx or a 503, nothing has changed.

```json
{"error": {"code": "invalid", "message": "loss must be in [0, 1], got 7.0", "field": "loss"}}
```

| status | |
|---|---|
"""
LIMITS = {
    "minimum": "from {}",
    "exclusiveMinimum": "above {}",
    "maximum": "to {}",
    "maxLength": "of at most {} characters",
}


def help_text(command: click.Command, name: str) -> str:
    """Format the help of a command for a fixed terminal width."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH, show_default=True)
    context.help_option_names = ["-h", "--help"]
    command._help_option = None  # click keeps the option of the first context in which the command was called
    return command.get_help(context)


def cli() -> str:
    """Generate the page of the command line."""
    context = click.Context(main, info_name="manul")
    parts = [CLI, f"## manul\n\n```text\n{help_text(main, 'manul')}\n```\n", *_commands(main, context, "manul")]
    return "\n".join(parts)


def _commands(group: click.Group, context: click.Context, prefix: str) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"## {prefix} {name}\n\n```text\n{help_text(command, f'{prefix} {name}')}\n```\n"
        if isinstance(command, click.Group):
            yield from _commands(command, click.Context(command, info_name=name), f"{prefix} {name}")


def http() -> str:
    """Generate the page of the routes and their bodies."""
    description = document()
    routes = [
        (f"{m.upper()} {path}", each) for path, several in description["paths"].items() for m, each in several.items()
    ]
    statuses = {status: says for _, each in routes for status, says in _errors(each).items()}
    parts = [
        HTTP + "\n## Routes\n\n| route | right | |\n|---|---|---|",
        *(_route(name, each) for name, each in routes),
        ERRORS + "\n".join(f"| {status} | {says} |" for status, says in sorted(statuses.items())) + "\n",
        "## Bodies\n",
        *(_body(name, each) for name, each in description["components"]["schemas"].items()),
    ]
    return "\n".join(parts)


def _route(name: str, each: dict[str, Any]) -> str:
    good = {status: answer for status, answer in each["responses"].items() if status < "300"}
    right = ", ".join(right for needed in each["security"] for right in needed["token"])
    told = [each["summary"], *(_query(given) for given in each["parameters"] if given["in"] == "query")]
    asked = [f"Body: {_content(each['requestBody'])}."] if "requestBody" in each else []
    told += [*asked, f"Returns {' or '.join(good)}: {_content(next(iter(good.values())))}."]
    return f"| `{name}` | {right} | {' '.join(told)} |"


def _query(parameter: dict[str, Any]) -> str:
    return f"`?{parameter['name']}=` {_kind(parameter['schema'])}: {parameter['description']}"


def _body(name: str, each: dict[str, Any]) -> str:
    described = [re.sub(r"\s+", " ", each["description"]) + "\n"] if "description" in each else []
    lines = [f"### {name}\n", *described, "| field | | | |", "|---|---|---|---|"]
    for field, kind in each["properties"].items():
        given = "required" if field in each["required"] else ""
        given = f"default `{json.dumps(kind['default'])}`" if "default" in kind else given
        lines.append(f"| `{field}` | {_kind(kind)} | {given} | {kind.get('description', '')} |")
    return "\n".join(lines) + "\n"


def _errors(each: dict[str, Any]) -> dict[str, str]:
    return {status: answer["description"] for status, answer in each["responses"].items() if status >= "300"}


def _content(holder: dict[str, Any]) -> str:
    ((media, content),) = holder["content"].items()
    return _kind(content["schema"]) if media == "application/json" else f"a file, `{media}`"


def _kind(schema: dict[str, Any]) -> str:
    """Describe the type of a value."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if schema.get("type") == "array":
        two = schema.get("minItems") == schema.get("maxItems") == 2
        inner = _kind(schema["items"])
        return f"pair of {inner}s" if two else f"array of {inner}"
    return " ".join([schema.get("type", "any"), *_limits(schema)])


def _limits(schema: dict[str, Any]) -> Iterator[str]:
    yield from (says.format(f"{schema[name]:g}") for name, says in LIMITS.items() if name in schema)
    if "pattern" in schema:
        yield f"matching `{schema['pattern']}`"


PAGES = {
    HERE / "reference" / "cli.md": cli,
    HERE / "reference" / "http.md": http,
    HERE.parent / "js" / "client.d.ts": client_types,
}

if __name__ == "__main__":
    for path, generate in PAGES.items():
        path.write_text(generate(), encoding="utf-8")
