"""Contexts: what is known when a decision is made, and the schema of their fields.

A log has a column for each field, of the Arrow type of its kind; null is a missing value, as is an absent field.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np
import numpy.typing as npt

from manul.contexts import data_frames, dates
from manul.contexts.data_frames import JSON, from_json
from manul.contexts.records import is_missing, is_record, to_fields
from manul.errors import InputError
from manul.utils.foreign import can, is_arrow_column

if TYPE_CHECKING:
    import pyarrow as pa

Context = npt.ArrayLike | Mapping[str, object] | tuple[object, ...] | None
Contexts = npt.ArrayLike | Mapping[str, object] | Iterable[object]
Kind = Literal["missing", "number", "text", "flag", "date", "time", "clock", "tags", "list", "object", "any"]

MOST_MEMBERS = 256  # of an object, as in the core: an absent member of a larger one is not missing but 0
OFFSETS = "offsets"  # the zone of times that have each their own offset from UTC
_TIMES = ("date", "time", "clock")  # one kind of field for agents
_WORDS = {"number": "a number", "text": "text", "flag": "true or false", **dict.fromkeys(_TIMES, "a date or time")}


@dataclass(frozen=True)
class Field:
    """The kind of a field; the zone of times, the items of lists, the members of objects.

    A time without a zone is naive. The kind "any" is for fields that are an object in one context and a number in another.
    The fields of agents are `loose`: a text may be a list of texts, and a time of any zone.

    >>> Field.of([41, None]), Field.of(["new", "old"]).kind, Field.of([["new"], []]).kind
    (Field(kind='number', zone=None, items=None, members=None), 'text', 'tags')
    """

    kind: Kind
    zone: str | None = None
    items: Field | None = None
    members: Mapping[str, Field] | None = None

    @staticmethod
    def of(values: Iterable[Any], name: str = "values", *, strict: bool = True) -> Field:
        """The field that holds all values; without `strict`, a field that changes its kind is of kind "any"."""
        values = values if isinstance(values, list) else list(values)
        simple = {_SIMPLE.get(kind) for kind in set(map(type, values))} - {"missing"}
        if None not in simple and len(simple) <= 1:
            kind: Any = next(iter(simple), "missing")
            return Field("missing" if kind == "number" and all(map(is_missing, values)) else kind)
        merged = before = _NONE
        for value in values:
            field = _field(value, name)
            if field != before:
                merged, before = _merge(merged, field, name, strict=strict), field
        return merged

    @staticmethod
    def of_arrow(given: pa.DataType, name: str = "column") -> Field:
        """The field that a column of an Arrow type is, such as one of another program's file."""
        import pyarrow as pa

        types = pa.types
        if types.is_dictionary(given):
            return Field.of_arrow(given.value_type, name)
        for checks, kind in _arrow_kinds():
            if any(check(given) for check in checks):
                return Field(kind)
        if types.is_timestamp(given):
            return Field("time", given.tz)
        if types.is_list(given) or types.is_large_list(given) or types.is_fixed_size_list(given):
            return _list_field(Field.of_arrow(given.value_type, f"{name}[]"))
        if types.is_struct(given):
            return _struct_field(given, name)
        raise InputError(
            f"column {name!r} must have numbers, text, flags, dates, times, lists or objects, got {given}. "
            "Remove or convert it.",
            name,
        )

    @property
    def loose(self) -> bool:
        """Whether the values decide on the type of a column."""
        return self.items is not None and self.kind != "list"

    def arrow(self) -> pa.DataType:
        """The type of its column in a log."""
        import pyarrow as pa

        if self.kind == "time":
            if self.zone == OFFSETS:
                return pa.struct([("time", pa.timestamp("us", "UTC")), ("offset", pa.int32())])
            return pa.timestamp("us", self.zone)
        if self.kind in ("tags", "list"):
            return pa.list_(pa.string() if self.kind == "tags" else (self.items or Field("missing")).arrow())
        if self.kind == "object" and self.members:
            return pa.struct([(name, member.arrow()) for name, member in self.members.items()])
        plain = {"missing": pa.null(), "number": pa.float64(), "text": pa.string(), "flag": pa.bool_()}
        plain |= {"date": pa.date32(), "clock": pa.time64("us")}
        return plain.get(self.kind) or pa.struct([(JSON, pa.string())])

    def to_arrow(self, values: Sequence[Any] | npt.NDArray[Any], name: str = "column") -> pa.Array:
        """A column of a log with these values."""
        import pyarrow as pa

        try:
            return pa.array(self._stored(values), self.arrow(), from_pandas=True)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"column {name!r} cannot be stored: {error}.", name) from None

    def _stored(self, values: Sequence[Any] | npt.NDArray[Any]) -> Any:
        if self.kind in ("number", "text", "flag") and isinstance(values, np.ndarray) and values.dtype.kind in "fb":
            return values
        if self.kind in ("number", "text", "flag", "missing") and {*map(type, values)} <= _PLAIN:
            return np.array(values, np.float64) if self.kind == "number" else values
        stored = [_store(plain(value), self) for value in values]
        return np.array(stored, np.float64) if self.kind == "number" else stored

    def parse(self, text: str, name: str) -> Any:
        """The value of a text in a file without types; a blank is missing, lists and objects are JSON."""
        if not text or self.kind == "missing":
            return text or None
        if self.kind == "text":
            return _tags(text) if self.loose else text
        if self.kind == "flag":
            return _flag(text, name)
        if self.kind in _TIMES and not (self.loose and text.startswith("{")):  # which a column of mixed times has
            return self._in_zone(_time(text, name))
        if self.kind == "number":
            raise AssertionError("numbers are parsed by the format")
        try:
            return self.from_json(json.loads(text), name)
        except (ValueError, RecursionError):
            if self.loose:
                return text
            raise InputError(f"field {name!r} must be JSON, got {text!r:.60}.", name) from None

    def from_json(self, value: Any, name: str = "value") -> Any:
        """A value of JSON as one of Python; a plain text is a date if the field is one."""
        if self.kind in _TIMES and isinstance(value, str):
            value = _time(value, name)
        value = from_json(value, name)
        if isinstance(value, list) and self.items:
            return [self.items.from_json(item, name) for item in value]
        if isinstance(value, dict) and self.members:
            return {key: self.members.get(key, _NONE).from_json(item, name) for key, item in value.items()}
        return self._in_zone(value)

    def _in_zone(self, value: Any) -> Any:
        """A time in the zone of the field, if texts cannot say it."""
        if self.zone in (None, OFFSETS) or not isinstance(value, datetime.datetime) or value.tzinfo is None:
            return value
        from zoneinfo import ZoneInfo

        return value.astimezone(_fixed_zone(self.zone) or ZoneInfo(self.zone))

    def describe(self) -> dict[str, Any]:
        """The field in JSON values; `from_description` is the inverse."""
        items = None if self.items is None else self.items.describe()
        members = None if self.members is None else {name: each.describe() for name, each in self.members.items()}
        given = {"kind": self.kind, "zone": self.zone, "items": items, "members": members}
        return {key: value for key, value in given.items() if value is not None}

    @staticmethod
    def from_description(description: Mapping[str, Any]) -> Field:
        given = {"zone": None, "items": None, "members": None, **description}
        if given["kind"] not in get_args(Kind):
            raise InputError(f"schema has an unknown kind of field, {given['kind']!r:.60}.", "schema")
        items = None if given["items"] is None else Field.from_description(given["items"])
        members = given["members"] and {name: Field.from_description(each) for name, each in given["members"].items()}
        return Field(given["kind"], given["zone"], items, members)


@dataclass(frozen=True)
class ContextSchema:
    """The fields of contexts: a `width` for rows of numbers, or `fields` by name, in the order of appearance.

    An absent field of the schema is a missing one, unless the schema is `sparse`: features of Vowpal Wabbit, rows of sparse
    matrices and contexts of more than 256 fields, in which an absent one is 0. Agents and logs have a `schema`.

    >>> schema = ContextSchema.of([{"age": 41, "at": datetime.date(2024, 2, 29)}, {"tags": ["new"]}])
    >>> {name: field.kind for name, field in schema.fields.items()}
    {'age': 'number', 'at': 'date', 'tags': 'tags'}
    """

    width: int | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    sparse: bool = False

    @classmethod
    def of(cls, contexts: Any, *, strict: bool = True) -> ContextSchema:
        """The schema of `contexts`, of the columns of an Arrow schema, or of a description.

        Without `strict`, a field that is a number in one context and text in another is of kind "any", not an error.
        """
        if can(contexts, "metadata", "field"):
            return cls.from_fields({each.name: Field.of_arrow(each.type, each.name) for each in contexts})
        if isinstance(contexts, Mapping) and contexts.keys() == {"width", "fields", "sparse"}:
            fields = {name: Field.from_description(each) for name, each in contexts["fields"].items()}
            return cls(contexts["width"], fields, bool(contexts["sparse"]))
        columns = context_columns(contexts)
        if columns is None:
            rows = np.asarray(contexts)
            return cls(rows.shape[1] if rows.ndim == 2 else 0)
        return cls.from_fields({name: _field_of(each, name, strict=strict) for name, each in columns.items()})

    @classmethod
    def from_fields(cls, fields: Mapping[str, Field]) -> ContextSchema:
        """The schema of `fields` by name."""
        return cls(None, fields, len(fields) > MOST_MEMBERS)

    @classmethod
    def of_leaves(cls, kinds: Mapping[str, str]) -> ContextSchema:
        """The schema of the fields that an agent knows, with their `kinds` by path.

        >>> fields = ContextSchema.of_leaves({"age": "number", "at": "time", "at.days": "number", "at.month": "text"}).fields
        >>> {name: each.kind for name, each in fields.items()}
        {'age': 'number', 'at': 'date'}
        """
        times = {name for name, kind in kinds.items() if kind == "time"}
        fields: dict[str, Field] = {}
        for name, kind in kinds.items():
            if kind == "time":
                clock, date = f"{name}.hour" in kinds, f"{name}.month" in kinds
                fields[name] = Field("time" if clock and date else "clock" if clock else "date", items=_NONE)
            elif name.rpartition(".")[0] not in times:
                fields[name] = Field("text", items=_NONE) if kind == "text" else Field(kind)  # type: ignore[arg-type]
        roots = {
            name[: min(end for end in (name.find("."), name.find("[")) if end > 0)] for name in fields if _is_path(name)
        }
        return cls.from_fields({name: Field("any", items=_NONE) if name in roots else fields[name] for name in fields})

    def field(self, name: str) -> Field | None:
        """The field of a `name`; a list or object of which only members are known may be anything."""
        if name in self.fields:
            return self.fields[name]
        inside = any(path.startswith((f"{name}.", f"{name}[")) for path in self.fields)
        return Field("any", items=_NONE) if inside else None

    def merge(self, other: ContextSchema, *, strict: bool = True) -> ContextSchema:
        """The schema that holds the contexts of this one and an `other`; a field that changes its kind is an error if
        `strict`, and otherwise of kind "any".
        """
        if self.width != other.width:
            raise InputError(f"contexts must all have the same width, got {self.width} and {other.width}.", "contexts")
        fields = {**self.fields, **other.fields}
        for name in self.fields.keys() & other.fields.keys():
            fields[name] = _merge(self.fields[name], other.fields[name], name, strict=strict)
        merged = ContextSchema.from_fields(fields)
        return ContextSchema(self.width, merged.fields, self.sparse or other.sparse or merged.sparse)

    def to_arrow(self, contexts: Contexts) -> pa.Table:
        """The columns of a log of `contexts` with named fields."""
        import pyarrow as pa

        columns = context_columns(contexts) or {}
        count = len(next(iter(columns.values()), []))
        absent = [None] * count
        arrays = {name: self._column(name, columns.get(name, absent)) for name in self.fields}
        return pa.table(arrays)

    def _column(self, name: str, values: Any) -> pa.Array:
        each = self.fields[name]
        return each.to_arrow(values, name) if isinstance(values, list | np.ndarray) else cast_column(values, each, name)

    def batch(self, columns: pa.Table | Contexts) -> Any:
        """Contexts as the batch methods of agents take them: rows of numbers, or `columns` of values by name."""
        if self.width is not None:
            return np.asarray(columns, np.float32)
        values = data_frames.columns(self.to_arrow(columns)) or {}
        if not self.sparse:
            return values
        rows = zip(*values.values(), strict=True)
        return [{name: each for name, each in zip(values, row, strict=True) if each is not None} for row in rows]

    def from_json(self, context: Any) -> Any:
        """A `context` of JSON with dates and times as values of Python."""
        if not isinstance(context, Mapping):
            return context
        return {name: (self.field(name) or _NONE).from_json(value, name) for name, value in context.items()}

    def to_json(self, context: Any) -> Any:
        """A `context` in JSON values; `from_json` is the inverse."""
        return dates.to_json(context)

    def describe(self) -> dict[str, Any]:
        """The schema in JSON values; `of` is the inverse."""
        fields = {name: each.describe() for name, each in self.fields.items()}
        return {"width": self.width, "fields": fields, "sparse": self.sparse}


def context_columns(contexts: Any) -> dict[str, Any] | None:
    """The columns of contexts with named fields: lists, arrays, or Arrow arrays; None if they are rows of numbers.

    >>> context_columns([{"age": 31}, {"city": "Rome"}])
    {'age': [31, None], 'city': [None, 'Rome']}
    """
    if isinstance(contexts, list | tuple):
        named = contexts and (isinstance(contexts[0], Mapping) or is_record(contexts[0]))
        for row, context in enumerate(contexts if named else ()):
            if not (isinstance(context, Mapping) or is_record(context)):
                rule = f"like the first one, got {context!r:.60} in row {row}"
                raise InputError(f"contexts must all have named fields, {rule}.", "contexts")
        rows = (row if isinstance(row, Mapping) else to_fields(row) for row in contexts) if named else ()
        return data_frames.from_rows(rows) if named else None
    if not (isinstance(contexts, Mapping) or data_frames.is_table(contexts)):
        return None
    columns = data_frames.typed_columns(contexts)
    return {name: _decoded(column) for name, column in columns.items()}


def _decoded(column: Any) -> Any:
    """The column, or a list of values if it has dates or times in the form of JSON."""
    coded = is_arrow_column(column) and any(f"<{key}:" in str(column.type) for key in (dates.DATE, dates.CLOCK))
    return data_frames.arrow_values(column) if coded else column


def _without_dictionary(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a column with a dictionary; Arrow's own cast does not know dictionaries of string views, which polars has."""
    import pyarrow as pa

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    given: pa.DataType = column.type.value_type
    target = pa.large_string() if pa.types.is_string_view(given) else given
    return pa.chunked_array([chunk.dictionary.cast(target).take(chunk.indices) for chunk in chunks], target)


def cast_column(column: pa.Array | pa.ChunkedArray, target: Field, name: str) -> Any:
    """A column of any Arrow type as one of a log; `target` may be wider than the column."""
    import pyarrow as pa

    given = Field.of_arrow(column.type, name)
    if column.type == target.arrow():
        return column
    plain = given == target and given.kind not in ("date", "object", "list", "any")
    try:
        if plain or given.kind == "missing":
            decoded = _without_dictionary(column) if pa.types.is_dictionary(column.type) else column
            if pa.types.is_float16(decoded.type) or pa.types.is_decimal(decoded.type):
                decoded = decoded.cast(pa.float64(), safe=False)
            return decoded.cast(target.arrow(), safe=False)
    except pa.ArrowException as error:
        raise InputError(f"column {name!r} cannot be stored: {error}.", name) from None
    return target.to_arrow(data_frames.arrow_values(column), name)


def plain(value: Any, name: str = "value") -> Any:
    """A value of NumPy, pandas or JSON as one of Python, with None for a missing one; items and members, too."""
    kind = type(value)
    if kind in _PLAIN:
        return None if value != value else value
    if kind in (list, tuple):
        return [plain(item, name) for item in value]
    if isinstance(value, Mapping):
        value = dates.from_json(value if kind is dict else dict(value), name)
        return {key: plain(item, name) for key, item in value.items()} if isinstance(value, dict) else value
    if isinstance(value, np.datetime64):
        value = dates.from_numpy(value)
    if isinstance(value, np.ndarray):
        return plain(list(value) if value.dtype.kind in "mM" else value.tolist(), name)
    if isinstance(value, np.generic):
        return plain(value.item(), name)
    if is_missing(value):
        return None
    if type(value).__name__ == "Timestamp":
        return value.to_pydatetime(warn=False)
    if isinstance(value, datetime.date | datetime.time | str | bool):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"field {name!r} must be a number, text, boolean, date, time, None, list or dict, got {value!r:.60}. "
            "Convert it first.",
            "contexts",
        ) from None


_SIMPLE: dict[type, str] = {float: "number", int: "number", str: "text", bool: "flag", type(None): "missing"}
_PLAIN = {*_SIMPLE}


def _arrow_kinds() -> list[tuple[tuple[Any, ...], Kind]]:
    import pyarrow as pa

    types = pa.types
    return [
        ((types.is_null,), "missing"),
        ((types.is_integer, types.is_floating, types.is_decimal), "number"),
        ((types.is_string, types.is_large_string, types.is_string_view), "text"),
        ((types.is_boolean,), "flag"),
        ((types.is_date,), "date"),
        ((types.is_time,), "clock"),
    ]


def _field_of(column: Any, name: str, *, strict: bool) -> Field:
    if isinstance(column, list):
        return Field.of(column, name, strict=strict)
    if isinstance(column, np.ndarray):
        return Field("flag" if column.dtype.kind == "b" else "number")
    return Field.of_arrow(column.type, name)


def _field(value: Any, name: str) -> Field:
    value = plain(value, name)
    simple = _SIMPLE.get(type(value))
    if simple is not None:
        return Field(simple)  # type: ignore[arg-type]
    if isinstance(value, datetime.datetime):
        return Field("time", _zone(value))
    if isinstance(value, datetime.date | datetime.time):
        return Field("date" if isinstance(value, datetime.date) else "clock")
    if isinstance(value, list):
        return _list_field(_merge_all(_field(item, name) for item in value))
    assert isinstance(value, dict)
    if any(not isinstance(key, str) for key in value):
        raise InputError(
            f"contexts must have text as keys, got another type in {value!r:.60}. Use str(key).", "contexts"
        )
    return _object_field({key: _field(each, f"{name}.{key}") for key, each in value.items()})


def _merge_all(fields: Iterable[Field]) -> Field:
    return reduce(lambda one, other: _merge(one, other, "", strict=False), fields, _NONE)


_NONE = Field("missing")


def _list_field(items: Field) -> Field:
    if items.kind == "any":
        return Field("any")
    return Field("tags") if items.kind == "text" else Field("list", items=items)


def _object_field(members: Mapping[str, Field]) -> Field:
    return Field("any") if len(members) > MOST_MEMBERS else Field("object", members=members)


def _struct_field(given: pa.DataType, name: str) -> Field:
    names = [part.name for part in given]
    if names == [JSON]:
        return Field("any")
    if names and data_frames.has_offsets(given):
        return Field("time", OFFSETS)
    return Field("object", members={part.name: Field.of_arrow(part.type, f"{name}.{part.name}") for part in given})


def _merge(one: Field, other: Field, name: str, *, strict: bool) -> Field:
    if one == other or other.kind == "missing":
        return one
    if one.kind == "missing":
        return other
    kinds = {one.kind, other.kind}
    if kinds == {"time"}:
        naive = None in (one.zone, other.zone)
        return Field("any") if naive else Field("time", OFFSETS)
    if kinds == {"object"}:
        ours, theirs = one.members or {}, other.members or {}
        members = {**ours, **theirs}
        for key in ours.keys() & theirs.keys():
            members[key] = _merge(ours[key], theirs[key], f"{name}.{key}", strict=strict)
        return _object_field(members)
    if kinds <= {"tags", "list"}:
        return _list_field(_merge(_items(one), _items(other), f"{name}[]", strict=False))
    words = {_WORDS.get(one.kind), _WORDS.get(other.kind)}
    if strict and len(words) == 2 and None not in words:
        _fail(name, one, other)
    return Field("any")


def _items(of: Field) -> Field:
    return Field("text") if of.kind == "tags" else of.items or _NONE


def _fail(name: str, one: Field, other: Field) -> NoReturn:
    got = f"{_WORDS[one.kind]} in one context and {_WORDS[other.kind]} in another"
    raise InputError(f"field {name!r} must have one kind, got {got}. Pass one kind, or use another name.", "contexts")


def _zone(value: datetime.datetime) -> str | None:
    """The zone of a time that Arrow knows, or `OFFSETS`."""
    if value.tzinfo is None:
        return None
    key = getattr(value.tzinfo, "key", None) or getattr(value.tzinfo, "zone", None)
    if isinstance(key, str):
        return key
    offset = value.utcoffset() or datetime.timedelta()
    if not isinstance(value.tzinfo, datetime.timezone) or offset % datetime.timedelta(minutes=1):
        return OFFSETS
    minutes = int(offset / datetime.timedelta(minutes=1))
    return "UTC" if not minutes else f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _fixed_zone(zone: str | None) -> datetime.timezone | None:
    if zone is None or zone[:1] not in "+-":
        return None
    return datetime.datetime.strptime(zone, "%z").tzinfo  # type: ignore[return-value]


def _store(value: Any, target: Field) -> Any:
    """A value as Arrow takes it."""
    if value is None:
        return None
    if target.zone == OFFSETS:
        offset = value.utcoffset() or datetime.timedelta()
        return {"time": value.astimezone(datetime.UTC), "offset": int(offset.total_seconds())}
    if target.kind == "list" and target.items is not None:
        return [_store(item, target.items) for item in value]
    if target.kind == "object" and target.members:
        return {name: _store(value.get(name), member) for name, member in target.members.items()}
    if target.kind in ("any", "object"):
        return {JSON: json.dumps(dates.json_value(value), ensure_ascii=False)}
    if target.kind == "clock":
        return value.replace(tzinfo=None)
    return value


def _is_path(name: str) -> bool:
    return "." in name[1:] or "[" in name[1:]


def _tags(text: str) -> Any:
    """A text of a field that may also be a list of texts, which a file without types has as JSON."""
    if not text.startswith("["):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, list) else text


def _flag(text: str, name: str) -> bool | None:
    known = {"true": True, "false": False, "1": True, "0": False}.get(text.strip().lower())
    if known is None:
        raise InputError(f"field {name!r} must be true or false, got {text!r:.60}.", name)
    return known


def _time(text: str, name: str) -> datetime.date | datetime.time:
    return dates.parse(text.strip(), dates.CLOCK if text.strip()[2:3] == ":" else dates.DATE, name)
