"""Feature maps: contexts made richer before an agent sees them, so that linear learners can follow curves.

A map is any function of one context; these four can be saved. `manul.Mapped` puts one before an agent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import combinations
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.contexts import encoding
from manul.contexts.conversion import Fields, Row
from manul.contexts.encoding import Columns
from manul.errors import FileError, InputError, MissingDependency, ParameterError
from manul.types import Floats
from manul.utils import model_files, sklearn_files
from manul.utils.validation import check_number, check_seed, check_whole_number

__all__ = [
    "Columns",
    "Crosses",
    "FeatureMap",
    "Fourier",
    "NamesColumns",
    "Transformer",
    "describe",
    "from_description",
]

_OTHER_STREAM = 2**63  # decisions are numbered from 0, so that no wave is drawn like a decision


class FeatureMap(Protocol):
    """A function of one context, a row of numbers or a dict of fields, that gives another one."""

    def __call__(self, context: Row | Fields, /) -> npt.ArrayLike | Mapping[str, object]:
        """The context as the agent sees it."""


@runtime_checkable
class NamesColumns(Protocol):
    """A map that can say what the columns of its rows mean."""

    def names(self, width: int) -> list[str]:
        """A name for each column that comes of a row of this width."""


@dataclass(frozen=True)
class Crosses:
    """Adds the product of each two numbers; of named fields also the joint text of each two texts, under 'a*b'.

    >>> Crosses()(np.array([2.0, 3.0, 5.0]))
    array([ 2.,  3.,  5.,  6., 10., 15.])
    >>> Crosses()({"city": "Oslo", "device": "phone", "age": 31.0})
    {'city': 'Oslo', 'device': 'phone', 'age': 31.0, 'city*device': 'Oslo*phone'}
    """

    def __call__(self, context: Row | Fields, /) -> Floats | Fields:
        """The context with its crosses."""
        if isinstance(context, dict):
            return _crossed(context)
        values = np.asarray(context, dtype=np.float64)
        left, right = _pairs(len(values))
        return np.concatenate([values, values[left] * values[right]])

    def names(self, width: int) -> list[str]:
        """A name for each column that comes of a row of this width.

        >>> Crosses().names(2)
        ['column 0', 'column 1', 'column 0*column 1']
        """
        columns = _columns(width)
        return [*columns, *("*".join(pair) for pair in combinations(columns, 2))]


@dataclass(frozen=True)
class Fourier:
    """Adds `count` waves cos(w.x + b) to a row, with w normal of standard deviation `scale` and b uniform.

    A linear function of the waves is a smooth function of the row that bends over distances of about 1 / `scale`.

    >>> Fourier(count=2, seed=7)(np.array([0.5, 1.0])).shape
    (4,)
    """

    count: int = 64
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole_number("count", self.count, 1, 4096, "Try 64.")
        check_number("scale", self.scale, 0, math.inf, "Try 1 divided by the spread of the numbers.", ends="()")
        check_seed(self.seed)

    def __call__(self, context: Row | Fields, /) -> Floats:
        """The row with its waves."""
        if isinstance(context, dict):
            raise InputError("context must be a row of numbers for Fourier; got a mapping. Try Crosses().", "context")
        values = np.asarray(context, dtype=np.float64)
        frequencies, angles = _waves(self.count, self.scale, self.seed, len(values))
        for frequency, value in zip(frequencies, values, strict=True):
            angles = angles + frequency * value
        # Cosines differ in their last digits from machine to machine.
        return np.concatenate([values, np.round(np.cos(angles), 6)])

    def names(self, width: int) -> list[str]:
        """A name for each column that comes of a row of this width.

        >>> Fourier(count=2).names(1)
        ['column 0', 'wave 0', 'wave 1']
        """
        return [*_columns(width), *(f"wave {number}" for number in range(self.count))]


class Transformer:
    """A scikit-learn transformer that was fitted on rows or, with its columns' names, on a pandas frame.

    It transforms one context at a time, so that each one gives the same whatever it is mapped with.

    >>> from sklearn.preprocessing import StandardScaler
    >>> Transformer(StandardScaler().fit([[0.0], [2.0]]))(np.array([3.0]))
    array([2.])
    """

    def __init__(self, fitted: Any) -> None:
        if not callable(getattr(fitted, "transform", None)):
            raise ParameterError(
                f"fitted must have a transform method; got {type(fitted).__name__}. Pass a fitted transformer.",
                "fitted",
            )
        _check_fitted(fitted)
        self.fitted = fitted

    def __call__(self, context: Row | Fields, /) -> Floats:
        """The row that the transformer makes of the context."""
        made = self.fitted.transform(self._table(context))
        made = made.toarray() if hasattr(made, "toarray") else np.asarray(made)
        row: Floats = np.asarray(made[0], dtype=np.float64)
        return row

    def names(self, width: int) -> list[str]:
        """A name for each column that comes of a row of this width.

        >>> from sklearn.preprocessing import StandardScaler
        >>> Transformer(StandardScaler().fit([[0.0], [2.0]])).names(1)
        ['x0']
        """
        if hasattr(self.fitted, "get_feature_names_out"):
            return [str(name) for name in self.fitted.get_feature_names_out()]
        return [f"output {number}" for number in range(len(self(np.zeros(width, np.float32))))]

    def __repr__(self) -> str:
        return f"Transformer({self.fitted!r})"

    def _table(self, context: Row | Fields) -> Any:
        columns = getattr(self.fitted, "feature_names_in_", None)
        if columns is None and isinstance(context, dict):
            raise InputError(
                "context must be a row of numbers for this transformer; got a mapping. Fit it on a data frame.",
                "context",
            )
        if columns is None:
            return np.asarray(context, dtype=np.float64)[np.newaxis]
        return _frame([context.get(name) for name in columns] if isinstance(context, dict) else context, columns)


def describe(features: FeatureMap) -> tuple[model_files.Parameters, model_files.Arrays]:
    """A map as it is written into a file.

    >>> describe(Fourier(count=8))
    ({'name': 'Fourier', 'count': 8, 'scale': 1.0, 'seed': 0}, {})
    """
    if isinstance(features, Crosses | Fourier):
        return {"name": type(features).__name__, **asdict(features)}, {}
    if isinstance(features, Columns):
        return {"name": "Columns", **encoding.describe(features)}, {}
    if isinstance(features, Transformer):
        data = sklearn_files.dump_objects(
            [features.fitted], "transformer", "Map with another, such as StandardScaler()."
        )
        return {"name": "Transformer"}, {"transformer": data}
    raise FileError(
        f"features must be Columns, Crosses, Fourier or Transformer to be saved; got {features!r}.", "features"
    )


def from_description(parameters: model_files.Parameters, arrays: model_files.Arrays) -> FeatureMap:
    """The map that was described.

    >>> from_description({"name": "Crosses"}, {})
    Crosses()
    """
    settings = dict(parameters)
    name = settings.pop("name", None)
    try:
        if name == "Transformer":
            (data,) = model_files.vectors({"transformer": arrays["transformer"], **arrays}, transformer=("u1", None))
            return Transformer(sklearn_files.load_objects(data, "transformer", method="transform")[0])
        model_files.vectors(arrays)
        if name == "Columns":
            return encoding.from_description(settings)
        known: dict[object, type[Crosses | Fourier]] = {"Crosses": Crosses, "Fourier": Fourier}
        return known[name](**settings)
    except (KeyError, IndexError, TypeError):
        raise FileError(
            f"file must hold one of Columns, Crosses, Fourier, Transformer as features; got {name}. A newer manul may read it."
        ) from None


def _columns(width: int) -> list[str]:
    return [f"column {number}" for number in range(width)]


@lru_cache(maxsize=16)
def _pairs(width: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.triu_indices(width, 1)


def _crossed(context: Fields) -> Fields:
    numbers = sorted(name for name, value in context.items() if _is_number(value))
    texts = sorted(name for name, value in context.items() if isinstance(value, str))
    products = {f"{a}*{b}": float(context[a]) * float(context[b]) for a, b in combinations(numbers, 2)}
    joined = {f"{a}*{b}": f"{context[a]}*{context[b]}" for a, b in combinations(texts, 2)}
    taken = context.keys() & (products.keys() | joined.keys())
    if taken:
        raise InputError(f"context must not have a field named as a cross; got {min(taken)!r}. Rename it.", "context")
    return {**context, **products, **joined}


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


@lru_cache(maxsize=16)
def _waves(count: int, scale: float, seed: int, width: int) -> tuple[Floats, Floats]:
    """The frequencies, one row per number of a context, and the phases."""
    draws = [_core.draw(seed, _OTHER_STREAM + number) for number in range(count * (width + 1))]
    first, second = np.array(draws).T.reshape(2, width + 1, count)
    normal = np.sqrt(-2 * np.log(1 - first[:width])) * np.cos(2 * np.pi * second[:width])
    return np.round(scale * normal, 6), np.round(2 * np.pi * first[width], 6)


def _check_fitted(transformer: Any) -> None:
    try:
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted
    except ImportError:
        raise MissingDependency(
            f"scikit-learn must be installed to use its transformers. {sklearn_files.INSTALL}"
        ) from None
    try:
        check_is_fitted(transformer)
    except (NotFittedError, TypeError):
        raise ParameterError(
            f"fitted must be a fitted transformer; got {type(transformer).__name__}. Call its fit first.", "fitted"
        ) from None


def _frame(values: Any, columns: Any) -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingDependency("Transformers that were fitted on a frame need pandas: pip install pandas.") from None
    return pandas.DataFrame([list(values)], columns=list(columns))
