"""What a kind of knob is: everything that agents, logs, the service and plots ask of one part of an action.

The core knows positions: a number in [0, 1] for a range, the middle of one of n equal cells for a step, and the number of an
option for a choice. A kind turns values into positions and back; `Number` has the rest for kinds whose values are numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import formatannotation
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.distribution import Atoms, Distribution, Options, Scaled
from manul.errors import InputError
from manul.utils.registry import Registry
from manul.utils.validation import Flags, Floats

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import TypeVar

    Value = TypeVar("Value", default=Any)
else:
    from typing import TypeVar

    Value = TypeVar("Value")

# The smallest share of the range for one decision; below it, densities and positions lose precision.
NARROWEST = 1e-9
SPREAD = 1024  # a single value counts as spread over this part of a range, so that it has a density
CELLS = 32  # the most cells in which decisions are counted; there are no more options, and more steps share cells
Option = str | int | float | bool
KnobValue = float | Option
KnobRange = tuple[float, float]  # of positions, or the bits of the allowed options and 0
Levels = Iterable[tuple[float, float, float]]  # low, high and share of each level of a ladder of the core
Marginal = Distribution | Atoms | Options | Scaled


class Knob(ABC, Generic[Value]):
    """One part of an action."""

    is_option = False  # whether its values are unordered
    is_discrete = False  # whether its densities are probabilities

    @property
    @abstractmethod
    def core(self) -> tuple[_core.KnobKind, int]:
        """How the core draws it, and the number of steps or options."""

    @property
    def scale_in_core(self) -> tuple[float, float, float, list[float]] | None:
        """How the core turns positions into values, for limits: low, high and step, or the options as numbers; None if it cannot."""
        return None

    @property
    @abstractmethod
    def volume(self) -> float:
        """The length of the range, or the number of steps or options."""

    @property
    @abstractmethod
    def rule(self) -> str:
        """The values that the knob has, as the end of a sentence: "in [0, 1]"."""

    @abstractmethod
    def describe(self) -> Any:
        """The arguments of the constructor, in JSON values."""

    @classmethod
    def keys(cls) -> list[str]:
        """The names of the arguments of the constructor, by which the kind is known in JSON."""
        return [name for name in cls.__init__.__annotations__ if name != "return"]

    def written(self) -> Any:
        """The knob as a user writes it."""
        return self

    @abstractmethod
    def position(self, value: Any, name: str) -> float:
        """The position of a `value`; raises InputError if the knob `name` does not have it."""

    @abstractmethod
    def value(self, position: float) -> Value:
        """The value at a `position`."""

    def positions(self, values: Any, name: str) -> Floats:
        """The position of each of the `values` of the knob `name`; they are few, so each is converted once. True is not 1."""
        pairs = [(type(value), value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
        known = {pair: self.position(pair[1], name) for pair in dict.fromkeys(pairs)}
        return np.array([known[pair] for pair in pairs], dtype=np.float64)

    def column(self, positions: Floats) -> npt.NDArray[Any]:
        """The values at `positions`, as an array."""
        return np.array([self.value(place) for place in positions.tolist()], dtype=np.float64)

    def are_values(self, values: npt.NDArray[Any]) -> Flags:
        """Flag the `values` of a column that the knob has."""
        distinct, places = np.unique(values, return_inverse=True)
        return np.array([self._has(value) for value in distinct.tolist()], dtype=np.bool_)[places]

    def _has(self, value: Any) -> bool:
        try:
            self.position(value, "knob")
        except InputError:
            return False
        return True

    @property
    def is_bent(self) -> bool:
        """Whether `units` depend on the value."""
        return False

    def units(self, values: npt.NDArray[Any]) -> Floats:
        """The change of the value per change of the position, at each of the `values`: what the density of a position is divided by."""
        return np.full(len(values), self.largest_unit)

    @property
    def largest_unit(self) -> float:
        """The largest of `units`: 1 for probabilities."""
        return 1.0

    @abstractmethod
    def narrow(self, within: Any, name: str) -> KnobRange:
        """The range of positions `within` a narrower range of the knob `name`; None is the whole range."""

    @abstractmethod
    def stated(self, within: Any, name: str) -> Any:
        """A narrower range of the knob `name`, `within`, in one form: a pair of numbers, or a list of options."""

    @abstractmethod
    def size(self, within: KnobRange) -> float:
        """The length of a narrower range, `within`, or the number of its steps or options."""

    @abstractmethod
    def contains(self, lows: Any, highs: Any, positions: Any) -> Any:
        """Whether `positions` are in ranges from `lows` to `highs`."""

    @abstractmethod
    def nearest(self, value: Any, within: Any, name: str) -> Value:
        """The value `within` a narrower range that is nearest to a `value` of the knob `name`; raises InputError if there is none."""

    @abstractmethod
    def spread(self, value: Any, within: Any) -> Marginal:
        """The distribution that a single `value` counts as `within` a narrower range: the value, or a small part of a range."""

    @abstractmethod
    def marginal(self, levels: Levels) -> Marginal:
        """The distribution of values whose positions have these `levels`."""

    @property
    @abstractmethod
    def cell_count(self) -> int:
        """The number of cells in which decisions are counted: 32 equal parts of a range, or one per step or option."""

    @abstractmethod
    def cells(self, positions: Floats) -> npt.NDArray[np.int64]:
        """The cells of `positions`."""

    @abstractmethod
    def cell_volumes(self) -> Floats:
        """The length of each cell, or the number of its steps or options."""

    @abstractmethod
    def cell_densities(self, marginal: Any) -> Floats:
        """A distribution, `marginal`, over the cells: the density of a range, the probability of steps and options."""

    @abstractmethod
    def middles(self, most: int = CELLS) -> list[Any]:
        """The options, or the values in the middle of at most `most` equal cells."""

    @abstractmethod
    def sweep(self, most: int) -> list[Any]:
        """The options, or at most `most` values from end to end."""

    @abstractmethod
    def places(self, values: Sequence[Any]) -> list[float]:
        """Where `values` are drawn on an axis."""

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """The type of a column of values."""

    @abstractmethod
    def parse(self, text: str) -> Any:
        """The value of a `text` in a file, or None."""

    def texts(self, column: pa.Array) -> list[str | None]:
        """The values of a `column` as text; `parse` is the inverse."""
        import pyarrow.compute as pc

        listed: list[str | None] = pc.cast(column, "string").to_pylist()
        return listed

    @abstractmethod
    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """A column of `values`; None is missing."""

    @abstractmethod
    def from_arrow(self, column: pa.Array) -> npt.NDArray[Any]:
        """The values of a `column`; NaN or None if one is missing or no value of the knob."""

    @abstractmethod
    def as_column(self, values: Sequence[Any], name: str) -> npt.NDArray[Any]:
        """Given `values` as an array; those that the knob does not have stay, or are None. `name` is that of the knob, for errors."""


class Number(Knob[float]):
    """A knob whose values are numbers from `low` to `high`, which subclasses have as fields."""

    low: float
    high: float

    def contains(self, lows: Any, highs: Any, positions: Any) -> Any:
        return (lows <= positions) & (positions <= highs)

    def size(self, within: KnobRange) -> float:
        return (within[1] - within[0]) * self.volume

    def stated(self, within: Any, name: str) -> tuple[float, float]:
        self.narrow(within, name)
        return float(within[0]), float(within[1])

    @property
    def cell_count(self) -> int:
        return CELLS

    def cells(self, positions: Floats) -> npt.NDArray[np.int64]:
        return (positions * self.cell_count).astype(np.int64).clip(0, self.cell_count - 1)

    def cell_volumes(self) -> Floats:
        return np.diff(self.edges())

    def edges(self, count: int | None = None) -> Floats:
        """The values at the ends of `count` equal cells."""
        return self.column(np.linspace(0.0, 1.0, (count or self.cell_count) + 1))

    def cell_densities(self, marginal: Any) -> Floats:
        means: Floats = marginal.mean_densities(self.edges())
        return means

    def middles(self, most: int = CELLS) -> list[float]:
        parts = min(self.cell_count, most)
        return [self.value((part + 0.5) / parts) for part in range(parts)]

    def sweep(self, most: int) -> list[float]:
        return [self.value(place) for place in np.linspace(0, 1, most).tolist()]

    def places(self, values: Sequence[Any]) -> list[float]:
        return [float(value) for value in values]

    @property
    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.float64()

    def parse(self, text: str) -> float | None:
        try:
            return float(text)
        except ValueError:
            return None

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        return pa.array(values, pa.float64())

    def from_arrow(self, column: pa.Array) -> Floats:
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)

    def as_column(self, values: Sequence[Any], name: str) -> Floats:
        try:
            return np.array(values, dtype=np.float64).reshape(len(values))
        except (TypeError, ValueError):
            raise InputError(f"{name} must be a column of numbers.", name) from None


def mix_levels(levels: Levels) -> Distribution:
    """The distribution of positions with these levels, of which at least one has a share.

    A ladder of the core (`src/core/knobs/ladder.hpp`) is a mixture of ever wider uniform distributions, which explores near
    a window more than far from it.

    >>> mix_levels([(0.25, 0.75, 0.5), (0.0, 1.0, 0.5)]).densities
    array([0.5, 1.5, 0.5])
    """
    mixed: Distribution | None = None
    total = 0.0
    for low, high, share in levels:
        total += share
        if share > 0:
            level = Distribution.uniform(low, high)
            mixed = level if mixed is None else mixed.mix(level, share / total)
    assert mixed is not None
    return mixed


def as_number(value: Any, name: str) -> float:
    """A finite number; raises InputError."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {value!r}.", name) from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, got {number}.", name)
    return number


def as_pair(within: Any, name: str) -> tuple[float, float]:
    """Two finite numbers; raises InputError."""
    try:
        if isinstance(within, Mapping):
            raise TypeError
        low, high = within
    except (TypeError, ValueError):
        raise InputError(f"within of {name} must be (low, high), got {within!r}.", "within") from None
    return as_number(low, name), as_number(high, name)


KINDS = Registry[type[Knob[Any]]]("knob", "manul.actions.kinds", suggestion="span")
SCALARS = ("float", "int", "str")  # the types of arguments that are no lists
_Kind = TypeVar("_Kind", bound=type[Knob[Any]])


def register_knob(name: str) -> Callable[[_Kind], _Kind]:
    """Register a kind of knob under a `name`: a subclass of `Knob` whose `describe()` are its keyword arguments.

    In files, logs and requests a knob is a JSON object with these arguments, by whose names its kind is known.
    """
    return KINDS.decorator(name)


def arguments(kind: type[Knob[Any]]) -> dict[str, str]:
    """The arguments of a kind in JSON, with their types as texts, which those of a plug-in need not be."""
    hints = {key: kind.__init__.__annotations__[key] for key in [*kind.keys()]}
    return {key: hint if isinstance(hint, str) else formatannotation(hint) for key, hint in hints.items()}
