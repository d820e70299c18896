"""The online loop over a world: decide, pay, learn. Whole tables run in the core; several agents run in threads."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from manul import _core
from manul.agents.native import NativeAgent
from manul.errors import ParameterError
from manul.log import Log
from manul.worlds import Regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from tqdm import tqdm

CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Run:
    """What came of a simulation."""

    log: Log
    seconds: float

    @property
    def mean_loss(self) -> float:
        """The progressive loss: each round is played before it is learned from."""
        return float(self.log.losses.mean())

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the mean loss so far and lately, over the rounds."""
        from manul.plots import loss_curve

        return loss_curve(self.log.losses, axes)


def simulate(agent: NativeAgent, world: Regression, *, progress: bool = False) -> Run:
    """Play a world once through; the agent has learned afterwards.

    >>> import manul
    >>> run = simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=100))
    >>> len(run.log), run.mean_loss < 1
    (100, True)
    """
    return simulate_many([agent], world, progress=progress)[0]


def simulate_many(
    agents: Sequence[NativeAgent], world: Regression, *, threads: int | None = None, progress: bool = False
) -> list[Run]:
    """Play a world with several agents in parallel; the results do not depend on the number of threads.

    >>> import manul
    >>> agents = [manul.Cats(leaves=leaves, bandwidth=1/8) for leaves in (8, 16)]
    >>> [len(run.log) for run in simulate_many(agents, manul.worlds.linear(rounds=100))]
    [100, 100]
    """
    if len({id(agent) for agent in agents}) != len(agents):
        raise ParameterError("agents must be different objects; got one twice. Make one agent per run.")
    for agent in agents:
        world.check_targets(agent.actions)
    players = [agent._started(world.contexts) for agent in agents]
    actions, densities, losses = ([np.empty(len(world)) for _ in agents] for _ in range(3))
    started = time.perf_counter()
    with _bar(len(world), progress) as bar:
        for first in range(0, len(world), CHUNK):
            last = min(first + CHUNK, len(world))
            _core.simulate(
                players,
                world.contexts,
                world.targets,
                world.native_loss,
                first,
                last,
                actions,
                densities,
                losses,
                threads or os.cpu_count() or 1,
            )
            bar.update(last - first)
    seconds = time.perf_counter() - started
    return [Run(Log(world.contexts, *columns), seconds) for columns in zip(actions, densities, losses, strict=True)]


def _bar(total: int, progress: bool) -> tqdm[NoReturn]:  # noqa: FBT001
    from tqdm import tqdm

    return tqdm(total=total, unit=" rounds", unit_scale=True, disable=not progress)
