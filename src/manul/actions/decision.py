"""Decisions: an action, its density, and what is needed to learn from it and to log it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from manul.errors import require_package
from manul.utils.validation import Floats

if TYPE_CHECKING:
    import pandas

Within = tuple[float, float]


class Decision(NamedTuple):
    """An action, its density, the range it was drawn from if that was narrowed, and the smallest density of that range.

    The `floor` is the smallest density that the policy gave any action; None if it is unknown. It bounds the weights of
    off-policy estimates, so log it with the density.

    >>> Decision(21.4, 0.24)
    Decision(action=21.4, density=0.24)
    """

    action: float
    density: float
    within: Within | None = None
    floor: float | None = None

    def __repr__(self) -> str:
        narrowed = "" if self.within is None else f", within={self.within!r}"
        floor = "" if self.floor is None else f", floor={self.floor!r}"
        return f"Decision(action={self.action!r}, density={self.density!r}{narrowed}{floor})"


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Decisions:
    """Many decisions as arrays; `lows` and `highs` are None if every decision had the whole range, `floors` if unknown.

    An index gives one decision, a slice or an array of indices gives several, and a loop goes over all of them.

    >>> decisions = Decisions(np.array([21.4, 8.0]), np.array([0.24, 0.5]))
    >>> decisions[0], len(decisions[1:])
    (Decision(action=21.4, density=0.24), 1)
    >>> [decision.action for decision in decisions]
    [21.4, 8.0]
    """

    actions: Floats
    densities: Floats
    lows: Floats | None = None
    highs: Floats | None = None
    floors: Floats | None = None

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Decision]:
        actions, densities, lows, highs, floors = (_values(column, len(self)) for column in self._columns())
        for action, density, low, high, floor in zip(actions, densities, lows, highs, floors, strict=True):
            yield Decision(action, density, None if low is None else (low, high), floor)

    @overload
    def __getitem__(self, rows: int) -> Decision: ...
    @overload
    def __getitem__(self, rows: slice | npt.NDArray[Any]) -> Decisions: ...
    def __getitem__(self, rows: Any) -> Decision | Decisions:
        columns = self._columns()
        if not isinstance(rows, int | np.integer):
            return Decisions(*(None if column is None else np.asarray(column)[rows] for column in columns))  # type: ignore[arg-type]
        action, density, low, high, floor = (None if column is None else float(column[rows]) for column in columns)
        assert action is not None
        assert density is not None
        return Decision(action, density, None if low is None or high is None else (low, high), floor)

    def _columns(self) -> tuple[Floats | None, ...]:
        return self.actions, self.densities, self.lows, self.highs, self.floors

    def to_pandas(self) -> pandas.DataFrame:
        """The decisions as a pandas data frame, with the column names of a log.

        >>> Decisions(np.array([21.4]), np.array([0.24])).to_pandas().to_dict("records")
        [{'action': 21.4, 'density': 0.24}]
        """
        names = ("action", "density", "low", "high", "floor")
        return _frame(dict(zip(names, self._columns(), strict=True)))


class KnobsDecision(NamedTuple):
    """The values of several knobs, their joint density, the density of each, the ranges they were drawn from if those were
    narrowed, and the smallest density that any action had."""

    action: dict[str, Any]
    density: float
    densities: dict[str, float]
    within: Mapping[str, Any] | None = None
    floor: float | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class KnobsDecisions:
    """Many decisions with several knobs: actions and densities as columns by knob, joint densities as an array.

    An index gives one decision, a slice or an array of indices gives several, and a loop goes over all of them.

    >>> decisions = KnobsDecisions({"price": np.array([21.4])}, np.array([0.24]), {"price": np.array([0.24])})
    >>> decisions[0].action, decisions.to_pandas().columns.tolist()
    ({'price': 21.4}, ['action.price', 'density', 'density.price'])
    """

    actions: dict[str, npt.NDArray[Any]]
    densities: Floats
    densities_by_knob: dict[str, Floats]
    within: Sequence[Mapping[str, Any] | None] | None = None
    floors: Floats | None = None

    def __len__(self) -> int:
        return len(self.densities)

    def __iter__(self) -> Iterator[KnobsDecision]:
        return (self[row] for row in range(len(self)))

    @overload
    def __getitem__(self, rows: int) -> KnobsDecision: ...
    @overload
    def __getitem__(self, rows: slice | npt.NDArray[Any]) -> KnobsDecisions: ...
    def __getitem__(self, rows: Any) -> KnobsDecision | KnobsDecisions:
        if isinstance(rows, int | np.integer):
            return KnobsDecision(
                {name: _value(column[rows]) for name, column in self.actions.items()},
                float(self.densities[rows]),
                {name: float(column[rows]) for name, column in self.densities_by_knob.items()},
                None if self.within is None else self.within[int(rows)],
                None if self.floors is None else float(self.floors[rows]),
            )
        places = np.arange(len(self))[rows]
        return KnobsDecisions(
            {name: column[places] for name, column in self.actions.items()},
            self.densities[places],
            {name: column[places] for name, column in self.densities_by_knob.items()},
            None if self.within is None else [self.within[place] for place in places.tolist()],
            None if self.floors is None else self.floors[places],
        )

    def to_pandas(self) -> pandas.DataFrame:
        """The decisions as a pandas data frame, with the column names of a log."""
        columns: dict[str, Any] = {f"action.{name}": column for name, column in self.actions.items()}
        columns |= {"density": self.densities}
        columns |= {f"density.{name}": column for name, column in self.densities_by_knob.items()}
        if self.within is not None:
            columns["within"] = [None if each is None else json.dumps(each, default=list) for each in self.within]
        return _frame({**columns, "floor": self.floors})


def _values(column: Floats | None, count: int) -> list[Any]:
    return [None] * count if column is None else np.asarray(column).tolist()


def _value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _frame(columns: Mapping[str, Any]) -> pandas.DataFrame:
    require_package("pandas")
    import pandas

    return pandas.DataFrame({name: column for name, column in columns.items() if column is not None})
