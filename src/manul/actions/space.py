"""The space of actions: one knob without a name, or several named knobs, such as a price, a number of days and a template.

It is the only place that turns values into positions of the core and back, narrows, measures and describes actions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, overload

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.decision import A
from manul.actions.kinds import check_knob, is_knob, knob_from_description
from manul.actions.kinds.choice import Choice, O
from manul.actions.kinds.knob import Knob, KnobRange
from manul.actions.kinds.span import Span
from manul.actions.kinds.stepped import Stepped
from manul.actions.limits import DeclaredLimits, Limit
from manul.errors import InputError, ParameterError, remedy
from manul.utils.validation import Floats

MOST_KNOBS, MOST_COLUMNS = 16, 64
# Windows of 16 knobs change the uniform density up to 1e48 times, and densities must be usable, in [1e-100, 1e100].
LEAST_VOLUME, LARGEST_VOLUME = 1e-50, 1e50
Pair = tuple[float, float]
KnobLike = Pair | Knob[Any]
Columns = dict[str, npt.NDArray[Any]]
"""Actions by knob; the key is "" for one knob without a name."""
UNNAMED = ""


@dataclass(frozen=True, init=False)
class ActionSpace(Generic[A]):
    """What an agent may choose: one knob without a name, or up to 16 named knobs and the limits between them.

    `actions` are (low, high), `Stepped` or `Choice`, or several of them by name; `limits` are as in `Auto`. Spaces with
    the same knobs are equal, whatever their limits.

    >>> space = ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> space.action(space.positions({"price": 20, "template": "b"}))
    {'price': 20.0, 'template': 'b'}
    >>> days = ActionSpace(Stepped(1, 14, 1))
    >>> days.action(days.positions(3)), days.is_number, ActionSpace((0, 32)).is_number
    (3.0, False, True)
    """

    knobs: tuple[tuple[str, Knob[Any]], ...]
    limits: tuple[Limit, ...] = field(default=(), compare=False)

    @overload
    def __init__(self: ActionSpace[float], actions: Pair | Span | Stepped) -> None: ...
    @overload
    def __init__(self: ActionSpace[O], actions: Choice[O]) -> None: ...
    @overload
    def __init__(
        self: ActionSpace[dict[str, Any]], actions: Mapping[str, KnobLike], limits: Iterable[str | Limit] | None = ()
    ) -> None: ...
    @overload
    def __init__(self, actions: ActionSpace[A] | Knob[A], limits: Iterable[str | Limit] | None = ()) -> None: ...
    def __init__(self, actions: Any, limits: Iterable[str | Limit] | None = ()) -> None:
        object.__setattr__(self, "knobs", _knobs(actions))
        given = limits or (actions.limits if isinstance(actions, ActionSpace) else ())
        object.__setattr__(self, "limits", DeclaredLimits(self.knobs, given).limits if given else ())
        columns = sum(knob.core[1] if knob.is_option else 1 for _, knob in self.knobs)
        if columns > MOST_COLUMNS:
            raise ParameterError(
                f"actions must have at most {MOST_COLUMNS} knobs and options of choices together, got {columns}.",
                "actions",
            )
        if not self.is_number and not LEAST_VOLUME <= self.volume <= LARGEST_VOLUME:
            raise ParameterError(
                f"The product of the lengths of all ranges must be in [{LEAST_VOLUME:g}, {LARGEST_VOLUME:g}], "
                f"got {self.volume:g}. Use other units, such as thousands.",
                "actions",
            )

    def with_limits(self, limits: Iterable[str | Limit] | None) -> ActionSpace[A]:
        """The same space with other `limits`.

        >>> ActionSpace({"price": (10, 50), "discount": (0, 0.5)}).with_limits(["discount <= 1 - 9 / price"]).limits[0].most
        '1 - 9 / price'
        """
        bare: ActionSpace[A] = copy(self)
        object.__setattr__(bare, "limits", ())
        bare.__dict__.pop("limited", None)
        return ActionSpace(bare, limits)

    @cached_property
    def limited(self) -> DeclaredLimits | None:
        """The limits as the core takes them."""
        return DeclaredLimits(self.knobs, self.limits) if self.limits else None

    @cached_property
    def names(self) -> list[str]:
        """The names of the knobs."""
        return [name for name, _ in self.knobs]

    @cached_property
    def _name_set(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def titles(self) -> list[str]:
        """The names of the knobs for people: that of one without a name is "action"."""
        return [name or "action" for name in self.names]

    @property
    def is_named(self) -> bool:
        """Whether an action maps names to values."""
        return self.names != [UNNAMED]

    @cached_property
    def is_number(self) -> bool:
        """Whether an action is a number in a range, which the core's player for one number draws."""
        return not self.is_named and type(self.knobs[0][1]) is Span

    @property
    def ends(self) -> Pair:
        """The ends of the range of a space that `is_number`."""
        span = self.knobs[0][1]
        assert isinstance(span, Span)
        return span.low, span.high

    @property
    def actions(self) -> Any:
        """The knobs as a user writes them."""
        return self.unwrap({name: knob.written() for name, knob in self.knobs})

    @cached_property
    def volume(self) -> float:
        """The volume of the space: the product of the lengths of ranges and the numbers of steps and options."""
        return math.prod(knob.volume for _, knob in self.knobs)

    @property
    def core(self) -> list[tuple[_core.KnobKind, int]]:
        """The knobs as the core takes them."""
        return [knob.core for _, knob in self.knobs]

    def unwrap(self, by_name: Mapping[str, Any]) -> Any:
        """The mapping `by_name`, or its only value if the knob has no name."""
        return by_name if self.is_named else by_name[UNNAMED]

    def wrap(self, action: Any, what: str = "action") -> Mapping[str, Any]:
        """The value of each knob in an `action`; raises InputError, which calls it `what`, if a knob is missing or unknown."""
        if not self.is_named:
            if isinstance(action, Mapping):
                raise InputError(f"{what} must be {self.knobs[0][1].rule}, got a mapping.", what)
            return {UNNAMED: action}
        if not isinstance(action, Mapping):
            raise InputError(
                f"{what} must be a mapping of {', '.join(self.names)} to values, got {action!r:.200}.", what
            )
        if action.keys() != self._name_set:
            self.check_names(action, what)
            missing = next(name for name in self.names if name not in action)
            raise InputError(f"{what} must set the knob {missing!r} too.", missing)
        return action

    def positions(self, action: Any) -> Floats:
        """The positions of an `action`; raises InputError if a knob is missing, unknown, or cannot have its value."""
        values = self.wrap(action)
        return np.array([knob.position(values[name], name or "action") for name, knob in self.knobs])

    def start(self, action: Any) -> list[float]:
        """The position of each knob that an `action`, the start of an agent, sets, and NaN for the others.

        >>> ActionSpace({"price": (10, 50), "days": Stepped(1, 4, 1)}).start({"price": 20})
        [0.25, nan]
        """
        given = action if self.is_named and isinstance(action, Mapping) else self.wrap(action, "start")
        self.check_names(given, "start")
        return [
            knob.position(given[name], f"start of {name}" if name else "start") if name in given else math.nan
            for name, knob in self.knobs
        ]

    def action(self, positions: Iterable[float]) -> Any:
        """The action at `positions`."""
        return self.unwrap({name: knob.value(place) for (name, knob), place in zip(self.knobs, positions, strict=True)})

    def table(self, columns: Mapping[str, npt.ArrayLike]) -> Floats:
        """One row of positions per action, from `columns` by knob; raises InputError for a value that a knob cannot have.

        >>> space = ActionSpace({"price": (10, 50), "days": Stepped(1, 4, 1), "template": Choice(["a", "b"])})
        >>> space.table({"price": [20.0], "days": [1.0], "template": ["b"]})
        array([[0.25 , 0.125, 1.   ]])
        """
        parts = [knob.positions(columns[name], name or "action") for name, knob in self.knobs]
        return np.ascontiguousarray(np.column_stack(parts), dtype=np.float64)

    def rows(self, actions: Any, count: int) -> Floats:
        """One row of positions for each of `count` `actions`: a list of them, columns by knob, or a table of positions."""
        if isinstance(actions, np.ndarray) and actions.ndim == 2:
            return self.check_table(actions, count)
        columns = self._columns_of_rows(actions, count)
        return self.table(columns) if count else np.zeros((0, len(self.knobs)))

    def each(self, actions: Any, count: int) -> list[A]:
        """Each of `count` `actions`, which are as in `rows`."""
        if isinstance(actions, np.ndarray) and actions.ndim == 2:
            return [self.action(row) for row in self.check_table(actions, count)]
        columns = self._columns_of_rows(actions, count)
        return [self.unwrap(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    def _columns_of_rows(self, actions: Any, count: int) -> Mapping[str, Any]:
        columns = self.wrap_columns(actions)
        given = len(columns[self.names[0]])
        if given != count:
            raise InputError(f"actions must have one action for each of the {count} contexts, got {given}.", "actions")
        return columns

    def wrap_columns(self, actions: Any) -> Mapping[str, Any]:
        """The `actions` by knob, from a list of them or columns; raises InputError if a knob is missing, unknown or differs."""
        if self.is_named and not isinstance(actions, Mapping):
            rows = [self.wrap(action) for action in actions]
            return {name: _objects([action[name] for action in rows]) for name in self.names}
        columns = self.wrap(actions, "actions")
        scalars = [column for column in columns.values() if isinstance(column, str) or np.ndim(column) != 1]
        if scalars:
            raise InputError(f"actions must have one value per row for each knob, got {scalars[0]!r:.60}.", "actions")
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise InputError(f"actions must have as many values for each knob, got {sorted(lengths)}.", "actions")
        return {
            name: column if isinstance(column, np.ndarray) else _objects(column) for name, column in columns.items()
        }

    def columns(self, table: Floats) -> Columns:
        """The columns of actions at the rows of positions of a `table`."""
        return {name: knob.column(column) for (name, knob), column in zip(self.knobs, table.T, strict=True)}

    def columns_of(self, actions: Sequence[Any]) -> Columns:
        """Many `actions` as columns by knob; options keep their types.

        >>> space = ActionSpace({"days": Stepped(1, 14, 1), "template": Choice(["a", 2])})
        >>> space.columns_of([{"days": 3, "template": 2}])
        {'days': array([3.]), 'template': array([2], dtype=object)}
        """
        rows = [self.wrap(action) for action in actions]
        return {name: knob.as_column([action[name] for action in rows], name or "action") for name, knob in self.knobs}

    def check_table(self, positions: npt.NDArray[Any], count: int) -> Floats:
        """Check a table of `positions`: one row for each of `count` contexts, from 0 to 1, or the number of an option.

        >>> ActionSpace({"price": (10, 50)}).check_table(np.array([[1.5]]), 1)
        Traceback (most recent call last):
        manul.errors.InputError: positions of price must be in [0, 1], got 1.5.
        """
        table = np.ascontiguousarray(positions, dtype=np.float64)
        if table.shape != (count, len(self.knobs)):
            raise InputError(
                f"actions must be {count} rows of {len(self.knobs)} positions, got an array of shape {table.shape}.",
                "actions",
            )
        for title, (_, knob), column in zip(self.titles, self.knobs, table.T, strict=True):
            highest = knob.volume - 1 if knob.is_option else 1.0
            bad = ~((column >= 0) & (column <= highest))
            if bad.any():
                raise InputError(
                    f"positions of {title} must be in [0, {highest:g}], got {column[bad][0]:g}.", "actions"
                )
        return table

    def ranges(self, within: Any) -> tuple[Floats, Floats]:
        """The lows and highs of the positions that a decision `within` a narrower range may use, as the core takes them."""
        if within is None:
            return self._whole_ranges
        return self._ends(self.wrap_within(within))

    def wrap_within(self, within: Any) -> Mapping[str, Any]:
        """The narrower range of each knob that has one in `within`."""
        if not self.is_named:
            return {UNNAMED: within}
        if not isinstance(within, Mapping):
            raise InputError(f"within must be a mapping of knobs to ranges, got {within!r}.", "within")
        self.check_names(within, "within")
        return within

    @cached_property
    def _whole_ranges(self) -> tuple[Floats, Floats]:
        lows, highs = self._ends({})
        lows.flags.writeable = highs.flags.writeable = False
        return lows, highs

    def _ends(self, within: Mapping[str, Any]) -> tuple[Floats, Floats]:
        ends = np.array([knob.narrow(within.get(name), name or "action") for name, knob in self.knobs])
        return np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])

    def boxes(self, within: Sequence[Any] | None, count: int) -> tuple[Floats, Floats]:
        """The ranges of `count` rows; `within` has a narrower range or None for each."""
        if within is None:
            lows, highs = self.ranges(None)
            return np.tile(lows, (count, 1)), np.tile(highs, (count, 1))
        if len(within) != count:
            kind = "mapping" if self.is_named else "range"
            raise InputError(
                f"within must have one {kind} for each of the {count} contexts, got {len(within)}.", "within"
            )
        ends, size = [self.ranges(each) for each in within], len(self.knobs)
        lows, highs = (np.array([pair[side] for pair in ends]).reshape(-1, size) for side in (0, 1))
        return lows, highs

    def stated(self, within: Any) -> Any:
        """A narrower range, `within`, in one form: pairs of numbers and lists of options, in the order of knobs; None is the whole.

        >>> space = ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])})
        >>> space.stated({"template": "a", "price": [12, 20]})
        {'price': (12.0, 20.0), 'template': ['a']}
        """
        ranges = self.stated_by_knob(within)
        return self.unwrap(ranges) if ranges else None

    def stated_by_knob(self, within: Any) -> dict[str, Any]:
        """The narrower ranges of `within` in one form, of the knobs that have one."""
        given = {} if within is None else self.wrap_within(within)
        return {
            name: knob.stated(given[name], name or "action") for name, knob in self.knobs if given.get(name) is not None
        }

    def nearest(self, action: Any, within: Any) -> Any:
        """The action of a narrower range, `within`, that is nearest to another `action`, knob by knob.

        >>> ActionSpace({"price": (10, 50)}).nearest({"price": 20.0}, {"price": (30, 40)})
        {'price': 30.0}
        """
        values, ranges = self.wrap(action), self.stated_by_knob(within)
        return self.unwrap(
            {name: knob.nearest(values[name], ranges.get(name), name or "action") for name, knob in self.knobs}
        )

    def sizes(self, within: Any) -> list[float]:
        """The length of the range of each knob, or the number of its steps or options, inside a narrower range, `within`.

        >>> space = ActionSpace({"price": (10, 50), "days": Stepped(1, 14, 1), "kind": Choice(["a", "b", "c"])})
        >>> space.sizes({"price": (10, 20), "days": (1, 3), "kind": ["b", "c"]})
        [10.0, 3.0, 2.0]
        """
        ranges: Iterable[KnobRange] = zip(*self.ranges(within), strict=True)
        return [float(knob.size(each)) for (_, knob), each in zip(self.knobs, ranges, strict=True)]

    def contains(self, within: Any, positions: Iterable[float]) -> list[bool]:
        """Whether the position of each knob, a row of `positions`, is in a narrower range, `within`."""
        ranges = zip(self.knobs, *self.ranges(within), positions, strict=True)
        return [bool(knob.contains(low, high, place)) for (_, knob), low, high, place in ranges]

    @cached_property
    def largest_units(self) -> Floats:
        """What the density of each knob's position is divided by, unless its scale is bent."""
        return np.array([knob.largest_unit for _, knob in self.knobs])

    @cached_property
    def _is_bent(self) -> bool:
        return any(knob.is_bent for _, knob in self.knobs)

    def units(self, table: Floats) -> Floats:
        """What the densities of positions are divided by, in the units of values: a row, or one for each row of positions in a `table`."""
        if not self._is_bent:
            return self.largest_units
        return np.column_stack(
            [knob.units(knob.column(column)) for (_, knob), column in zip(self.knobs, table.T, strict=True)]
        )

    @cached_property
    def _unbent_units(self) -> list[float]:
        units: list[float] = self.largest_units.tolist()
        return units

    def row_units(self, positions: Sequence[float]) -> list[float]:
        """The `units` of one row of `positions`."""
        return self.units(np.array([positions]))[0].tolist() if self._is_bent else self._unbent_units

    def relative(self, densities: Floats, table: Floats) -> Floats:
        """Joint `densities` of the positions in a `table`, divided by those of actions whose positions are uniform."""
        return densities * (self._volumes(table) if self._is_bent else self.volume)

    def row_volume(self, positions: Floats) -> float:
        """What `relative` multiplies the joint density of one row of `positions` by."""
        return float(self._volumes(positions[np.newaxis])[0]) if self._is_bent else self.volume

    def _volumes(self, table: Floats) -> Floats:
        counts = math.prod(knob.volume for _, knob in self.knobs if knob.is_discrete)
        volumes: Floats = np.prod(self.units(table), axis=1) * counts
        return volumes

    def describe(self) -> Any:
        """The space in JSON values: [low, high], a knob, or pairs of names and knobs; `from_description` is the inverse."""
        if not self.is_named:
            return self.knobs[0][1].describe()
        return [[name, knob.describe()] for name, knob in self.knobs]

    @classmethod
    def from_description(cls, description: Any) -> ActionSpace[Any]:
        """The space of a `description`, in which several knobs may also be a mapping.

        >>> ActionSpace.from_description(ActionSpace({"days": Stepped(1, 14, 1)}).describe()).names
        ['days']
        """
        if isinstance(description, Mapping) and not is_knob(description):
            return ActionSpace({name: knob_from_description(name, knob) for name, knob in description.items()})
        if isinstance(description, Mapping) or all(isinstance(end, int | float) for end in description):
            return ActionSpace(knob_from_description("actions", description))
        pairs = [(name, knob_from_description(name, knob)) for name, knob in description]
        if len({name for name, _ in pairs}) < len(pairs):
            raise ParameterError("actions must have one knob per name.", "actions")
        return ActionSpace(dict(pairs))

    def check_names(self, given: Mapping[str, Any], what: str) -> None:
        """Raise InputError for the first name in `given` that is not a knob; it says `what` has the name."""
        unknown = [name for name in given if name not in self.names]
        if unknown:
            advice = remedy(str(unknown[0]), self.names, f"The knobs are {', '.join(self.names)}.")
            raise InputError(f"{what} has an unknown knob {unknown[0]!r}. {advice}", what)


def several_knobs(policy: object) -> ActionSpace[Any] | None:
    """The space of a policy whose actions are other than numbers in a range; None for all others, such as functions."""
    space = getattr(policy, "space", None)
    return space if isinstance(space, ActionSpace) and not space.is_number else None


def numbers_only(space: ActionSpace[Any], purpose: str) -> ParameterError:
    """The error of what takes only numbers in a range."""
    given = f"the knobs {', '.join(space.names)}" if space.is_named else repr(space.actions)
    return ParameterError(
        f"{purpose} is for actions (low, high), not for {given}. Use best or distribution.", "actions"
    )


def _knobs(actions: Any) -> tuple[tuple[str, Knob[Any]], ...]:
    if isinstance(actions, ActionSpace):
        return actions.knobs
    if not isinstance(actions, Mapping):
        return ((UNNAMED, check_knob("actions", actions)),)
    if not 1 <= len(actions) <= MOST_KNOBS:
        raise ParameterError(f"actions must have 1 to {MOST_KNOBS} knobs, got {len(actions)}.", "actions")
    return tuple((_check_name(name), check_knob(name, knob)) for name, knob in actions.items())


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"names of knobs must be text and not empty, got {name!r}.", "actions")
    return name


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
