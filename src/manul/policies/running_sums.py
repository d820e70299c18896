"""Exact minimisation of the IPS estimate over finitely many policies, with a running sum for each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manul.actions.decision import Decision, Within
from manul.actions.smoothing import densities_of_many
from manul.contexts.conversion import Row
from manul.utils import model_files as files
from manul.utils.model_files import Arrays
from manul.utils.validation import Floats


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
        action, density, within, *_ = decision
        assert within is not None
        centres = np.clip(self._centres(context), *within)
        self._sums += densities_of_many(centres, self._bandwidth, within, action) / density * loss
        self._rounds += 1

    def estimate(self) -> float:
        """The IPS estimate of the best policy."""
        return float(np.min(self._sums)) / max(self._rounds, 1)

    def state(self) -> Arrays:
        """The sums and the number of examples."""
        return {"sums": self._sums.copy(), "rounds": np.array([self._rounds], dtype=np.uint64)}

    def restore(self, arrays: Arrays) -> None:
        """Restore a state."""
        sums, rounds = files.vectors(arrays, sums=("f8", len(self._sums)), rounds=("u8", 1))
        if rounds[0] > files.MOST_ROUNDS:
            raise files.mismatch_error()
        self._sums, self._rounds = sums.copy(), int(rounds[0])
