"""Encoding of columns with text and missing values as rows of numbers.

A missing number is replaced by the mean and flagged in a column `name=?`. A categorical column is one-hot encoded, with the
rarest of many texts together in a column `name=other`; a missing text is the text `?`. For dates, see `time_encoding`.
Lists and objects are columns of their items and members, a time of day is its hour.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np
import numpy.typing as npt

from manul.contexts import data_frames
from manul.contexts.dates import DATE, from_json, seconds
from manul.contexts.records import is_missing
from manul.contexts.schema import ContextSchema
from manul.contexts.sparse_features import Features
from manul.contexts.time_encoding import Time, is_time
from manul.errors import InputError, remedy

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = "?"
LEVELS = 32  # the most columns that one categorical column becomes, besides `name=other`
Matrix = npt.NDArray[np.float64]
Values = Sequence[Any] | npt.NDArray[Any]


@dataclass(frozen=True)
class Number:
    """A numeric column; `gaps` says whether it has missing values.

    >>> Number("age", mean=30.0, gaps=True).encode([41, None]).tolist()
    [[41.0, 0.0], [30.0, 1.0]]
    """

    name: str
    mean: float
    gaps: bool

    @staticmethod
    def fit(name: str, values: Values) -> Number:
        numbers = _numbers(name, values)
        gaps = np.isnan(numbers)
        return Number(name, 0.0 if gaps.all() else float(numbers[~gaps].mean()), bool(gaps.any()))

    @property
    def names(self) -> list[str]:
        return [self.name, f"{self.name}={MISSING}"] if self.gaps else [self.name]

    def encode(self, values: Values) -> Matrix:
        numbers = _numbers(self.name, values)
        gaps = np.isnan(numbers)
        filled = np.where(gaps, self.mean, numbers)
        return np.column_stack([filled, gaps] if self.gaps else [filled]).astype(np.float64)


@dataclass(frozen=True)
class Text:
    """A categorical column.

    >>> Text("city", levels=("Bath", "Oslo"), other=True).encode(["Oslo", "Rome"]).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    name: str
    levels: tuple[str, ...]
    other: bool

    @staticmethod
    def fit(name: str, values: Values, levels: int | None) -> Text:
        """Fit the encoding to values; at most `levels` texts get a column each."""
        return Text.from_counts(name, Counter(_text(value) for value in values), levels)

    @staticmethod
    def from_counts(name: str, counts: Mapping[str, int], levels: int | None) -> Text:
        """Fit the encoding to the number of rows of each text; ties are broken by name.

        >>> Text.from_counts("city", {"Rome": 1, "Oslo": 3, "Bath": 1}, levels=2).names
        ['city=Bath', 'city=Oslo', 'city=other']
        """
        ranked = sorted(counts, key=lambda text: (-counts[text], text))
        return Text(name, tuple(sorted(ranked[:levels])), levels is not None and len(ranked) > levels)

    @property
    def names(self) -> list[str]:
        return [f"{self.name}={level}" for level in self.levels] + ([f"{self.name}=other"] if self.other else [])

    def encode(self, values: Values) -> Matrix:
        """Encode values as rows of numbers; an unknown text is `name=other`, or all zeros without that column."""
        position = {level: number for number, level in enumerate(self.levels)}
        codes = np.array([position.get(_text(value), len(self.levels)) for value in values], dtype=np.intp)
        rows = np.zeros((len(values), len(self.levels) + 1))
        rows[np.arange(len(values)), codes] = 1.0
        return rows if self.other else rows[:, :-1]


@dataclass(frozen=True)
class Columns:
    """A feature map from named fields to rows of numbers, fitted to a table; missing values and new texts are allowed.

    >>> columns = Columns.fit({"size": [1, None, 3], "kind": ["a", "b", "a"]})
    >>> columns.names()
    ['size', 'size=?', 'kind=a', 'kind=b']
    >>> columns({"kind": "b", "size": 5})
    array([5., 0., 0., 1.])
    """

    columns: tuple[Number | Text | Time, ...]

    @classmethod
    def fit(cls, table: Any, *, levels: int | None = LEVELS, dates: Mapping[str, str] | None = None) -> Columns:
        """Fit the map to a data frame or columns by name; at most `levels` texts of a categorical column get a column each.

        `dates` maps columns of text to the format of their dates, as in `datetime.strptime`, or to "iso".
        """
        layouts = dates or {}
        columns = flat_table(_columns(table))
        return cls(tuple(_fit(name, values, levels, layouts.get(name)) for name, values in columns.items()))

    @property
    def schema(self) -> ContextSchema:
        """The fields of the table, by path."""
        kinds = {Number: "number", Text: "text", Time: "time"}
        return ContextSchema.of_leaves({column.name: kinds[type(column)] for column in self.columns})

    def names(self, width: int = 0) -> list[str]:  # noqa: ARG002 - the signature of all maps
        return [name for column in self.columns for name in column.names]

    def rows(self, table: Any, rows: int = 0) -> npt.NDArray[np.float32]:
        """Encode a table as rows of numbers; an absent column counts as missing values, `rows` of them if all are absent."""
        table = _columns(table)
        count = len(next(iter(table.values()))) if table else rows
        table = self._flat(table)
        blocks = [column.encode(table.get(column.name, [None] * count)) for column in self.columns]
        return np.ascontiguousarray(np.column_stack(blocks) if blocks else np.empty((count, 0)), dtype=np.float32)

    def __call__(self, context: Any, /) -> Matrix:
        """Encode one context, a mapping of fields or their values in the order of the columns."""
        fields = context if isinstance(context, Mapping) else self._named(context)
        flat = self._flat({name: [value] for name, value in fields.items()})
        blocks = [column.encode(flat.get(column.name, [None]))[0] for column in self.columns]
        return np.concatenate(blocks) if blocks else np.empty(0)

    def _named(self, row: Sequence[float]) -> dict[str, float]:
        if len(row) != len(self.columns):
            raise InputError(f"context must have {len(self.columns)} fields, got {len(row)} numbers.", "context")
        return dict(zip((column.name for column in self.columns), row, strict=True))

    def _flat(self, table: Mapping[str, Values]) -> Mapping[str, Values]:
        """The columns of a table; new items of lists are left out, as new texts are, but a new column is an error."""
        known = {column.name for column in self.columns}
        for name, values in table.items():
            if name not in known and not _is_nested(values) and not _has_inside(name, known):
                advice = remedy(str(name), sorted(known), "Omit it.")
                raise InputError(f"context has a field {name!r} that the table did not have. {advice}", "context")
        return flat_table(table)


LogColumns = Columns | Features  # of the named contexts of a log


def one_hot(contexts: Any) -> Any:
    """The contexts, of a table as rows of numbers with a column for each text of a categorical column."""
    columns = data_frames.columns(contexts)
    return contexts if columns is None else Columns.fit(columns, levels=None).rows(columns)


def encode_column(
    name: str, column: pa.Array, levels: int = LEVELS, *, standardised: bool = False
) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Encode one column of a table; return the names of the encoded columns and their values. Missing numbers get no flag.

    >>> import pyarrow as pa
    >>> names, columns = encode_column("kind", pa.array(["a", "b", "a", "c"]), levels=1)
    >>> names, columns.tolist()
    (['kind=a', 'kind=other'], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    """
    import pyarrow as pa

    if pa.types.is_string(column.type):
        return _encode_text(name, column, levels)
    numbers = column.fill_null(math.nan).to_numpy(zero_copy_only=False)
    missing, mean = np.isnan(numbers), Number.fit(name, numbers).mean
    filled = np.where(missing, mean, numbers)
    if standardised:
        spread = 0.0 if missing.all() else float(numbers[~missing].std())
        filled = (filled - mean) / spread if spread > 0 else np.zeros_like(filled)
    if np.abs(filled).max(initial=0.0) > np.finfo(np.float32).max:
        raise InputError(
            f"column {name!r} must fit into 32-bit floats, got {np.abs(filled).max():g}. Rescale it.", name
        )
    return [name], filled[:, np.newaxis].astype(np.float32)


def _encode_text(name: str, column: pa.Array, levels: int) -> tuple[list[str], npt.NDArray[np.float32]]:
    coded = column.fill_null(MISSING).dictionary_encode()
    texts: list[str] = coded.dictionary.to_pylist()
    codes: npt.NDArray[np.int32] = coded.indices.to_numpy(zero_copy_only=False)
    counts = np.bincount(codes, minlength=len(texts))
    text = Text.from_counts(name, dict(zip(texts, counts.tolist(), strict=True)), levels)
    return text.names, text.encode(texts).astype(np.float32)[codes]


def flat_table(table: Mapping[str, Values]) -> Mapping[str, Values]:
    """A table with a column for each item and member of lists and objects, and with the hours of times of day.

    >>> flat_table({"tags": [["new"], None], "device": [{"os": "x"}, {"os": "y"}], "age": [31, 7]})
    {'tags=new': [1.0, None], 'device.os': ['x', 'y'], 'age': [31, 7]}
    """
    if not any(map(_is_nested, table.values())):
        return table
    flat: dict[str, Values] = {}
    for name, values in table.items():
        flat |= (
            data_frames.from_rows([_leaves(name, value) for value in values]) if _is_nested(values) else {name: values}
        )
    return flat


def _leaves(name: str, value: Any) -> dict[str, Any]:
    leaves = {} if is_missing(value) else flatten_fields({name: value})
    return {path: _hours(leaf) if isinstance(leaf, datetime.time) else leaf for path, leaf in leaves.items()}


def _hours(time: datetime.time) -> float:
    return time.hour + time.minute / 60 + time.second / 3600


def _is_nested(values: Values) -> bool:
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return False
    kinds = {*map(type, values)}
    if not kinds & {list, tuple, dict, datetime.time}:
        return False
    return not all(isinstance(each, dict) and each.keys() == {DATE} for each in values if not is_missing(each))


def _has_inside(name: str, known: set[str]) -> bool:
    return any(path.startswith((f"{name}.", f"{name}[", f"{name}=")) for path in known)


def flatten_fields(context: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Flatten a nested context into the fields that agents read.

    >>> flatten_fields({"sky": "grey", "rooms": [{"warm": True}], "tags": ["old"], "at": {"$date": "2024-02-29"}})
    {'sky': 'grey', 'rooms[0].warm': True, 'tags=old': 1.0, 'at': datetime.date(2024, 2, 29)}
    """
    fields: dict[str, Any] = {}
    for name, value in context.items():
        _collect(fields, f"{path}.{name}" if path else name, value)
    return fields


def _collect(fields: dict[str, Any], path: str, value: Any) -> None:
    value = from_json(value, path)
    if isinstance(value, dict):
        fields |= flatten_fields(value, path)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if isinstance(item, str):
                fields[f"{path}={item}"] = 1.0
            else:
                _collect(fields, f"{path}[{index}]", item)
    else:
        fields[path] = value


def describe(columns: Columns) -> dict[str, Any]:
    """Describe the map in JSON values; `from_description` is the inverse.

    >>> columns = Columns.fit({"size": [1, None, 3], "kind": ["a", "b", "a"]})
    >>> from_description(describe(columns)) == columns
    True
    """
    return {"columns": [{"kind": type(column).__name__, **vars(column)} for column in columns.columns]}


def from_description(description: Mapping[str, Any]) -> Columns:
    """Build the map from its description; see `describe`."""
    return Columns(tuple(_column(**column) for column in description["columns"]))


def _fit(name: str, values: Values, levels: int | None, layout: str | None) -> Number | Text | Time:
    if layout is not None or is_time(values):
        return Time.fit(name, values, layout or "iso")
    return Text.fit(name, values, levels) if _has_text(values) else Number.fit(name, values)


def _column(*, kind: str, **settings: Any) -> Number | Text | Time:
    if kind == "Time":
        return Time.from_description(settings)
    column = Number(**settings) if kind == "Number" else Text(**settings | {"levels": tuple(settings["levels"])})
    fits = isinstance(column.name, str) and (
        isinstance(column.mean, int | float) and math.isfinite(column.mean) and isinstance(column.gaps, bool)
        if isinstance(column, Number)
        else all(isinstance(level, str) for level in column.levels) and isinstance(column.other, bool)
    )
    if not fits or kind not in ("Number", "Text"):
        raise InputError(f"The description of a column is invalid: {settings!r:.60}.", "columns")
    return column


def _columns(table: Any) -> Mapping[str, Values]:
    if isinstance(table, Mapping):
        return table
    columns = data_frames.columns(table)
    if columns is None:
        raise InputError(f"table must be a data frame or a mapping of columns, got {type(table).__name__}.", "table")
    return columns


def _has_text(values: Values) -> bool:
    numeric = isinstance(values, np.ndarray) and values.dtype.kind != "O"
    return not numeric and any(isinstance(value, str) for value in values)


def _text(value: object) -> str:
    return MISSING if is_missing(value) else str(value)


def _numbers(name: str, values: Values) -> Matrix:
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values.astype(np.float64)
    try:
        return np.array([math.nan if value is None else float(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError):
        if any(type(value).__name__ == "NAType" for value in values):
            return _numbers(name, [None if is_missing(value) else value for value in values])
        dates = [from_json(value, name) for value in values]
        if any(isinstance(value, datetime.date) for value in dates):  # in a log, a date is a number
            return _numbers(name, [seconds(value) if isinstance(value, datetime.date) else value for value in dates])
        wrong = next(value for value in values if isinstance(value, str) or not isinstance(value, SupportsFloat))
        raise InputError(
            f"field {name!r} must be a number, as in the table, got {wrong!r}. Omit it if it is missing.",
            "context",
        ) from None
