"""Training on a Ray cluster, one task per candidate. The log is put into the object store once, piece by piece.

A task that is lost with its node runs again on another one. Only the sums and the chosen agent are transferred back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from manul.errors import MissingDependency, ParameterError
from manul.offpolicy.optimization.engines import TrainingResult
from manul.offpolicy.optimization.grid import AnyAgent, Candidate
from manul.offpolicy.optimization.replay import Logs, LogSummary, Replay, check, pieces
from manul.utils.validation import check_has_rows

try:
    import ray
except ImportError:
    raise MissingDependency("engine='ray' needs Ray. Install it: pip install 'manul[ray]'.") from None

PIECE = 131_072  # rows per object: few large objects are faster than many small ones
RETRIES = 20  # nodes may fail this often during a task


def train(candidates: Sequence[Candidate], log: Logs, *, draw: int | None, progress: bool) -> TrainingResult:
    """Train every candidate on the connected cluster, or on a new local one."""
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    stored, seen = _store(candidates, log)
    # With two return objects, the arrays stay on their node until they are requested.
    task: Any = ray.remote(num_cpus=1, num_returns=2, max_retries=RETRIES)(_train_one)
    results = [task.remote(candidate, stored, draw) for candidate in candidates]
    _wait([total for total, _ in results], progress=progress)
    sums = np.array(ray.get([total for total, _ in results]))

    def agent(number: int) -> AnyAgent:
        width, arrays = ray.get(results[number][1])
        trained = candidates[number].fresh()
        if width is not None:
            trained.restore(trained.start(width), arrays)
        return trained

    return TrainingResult(seen, sums, agent)


def _store(candidates: Sequence[Candidate], log: Logs) -> tuple[list[Any], LogSummary]:
    stored, seen = [], LogSummary()
    agents = [candidate.agent for candidate in candidates]
    for piece in pieces(log, PIECE):
        check(piece, agents)
        seen.add(piece)
        stored.append(ray.put(piece))
    check_has_rows(seen.rows)
    return stored, seen


def _train_one(candidate: Candidate, stored: list[Any], draw: int | None) -> tuple[float, tuple[int | None, Any]]:
    replay = Replay([candidate], draw=draw, threads=1)
    for piece in stored:
        replay.learn(ray.get(piece))
    return float(replay.sums[0]), (replay.snapshots[0].width, replay.snapshots[0].state())


def _wait(totals: list[Any], *, progress: bool) -> None:
    with tqdm(total=len(totals), unit=" cells", disable=not progress) as bar:
        while totals:
            done, totals = ray.wait(totals)
            bar.update(len(done))


def reject_resume(resume: object) -> None:
    """Reject a folder: Ray restarts lost tasks itself."""
    if resume is not None:
        raise ParameterError(
            f"resume must be None with engine='ray', got {str(resume)!r}. Use engine='local'.", "resume"
        )
