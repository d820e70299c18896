"""Prepares docstrings for the reference: explains parameters that they do not explain, and puts examples between code fences."""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import griffe

sys.path.append(str(Path(__file__).parent))
from parameters import MEANINGS


class Fenced(griffe.Extension):
    """An extension of griffe, which reads the source for mkdocstrings."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if isinstance(obj, griffe.Function):
            text = add_parameters(text, obj.path, [each.name for each in obj.parameters])
        obj.docstring.value = add_fences(text)

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:  # noqa: ARG002
        if cls.docstring is not None:
            cls.docstring.value = add_parameters(cls.docstring.value, cls.path, [each.name for each in cls.parameters])


def add_parameters(docstring: str, path: str, names: Iterable[str]) -> str:
    """Add the meanings of the parameters that a docstring does not mention."""
    lines = [f"- `{name}`: {meaning}" for name, meaning in unexplained(docstring, path, names) if meaning]
    return "\n".join([docstring.rstrip(), "", "Parameters:", "", *lines]) if lines else docstring


def unexplained(docstring: str, path: str, names: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """The parameters that a docstring does not mention, and their meaning."""
    prose = re.sub(r"(?m)^\s*(>>>|\.\.\.).*$", "", docstring)
    words = set(re.findall(r"\w+", prose))
    for name in names:
        if name not in ("self", "cls") and not name.startswith("_") and name not in words:
            yield name, meaning_of(name, path)


def meaning_of(name: str, path: str) -> str | None:
    """The meaning of a parameter of the object at a path, or else its general meaning."""
    keys = [f"{part}.{name}" for part in reversed(path.split("."))]
    return next((MEANINGS[key] for key in [*keys, name] if key in MEANINGS), None)


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
