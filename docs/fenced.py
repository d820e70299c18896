"""Puts the examples of docstrings into fences, so that the reference shows them as code."""

from typing import Any

import griffe


class Fenced(griffe.Extension):
    """An extension of mkdocstrings' reader of source."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """A docstring whose examples, from `>>>` to an empty line, are between fences."""
    lines: list[str] = []
    inside = False
    for line in [*docstring.splitlines(), ""]:
        if line.startswith(">>>") and not inside:
            lines.append("```pycon")
            inside = True
        elif not line.strip() and inside:
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join(lines).rstrip()
