"""JSON lines: one object per row; the context is a list, an object of features, or the object's other members."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manul.logs.formats import register_format
from manul.logs.formats.level_columns import LEVELS
from manul.logs.formats.log_schema import (
    KNOB_COLUMNS,
    NUMBERS,
    OPTIONAL,
    TEXTS,
    Metadata,
    has_estimates,
    has_rewards,
    is_part,
    reserved_names,
    stated_name,
)
from manul.logs.formats.readers import BadRow, Piece, Problems, knobs_of_file, number, part_number, seconds
from manul.logs.formats.row_tables import KnobParser, Row, read_levels, read_rows
from manul.logs.formats.text_columns import json_objects
from manul.logs.formats.text_lines import Output, lines

if TYPE_CHECKING:
    import pyarrow as pa


def read(problems: Problems, size: int) -> Iterator[Piece]:
    """Read the rows of a file in pieces."""
    knobs = None if problems.knobs is None else KnobParser(problems.knobs)
    return read_rows(problems, size, partial(parse, problems=problems, knobs=knobs), lines)


def parse(line: str, *, problems: Problems | None = None, knobs: KnobParser | None = None) -> Row | None:
    """Parse a row; return None for an empty line.

    >>> parse('{"context": [1, 2], "action": 0.5, "density": 1, "loss": 0}')
    Row(action=0.5, density=1.0, loss=0.0, optional={}, context=[1, 2], nested=True, rewards=False, estimated=False)
    """
    if not line.strip():
        return None
    members = json_object(line)
    metadata = Metadata(rewards=has_rewards([*members]), densities_estimated=has_estimates([*members]))
    action, density, loss = (stated_name(name, metadata) for name in NUMBERS)
    needs_density = problems is None or problems.needs_density
    for name in (action, density, loss) if needs_density else (action, loss):
        if name not in members:
            raise BadRow(name, "a member of the object", None)
    chosen = members[action]
    if isinstance(chosen, Mapping) and knobs is None and problems is not None:
        knobs_of_file(problems, None, chosen)
    own = OPTIONAL if knobs is None else (*KNOB_COLUMNS, *OPTIONAL)
    reserved = (*reserved_names(several=knobs is not None), density, loss)
    parts = [name for name in members if is_part(name)]
    others = {name: value for name, value in members.items() if name not in reserved and not is_part(name)}
    context = members.get("context", others)
    if not isinstance(context, list | Mapping):
        raise BadRow("context", "a list of numbers or an object", context)
    return Row(
        number(action, chosen) if knobs is None else knobs.values("action", chosen),
        number(density, members.get(density)),
        _loss(loss, members[loss], rewards=metadata.rewards),
        {name: optional(name, members[name], knobs) for name in (*own, *parts) if name in members},
        context,
        "context" in members,
        metadata.rewards,
        metadata.densities_estimated,
    )


def _loss(name: str, value: object, *, rewards: bool) -> float | None:
    value = number(name, value)
    return 0.0 - value if rewards and value is not None else value


def json_object(line: str) -> dict[str, object]:
    """Parse a JSON object.

    >>> json_object('{"a": 1}')
    {'a': 1}
    """
    try:
        members = json.loads(line)
    except (ValueError, RecursionError):
        raise BadRow("line", "a complete JSON object", line.rstrip("\n")) from None
    if not isinstance(members, dict):
        raise BadRow("line", "a JSON object", line.rstrip("\n"))
    return members


def optional(name: str, value: object, knobs: KnobParser | None = None) -> Any:
    """Parse an optional member: a time, an end of the range, an id, levels, or what belongs to several knobs.

    >>> optional("id", 7), optional("low", 7)
    ('7', 7.0)
    """
    if name in KNOB_COLUMNS:
        assert knobs is not None
        return knobs.within(value) if name == "within" else None if value is None else knobs.values(name, value)
    if name == LEVELS:
        return read_levels(value, knobs)
    if is_part(name):
        return part_number(name, value)
    if name in TEXTS:
        return None if value is None else str(value)
    return seconds(value) if name == "time" else number(name, value)


class Writer:
    def __init__(self, path: Path, schema: pa.Schema) -> None:  # noqa: ARG002 - the signature of all formats
        self._output = Output(path)

    def write(self, table: pa.Table) -> None:
        for members in json_objects(table):
            self._output.write(members)

    def close(self) -> None:
        self._output.close()


register_format(".jsonl", read=read, writer=Writer)
