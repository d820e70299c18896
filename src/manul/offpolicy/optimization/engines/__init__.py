"""Engines that train the candidates: this machine or a Ray cluster, with identical results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from manul.offpolicy.optimization.grid import AnyAgent
from manul.offpolicy.optimization.replay import LogSummary
from manul.utils.validation import Floats


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A summary of the log, the sums of the losses and clipped weights of each candidate, and the trained agents."""

    seen: LogSummary
    sums: Floats
    clipped: Floats
    agent: Callable[[int], AnyAgent]
