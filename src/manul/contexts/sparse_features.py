"""Contexts of named features of which each has few, as in Vowpal Wabbit: a feature that a context does not have is 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.contexts.dates import from_json
from manul.errors import InputError

Selection = slice | npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """The features of many contexts: row `i` has the features `starts[i]` to `starts[i + 1]`, as places in `names`.

    >>> rows = SparseFeatures(("age", "old"), np.array([0, 1, 3]), np.array([0, 0, 1]), np.array([7.0, 80.0, 1.0]))
    >>> rows.to_dicts()
    [{'age': 7.0}, {'age': 80.0, 'old': 1.0}]
    """

    names: tuple[str, ...]
    starts: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def to_dicts(self) -> list[dict[str, object]]:
        names = [self.names[place] for place in self.places.tolist()]
        pairs = list(zip(names, self.values.tolist(), strict=True))
        starts = self.starts.tolist()
        return [dict(pairs[start:end]) for start, end in pairwise(starts)]

    def select(self, which: Selection) -> SparseFeatures:
        rows = np.arange(len(self))[which]
        counts = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        taken = np.repeat(self.starts[:-1][rows] - starts[:-1], counts) + np.arange(starts[-1])
        return SparseFeatures(self.names, starts, self.places[taken], self.values[taken])

    def matrix(self, columns: Mapping[str, int]) -> npt.NDArray[np.float32]:
        """The contexts as rows of numbers, given the column of each name; features without a column are left out."""
        of_place = np.array([columns.get(name, -1) for name in self.names], dtype=np.int64)
        column = of_place[self.places] if len(self.names) else self.places
        row, known = np.repeat(np.arange(len(self)), np.diff(self.starts)), column >= 0
        matrix = np.zeros((len(self), len(columns)), dtype=np.float32)
        matrix[row[known], column[known]] = self.values[known]
        return matrix


def concatenate(parts: Sequence[SparseFeatures]) -> SparseFeatures:
    """The rows of all parts, whose names may differ.

    >>> one = SparseFeatures(("a",), np.array([0, 1]), np.array([0]), np.array([1.0]))
    >>> two = SparseFeatures(("b",), np.array([0, 1]), np.array([0]), np.array([2.0]))
    >>> concatenate([one, two]).to_dicts()
    [{'a': 1.0}, {'b': 2.0}]
    """
    names = parts[0].names
    if any(part.names is not names and part.names != names for part in parts):
        names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    places = {name: place for place, name in enumerate(names)}
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    return SparseFeatures(
        names,
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([_moved(part, names, places) for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _moved(part: SparseFeatures, names: tuple[str, ...], places: Mapping[str, int]) -> npt.NDArray[np.int64]:
    if part.names is names or not len(part.places):
        return part.places
    return np.array([places[name] for name in part.names], dtype=np.int64)[part.places]


@dataclass(frozen=True)
class Features:
    """A feature map from named features to rows of numbers: one column per name, 0 for those that a context does not have.

    Names are those of Vowpal Wabbit: the field `age` of a field `user` is `user^age`, a text is a feature `from=Bath` of
    value 1. Features without a column, which the log had not, are left out.

    >>> features = Features(("from=Bath", "user^age"))
    >>> features({"user": {"age": 30}, "from": "Bath"})
    array([ 1., 30.])
    """

    columns: tuple[str, ...]

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.columns)}

    def names(self, width: int = 0) -> list[str]:  # noqa: ARG002 - the signature of all maps
        return list(self.columns)

    def rows(self, features: SparseFeatures) -> npt.NDArray[np.float32]:
        """Encode many contexts; if none of their features has a column, they are those of another log."""
        if len(features.places) and not any(name in self.places for name in features.names):
            first = features.names[features.places[0]]
            raise InputError(f"no context has a feature of the log; the first one is {first!r}.", "context")
        return features.matrix(self.places)

    def __call__(self, context: Any, /) -> npt.NDArray[np.float64]:
        if not isinstance(context, Mapping):
            raise InputError("context must be a mapping of named features, got a row of numbers.", "context")
        row = np.zeros(len(self.columns))
        for name, value in flatten(context):
            place = self.places.get(name)
            if place is not None:
                row[place] += value
        return row


def from_description(description: Mapping[str, Any]) -> Features:
    """Build the map from the settings in a file.

    >>> from_description({"columns": ["a", "b"]})
    Features(columns=('a', 'b'))
    """
    columns = tuple(description["columns"])
    if len(description) != 1 or not all(isinstance(name, str) for name in columns) or len({*columns}) < len(columns):
        raise InputError(f"The names of the features are invalid: {description!r:.60}.", "features")
    return Features(columns)


def flatten(context: Mapping[str, Any], space: str = "") -> Iterator[tuple[str, float]]:
    """The features of a context, named as in Vowpal Wabbit.

    >>> list(flatten({"user": {"age": 30, "from": "Bath", "new": True}, "sizes": [4, 5]}))
    [('user^age', 30.0), ('user^from=Bath', 1.0), ('user^new', 1.0), ('sizes^0', 4.0), ('sizes^1', 5.0)]
    """
    for key, value in context.items():
        name = f"{space}^{key}" if space else str(key)
        value = from_json(value, name)
        if isinstance(value, Mapping):
            yield from flatten(value, name)
        elif isinstance(value, list | tuple):
            yield from flatten({str(place): item for place, item in enumerate(value)}, name)
        elif isinstance(value, str):
            yield f"{name}={value}", 1.0
        elif value is not None and value is not False:
            yield name, _number(name, value)


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"field {name!r} must be a number or text, got {value!r:.60}.", "context") from None
    return 0.0 if number != number else number
