"""One pass over a log with several agents, which estimate the loss of each row before they learn from it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.smoothing import smooth
from manul.agents.base import check_ranges, fresh_copy
from manul.agents.player_host import host_of, seen_by
from manul.contexts import conversion
from manul.logs.log import Log
from manul.offpolicy.optimization.grid import AnyAgent, Candidate
from manul.utils.validation import Floats, check_seed, check_taken, check_workers

PIECE = 16_384  # rows
_NOTHING = np.empty(0)


def pieces(batches: Iterable[Log], size: int = PIECE) -> Iterator[Log]:
    """The batches of a log in pieces of at most `size` rows."""
    for batch in batches:
        for first in range(0, len(batch), size):
            yield batch.rows(slice(first, first + size))


class LogSummary:
    """A summary of the rows so far: their number, the lowest density, and checksums to recognise them."""

    def __init__(self) -> None:
        self.rows, self.lowest_density, self.checksums = 0, float("inf"), [0] * 4

    def add(self, piece: Log) -> None:
        self.rows += len(piece)
        self.lowest_density = min(self.lowest_density, float(piece.densities.min()))
        columns: Sequence[npt.NDArray[Any]] = _columns(piece)[:4]
        self.checksums = [zlib.crc32(column.data, crc) for column, crc in zip(columns, self.checksums, strict=True)]


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A summary of the log, the sums of the losses and clipped weights of each candidate, and the trained agents."""

    seen: LogSummary
    sums: Floats
    clipped: Floats
    agent: Callable[[int], AnyAgent]


class Replay:
    """Agents that learn from the same log, and the sum of the progressive losses of each.

    With `draw`, a seed, `snapshots` are the agents before a round that is drawn uniformly from all rounds by reservoir
    sampling, since their number is not known in advance. With `clip`, `clipped` has for each agent the sums of its
    importance weights, of the weighted losses, and of the squared weights, with weights clipped at this number.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        draw: int | None = None,
        threads: int | None = None,
        clip: float | None = None,
    ) -> None:
        self.agents = [fresh_copy(candidate.agent) for candidate in candidates]
        self.snapshots = self.agents if draw is None else [fresh_copy(candidate.agent) for candidate in candidates]
        self.sums: Floats = np.zeros(len(candidates))
        self.clipped: Floats = np.zeros((len(candidates), 3))
        self._clip = clip
        self.rows = 0
        self._threads = check_workers("threads", threads)
        self._draws: Iterator[int] = iter(()) if draw is None else draws(draw)
        self._next = next(self._draws, None)

    def learn(self, piece: Log) -> Floats:
        """Learn from rows, in order; if one is invalid, from none. Returns the weights of each agent if they are clipped."""
        check(piece, self.agents)
        weights = []
        while len(piece):
            if self._next == self.rows:
                self._snapshot()
                self._next = next(self._draws)
            ahead = len(piece) if self._next is None else min(len(piece), self._next - self.rows)
            weights.append(self._learn(piece.rows(slice(ahead))))
            piece = piece.rows(slice(ahead, None))
        return np.hstack(weights) if weights else np.empty((len(self.agents), 0))

    def resume_from(self, rows: int, sums: Sequence[float], clipped: Sequence[Sequence[float]]) -> None:
        """Set the counters to those of a checkpoint; the caller restores the agents."""
        self.rows, self.sums, self.clipped = rows, np.array(sums), np.array(clipped)
        while self._next is not None and self._next < rows:
            self._next = next(self._draws)

    def _learn(self, piece: Log) -> Floats:
        players = [host_of(agent).player_for(agent, piece.contexts) for agent in self.agents]
        columns = _columns(piece)
        native = [number for number, player in enumerate(players) if isinstance(player, _core.Player)]
        # The largest trees take longest; with them first, all threads finish at about the same time.
        native.sort(key=lambda number: -players[number].nbytes)
        weights = np.empty((len(players), 0 if self._clip is None else len(piece)))
        if native:
            sums, parts = self.sums[native], np.empty((len(native), weights.shape[1]))
            _core.replay([players[number] for number in native], *columns, sums, parts.reshape(-1), self._threads)
            self.sums[native], weights[native] = sums, parts
        for number in set(range(len(players))) - set(native):
            row = weights[number]
            self.sums[number] = _replay_in_python(self.agents[number], columns, float(self.sums[number]), row)
        self.rows += len(piece)
        if self._clip is not None:
            self._add(np.minimum(weights, self._clip), columns[3])
        return weights

    def _add(self, weights: Floats, losses: Floats) -> None:
        least, worst = self.agents[0].outcome.known_losses("optimize")
        terms = weights, weights * ((losses - least) / (worst - least)), weights * weights
        for column, values in enumerate(terms):
            # One addition after the other, so that the result does not depend on the sizes of batches.
            sums = np.cumsum(np.column_stack([self.clipped[:, column], values]), axis=1)
            self.clipped[:, column] = sums[:, -1]

    def _snapshot(self) -> None:
        for snapshot, agent in zip(self.snapshots, self.agents, strict=True):
            resume(snapshot, seen_by(agent).width, host_of(agent).state())


def resume(agent: AnyAgent, width: int | None, state: Any) -> None:
    """Bring an agent to the state of another one that takes rows of a `width`, None if it has seen none."""
    if width is not None:
        host_of(agent).restore(host_of(agent).start(agent, width), state)


def draws(seed: int) -> Iterator[int]:
    """The rounds, counted from 0, that replace the sample in a reservoir of size one."""
    sample, number = 1, 0
    while True:
        yield sample - 1
        # The first replacement after round t is later than round m with probability t / m.
        sample, number = int(sample / (1.0 - _core.draw(check_seed(seed), number)[0])) + 1, number + 1


def check(piece: Log, agents: Sequence[AnyAgent]) -> None:
    """Check that the agents, which all have the same ranges, can learn from the rows."""
    conversion.matrix(piece.contexts)
    whole_range = np.array(agents[0].actions)[:, np.newaxis]
    narrowed = piece.lows is not None and piece.highs is not None
    lows, highs = (piece.lows, piece.highs) if narrowed else whole_range
    check_taken(piece.actions, piece.densities, cast(Floats, lows), cast(Floats, highs), logged=True)
    piece.outcome.with_losses(agents[0].losses).check(piece.losses)
    if piece.lows is not None and piece.highs is not None:
        check_ranges(agents, piece.lows, piece.highs, logged=True)


def _columns(piece: Log) -> tuple[conversion.Row, Floats, Floats, Floats, Floats, Floats]:
    lows = _NOTHING if piece.lows is None else piece.lows
    highs = _NOTHING if piece.highs is None else piece.highs
    return (
        np.ascontiguousarray(piece.contexts, dtype=np.float32),
        _numbers(piece.actions),
        _numbers(piece.densities),
        _numbers(piece.losses),
        _numbers(lows),
        _numbers(highs),
    )


def _numbers(column: Floats) -> Floats:
    return np.ascontiguousarray(column, dtype=np.float64)


def _replay_in_python(agent: AnyAgent, columns: tuple[Any, ...], total: float, weights: Floats) -> float:
    contexts, actions, densities, losses, lows, highs = columns
    player, (least, worst) = host_of(agent).player, agent.outcome.known_losses("optimize")
    for row, (action, density, loss) in enumerate(
        zip(*(c.tolist() for c in (actions, densities, losses)), strict=True)
    ):
        within = (float(lows[row]), float(highs[row])) if len(lows) else agent.actions
        centre, bandwidth = player.window(contexts[row], *within)
        weight = smooth(centre, bandwidth, within).density(action) / density
        total += weight * ((loss - least) / (worst - least))
        if len(weights):
            weights[row] = weight
        player.learn(contexts[row], action, density, loss, *within)
    return total
