"""Columns of tables as text; numbers have the fewest digits that read back as the same number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from manul.actions.space import ActionSpace
from manul.contexts import data_frames, dates
from manul.contexts.schema import Field
from manul.errors import FileError
from manul.logs.formats.level_columns import LEVELS, level_texts
from manul.logs.formats.log_schema import (
    ESTIMATED_DENSITY,
    KNOB_COLUMNS,
    NUMBERS,
    OPTIONAL,
    PART,
    STRUCTS,
    TEXTS,
    Metadata,
    context_layout,
    is_part,
    is_text,
    label,
    negate_losses,
    part_columns,
    parts_by_knob,
    single_array,
    stated_name,
    user_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

Texts = list[str | None]


def texts(table: pa.Table, name: str) -> Texts:
    """A column as text, with None for missing values; dates and times are in ISO 8601, lists and objects JSON."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, kind = table.column(name), Field.of_arrow(table.schema.field(name).type, name).kind
    if kind in ("number", "text", "flag", "missing"):
        column = pc.if_else(pc.is_nan(column), None, column) if pa.types.is_floating(column.type) else column
        values: Texts = pc.cast(column, "string").to_pylist()
        return values
    if kind in ("date", "time", "clock"):
        return [None if value is None else value.isoformat() for value in data_frames.arrow_values(column)]
    return [None if value is None else _json(value) for value in data_frames.arrow_values(column)]


def _json(value: object) -> str:
    return json.dumps(dates.json_value(value), ensure_ascii=False)


def decision_columns(table: pa.Table, knobs: ActionSpace | None = None, *, flat: bool = False) -> dict[str, Texts]:
    """The columns besides the context; those of several knobs are JSON texts or, if `flat`, columns by knob."""
    columns: dict[str, Texts] = {}
    for name in (*NUMBERS, *(KNOB_COLUMNS if knobs is not None else ()), *OPTIONAL):
        if name not in table.column_names:
            continue
        if name == LEVELS:
            columns[name] = level_texts(single_array(table, name))
            continue
        if knobs is None or name not in STRUCTS:
            columns[name] = texts(table, name)
        elif flat:
            parts = _parts(table, name, knobs, as_json=False)
            columns |= {label(name, part): column for part, column in parts.items()}
        else:
            columns[name] = _json_values(table, name, knobs)
    return columns | {name: texts(table, name) for name in part_columns(table.schema)}


def _parts(table: pa.Table, name: str, knobs: ActionSpace, *, as_json: bool) -> dict[str, Texts]:
    """The texts of the knobs."""
    import pyarrow.compute as pc

    texts, parts = dict[str, Texts](), parts_by_knob(table, name, knobs)
    for each, knob in knobs.knobs:
        column = parts[each]
        if name != "action":
            texts[each] = pc.cast(column, "string").to_pylist()
        elif as_json and knob.is_option:
            texts[each] = [json.dumps(option, ensure_ascii=False) for option in knob.from_arrow(column).tolist()]
        else:
            texts[each] = knob.texts(column)
    return texts


def _json_values(table: pa.Table, name: str, knobs: ActionSpace) -> Texts:
    """JSON objects with the values of the knobs, or the values of one without a name."""
    parts = _parts(table, name, knobs, as_json=True)
    if not knobs.is_named:
        return parts[knobs.names[0]]
    rows = zip(*parts.values(), strict=True)
    return [json_members([*zip(parts, row, strict=True)]) for row in rows]


def stated_columns(table: pa.Table, *, flat: bool = False) -> dict[str, Texts]:
    """The columns besides the context, with rewards and estimated densities if the log has them."""
    metadata = Metadata.from_arrow(table.schema.metadata)
    columns = decision_columns(negate_losses(table) if metadata.rewards else table, metadata.knobs, flat=flat)
    stated = {stated_name(name, metadata): column for name, column in columns.items()}
    for name in filter(is_part, user_columns(table.schema)):
        raise FileError(f"the context {name!r} has the name of a part's column. Rename it, or use .parquet.", name)
    taken = [name for name in user_columns(table.schema) if name in stated]
    if taken and metadata.knobs is not None:
        raise FileError(f"the context {taken[0]!r} has the name of a column of the log. Use .parquet.", taken[0])
    if taken:
        kind = "estimated densities" if taken[0] == ESTIMATED_DENSITY else "rewards"
        raise FileError(
            f"a log of {kind} cannot have a context named {taken[0]!r} in this format. Use .parquet.", taken[0]
        )
    return stated


def dense_rows(table: pa.Table) -> Iterator[list[str]]:
    """The numbers of each dense context, as text."""
    import pyarrow.compute as pc

    context = single_array(table, "context")
    width, flat = context.type.list_size, pc.cast(context.flatten(), "string").to_pylist()
    for row in range(len(table)):
        yield flat[row * width : (row + 1) * width]


def feature_rows(table: pa.Table) -> Iterator[list[tuple[str, str]]]:
    """The named features of each context; a text is a feature `name=text` with value 1, and missing values are omitted."""
    layout = context_layout(table.schema)
    if layout == "dense":
        names = [str(index) for index in range(single_array(table, "context").type.list_size)]
        yield from ([*zip(names, numbers, strict=True)] for numbers in dense_rows(table))
    elif layout == "sparse":
        yield from _sparse_rows(table)
    else:
        columns = {name: _features(table, name) for name in user_columns(table.schema)}
        for row in range(len(table)):
            yield [feature for column in columns.values() if (feature := column[row]) is not None]


def _sparse_rows(table: pa.Table) -> Iterator[list[tuple[str, str]]]:
    import pyarrow.compute as pc

    context, names = single_array(table, "context"), Metadata.from_arrow(table.schema.metadata).names
    indices, lengths = context.field("index").flatten().to_pylist(), context.field("index").value_lengths().to_pylist()
    values = pc.cast(context.field("value").flatten(), "string").to_pylist()
    first = 0
    for length in lengths:
        part = slice(first, first + length)
        pairs = zip(indices[part], values[part], strict=True)
        yield [(names[index] if names else str(index), value) for index, value in pairs]
        first += length


def _features(table: pa.Table, name: str) -> list[tuple[str, str] | None]:
    if is_text(table.schema, name):
        return [None if value is None else (f"{name}={value}", "1") for value in texts(table, name)]
    flags = {"true": "1", "false": "0"}
    return [None if value is None else (name, flags.get(value, value)) for value in texts(table, name)]


def check_features(path: Path, schema: pa.Schema) -> None:
    """Reject fields that are no features of Vowpal Wabbit, which are numbers; texts and flags become such."""
    for name in part_columns(schema):
        raise FileError(
            f"{path.name.removesuffix('.partial')}: Vowpal Wabbit has one number per decision and cannot store the part "
            f"{name.removeprefix(PART)!r}. Use .parquet, .jsonl or .csv.",
            name,
        )
    for name in user_columns(schema):
        kind = Field.of_arrow(schema.field(name).type, name).kind
        if kind not in ("number", "text", "flag", "missing"):
            words = {"date": "dates", "time": "times", "clock": "times of day"}.get(kind, "lists or objects")
            raise FileError(
                f"{path.name.removesuffix('.partial')}: Vowpal Wabbit has numbers and texts and cannot store the {words} of "
                f"{name!r}. Use .parquet, .jsonl or .csv.",
                name,
            )


def json_objects(table: pa.Table) -> Iterator[str]:
    columns = {name: _json_texts(column, text=name in TEXTS) for name, column in stated_columns(table).items()}
    for name in user_columns(table.schema):
        if Field.of_arrow(table.schema.field(name).type, name).kind in ("date", "time", "clock"):
            values = data_frames.arrow_values(table.column(name))
            columns[name] = ["null" if value is None else _json(value) for value in values]
        else:
            columns[name] = _json_texts(texts(table, name), text=is_text(table.schema, name))
    heads = [f"{json.dumps(name, ensure_ascii=False)}: " for name in columns]
    layout = context_layout(table.schema)
    contexts = None if layout == "columns" else _json_lists(table) if layout == "dense" else _json_features(table)
    for row in zip(*columns.values(), strict=True):
        members = ", ".join(map("".join, zip(heads, row, strict=True)))
        yield "{" + members + ("" if contexts is None else ', "context": ' + next(contexts)) + "}\n"


def _json_texts(column: Texts, *, text: bool) -> list[str]:
    if text:
        return ["null" if value is None else json.dumps(value, ensure_ascii=False) for value in column]
    return [value or "null" for value in column]


def _json_lists(table: pa.Table) -> Iterator[str]:
    return ("[" + ", ".join(numbers) + "]" for numbers in dense_rows(table))


def _json_features(table: pa.Table) -> Iterator[str]:
    return (json_members(features) for features in feature_rows(table))


def json_members(features: list[tuple[str, str]]) -> str:
    """Format features as a JSON object.

    >>> json_members([("a", "1"), ("b", "0.5")])
    '{"a": 1, "b": 0.5}'
    """
    return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {value}" for name, value in features) + "}"
