"""Cross-fitting: the rows of a log are predicted by critics that were trained on the other rows.

The log is cut into 50 blocks of consecutive rows, which are dealt to three folds in turn, so that neighbouring rows, which
are often alike, are mostly in one fold. A critic is an `Auto` that only predicts; it learns from the whole log, in memory
that does not depend on its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Decisions, Within
from manul.actions.schedules import Epsilon
from manul.actions.space import ActionSpace
from manul.agents.auto import Auto, as_critic
from manul.agents.auto_knobs import AutoKnobs
from manul.logs.rows import Rows
from manul.logs.sample import Sample
from manul.utils.validation import Floats

FOLDS, BLOCKS = 3, 50
WINDOW = 65_536  # rows that are shuffled at once
CHUNK = 8192  # rows that a critic learns at once; between them, progress is shown and saved
MANY = 20_000  # rows from which a second pass may help; on fewer, it overfits
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Schedule:
    """How often a critic learns from every row, and whether in shuffled order."""

    name: str
    passes: int
    shuffled: bool

    def order(self, rows: Rows, number: int, seed: int) -> Numbers:
        """The order in which the rows of a window are learned in a pass."""
        if not self.shuffled:
            return np.arange(len(rows))
        return np.random.default_rng([seed, number, rows.first]).permutation(len(rows))


IN_ORDER = Schedule("in-order", passes=1, shuffled=False)
SHUFFLED = Schedule("shuffled", passes=2, shuffled=True)


def schedules(total: int) -> tuple[Schedule, ...]:
    """The schedules to try for a log of this length."""
    return (IN_ORDER,) if total < MANY else (IN_ORDER, SHUFFLED)


@dataclass(frozen=True)
class CriticSettings:
    """The number of rows of the log, and the space, the range of losses and the seed of the critics."""

    total: int
    space: ActionSpace
    losses: Within
    seed: int

    def critic(self, bandwidth: float | None = None, epsilon: Epsilon = 0.0) -> Auto:
        """An untrained critic; `bandwidth` and `epsilon` matter only when it decides."""
        common: dict[str, Any] = {"losses": self.losses, "epsilon": epsilon, "seed": self.seed}
        if not self.space.is_number:
            return as_critic(cast(Auto, AutoKnobs(actions=self.space, nearby=0.0, **common)))
        return as_critic(Auto(actions=self.space.ends, bandwidth=bandwidth, **common))


def fold_numbers(rows: Rows, total: int) -> Numbers:
    """The fold of each row of a log with `total` rows."""
    return (rows.first + np.arange(len(rows))) * BLOCKS // total % FOLDS


def critic_contexts(rows: Rows) -> Any:
    """The contexts of rows as critics take them: rows of numbers, dicts of features, or columns by name."""
    return rows.named_contexts() if rows.numbers is None else rows.numbers


def learn(critic: Auto, rows: Rows) -> None:
    """Train a critic on rows, in their order."""
    if len(rows):
        decisions = Decisions(rows.positions, rows.densities, rows.lows, rows.highs)
        critic.learn_many(critic_contexts(rows), decisions, rows.losses)


@dataclass(frozen=True)
class Position:
    """A place in a training: the pass, the first row of a window, and the number of rows of it that were learned."""

    number: int = 0
    window: int = 0
    learned: int = 0


def train(
    sample: Sample,
    critics: Sequence[Auto],
    held_out: Sequence[int | None],
    schedule: Schedule,
    settings: CriticSettings,
    *,
    only: bool = False,
    executor: Executor | None = None,
    start: Position | None = None,
    learned: Callable[[Position, int], None] = lambda _position, _rows: None,
) -> None:
    """Train each critic on all rows outside of the fold that it holds out, or `only` on that fold; None holds out nothing.

    `learned` is called after every chunk with the next position and the number of rows; training can `start` there.
    """
    start = start or Position()
    for number in range(start.number, schedule.passes):
        for window in sample.pieces(WINDOW):
            if number == start.number and window.first < start.window:
                continue
            done = start.learned if (number, window.first) == (start.number, start.window) else 0
            order = schedule.order(window, number, settings.seed)
            folds = fold_numbers(window, settings.total)
            for first in range(done, len(order), CHUNK):
                chunk = order[first : first + CHUNK]
                parts = [chunk if fold is None else chunk[(folds[chunk] == fold) == only] for fold in held_out]
                _learn_all(critics, [window.select(part) for part in parts], executor)
                learned(Position(number, window.first, first + len(chunk)), len(chunk))


def _learn_all(critics: Sequence[Auto], parts: Sequence[Rows], executor: Executor | None) -> None:
    for _ in (map if executor is None else executor.map)(learn, critics, parts):
        pass


def fold_rows(rows: Rows, total: int) -> Iterator[tuple[int, Numbers, Rows]]:
    """The rows of each fold, with their places among the given rows."""
    folds = fold_numbers(rows, total)
    for fold in range(FOLDS):
        places = np.flatnonzero(folds == fold)
        if len(places):
            yield fold, places, rows.select(places)


def predict(critic: Auto, rows: Rows, actions: Floats) -> Floats:
    """The losses that a critic predicts for one action or several per row, scaled to [0, 1] and clipped."""
    low, high = critic.outcome.known_losses("the critic")
    predicted = critic.predict_losses(critic_contexts(rows), actions)
    return np.clip((predicted - low) / (high - low), 0.0, 1.0)
