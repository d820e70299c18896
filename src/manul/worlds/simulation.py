"""The online loop over a world: decide, observe the loss, learn.

Native agents on worlds with a table run in the core, several of them in threads; everything else runs round by round.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast, runtime_checkable

import numpy as np

from manul import _core
from manul.actions.decision import Decision, Within
from manul.actions.levels import SIZE, Drawn, KnobLevels, join_drawn
from manul.actions.space import UNNAMED, several_knobs
from manul.agents.auto_knobs import AutoKnobs
from manul.agents.base import BaseAgent, check_ranges
from manul.agents.player_host import host_of
from manul.agents.rollout.rollout import Rollout
from manul.errors import InputError, ParameterError
from manul.logs.exploration_cost import ExplorationCost, exploration_cost
from manul.logs.log import Log
from manul.outcomes import outcome_of
from manul.policies.policy import Agent, TellsLevels
from manul.utils.html_cards import card, curve
from manul.utils.validation import Floats
from manul.worlds.several import Several
from manul.worlds.world import NarrowedWorld, ScaledWorld, Table, World

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from tqdm import tqdm

CHUNK, SLOW_CHUNK = 8192, 64  # rounds between two updates of the progress bar, in the core and in Python


@dataclass(frozen=True, eq=False)
class Run:
    """The result of a simulation."""

    log: Log
    seconds: float

    @property
    def mean_loss(self) -> float:
        """The progressive loss: the agent decides in each round before it learns from it."""
        return float(self.log.losses.mean())

    @property
    def exploration_cost(self) -> ExplorationCost | None:
        """What the actions outside the greedy windows cost; None if the agent always drew from the whole range."""
        return exploration_cost(self.log)

    def _repr_html_(self) -> str:
        rounds = len(self.log)
        rows = [("rounds", f"{rounds:,}"), ("seconds", round(self.seconds, 3))]
        if not rounds:
            return card("Run", rows)
        numbers = np.arange(1, rounds + 1)
        return card(
            "Run",
            [*rows, (f"mean {self.log.outcome.name}", self.log.outcome.from_loss(self.mean_loss))],
            curve(numbers, np.cumsum(self.log.losses) / numbers),
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """Plot the running mean of the losses and the mean of the last 5 % of the rounds."""
        from manul.plotting import loss_curve

        return loss_curve(self.log.losses, axes)


def simulate(agent: Agent | AutoKnobs, world: World | ScaledWorld | Several, *, progress: bool = False) -> Run:
    """Run an `agent` once through a `world`; the agent learns from every round. `progress` shows a bar on standard error.

    >>> import manul
    >>> run = simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=100))
    >>> len(run.log), run.mean_loss < 1
    (100, True)
    """
    return simulate_many([agent], world, progress=progress)[0]


def simulate_many(
    agents: Sequence[Agent | AutoKnobs],
    world: World | ScaledWorld | Several,
    *,
    threads: int | None = None,
    progress: bool = False,
) -> list[Run]:
    """Run several agents through a world in parallel; the results do not depend on the number of threads.

    >>> import manul
    >>> agents = [manul.Cats(leaves=leaves, bandwidth=1/8) for leaves in (8, 16)]
    >>> [len(run.log) for run in simulate_many(agents, manul.worlds.linear(rounds=100))]
    [100, 100]
    """
    if len({id(agent) for agent in agents}) != len(agents):
        raise ParameterError("agents must be different objects, got the same one twice.", "agents")
    if isinstance(world, Several) or any(_sets_knobs(agent) for agent in agents):
        loops = [_several_loop(agent, world) for agent in agents]
        elapsed = _play(loops, len(world), SLOW_CHUNK, progress=progress)
        return [Run(loop.log(), elapsed) for loop in loops]
    return _simulate_one_knob(cast(Sequence[Agent], agents), world, threads=threads, progress=progress)


def _simulate_one_knob(
    agents: Sequence[Agent], world: World | ScaledWorld, *, threads: int | None, progress: bool
) -> list[Run]:
    ranges = [_actions(agent) for agent in agents]
    scaled = {actions: world.table(actions) if isinstance(world, ScaledWorld) else world for actions in set(ranges)}
    logs = [_empty_log(agent, scaled[actions], actions) for agent, actions in zip(agents, ranges, strict=True)]
    native, python = _NativeLoop(threads or os.cpu_count() or 1), _PythonLoop()
    for agent, actions, log in zip(agents, ranges, logs, strict=True):
        _check(agent, scaled[actions])
        (native if native.accepts(agent, scaled[actions]) else python).add(agent, scaled[actions], log)
    seconds = _play([native, python], len(world), SLOW_CHUNK if python.runs else CHUNK, progress=progress)
    levels = native.levels() | python.levels()
    return [Run(_with_known(log, levels.get(id(log))), seconds) for log in logs]


class _Loop(Protocol):
    def play(self, first: int, last: int) -> None: ...


def _play(loops: Sequence[_Loop], rounds: int, chunk: int, *, progress: bool) -> float:
    started = time.perf_counter()
    with _bar(rounds, progress=progress) as bar:
        for first in range(0, rounds, chunk):
            last = min(first + chunk, rounds)
            for loop in loops:
                loop.play(first, last)
            bar.update(last - first)
    return time.perf_counter() - started


class _NativeLoop:
    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.players: list[_core.Player] = []
        self.tables: list[_core.Table] = []
        self.logs: list[Log] = []
        self.windows: list[Floats] = []

    @staticmethod
    def accepts(agent: Agent, world: World) -> bool:
        if not (isinstance(agent, BaseAgent) and isinstance(world, Table)):
            return False
        return host_of(agent).is_native(agent, world.contexts)

    def add(self, agent: Agent, world: World, log: Log) -> None:
        assert isinstance(world, Table)
        self.players.append(host_of(agent).player)
        self.tables.append(world.native)
        self.logs.append(log)
        self.windows.append(np.empty(SIZE * len(world)))

    def play(self, first: int, last: int) -> None:
        windows = self.windows
        actions, densities = [log.actions for log in self.logs], [log.densities for log in self.logs]
        losses, floors = [log.losses for log in self.logs], [_floors(log) for log in self.logs]
        _core.simulate(
            self.players, self.tables, first, last, actions, densities, losses, floors, windows, self.threads
        )

    def levels(self) -> dict[int, KnobLevels]:
        """What the decisions of each log were drawn from."""
        return {
            id(log): KnobLevels.of_windows(windows.reshape(-1, SIZE), *_ends_of(log))
            for log, windows in zip(self.logs, self.windows, strict=True)
        }


class _PythonLoop:
    """The agents that run round by round in Python."""

    def __init__(self) -> None:
        self.runs: list[tuple[Agent, World, Log]] = []
        self.drawn: dict[int, list[Drawn | None]] = {}

    def add(self, agent: Agent, world: World, log: Log) -> None:
        self.runs.append((agent, world, log))
        self.drawn[id(log)] = []

    def levels(self) -> dict[int, KnobLevels]:
        """What the decisions of each log were drawn from, if it is known."""
        joined = {log: join_drawn(each) for log, each in self.drawn.items()}
        return {log: levels[UNNAMED] for log, levels in joined.items() if levels is not None}

    def play(self, first: int, last: int) -> None:
        for agent, world, log in self.runs:
            for number in range(first, last):
                decision = _decide(agent, log.contexts[number], _within(log, number))
                self.drawn[id(log)].append(decision.drawn)
                loss = world.loss(number, decision.action)
                agent.learn(log.contexts[number], decision, **outcome_of(agent).told(loss))
                log.actions[number], log.densities[number] = decision.action, decision.density
                log.losses[number] = loss
                _floors(log)[number] = np.nan if decision.floor is None else decision.floor
                if decision.arm is not None:
                    cast(list[str], log.arms)[number] = decision.arm


def _decide(agent: Any, context: Any, within: Any = None) -> Decision:
    """A decision, which says what it was drawn from if the agent can tell."""
    tells = isinstance(agent, TellsLevels) and agent.tells_levels
    decision: Decision = agent.decide(context, within, levels=True) if tells else agent.decide(context, within)
    return decision


def _sets_knobs(agent: Any) -> bool:
    return several_knobs(agent) is not None


def _several_loop(agent: Any, world: Any) -> _SeveralLoop:
    if not _sets_knobs(agent):
        raise ParameterError("agent must have the knobs of the world: pass actions=world.actions.", "agent")
    if not isinstance(world, Several):
        raise ParameterError("world must have several knobs, as those of manul.worlds.several.", "world")
    actions = agent.space.actions
    if actions != world.actions:
        raise ParameterError(f"actions must be those of the world, {world.actions}, got {actions}.", "actions")
    return _SeveralLoop(agent, world)


class _SeveralLoop:
    """An agent with several knobs, round by round."""

    def __init__(self, agent: AutoKnobs, world: Several) -> None:
        self.agent, self.world = agent, world
        self.losses = np.empty(len(world))
        self.decisions: list[Decision] = []

    def play(self, first: int, last: int) -> None:
        for number in range(first, last):
            context = self.world.contexts[number]
            decision = _decide(self.agent, context)
            loss = self.world.loss(number, decision.action)
            self.agent.learn(context, decision, **outcome_of(self.agent).told(loss))
            self.decisions.append(decision)
            self.losses[number] = loss

    def log(self) -> Log:
        """The log of all rounds; rollouts have arms, but no densities by knob."""
        space, made = self.agent.space, self.decisions
        by_knob = [each.densities for each in made if each.densities is not None]
        known, arms = len(by_knob) == len(made), [each.arm for each in made if each.arm is not None]
        densities, floors = (np.array([each[place] for each in made], np.float64) for place in (1, 3))
        return Log(
            self.world.contexts,
            space.columns_of([each.action for each in made]),
            densities,
            self.losses,
            knobs=space,
            densities_by_knob={name: [each[name] for each in by_knob] for name in space.names} if known else None,
            floors=floors,
            arms=arms or None,
            levels=join_drawn([each.drawn for each in made]),
            outcome=self.agent.outcome.with_losses("auto"),
        )


@runtime_checkable
class _Ranged(Protocol):
    """An agent with a range of actions, which only a world that scales itself to the range needs."""

    actions: Within


def _actions(agent: Agent) -> Within:
    return agent.actions if isinstance(agent, _Ranged) else (0.0, 1.0)


def _empty_log(agent: Agent, world: World, within: Within) -> Log:
    actions, densities, losses, floors = (np.empty(len(world)) for _ in range(4))
    lows, highs = (_ends(world.lows), _ends(world.highs)) if isinstance(world, NarrowedWorld) else (None, None)
    outcome = outcome_of(agent).with_losses(world.losses if isinstance(world, Table) else "auto")
    declared: Any = {"action_range": within, "outcome": outcome}
    names = [""] * len(world) if isinstance(agent, Rollout) else None
    return Log(world.contexts, actions, densities, losses, lows, highs, floors=floors, arms=names, **declared)


def _floors(log: Log) -> Floats:
    assert log.floors is not None
    return log.floors


def _with_known(log: Log, levels: KnobLevels | None) -> Log:
    """The log with what its actions were drawn from, if that is known, and without a column of floors if the agent gave none."""
    declared: Any = {"action_range": log.action_range, "outcome": log.outcome, "arms": log.arms}
    if levels is not None and len(levels.lows):
        declared["levels"] = {UNNAMED: levels}
    if len(log) and not np.isnan(_floors(log)).all():
        declared["floors"] = log.floors
    return Log(log.contexts, log.actions, log.densities, log.losses, log.lows, log.highs, **declared)


def _ends_of(log: Log) -> tuple[Floats, Floats]:
    if log.lows is not None and log.highs is not None:
        return log.lows, log.highs
    assert log.action_range is not None
    low, high = log.action_range
    return np.full(len(log), low), np.full(len(log), high)


def _ends(ends: Floats | None) -> Floats | None:
    return None if ends is None else np.asarray(ends, dtype=np.float64)


def _within(log: Log, number: int) -> Within | None:
    if log.lows is None or log.highs is None:
        return None
    return float(log.lows[number]), float(log.highs[number])


def _check(agent: Agent, world: World) -> None:
    if not (isinstance(agent, BaseAgent) and isinstance(world, Table)):
        return
    outcome, (lowest, highest) = agent.outcome, agent.outcome.flip(world.losses)
    low, high = outcome.flip(outcome.loss_bounds)
    if lowest < low or highest > high:
        rule = f"{outcome.keywords} must include the world's range, [{lowest:g}, {highest:g}]"
        raise InputError(f"{rule}, got ({low:g}, {high:g}).", outcome.keywords)
    if world.lows is not None and world.highs is not None:
        check_ranges([agent], world.lows, world.highs)


def _bar(total: int, *, progress: bool) -> tqdm[NoReturn]:
    from tqdm import tqdm

    return tqdm(total=total, unit=" rounds", unit_scale=True, disable=not progress)
