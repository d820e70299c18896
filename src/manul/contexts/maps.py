"""Feature maps: nonlinear features of a context, so that linear learners can fit curves.

A map is any function of one context; these four can be saved. `manul.Mapped` applies a map in front of an agent.
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
from manul.contexts import sparse_features, table_encoding
from manul.contexts.conversion import Fields, Row
from manul.contexts.dates import from_json
from manul.contexts.sparse_features import Features
from manul.contexts.table_encoding import Columns
from manul.errors import FileError, InputError, MissingDependency, ParameterError
from manul.utils import model_files, sklearn_files
from manul.utils.foreign import is_sparse
from manul.utils.validation import Floats, check_number, check_seed, check_whole_number

__all__ = [
    "Columns",
    "Crosses",
    "FeatureMap",
    "Features",
    "Fourier",
    "NamesColumns",
    "Transformer",
    "describe",
    "from_description",
]

_OTHER_STREAM = 2**63  # decisions are numbered from 0, so waves and decisions never share random numbers


class FeatureMap(Protocol):
    """A function from one context, a row of numbers or a dict of fields, to another."""

    def __call__(self, context: Row | Fields, /) -> npt.ArrayLike | Mapping[str, object]:
        """Map a context."""


@runtime_checkable
class NamesColumns(Protocol):
    """A map that names the columns of its output."""

    def names(self, width: int) -> list[str]:
        """A name for each output column, for input rows of this width."""


@dataclass(frozen=True)
class Crosses:
    """Adds the product of each pair of numbers and, for named fields, the combination of each pair of texts as 'a*b'.

    >>> Crosses()(np.array([2.0, 3.0, 5.0]))
    array([ 2.,  3.,  5.,  6., 10., 15.])
    >>> Crosses()({"city": "Oslo", "device": "phone", "age": 31.0})
    {'city': 'Oslo', 'device': 'phone', 'age': 31.0, 'city*device': 'Oslo*phone'}
    """

    def __call__(self, context: Row | Fields, /) -> Floats | Fields:
        if isinstance(context, dict):
            return _cross_fields(context)
        values = np.asarray(context, dtype=np.float64)
        left, right = _pairs(len(values))
        return np.concatenate([values, values[left] * values[right]])

    def names(self, width: int) -> list[str]:
        """A name for each output column, for input rows of this width.

        >>> Crosses().names(2)
        ['column 0', 'column 1', 'column 0*column 1']
        """
        columns = _columns(width)
        return [*columns, *("*".join(pair) for pair in combinations(columns, 2))]


@dataclass(frozen=True)
class Fourier:
    """Adds `count` waves cos(w.x + b) to a row, with w normal of standard deviation `scale` and b uniform.

    A linear function of the waves is a smooth function of the row that varies over distances of about 1 / `scale`.

    >>> Fourier(count=2, seed=7)(np.array([0.5, 1.0])).shape
    (4,)
    """

    count: int = 64
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole_number("count", self.count, 1, 4096, "Try 64.")
        check_number("scale", self.scale, 0, math.inf, "Try 1 / (standard deviation of the features).", ends="()")
        check_seed(self.seed)

    def __call__(self, context: Row | Fields, /) -> Floats:
        if isinstance(context, dict):
            raise InputError("context must be a row of numbers for Fourier, got a mapping. Try Crosses().", "context")
        values = np.asarray(context, dtype=np.float64)
        frequencies, angles = _waves(self.count, self.scale, self.seed, len(values))
        for frequency, value in zip(frequencies, values, strict=True):
            angles = angles + frequency * value
        # The last digits of a cosine differ between machines.
        return np.concatenate([values, np.round(np.cos(angles), 6)])

    def names(self, width: int) -> list[str]:
        """A name for each output column, for input rows of this width.

        >>> Fourier(count=2).names(1)
        ['column 0', 'wave 0', 'wave 1']
        """
        return [*_columns(width), *(f"wave {number}" for number in range(self.count))]


class Transformer:
    """A scikit-learn transformer that was fitted to rows of numbers or, with column names, to a pandas data frame.

    It transforms one context at a time, so the result does not depend on the other contexts of a batch.

    >>> from sklearn.preprocessing import StandardScaler
    >>> Transformer(StandardScaler().fit([[0.0], [2.0]]))(np.array([3.0]))
    array([2.])
    """

    def __init__(self, fitted: Any) -> None:
        if not callable(getattr(fitted, "transform", None)):
            raise ParameterError(
                f"fitted must have a transform method, got {type(fitted).__name__}. Pass a fitted transformer.",
                "fitted",
            )
        _check_fitted(fitted)
        self.fitted = fitted

    def __call__(self, context: Row | Fields, /) -> Floats:
        output = self.fitted.transform(self._table(context))
        output = output.toarray() if is_sparse(output) else np.asarray(output)
        row: Floats = np.asarray(output[0], dtype=np.float64)
        return row

    def names(self, width: int) -> list[str]:
        """A name for each output column, for input rows of this width.

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
                "context must be a row of numbers for this transformer, got a mapping. Fit it to a data frame.",
                "context",
            )
        if columns is None:
            return np.asarray(context, dtype=np.float64)[np.newaxis]
        if isinstance(context, dict):
            return _frame([from_json(context.get(name), name) for name in columns], columns)
        return _frame(context, columns)


def describe(features: FeatureMap) -> tuple[model_files.Parameters, model_files.Arrays]:
    """Describe a map for a file, as parameters and arrays.

    >>> describe(Fourier(count=8))
    ({'name': 'Fourier', 'count': 8, 'scale': 1.0, 'seed': 0}, {})
    """
    if isinstance(features, Crosses | Fourier | Features):
        return {"name": type(features).__name__, **asdict(features)}, {}
    if isinstance(features, Columns):
        return {"name": "Columns", **table_encoding.describe(features)}, {}
    if isinstance(features, Transformer):
        data = sklearn_files.dump_objects(
            [features.fitted], "transformer", "Use another transformer, such as StandardScaler()."
        )
        return {"name": "Transformer"}, {"transformer": data}
    raise FileError(
        f"Only the feature maps Columns, Crosses, Features, Fourier and Transformer can be saved, got {features!r}.",
        "features",
    )


def from_description(parameters: model_files.Parameters, arrays: model_files.Arrays) -> FeatureMap:
    """Build a map from its description.

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
            return table_encoding.from_description(settings)
        if name == "Features":
            return sparse_features.from_description(settings)
        known: dict[object, type[Crosses | Fourier]] = {"Crosses": Crosses, "Fourier": Fourier}
        return known[name](**settings)
    except (KeyError, IndexError, TypeError):
        raise FileError(
            f"The file has an unknown feature map {name!r}; known are Columns, Crosses, Features, Fourier and Transformer.",
            "features",
        ) from None


def _columns(width: int) -> list[str]:
    return [f"column {number}" for number in range(width)]


@lru_cache(maxsize=16)
def _pairs(width: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.triu_indices(width, 1)


def _cross_fields(context: Fields) -> Fields:
    numbers = sorted(name for name, value in context.items() if _is_number(value))
    texts = sorted(name for name, value in context.items() if isinstance(value, str))
    products = {f"{a}*{b}": float(context[a]) * float(context[b]) for a, b in combinations(numbers, 2)}
    text_pairs = {f"{a}*{b}": f"{context[a]}*{context[b]}" for a, b in combinations(texts, 2)}
    clashes = context.keys() & (products.keys() | text_pairs.keys())
    if clashes:
        raise InputError(f"context has a field with the name of a cross: {min(clashes)!r}. Rename it.", "context")
    return {**context, **products, **text_pairs}


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
        raise MissingDependency(f"Transformers need scikit-learn. {sklearn_files.INSTALL}") from None
    try:
        check_is_fitted(transformer)
    except (NotFittedError, TypeError):
        raise ParameterError(
            f"fitted must be a fitted transformer, got an unfitted {type(transformer).__name__}. Call fit first.",
            "fitted",
        ) from None


def _frame(values: Any, columns: Any) -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingDependency(
            "Transformers fitted to a data frame need pandas. Install it: pip install pandas."
        ) from None
    return pandas.DataFrame([list(values)], columns=list(columns))
