"""A knob with unordered options, such as templates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.distribution import Options
from manul.actions.kinds.knob import CELLS, Knob, KnobRange, Levels, Option, register_knob
from manul.errors import InputError, ParameterError
from manul.utils.validation import Flags, Floats

if TYPE_CHECKING:
    import pyarrow as pa

MOST_OPTIONS = 32
O = TypeVar("O", str, int, float, bool)  # noqa: E741 - an option
_SCALARS = str | int | float | np.generic


@register_knob("choice")
@dataclass(frozen=True, init=False)
class Choice(Knob[O], Generic[O]):
    """A knob with unordered `options`, such as templates.

    In a column of a log, the options are texts, truth values or numbers if all of them are, and otherwise JSON texts.

    >>> Choice(["plain", "bold"]).position("bold", "template")
    1.0
    """

    options: tuple[O, ...]
    is_option = is_discrete = True

    def __init__(self, options: Iterable[O]) -> None:
        if not isinstance(options, Iterable):
            raise ParameterError(f"options must be a list of options, got {options!r}.", "options")
        listed: Any = (options,) if isinstance(options, str) else tuple(options)
        given = tuple(option.item() if isinstance(option, np.generic) else option for option in listed)
        if not 2 <= len(given) <= MOST_OPTIONS:
            raise ParameterError(f"Choice must have 2 to {MOST_OPTIONS} options, got {len(given)}.", "options")
        wrong = [option for option in given if not isinstance(option, str | int | float) or option != option]
        if wrong:
            raise ParameterError(f"options must be text, numbers, True or False, got {wrong[0]!r}.", "options")
        if len(set(given)) < len(given):
            raise ParameterError(f"options must be distinct, got {list(given)}.", "options")
        object.__setattr__(self, "options", given)

    @property
    def core(self) -> tuple[_core.KnobKind, int]:
        return _core.KnobKind.choice, len(self.options)

    @property
    def scale_in_core(self) -> tuple[float, float, float, list[float]]:
        return 0.0, 0.0, 0.0, [math.nan if isinstance(option, str) else float(option) for option in self.options]

    @property
    def volume(self) -> float:
        return float(len(self.options))

    @property
    def rule(self) -> str:
        return f"one of {', '.join(map(repr, self.options))}"

    def describe(self) -> Any:
        return {"options": list(self.options)}

    def position(self, value: Any, name: str) -> float:
        number = self._numbers.get(_key(value)) if isinstance(value, _SCALARS) else None
        if number is None:
            raise InputError(f"{name} must be {self.rule}, got {value!r}.", name)
        return float(number)

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {_key(option): number for number, option in enumerate(self.options)}

    def value(self, position: float) -> O:
        return self.options[int(position)]

    def column(self, positions: Floats) -> npt.NDArray[Any]:
        return self._array([self.value(place) for place in positions.tolist()])

    def are_values(self, values: npt.NDArray[Any]) -> Flags:
        return np.array([self.find(value) is not None for value in values.tolist()], dtype=np.bool_)

    def narrow(self, within: Any, name: str) -> KnobRange:
        if within is None:
            return float(2 ** len(self.options) - 1), 0.0
        places = {int(self.position(option, name)) for option in self.stated(within, name)}
        return float(sum(2**place for place in places)), 0.0

    def stated(self, within: Any, name: str) -> list[O]:
        if not isinstance(within, _SCALARS) and not isinstance(within, Iterable):
            raise InputError(f"within of {name} must be a list of its options, got {within!r}.", "within")
        allowed = [within] if isinstance(within, _SCALARS) else list(within)
        if not allowed:
            raise InputError(f"within of {name} must have at least one option, got none.", "within")
        return [self.value(self.position(option, name)) for option in allowed]

    def size(self, within: KnobRange) -> float:
        return float(int(within[0]).bit_count())

    def contains(self, lows: Any, highs: Any, positions: Any) -> Any:  # noqa: ARG002 - options have no highs
        return np.asarray(lows).astype(np.int64) >> np.asarray(positions).astype(np.int64) & 1 == 1

    def nearest(self, value: O, within: Any, name: str) -> O:
        if within is not None and value not in self.stated(within, name):
            raise InputError(
                f"within of {name} must allow {value!r}, which has no nearest option, got {within}.", "within"
            )
        return value

    def spread(self, value: O, within: Any) -> Options:  # noqa: ARG002
        return Options({value: 1.0})

    def marginal(self, levels: Levels) -> Options:  # noqa: ARG002
        raise AssertionError("the core has probabilities of options, no levels")

    @property
    def cell_count(self) -> int:
        return len(self.options)

    def cells(self, positions: Floats) -> npt.NDArray[np.int64]:
        return positions.astype(np.int64).clip(0, self.cell_count - 1)

    def cell_volumes(self) -> Floats:
        return np.ones(self.cell_count)

    def cell_densities(self, marginal: Any) -> Floats:
        return np.array([marginal.density(option) for option in self.options])

    def middles(self, most: int = CELLS) -> list[O]:  # noqa: ARG002 - there are few options
        return list(self.options)

    sweep = middles

    def places(self, values: Sequence[Any]) -> list[float]:
        return [float(self.options.index(value)) for value in values]

    def find(self, value: object) -> O | None:
        """The option that is equal to a `value`, or None."""
        if not isinstance(value, _SCALARS):
            return None
        number = self._numbers.get(_key(value))
        return None if number is None else self.options[number]

    @cached_property
    def _texts(self) -> dict[str, O]:
        """The options by their texts in a file: JSON, unless all of them are texts."""
        plain = all(isinstance(option, str) for option in self.options)
        return {str(each) if plain else json.dumps(each, ensure_ascii=False): each for each in self.options}

    @cached_property
    def _text_of(self) -> dict[Any, str]:
        return {_key(option): text for text, option in self._texts.items()}

    def texts(self, column: pa.Array) -> list[str | None]:
        """The options of a `column` as text; `parse` is the inverse."""
        return [None if option is None else self.text(option) for option in self.from_arrow(column).tolist()]

    def text(self, option: O) -> str:
        """The text of an `option` in a file; `parse` is the inverse."""
        return self._text_of[_key(option)]

    def parse(self, text: str) -> O | None:
        option = self._texts.get(text)
        option = self.find(text) if option is None else option  # a text without the quotes of JSON
        is_json = self._stores_text and not all(isinstance(each, str) for each in self.options)
        if option is not None or is_json:
            return option
        try:
            return self.find(float(text))
        except ValueError:
            return self._texts.get(text.lower())  # spreadsheets write TRUE

    @property
    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        kinds: dict[Any, Any] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
        known: set[Any] = {type(option) for option in self.options}
        fits = known == {float} or all(isinstance(each, str) or abs(each) < 2**63 for each in self.options)
        return kinds.get(known.pop(), pa.string()) if len(known) == 1 and fits else pa.string()

    @cached_property
    def _stores_text(self) -> bool:
        return str(self.arrow_type) == "string"

    def stored(self, option: O) -> Option:
        """An `option` as it is stored in a column of `arrow_type`."""
        return self.text(option) if self._stores_text else option

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        return pa.array([None if value is None else self.stored(value) for value in values], self.arrow_type)

    def from_arrow(self, column: pa.Array) -> npt.NDArray[Any]:
        import pyarrow as pa

        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        encoded = column.dictionary_encode()
        values: list[Any] = encoded.dictionary.to_pylist()
        distinct = self._array(
            [*(self.parse(each) if isinstance(each, str) else self.find(each) for each in values), None]
        )
        places = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.int64)
        column_values: npt.NDArray[Any] = distinct[places]
        return column_values

    def as_column(self, values: Sequence[Any], name: str) -> npt.NDArray[Any]:  # noqa: ARG002
        return self._array([self.find(value) for value in values])

    def _array(self, values: list[Any]) -> npt.NDArray[Any]:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array


def _key(value: Any) -> Any:
    """True is not 1."""
    return isinstance(value, bool | np.bool_), value
