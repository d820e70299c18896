"""Schedules of epsilon, the share of uniform exploration: it may fade as an agent learns."""

from __future__ import annotations

import dataclasses
import math
from numbers import Real
from typing import Any

from manul.errors import ParameterError
from manul.utils import validation


@dataclasses.dataclass(frozen=True)
class Fading:
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


Epsilon = float | Fading


def check_epsilon(epsilon: Epsilon) -> Epsilon:
    """Check the share of uniform exploration, a number or a schedule.

    >>> check_epsilon(1)
    1.0
    """
    if isinstance(epsilon, Fading):
        return epsilon
    if not isinstance(epsilon, Real):
        rule = "a number in [0, 1] or a schedule such as manul.schedules.Fading()"
        raise ParameterError(f"epsilon must be {rule}, got {epsilon!r}. Try 0.05.", "epsilon")
    return validation.check_epsilon(epsilon)


def epsilon_at(epsilon: Epsilon, age: float) -> float:
    """Epsilon after this many rounds of learning.

    >>> epsilon_at(0.1, 1000), epsilon_at(Fading(), 1000)
    (0.1, 0.025)
    """
    return epsilon.at(age) if isinstance(epsilon, Fading) else epsilon


def least_epsilon(epsilon: Epsilon) -> float:
    """The smallest value that epsilon can have.

    >>> least_epsilon(0.1), least_epsilon(Fading())
    (0.1, 0.002)
    """
    return epsilon.last if isinstance(epsilon, Fading) else epsilon


def describe(epsilon: Any) -> Any:
    """The epsilon of an agent for a file or JSON; `from_description` is the inverse.

    >>> describe(0.1), describe(Fading())
    (0.1, {'first': 0.05, 'last': 0.002, 'rounds': 1000.0})
    """
    return dataclasses.asdict(epsilon) if isinstance(epsilon, Fading) else epsilon


def from_description(described: Any) -> Any:
    """The epsilon that was described.

    >>> from_description({"first": 0.1, "last": 0.01, "rounds": 500})
    Fading(first=0.1, last=0.01, rounds=500.0)
    """
    return Fading(**described) if isinstance(described, dict) else described
