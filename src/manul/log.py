"""What was decided and what it led to, round by round."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.errors import ParameterError
from manul.types import Floats


@dataclass(frozen=True, eq=False)
class Log:
    """Contexts, actions, densities and losses of the same rounds; lows and highs where each round had its own range.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> train, held_out = log.split(0.75)
    >>> len(train), len(held_out)
    (3, 1)
    """

    contexts: npt.NDArray[np.float32]
    actions: Floats
    densities: Floats
    losses: Floats
    lows: Floats | None = None
    highs: Floats | None = None

    def __post_init__(self) -> None:
        counts = {len(column) for column in self._columns.values() if column is not None}
        if len(counts) != 1:
            raise ParameterError(
                f"log must have columns of one length; got lengths {sorted(counts)}. Cut them to the same rounds."
            )
        if (self.lows is None) != (self.highs is None):
            raise ParameterError("log must have lows and highs or neither; got one of them. Add the other.")

    def __len__(self) -> int:
        return len(self.actions)

    def rows(self, chosen: slice) -> Log:
        """Some of the rounds.

        >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
        >>> len(log.rows(slice(1, 3)))
        2
        """
        return replace(self, **{name: column[chosen] for name, column in self._columns.items() if column is not None})

    def split(self, share: float) -> tuple[Log, Log]:
        """The first share of the rounds, and the rest."""
        if not 0 < share < 1:
            raise ParameterError(f"share must be in (0, 1); got {share!r}. Try 0.8.")
        cut = round(len(self) * share)
        return self.rows(slice(cut)), self.rows(slice(cut, None))

    @property
    def _columns(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
