"""Schedules of epsilon, the share of uniform exploration: it may change as an agent learns.

A kind of schedule is one frozen dataclass that registers itself. Agents, files, the service and the command line only ask it.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar, TypeVar

from manul.errors import ParameterError
from manul.utils import validation
from manul.utils.registry import Registry

__all__ = ["Fading", "Schedule"]

MOST_POINTS = 64  # enough for the bends of any curve, and each decision of the core searches them


class Schedule:
    """Epsilon by the rounds of learning: a frozen dataclass of JSON values that defines `points`.

    Auto restarts its schedule when it detects a change of the world.

    >>> import dataclasses, manul
    >>> @dataclasses.dataclass(frozen=True)
    ... class Ramp(manul.schedules.Schedule):
    ...     rounds: float = 100.0
    ...
    ...     def points(self):
    ...         return [(0, 0.2), (self.rounds, 0.02)]
    >>> [round(Ramp().at(age), 3) for age in (0, 50, 1000)]
    [0.2, 0.11, 0.02]
    """

    kind: ClassVar[str] = ""
    changes: ClassVar[bool] = True  # whether an agent's file needs the rounds that it has learned

    def points(self) -> Sequence[tuple[float, float]]:
        """At most 64 pairs (rounds, epsilon) in order: epsilon is linear between them, and constant before and after.

        Two pairs with the same rounds are a step, after which the second one holds.
        """
        raise NotImplementedError

    def at(self, age: float) -> float:
        """Epsilon after this many rounds of learning."""
        points = self.points()
        place = bisect.bisect_right([rounds for rounds, _ in points], age)
        if place in (0, len(points)):
            return float(points[min(place, len(points) - 1)][1])
        (since, before), (until, after) = points[place - 1 : place + 1]
        return before + (after - before) * ((age - since) / (until - since))

    @property
    def least(self) -> float:
        """The smallest value that epsilon can have."""
        return float(min(epsilon for _, epsilon in self.points()))

    @property
    def core(self) -> Any:
        """What the core computes epsilon from."""
        return [(float(rounds), float(epsilon)) for rounds, epsilon in self.points()]

    def describe(self) -> Any:
        """For a file or JSON; `from_description` is the inverse."""
        return {"kind": self.kind, **dataclasses.asdict(self)}  # type: ignore[call-overload]


SCHEDULES = Registry[type[Schedule]]("schedule", suggestion="fading")
_Kind = TypeVar("_Kind", bound=type[Schedule])


def register_schedule(name: str) -> Callable[[_Kind], _Kind]:
    """Register a kind of schedule under a `name`: a frozen dataclass and subclass of `manul.schedules.Schedule`.

    In files and requests it is a JSON object of its fields and of `kind`, this name.
    """

    def register(kind: _Kind) -> _Kind:
        SCHEDULES.add(name, kind, module=kind.__module__)
        kind.kind = name
        return kind

    return register


@register_schedule("fading")
@dataclasses.dataclass(frozen=True)
class Fading(Schedule):
    """Epsilon fades from `first` to `last`: after `age` rounds of learning it is first / (1 + age / rounds), at least `last`.

    Auto restarts the schedule when it detects a change of the world.

    >>> import manul
    >>> agent = manul.Cats(leaves=16, bandwidth=1/8, epsilon=manul.schedules.Fading(first=0.1, last=0.01, rounds=500))
    >>> agent.current_epsilon
    0.1
    """

    first: float = 0.05
    last: float = 0.002
    rounds: float = 1000.0

    def __post_init__(self) -> None:
        first = validation.check_number("first", self.first, 0, 1, "Try 0.05.", ends="(]")
        last = validation.check_number("last", self.last, 0, 1, "Try 0.002.", ends="(]")
        rounds = validation.check_number("rounds", self.rounds, 0, math.inf, "Try 1000.", ends="()")
        if last > first:
            raise ParameterError(f"last must be at most first, {first:g}, got {last:g}.", "last")
        for name, value in (("first", first), ("last", last), ("rounds", rounds)):
            object.__setattr__(self, name, value)

    def at(self, age: float) -> float:
        """Epsilon after this many rounds of learning.

        >>> Fading().at(0), Fading().at(1000), Fading().at(1e6)
        (0.05, 0.025, 0.002)
        """
        return max(self.last, self.first / (1.0 + age / self.rounds))

    @property
    def least(self) -> float:
        return self.last

    @property
    def core(self) -> Any:
        return dataclasses.astuple(self)

    def describe(self) -> Any:
        return dataclasses.asdict(self)  # without its kind, as in files from before there were others


@dataclasses.dataclass(frozen=True)
class Constant(Schedule):
    """An epsilon that is a number."""

    epsilon: float
    changes = False

    def at(self, _age: float) -> float:
        return self.epsilon

    @property
    def least(self) -> float:
        return self.epsilon

    @property
    def core(self) -> Any:
        return self.epsilon


Epsilon = float | Schedule


def check_epsilon(epsilon: Epsilon) -> Epsilon:
    """Check the share of uniform exploration, a number or a schedule.

    >>> check_epsilon(1)
    1.0
    """
    if isinstance(epsilon, Fading):
        return epsilon
    if isinstance(epsilon, Schedule):
        return _check_points(epsilon)
    if not isinstance(epsilon, Real):
        rule = "a number in [0, 1] or a schedule such as manul.schedules.Fading()"
        raise ParameterError(f"epsilon must be {rule}, got {epsilon!r}. Try 0.05.", "epsilon")
    return validation.check_epsilon(epsilon)


def _check_points(schedule: Schedule) -> Schedule:
    if not schedule.kind:
        raise ParameterError(
            f"epsilon must be a schedule of a registered kind, got {schedule!r}. Use manul.register.schedule.",
            "epsilon",
        )
    try:
        points = schedule.core
    except Exception as error:  # a plugin may raise anything
        raise ParameterError(f"epsilon cannot be {schedule!r}: {error}.", "epsilon") from error
    if not 1 <= len(points) <= MOST_POINTS:
        raise ParameterError(
            f"epsilon must have 1 to {MOST_POINTS} points, got {len(points)} of {schedule!r}.", "epsilon"
        )
    before = 0.0
    for rounds, epsilon in points:
        if not (before <= rounds < math.inf and 0 <= epsilon <= 1):
            rule = "points (rounds, epsilon) with rounds of at least 0 in order and epsilon in [0, 1]"
            raise ParameterError(f"epsilon must have {rule}, got ({rounds:g}, {epsilon:g}) of {schedule!r}.", "epsilon")
        before = rounds
    return schedule


def as_schedule(epsilon: Epsilon) -> Schedule:
    """The schedule of a checked epsilon, which may be a number."""
    return epsilon if isinstance(epsilon, Schedule) else Constant(epsilon)


def describe(epsilon: Any) -> Any:
    """The epsilon of an agent for a file or JSON; `from_description` is the inverse.

    >>> describe(0.1), describe(Fading())
    (0.1, {'first': 0.05, 'last': 0.002, 'rounds': 1000.0})
    """
    return epsilon.describe() if isinstance(epsilon, Schedule) else epsilon


def from_description(described: Any) -> Any:
    """The epsilon that was described; a schedule without a kind is a `Fading`.

    >>> from_description({"first": 0.1, "last": 0.01, "rounds": 500})
    Fading(first=0.1, last=0.01, rounds=500.0)
    """
    if not isinstance(described, dict):
        return described
    given = {name: _frozen(value) for name, value in described.items()}
    name = str(given.pop("kind", Fading.kind))
    kind = SCHEDULES[name]
    try:
        return kind(**given)
    except TypeError:
        fields = ", ".join(each.name for each in dataclasses.fields(kind))  # type: ignore[arg-type]
        raise ParameterError(
            f"epsilon must have the fields of {name}, {fields}, got {described!r}.", "epsilon"
        ) from None


def _frozen(value: Any) -> Any:
    """A list of JSON as a tuple, because a schedule is frozen and compared."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
