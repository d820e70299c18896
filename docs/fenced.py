"""Puts the examples in docstrings between code fences, so that the reference shows them as code."""

from typing import Any

import griffe


class Fenced(griffe.Extension):
    """An extension of griffe, which reads the source for mkdocstrings."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        if obj.docstring is not None:
            obj.docstring.value = add_fences(obj.docstring.value)


def add_fences(docstring: str) -> str:
    """Put the examples of a docstring, from `>>>` to an empty line, between fences."""
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
