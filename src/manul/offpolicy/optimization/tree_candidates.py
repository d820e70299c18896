"""The candidates "cats": trees and other agents that are valued while they learn, each row before it is learned."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from manul.errors import ParameterError
from manul.logs.batching import Logs, Rows, pieces
from manul.logs.log import Log
from manul.offpolicy.optimization.engines import TrainingResult
from manul.offpolicy.optimization.grid import Candidate
from manul.offpolicy.optimization.replay import Replay
from manul.offpolicy.optimization.results import Row
from manul.paper import theory
from manul.types import Floats
from manul.utils.rewards import known_range

Penalty = float | Literal["measured", "paper"]


def rows(candidates: Sequence[Candidate], trained: TrainingResult, penalty: Penalty, failure: float) -> list[Row]:
    """The row of each candidate in the table of results."""
    if penalty == "measured":
        return [_measured(candidate, trained, number) for number, candidate in enumerate(candidates)]
    constant = penalty
    if constant == "paper":
        constant = theory.off_policy_constant(horizon=trained.seen.rows, cells=len(candidates), failure=failure)
    return [_paper(candidate, trained, number, float(constant)) for number, candidate in enumerate(candidates)]


def _measured(candidate: Candidate, trained: TrainingResult, number: int) -> Row:
    """With weights clipped at the root of the number of rows, one small density changes nothing."""
    weights, weighted, squares = trained.clipped[number].tolist()
    rows = trained.seen.rows
    if weights <= 0:
        return _row(candidate, 1.0, math.inf)
    value, size = weighted / weights, squares / weights
    return _row(candidate, value, float(np.sqrt(value * size / rows) + size / rows))


def _paper(candidate: Candidate, trained: TrainingResult, number: int, constant: float) -> Row:
    agent: Any = candidate.agent
    low, high = agent.actions
    mean = float(trained.sums[number]) / trained.seen.rows
    penalty = theory.off_policy_penalty(
        mean_loss=mean,
        horizon=trained.seen.rows,
        bandwidth=agent.bandwidth / (high - low),
        minimum_density=min(trained.seen.lowest_density * (high - low), 1.0),
        constant=constant,
    )
    return _row(candidate, mean, penalty)


def _row(candidate: Candidate, mean: float, penalty: float) -> Row:
    agent: Any = candidate.agent
    lowest, highest = known_range(agent.losses, "optimize")
    estimate, penalty = lowest + (highest - lowest) * mean, (highest - lowest) * penalty
    return Row(candidate.name, agent.bandwidth, getattr(agent, "leaves", None), estimate, penalty, estimate + penalty)


def check_bandwidths(candidates: Sequence[Candidate], penalty: Penalty) -> None:
    """Reject agents without a density, and agents without a bandwidth if the penalty depends on it."""
    for candidate in candidates:
        bandwidth = getattr(candidate.agent, "bandwidth", 0)
        if not (penalty == "measured" if bandwidth is None else bandwidth > 0):
            raise ParameterError(
                f"candidates must have a bandwidth above 0, got {candidate.agent!r} as {candidate.name!r}.",
                "candidates",
            )


def progressive_weights(candidate: Candidate, log: Logs, threads: int | None) -> Iterator[tuple[Rows, Floats]]:
    """The rows of a log, and the importance weights of a candidate that learns from each row after it was valued."""
    replay = Replay([candidate], threads=threads, clip=math.inf)
    for piece in pieces(log):
        columns = piece.contexts, piece.actions, piece.densities, piece.losses
        yield piece, replay.learn(Log(*columns, piece.lows, piece.highs))[0]
