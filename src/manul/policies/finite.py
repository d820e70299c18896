"""A finite class, several functions from contexts to actions, and how the best of finitely many policies is found.

The IPS estimate is minimised exactly, with a running sum for each policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import numpy as np

from manul.actions.decision import Decision, Within
from manul.actions.smoothing import densities_of_many
from manul.contexts.conversion import Row
from manul.errors import InputError, ParameterError
from manul.utils import model_files as files
from manul.utils.model_files import Arrays
from manul.utils.validation import Floats

Function = Callable[[Row], float]


class Sums:
    """Learns which policy is best; `centres` returns the actions of all policies, `centre` that of one."""

    def __init__(
        self, count: int, bandwidth: float, centres: Callable[[Row], Floats], centre: Callable[[Row, int], float]
    ) -> None:
        self._bandwidth, self._centres, self._centre = bandwidth, centres, centre
        self._sums, self._rounds = np.zeros(count), 0

    def action(self, context: Row, within: Within) -> float:  # noqa: ARG002 - all windows are truncated
        """The action of the policy with the lowest sum, the first one if there are ties."""
        return self._centre(context, int(np.argmin(self._sums)))

    def learn(self, context: Row, decision: Decision, loss: float) -> None:
        """Add the example to the sum of each policy."""
        action, density, ends, *_ = decision
        within = cast(Within, ends)
        centres = np.clip(self._centres(context), *within)
        self._sums += densities_of_many(centres, self._bandwidth, within, action) / density * loss
        self._rounds += 1

    def estimate(self) -> float:
        """The IPS estimate of the best policy."""
        return float(np.min(self._sums)) / max(self._rounds, 1)

    def state(self) -> Arrays:
        return {"sums": self._sums.copy(), "rounds": np.array([self._rounds], dtype=np.uint64)}

    def restore(self, arrays: Arrays) -> None:
        sums, rounds = files.vectors(arrays, sums=("f8", len(self._sums)), rounds=("u8", 1))
        if rounds[0] > files.MOST_ROUNDS:
            raise files.mismatch_error()
        self._sums, self._rounds = sums.copy(), int(rounds[0])


class Finite:
    """The best of several functions, by exact minimisation; agents with this class cannot be saved.

    >>> import manul
    >>> rules = Finite([lambda context: 0.2, lambda context: context[0] / 2])
    >>> manul.agents.SmoothedGreedy(policies=rules, bandwidth=1/8).distribution([0.6]).edges
    array([0.   , 0.075, 0.325, 1.   ])
    """

    def __init__(self, functions: Sequence[Function]) -> None:
        self.functions = tuple(functions)
        if not self.functions:
            raise ParameterError("policies must have at least one function, got none.", "policies")
        for function in self.functions:
            if not callable(function):
                raise ParameterError(f"policies must be functions of a context, got {function!r}.", "policies")
        self._last: tuple[tuple[bytes, Within], Floats] | None = None

    def __len__(self) -> int:
        return len(self.functions)

    def __repr__(self) -> str:
        names = ", ".join(getattr(each, "__name__", repr(each)) for each in self.functions[:5])
        return f"Finite([{names}{', ...' if len(self) > 5 else ''}])"

    def start(self, width: int, actions: Within, bandwidth: float) -> Sums:  # noqa: ARG002 - functions know their width
        """Start a learner with a running sum for each function."""
        return Sums(len(self), bandwidth, partial(self._all, actions=actions), partial(self._action, actions=actions))

    # The learners of several bandwidths evaluate the same context one after the other, so the last result is cached.
    def _all(self, context: Row, actions: Within) -> Floats:
        key = context.tobytes(), actions
        if self._last is None or self._last[0] != key:
            self._last = key, np.array([self._action(context, index, actions) for index in range(len(self))])
        return self._last[1]

    def _action(self, context: Row, index: int, actions: Within) -> float:
        return check_action(self.functions[index](context), actions, f"policy {index}")


def check_action(action: float, actions: Within, name: str = "policy") -> float:
    """Check that a policy returned an action in the range."""
    low, high = actions
    try:
        value = float(action)
    except (TypeError, ValueError):
        value = float("nan")
    if not low <= value <= high:
        raise InputError(f"{name} must return an action in [{low:g}, {high:g}], got {action!r}.", "policies")
    return value
