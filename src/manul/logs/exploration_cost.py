"""What exploration cost: how much higher the losses were when the action was drawn outside the greedy window.

Inside its greedy window, an epsilon-greedy policy has a density above that of the uniform distribution, outside it one
below, so a log shows which rows were explored; of several knobs, one outside its window is enough. Each is compared with the
mean loss of the greedy rows in the same block of the log, because losses change as the agent learns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.logs.log import Log
from manul.logs.rows import Rows
from manul.utils.validation import Floats

BLOCKS, LEAST_ROWS = 32, 50  # the most blocks of a log, and the fewest rows of a block
ROUNDING = 1e-9  # densities within this share of the uniform one belong to neither side


@dataclass(frozen=True)
class ExplorationCost:
    """What `explored` of the `rows` of a log cost, as loss per row; by chance, `cost` can be slightly negative.

    `error` is its standard error: the losses of the greedy actions in the explored rows are not known, only the mean loss of
    other rows. `mean_loss` is that of all rows; it is None if a loss is negative, because the cost then is no share of it.
    """

    rows: int
    explored: int
    cost: float
    error: float
    mean_loss: float | None

    @property
    def share(self) -> float | None:
        """The share of the loss that exploration cost."""
        return None if self.mean_loss is None else self.cost / self.mean_loss

    def as_dict(self) -> dict[str, float | None]:
        """The counts, the cost and the share, for JSON."""
        return {"explored": self.explored, "cost": self.cost, "error": self.error, "share": self.share}

    def __str__(self) -> str:
        if self.mean_loss is None:
            return f"{self.cost:.2g} ± {self.error:.1g} per round"
        return f"{100 * self.cost / self.mean_loss:.2g} ± {100 * self.error / self.mean_loss:.1g} % of the loss"


def exploration_cost(log: Log) -> ExplorationCost | None:
    """The cost of the explored rows of a log; None if the range of actions is not known or no row was greedy.

    Rows whose density is uniform, such as the first one of Auto, count neither as explored nor as greedy.
    """
    relative = _relative_densities(log)
    if relative is None or not len(log):
        return None
    explored, greedy = _flags((relative < 1 - ROUNDING).any(axis=0)), greedy_rows(log)
    if not greedy.any():
        return None
    count = max(1, min(BLOCKS, len(log) // LEAST_ROWS))
    blocks = np.arange(len(log)) * count // len(log)
    cost, error = _compare(log.losses, blocks, explored, greedy, count)
    positive = log.rewards is None and log.losses.min() >= 0 and bool(log.losses.any())
    mean_loss = float(log.losses.mean()) if positive else None
    return ExplorationCost(len(log), int(explored.sum()), cost / len(log), error / len(log), mean_loss)


def greedy_rows(log: Log) -> npt.NDArray[np.bool_]:
    """Flag the rows whose action was drawn from the greedy window; none if the range of actions is not known."""
    relative = _relative_densities(log)
    return np.zeros(len(log), bool) if relative is None else _flags((relative > 1 + ROUNDING).all(axis=0))


def _flags(flags: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(flags, dtype=np.bool_)


def _relative_densities(log: Log) -> Floats | None:
    """The densities in units of the uniform ones, one row per knob; None if those are not known."""
    if log.knobs is None and log.lows is None and log.action_range is None:
        return None
    rows = Rows.of(log)
    by_knob = rows.by_knob
    return None if by_knob is None else np.array([by_knob[name] * rows.volumes[name] for name in by_knob])


def _compare(
    losses: Floats,
    blocks: npt.NDArray[np.int64],
    explored: npt.NDArray[np.bool_],
    greedy: npt.NDArray[np.bool_],
    count: int,
) -> tuple[float, float]:
    """The cost of the explored rows, and its standard error."""
    sizes = np.bincount(blocks[greedy], minlength=count)
    sums = np.bincount(blocks[greedy], losses[greedy], count)
    means = np.where(sizes > 0, sums / np.maximum(sizes, 1), losses[greedy].mean())  # a block may have no greedy row
    variances = np.bincount(blocks[greedy], (losses - means[blocks])[greedy] ** 2, count) / np.maximum(sizes - 1, 1)
    variances = np.where(sizes > 1, variances, losses[greedy].var())
    tries = np.bincount(blocks[explored], minlength=count)
    cost = float((losses - means[blocks])[explored].sum())
    return cost, float(np.sqrt((tries * variances * (1 + tries / np.maximum(sizes, 1))).sum()))
