"""Where the candidates are trained: on this machine, or on a Ray cluster. Both give the same numbers to the byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from manul.offpolicy.optimization.grid import AnyAgent
from manul.offpolicy.optimization.replay import LogSummary
from manul.types import Floats


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What was seen of the log, the progressive sum of each candidate, and the agents themselves."""

    seen: LogSummary
    sums: Floats
    agent: Callable[[int], AnyAgent]
