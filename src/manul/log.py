"""What was decided and what it led to, round by round."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from manul.errors import ParameterError
from manul.types import Floats


@dataclass(frozen=True, eq=False)
class Log:
    """Contexts, actions, densities and losses of the same rounds.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> train, held_out = log.split(0.75)
    >>> len(train), len(held_out)
    (3, 1)
    """

    contexts: npt.NDArray[np.float32]
    actions: Floats
    densities: Floats
    losses: Floats

    def __post_init__(self) -> None:
        counts = {len(self.contexts), len(self.actions), len(self.densities), len(self.losses)}
        if len(counts) != 1:
            raise ParameterError(
                f"log must have columns of one length; got lengths {sorted(counts)}. Cut them to the same rounds."
            )

    def __len__(self) -> int:
        return len(self.actions)

    def rows(self, chosen: slice) -> Log:
        """Some of the rounds.

        >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
        >>> len(log.rows(slice(1, 3)))
        2
        """
        return replace(
            self,
            contexts=self.contexts[chosen],
            actions=self.actions[chosen],
            densities=self.densities[chosen],
            losses=self.losses[chosen],
        )

    def split(self, share: float) -> tuple[Log, Log]:
        """The first share of the rounds, and the rest."""
        if not 0 < share < 1:
            raise ParameterError(f"share must be in (0, 1); got {share!r}. Try 0.8.")
        cut = round(len(self) * share)
        return self.rows(slice(cut)), self.rows(slice(cut, None))
