"""Decisions: an action, its density, and what is needed to learn from it and to log it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from manul.errors import InputError, require_package
from manul.utils.validation import Floats

if TYPE_CHECKING:
    import pandas
    from typing_extensions import TypeVar

    from manul.actions.levels import Drawn, Levels
    from manul.actions.pieces import Pieces

    A = TypeVar("A", default=Any)
else:
    from typing import TypeVar

    A = TypeVar("A")  # an action: a number, an option, or a mapping of names to values

Within = tuple[float, float]
Narrowing = Within | Sequence[Any] | Mapping[str, Any]
Arm = Literal["learner", "baseline"]


class Decision(NamedTuple, Generic[A]):
    """An `action`, its `density`, the range `within` which it was drawn if that was narrowed, and the smallest density of that range.

    The `floor` is the smallest density that the policy gave any action; None if it is unknown. It bounds the weights of
    off-policy estimates, so log it with the density. `densities` are those of named knobs, whose product is the density,
    `arm` says which arm of a rollout has decided, and `id` is its number there. `drawn` is what the action was
    drawn from, which `levels` and `pieces` show; it is None unless `decide` is asked for `levels`.

    >>> Decision(21.4, 0.24)
    Decision(action=21.4, density=0.24)
    """

    action: A
    density: float
    within: Narrowing | None = None
    floor: float | None = None
    densities: dict[str, float] | None = None
    arm: Arm | None = None
    id: int | str | None = None
    drawn: Drawn | None = None

    @property
    def levels(self) -> Levels | None:
        """What the action was drawn from, as uniform levels by knob; None if it is unknown."""
        return None if self.drawn is None else self.drawn.levels

    @property
    def pieces(self) -> Pieces | None:
        """What the action was drawn from, as pieces of constant density by knob; None if it is unknown.

        >>> import manul
        >>> manul.Cats(leaves=8, bandwidth=1/2, epsilon=0).decide([0.3], levels=True).pieces[""].row(0)
        [(0.0, 1.0, 1.0)]
        """
        return _pieces(self.levels)

    def __repr__(self) -> str:
        stated = [
            f"{name}={value!r}" for name, value in zip(self._fields[:-1], self, strict=False) if value is not None
        ]
        return f"Decision({', '.join(stated)})"


# Without slots: on Python 3.12, a generic class with slots cannot be referred to weakly, even if it asks for that.
@dataclass(frozen=True, eq=False)
class Decisions(Generic[A]):
    """Many decisions as columns.

    `actions` is an array, or one for each named knob. `densities` are those of whole actions, and `densities_by_knob`
    those of each knob. Decisions of a rollout have `arms` and `ids`. `drawn` is as in `Decision`.

    Narrower ranges are `lows` and `highs` for numbers in a range, and otherwise `within`, one for each row; they are None if
    every decision had the whole range, as are `floors` if they are unknown. An index gives one decision, a slice or an array
    of indices gives several, and a loop goes over all of them.

    >>> decisions = Decisions(np.array([21.4, 8.0]), np.array([0.24, 0.5]))
    >>> decisions[0], len(decisions[1:])
    (Decision(action=21.4, density=0.24), 1)
    >>> several = Decisions({"price": np.array([21.4])}, np.array([0.24]), densities_by_knob={"price": np.array([0.24])})
    >>> several[0].action, several.to_pandas().columns.tolist()
    ({'price': 21.4}, ['action.price', 'density', 'density.price'])
    """

    actions: Any
    densities: Floats
    lows: Floats | None = None
    highs: Floats | None = None
    floors: Floats | None = None
    densities_by_knob: Mapping[str, Floats] | None = None
    within: Sequence[Any] | None = None
    arms: npt.NDArray[Any] | None = None
    ids: npt.NDArray[Any] | None = None
    drawn: Drawn | None = None

    @property
    def levels(self) -> Levels | None:
        """What the actions were drawn from, as uniform levels by knob; None if it is unknown."""
        return None if self.drawn is None else self.drawn.levels

    @property
    def pieces(self) -> Pieces | None:
        """What the actions were drawn from, as pieces of constant density by knob; None if it is unknown.

        >>> import manul
        >>> decisions = manul.Cats(leaves=8, bandwidth=1/2, epsilon=0).decide_many([[0.3], [0.4]], levels=True)
        >>> decisions.pieces[""].densities
        array([1., 1.])
        """
        return _pieces(self.levels)

    @classmethod
    def of(cls, decisions: Decisions[A] | Sequence[Decision[A]]) -> Decisions[A]:
        """Single `decisions`, one after the other, as columns; columns are returned as they are.

        >>> Decisions.of([Decision(21.4, 0.24), Decision(8.0, 0.5)]).densities
        array([0.24, 0.5 ])
        """
        if isinstance(decisions, Decisions):
            return decisions
        actions, densities, within, floors, by_knob, arms, ids, drawn = map(
            list, zip(*decisions, strict=True) if decisions else [()] * len(Decision._fields)
        )
        from manul.actions.levels import DrawnLevels, join_drawn  # it imports this module

        levels = join_drawn(drawn)
        return cls(
            _column(actions),
            np.array(densities, np.float64),
            floors=None if None in floors else np.array(floors, np.float64),
            densities_by_knob=None if not by_knob or None in by_knob else _column(by_knob),
            within=within if any(each is not None for each in within) else None,
            arms=None if None in arms else np.array(arms),
            ids=None if None in ids else np.array(ids, dtype=object),
            drawn=None if levels is None else DrawnLevels(levels),
        )

    def __len__(self) -> int:
        return len(self.densities)

    def __iter__(self) -> Iterator[Decision[A]]:
        others = (self.densities_by_knob, self.arms, self.ids, self.drawn)
        if isinstance(self.actions, Mapping) or any(column is not None for column in others):
            yield from (self[row] for row in range(len(self)))
            return
        columns = (self.actions, self.densities, self.lows, self.highs, self.within, self.floors)
        for action, density, low, high, within, floor in zip(*(_values(c, len(self)) for c in columns), strict=True):
            yield Decision(action, density, within if low is None else (low, high), floor)

    @overload
    def __getitem__(self, rows: int) -> Decision[A]: ...
    @overload
    def __getitem__(self, rows: slice | npt.NDArray[Any]) -> Decisions[A]: ...
    def __getitem__(self, rows: Any) -> Decision[A] | Decisions[A]:
        if not isinstance(rows, int | np.integer):
            places = np.arange(len(self))[rows]
            names = [each.name for each in fields(self) if each.name != "drawn"]
            taken = {name: _rows(getattr(self, name), places) for name in names}
            return Decisions(**taken, drawn=_select(self.levels, places))
        low, within = _value(self.lows, rows), _value(self.within, rows)
        return Decision(
            _value(self.actions, rows),
            float(self.densities[rows]),
            within if low is None else (low, _value(self.highs, rows)),
            _value(self.floors, rows),
            _value(self.densities_by_knob, rows),
            _value(self.arms, rows),
            _value(self.ids, rows),
            _select(self.levels, np.array([rows])),
        )

    def to_pandas(self) -> pandas.DataFrame:
        """The decisions as a pandas data frame, with the column names of a log.

        >>> Decisions(np.array([21.4]), np.array([0.24])).to_pandas().to_dict("records")
        [{'action': 21.4, 'density': 0.24}]
        """
        require_package("pandas")
        import pandas

        return pandas.DataFrame(self._columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The same columns for any library of data frames, such as `polars.DataFrame(decisions)`, by Arrow's PyCapsule interface."""
        import pyarrow as pa

        try:
            return pa.table(self._columns()).__arrow_c_stream__(requested_schema)
        except pa.ArrowException:
            raise InputError(
                "actions have options of several types, which Arrow has not. Use to_pandas.", "actions"
            ) from None

    def _columns(self) -> dict[str, Any]:
        """The columns of a log that there are, by name."""
        columns = {**_flat("action", self.actions), "density": self.densities}
        columns |= {} if self.densities_by_knob is None else _flat("density", self.densities_by_knob)
        columns |= {"low": self.lows, "high": self.highs}
        if self.within is not None:
            columns["within"] = [None if each is None else json.dumps(each, default=list) for each in self.within]
        columns |= {"floor": self.floors, "arm": self.arms, "id": None if self.ids is None else self.ids.astype(str)}
        return {name: column for name, column in columns.items() if column is not None}


def _column(values: Sequence[Any]) -> Any:
    """Values as an array, or mappings as one array for each key."""
    if values and isinstance(values[0], Mapping):
        return {name: _column([each[name] for each in values]) for name in values[0]}
    numbers = all(isinstance(each, int | float | np.number) and not isinstance(each, bool) for each in values)
    return np.array(values, np.float64 if numbers else object)


def _pieces(levels: Levels | None) -> Pieces | None:
    return None if levels is None else {name: each.pieces for name, each in levels.items()}


def _select(levels: Levels | None, rows: npt.NDArray[Any]) -> Drawn | None:
    if levels is None:
        return None
    from manul.actions.levels import DrawnLevels  # it imports this module

    return DrawnLevels({name: each.select(rows) for name, each in levels.items()})


def _flat(name: str, column: Any) -> dict[str, Any]:
    """A column, or one for each knob."""
    if not isinstance(column, Mapping):
        return {name: column}
    return {f"{name}.{knob}": part for knob, part in column.items()}


def _values(column: Any, count: int) -> list[Any]:
    if column is None:
        return [None] * count
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _rows(column: Any, places: npt.NDArray[Any]) -> Any:
    if isinstance(column, Mapping):
        return {name: part[places] for name, part in column.items()}
    if column is None or isinstance(column, np.ndarray):
        return column if column is None else column[places]
    return [column[place] for place in places.tolist()]


def _value(column: Any, row: Any) -> Any:
    if column is None:
        return None
    if isinstance(column, Mapping):
        return {name: _value(part, row) for name, part in column.items()}
    value = column[row]
    return value.item() if isinstance(value, np.generic) else value
