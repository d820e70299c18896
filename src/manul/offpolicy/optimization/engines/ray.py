"""Training on a Ray cluster, one task per tree and per fold of a critic.

A log in files, given as `Log.batches(path)`, is read by every task, so the nodes must share the path. A log in memory is
put into the object store once, piece by piece. A task that is lost with its node runs again on another one. Only sums,
critics and the chosen agent are transferred back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from manul.actions.schedules import Epsilon
from manul.agents.auto import Auto
from manul.agents.base import fresh_copy
from manul.agents.player_host import host_of, seen_by
from manul.errors import MissingDependency
from manul.logs.log import Batches, Log
from manul.logs.sample import Encoded, Sample
from manul.offpolicy import cross_fitting
from manul.offpolicy.cross_fitting import FOLDS, CriticSettings, Schedule
from manul.offpolicy.evaluation.paired_values import PairedValue
from manul.offpolicy.optimization import critic_candidates
from manul.offpolicy.optimization.critic_search import Advance, empty_stack, stack, unstack
from manul.offpolicy.optimization.grid import AnyAgent, Candidate
from manul.offpolicy.optimization.replay import LogSummary, Replay, TrainingResult, check, pieces, resume
from manul.utils import model_files
from manul.utils.validation import check_has_rows

try:
    import ray
except ImportError:
    raise MissingDependency("engine='ray' needs Ray. Install it: pip install 'manul[ray]'.") from None

PIECE = 131_072  # rows per object: few large objects are faster than many small ones
RETRIES = 20  # nodes may fail this often during a task


def train(
    candidates: Sequence[Candidate], sample: Sample, *, draw: int | None, clip: float | None, advance: Advance
) -> TrainingResult:
    """Train every candidate on the connected cluster, or on a new local one."""
    seen, agents = LogSummary(), [candidate.agent for candidate in candidates]

    def check_piece(piece: Log) -> None:
        check(piece, agents)
        seen.add(piece)

    stored = shared(sample, check_piece)
    check_has_rows(seen.rows)
    # With two return objects, the arrays stay on their node until they are requested.
    task: Any = ray.remote(num_cpus=1, num_returns=2, max_retries=RETRIES)(_train_one)
    results = [task.remote(candidate, stored, draw, clip) for candidate in candidates]
    _wait([total for total, _ in results])
    advance(seen.rows)
    totals = np.array(ray.get([total for total, _ in results]))

    def agent(number: int) -> AnyAgent:
        trained = fresh_copy(candidates[number].agent)
        resume(trained, *ray.get(results[number][1]))
        return trained

    return TrainingResult(seen, totals[:, 0], totals[:, 1:], agent)


class StoredLog:
    def __init__(self, pieces: list[Any]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[Log]:
        for piece in self._pieces:
            yield ray.get(piece)


def shared(sample: Sample, check_piece: Callable[[Log], None] = lambda _: None) -> Sample:
    """The log as tasks read it: from its files, or from the object store of the connected or a new cluster."""
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    log = sample.batches
    in_files = isinstance(log.log if isinstance(log, Encoded) else log, Batches)
    stored = []
    for piece in pieces(log, PIECE):
        check_piece(piece)
        if not in_files:
            stored.append(ray.put(piece))
    return sample if in_files else sample.over(StoredLog(stored))


class RayPhases:
    """The phases of the search for the best critic, one task per fold."""

    def __init__(self, sample: Sample, settings: CriticSettings, epsilon: Epsilon, advance: Advance) -> None:
        self._sample, self._settings, self._epsilon, self._advance = shared(sample), settings, epsilon, advance

    def train(self, schedule: Schedule, *, only: bool = False) -> list[Auto]:
        """One critic per fold, trained on the other folds, or `only` on this one."""
        critic = model_files.dumps(self._settings.critic())
        trained = self._run(_train_critic, [(critic, fold, schedule, only) for fold in range(FOLDS)])
        self._advance(schedule.passes * self._settings.total)
        return [model_files.loads(critic) for critic in trained]

    def errors(self, critics: Sequence[Sequence[Auto]]) -> list[float]:
        """The squared error on held-out rows of each group of critics."""
        groups = [[model_files.dumps(group[fold]) for group in critics] for fold in range(FOLDS)]
        sums = self._run(_errors, list(enumerate(groups)))
        self._advance(self._settings.total)
        errors: list[float] = np.sum(sums, axis=0).tolist()
        return errors

    def values(self, critics: Sequence[Auto]) -> list[PairedValue]:
        """The value of each bandwidth on held-out rows."""
        sums = self._run(_values, [(fold, model_files.dumps(critic)) for fold, critic in enumerate(critics)])
        self._advance(self._settings.total)
        return unstack(np.sum(sums, axis=0))

    def fit(self, schedule: Schedule, bandwidth: float | None) -> Auto:
        """The policy, an agent that is trained on all rows."""
        fresh = model_files.dumps(self._settings.critic(bandwidth, self._epsilon))
        (trained,) = self._run(_train_critic, [(fresh, None, schedule, False)])
        self._advance(schedule.passes * self._settings.total)
        agent: Auto = model_files.loads(trained)
        return agent

    def _run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        task: Any = ray.remote(num_cpus=1, max_retries=RETRIES)(function)
        results: list[Any] = ray.get([task.remote(self._sample, self._settings, *given) for given in arguments])
        return results


def _train_critic(
    sample: Sample,
    settings: CriticSettings,
    fresh: bytes,
    fold: int | None,
    schedule: Schedule,
    only: bool,  # noqa: FBT001 - tasks take positions
) -> bytes:
    critic = model_files.loads(fresh)
    cross_fitting.train(sample, [critic], [fold], schedule, settings, only=only)
    return model_files.dumps(critic)


def _errors(sample: Sample, settings: CriticSettings, fold: int, critics: Sequence[bytes]) -> Any:
    agents = [model_files.loads(critic) for critic in critics]
    total = np.zeros(len(agents))
    for rows in _fold(sample, settings, fold):
        total = total + critic_candidates.squared_errors(agents, rows)
    return total


def _values(sample: Sample, settings: CriticSettings, fold: int, critic: bytes) -> Any:
    agent, total = model_files.loads(critic), empty_stack()
    for rows in _fold(sample, settings, fold):
        total = total + stack(critic_candidates.bandwidth_values(agent, rows, settings))
    return total


def _fold(sample: Sample, settings: CriticSettings, fold: int) -> Iterator[Any]:
    for parts in critic_candidates.held_out_windows(sample, settings.total):
        yield from (rows for number, rows in parts if number == fold)


def _train_one(
    candidate: Candidate, sample: Sample, draw: int | None, clip: float | None
) -> tuple[list[float], tuple[int | None, Any]]:
    replay = Replay([candidate], draw=draw, threads=1, clip=clip)
    for piece in pieces(sample.batches, PIECE):
        replay.learn(piece)
    snapshot = replay.snapshots[0]
    return [float(replay.sums[0]), *replay.clipped[0].tolist()], (seen_by(snapshot).width, host_of(snapshot).state())


def _wait(totals: list[Any]) -> None:
    while totals:
        _, totals = ray.wait(totals)
