"""Vowpal Wabbit's JSON: one object per line with `_label_ca`, features as members, namespaces as objects.

Vowpal Wabbit ignores members that begin with an underscore, so low, high, time and others are stored as such. In its decision
service's JSON (dsjson), the features are in the member `c`, `EventId` is the id and `Timestamp` the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from manul.errors import FileError
from manul.logs.formats import register_format
from manul.logs.formats.jsonl import json_object, optional
from manul.logs.formats.level_columns import LEVELS
from manul.logs.formats.log_schema import ARM, RANGE, TEXTS, Metadata
from manul.logs.formats.readers import BadRow, Piece, Problems, number, reject_knobs
from manul.logs.formats.row_tables import Row, read_rows
from manul.logs.formats.text_columns import check_features, decision_columns, feature_rows, json_members
from manul.logs.formats.text_lines import Output, lines
from manul.logs.formats.vw import escape, split_name, unescape

if TYPE_CHECKING:
    import pyarrow as pa

LABEL = {"action": "action", "density": "pdf_value", "loss": "cost"}
ESTIMATED = "_densities_estimated"  # true if the densities were estimated; absent otherwise
SERVICE = {"EventId", "Timestamp", "Version", "VWState"}  # one of them beside `c` is a sign of dsjson
DEEPEST = 32  # levels of namespaces, as many as in contexts of agents
SERVICE_MEMBERS = {"EventId": "id", "Timestamp": "time"}
MEMBERS = {"_tag": "id", **{f"_{name}": name for name in (*RANGE, "floor", "time", ARM, LEVELS)}}


def read(problems: Problems, size: int) -> Iterator[Piece]:
    """Read the rows of a file in pieces."""
    reject_knobs(problems.path, problems.knobs)
    return read_rows(problems, size, parse, lines)


def parse(line: str) -> Row | None:
    """Parse a row; return None for an empty line.

    >>> parse('{"_label_ca": {"action": 21.4, "cost": 0.3, "pdf_value": 0.24}, "user": {"age": 30, "from": "Bath"}}')
    Row(action=21.4, density=0.24, loss=0.3, optional={},
        context={'user^age': 30.0, 'user^from=Bath': 1.0}, nested=True, rewards=False,
        estimated=False)
    """
    if not line.strip():
        return None
    members = json_object(line)
    label = members.get("_label_ca")
    if not isinstance(label, Mapping):
        raise BadRow(
            "_label_ca", "an object with action, cost and pdf_value (files without it must end with .jsonl)", label
        )
    label = {str(name).lower(): value for name, value in label.items()}  # Vowpal Wabbit ignores the case, too
    context = members.get("c")
    nested = isinstance(context, Mapping) and not SERVICE.isdisjoint(members)
    optional_members = MEMBERS | SERVICE_MEMBERS if nested else MEMBERS
    return Row(
        number("action", label.get("action")),
        number("density", label.get("pdf_value")),
        number("loss", label.get("cost")),
        {name: optional(name, members[member]) for member, name in optional_members.items() if member in members},
        _sum(_features(context if nested and isinstance(context, Mapping) else members)),
        estimated=members.get(ESTIMATED) is True,
    )


def _sum(features: Iterator[tuple[str, float]]) -> dict[str, float]:
    """Features by name; like Vowpal Wabbit, it adds the values of a feature that occurs twice."""
    context: dict[str, float] = {}
    for name, value in features:
        context[name] = value if name not in context else context[name] + value
    return context


def _features(members: Mapping[str, object], space: str = "") -> Iterator[tuple[str, float]]:
    """The features of an object; those of an object or a list in it are in a namespace."""
    for name, value in members.items():
        if name.startswith("_"):
            continue
        inner = {str(place): item for place, item in enumerate(value)} if isinstance(value, list) else value
        feature = f"{space}{_unescape(name)}"
        if isinstance(inner, Mapping) and space.count("^") >= DEEPEST:
            raise BadRow(feature[:60], f"nested at most {DEEPEST} levels deep", "more")
        if isinstance(inner, Mapping):
            yield from _features(inner, f"{feature}^")
        else:
            yield from _feature(feature, value)


def _feature(name: str, value: object) -> Iterator[tuple[str, float]]:
    """A text is a feature `name=text` with value 1; true is 1; false and null are omitted."""
    if isinstance(value, str):
        yield f"{name}={value}", 1.0
    elif value is True:
        yield name, 1.0
    elif value is not None and value is not False:
        yield name, number(name, value) or 0.0


class Writer:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        reject_knobs(path, Metadata.from_arrow(schema.metadata).knobs)
        check_features(path, schema)
        estimated = Metadata.from_arrow(schema.metadata).densities_estimated
        self._mark = [(ESTIMATED, "true")] if estimated else []
        self._output = Output(path)

    def write(self, table: pa.Table) -> None:
        columns = decision_columns(table)
        for text in TEXTS:
            if text in columns:
                quoted = (None if value is None else json.dumps(value, ensure_ascii=False) for value in columns[text])
                columns[text] = list(quoted)
        for row, features in enumerate(feature_rows(table)):
            label = json_members([(member, columns[name][row] or "null") for name, member in LABEL.items()])
            members = [(member, columns[name][row]) for member, name in MEMBERS.items() if name in columns]
            present = [(member, value) for member, value in members if value is not None]
            self._output.write(self._object([("_label_ca", label), *self._mark, *present], features) + "\n")

    def _object(self, head: list[tuple[str, str]], features: list[tuple[str, str]]) -> str:
        return json_members([*head, *_spaces(features)])

    def close(self) -> None:
        self._output.close()


def _spaces(features: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Features as members; those of one namespace form one object."""
    spaces: dict[str, list[tuple[str, str]]] = {}
    for feature, value in features:
        space, name = split_name(feature)
        spaces.setdefault(space, []).append((_escape(name), value))
    for space, members in spaces.items():
        yield from [(_escape(space), json_members(members))] if space else members
    for name, _ in spaces.get("", ()):
        if name in spaces:
            raise FileError(f"A feature and a namespace are both named {name!r}. Rename one, or write .vw.", "features")


def _escape(name: str) -> str:
    """Escape a name, including an underscore at its start."""
    return "%5F" + escape(name[1:]) if name.startswith("_") else escape(name)


def _unescape(name: str) -> str:
    return "_" + unescape(name[3:]) if name.startswith("%5F") else unescape(name)


class ServiceWriter(Writer):
    def _object(self, head: list[tuple[str, str]], features: list[tuple[str, str]]) -> str:
        names = {"_tag": "EventId"}
        marked = [(names.get(member, member), value) for member, value in head]
        return json_members([*marked, ("Version", '"1"'), ("c", json_members([*_spaces(features)]))])


register_format(".json", read=read, writer=Writer)
register_format(".dsjson", read=read, writer=ServiceWriter)
