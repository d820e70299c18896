"""Writes the pages that are made from the code: `python docs/generate.py`. The tests compare them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from manul.cli import main
from manul.service.http.openapi import document

HERE = Path(__file__).parent
WIDTH = 100
CLI = """# Command line

Every command takes files first and then options, which are called as the keywords of Python are. Fractions such as `1/16` are
read as written. Tables go to the standard output, or `--json` for programs; progress with the time left goes to standard error.
What is wrong is said in one sentence, with exit status 2 for a setting and 1 for the rest. This page is made by
`docs/generate.py` from the commands themselves.
"""
HTTP = """# HTTP

The routes of `manul serve`, made by `docs/generate.py` from the OpenAPI 3.1 description that the service answers itself with
at `GET /openapi.json`. `GET /docs` is a page to try them, and `GET /` the dashboard. [The service](../service.md) says what is
promised, and [the tutorial](../tutorials/service.md) walks through a whole life of a loop.

Bodies are JSON in UTF-8, and unknown fields are refused. Where the service has tokens, a caller sends
`Authorization: Bearer TOKEN`, and the token must have the right in the table; `admin` includes the others.
"""
ERRORS = """
## Errors

Every error has the shape of [Error](#error): a code for programs, one sentence for people, and the field where there is one.
After a 4xx or a 503, nothing was changed.

```json
{"error": {"code": "invalid", "message": "loss must be in [0, 1]; got 7.0. Scale it.", "field": "loss"}}
```

| status | |
|---|---|
"""
WORDS = {"integer": "whole number", "string": "text", "boolean": "true or false"}
LIMITS = {"minimum": "from {}", "exclusiveMinimum": "above {}", "maximum": "to {}", "maxLength": "at most {} letters"}


def helped(command: click.Command, name: str) -> str:
    """The help of a command, as a terminal of a fixed width shows it."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH, show_default=True)
    context.help_option_names = ["-h", "--help"]
    return command.get_help(context)


def cli() -> str:
    """The page of the command line."""
    context = click.Context(main, info_name="manul")
    parts = [CLI, f"## manul\n\n```text\n{helped(main, 'manul')}\n```\n"]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        parts.append(f"## manul {name}\n\n```text\n{helped(command, f'manul {name}')}\n```\n")
    return "\n".join(parts)


def http() -> str:
    """The page of the routes and what goes in and out of them."""
    described = document()
    routes = [
        (f"{m.upper()} {path}", each) for path, several in described["paths"].items() for m, each in several.items()
    ]
    statuses = {status: says for _, each in routes for status, says in _errors(each).items()}
    parts = [
        HTTP + "\n## Routes\n\n| route | right | |\n|---|---|---|",
        *(_route(name, each) for name, each in routes),
        ERRORS + "\n".join(f"| {status} | {says} |" for status, says in sorted(statuses.items())) + "\n",
        "## Bodies\n",
        *(_body(name, each) for name, each in described["components"]["schemas"].items()),
    ]
    return "\n".join(parts)


def _route(name: str, each: dict[str, Any]) -> str:
    good = {status: answer for status, answer in each["responses"].items() if status < "300"}
    right = ", ".join(right for needed in each["security"] for right in needed["token"])
    told = [each["summary"], *(_query(given) for given in each["parameters"] if given["in"] == "query")]
    asked = [f"Asks {_content(each['requestBody'])}."] if "requestBody" in each else []
    told += [*asked, f"Answers {' or '.join(good)}, {_content(next(iter(good.values())))}."]
    return f"| `{name}` | {right} | {' '.join(told)} |"


def _query(parameter: dict[str, Any]) -> str:
    return f"`?{parameter['name']}=` {_kind(parameter['schema'])}: {parameter['description']}"


def _body(name: str, each: dict[str, Any]) -> str:
    lines = [f"### {name}\n", re.sub(r"\s+", " ", each["description"]) + "\n", "| field | | | |", "|---|---|---|---|"]
    for field, kind in each["properties"].items():
        given = "required" if field in each["required"] else ""
        given = f"`{json.dumps(kind['default'])}` by default" if "default" in kind else given
        lines.append(f"| `{field}` | {_kind(kind)} | {given} | {kind.get('description', '')} |")
    return "\n".join(lines) + "\n"


def _errors(each: dict[str, Any]) -> dict[str, str]:
    return {status: answer["description"] for status, answer in each["responses"].items() if status >= "300"}


def _content(holder: dict[str, Any]) -> str:
    ((media, content),) = holder["content"].items()
    return _kind(content["schema"]) if media == "application/json" else f"a file, `{media}`"


def _kind(schema: dict[str, Any]) -> str:
    """What a value is, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return _list_of(schema)
    return " ".join([WORDS.get(schema.get("type", ""), schema.get("type", "anything")), *_limits(schema)])


def _list_of(schema: dict[str, Any]) -> str:
    inner = _kind(schema["items"])
    two = schema.get("minItems") == schema.get("maxItems") == 2
    return f"two {inner}s" if two else f"list of {inner}{'' if inner.startswith('[') else 's'}"


def _limits(schema: dict[str, Any]) -> Iterator[str]:
    yield from (says.format(f"{schema[name]:g}") for name, says in LIMITS.items() if name in schema)
    if "pattern" in schema:
        yield f"like `{schema['pattern']}`"


PAGES = {HERE / "reference" / "cli.md": cli, HERE / "reference" / "http.md": http}

if __name__ == "__main__":
    for path, made in PAGES.items():
        path.write_text(made(), encoding="utf-8")
