"""CATS_Off, Algorithm 3 of the paper: train every candidate on a log, and choose the lowest penalised loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from manul.actions.schedules import Epsilon
from manul.agents import Mapped
from manul.errors import ParameterError
from manul.offpolicy import named_logs
from manul.offpolicy.optimization.engines import TrainingResult, local
from manul.offpolicy.optimization.grid import RULES, AnyAgent, Candidate, Grid, Rule
from manul.offpolicy.optimization.replay import Logs
from manul.offpolicy.optimization.results import Row, Table
from manul.paper import theory
from manul.types import Within
from manul.utils.rewards import known_range
from manul.utils.validation import check_choice, check_number, check_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Engine = Literal["local", "ray"]


@dataclass(frozen=True, eq=False)
class Optimized:
    """The best policy, and the table of all candidates."""

    table: Table
    policy: AnyAgent | Mapped

    @property
    def chosen(self) -> Row:
        """The row of the best policy."""
        return self.table.rows[self.table.lowest]

    @property
    def bandwidth(self) -> float:
        """The bandwidth of the policy, in action units."""
        return self.chosen.bandwidth

    @property
    def leaves(self) -> int | None:
        """The number of leaves of the policy, or None if it is not a tree."""
        return self.chosen.leaves

    def save(self, path: str | Path) -> None:
        """Write the policy to a `.manul` file and the table to a CSV file with the same name."""
        self.policy.save(path)
        self.table.to_csv(Path(path).with_suffix(".csv"))

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the objective over bandwidth and leaves."""
        from manul.utils.plotting import cell_map

        cells = [(row.bandwidth, row.leaves, row.objective) for row in self.table if row.leaves is not None]
        return cell_map(cells, axes)


def optimize(
    log: Logs,
    *,
    grid: Grid | None = None,
    rule: Rule = "path",
    penalty: float | Literal["paper"] = 1.0,
    failure: float = 0.05,
    draw: bool = False,
    actions: Within | None = None,
    losses: Within | None = None,
    epsilon: Epsilon = 0.0,
    seed: int = 0,
    threads: int | None = None,
    resume: str | Path | None = None,
    engine: Engine = "local",
    progress: bool = False,
) -> Optimized:
    """Train every candidate of a grid, by default the paper's, in one pass over a log or batches of a log.

    Trees learn by the `rule` of `Cats` ("path"), of `Cats.paper` ("paper"), or of `Cats.paper` with one regressor per
    node, as in Vowpal Wabbit ("margin"), which is twice as fast as "paper". `penalty` is the constant of Algorithm 3: 1
    as in the paper's experiments, or "paper" for that of its theorem, which fails with probability `failure`. With
    `draw`, the policy is the one before a random round, as in the paper, instead of the one after the last round. The
    policy explores with `epsilon`. With `resume`, a folder, an interrupted run can be resumed. `actions` and `losses`
    are by default the ranges of the log, or (0, 1). If contexts are named, the policy accepts named contexts.

    >>> import manul
    >>> run = manul.simulate(manul.Cats(leaves=4, bandwidth=1/4), manul.worlds.linear(rounds=2000, width=2))
    >>> best = optimize(run.log, grid=Grid(bandwidths=[1/4, 1/16], leaves=[4, 64]))
    >>> best.bandwidth, len(best.table)
    (0.25, 4)
    """
    constant = _check_penalty(penalty)
    check_choice("rule", rule, RULES)
    first, log = named_logs.peek(log)
    ranges = {
        "actions": check_range("actions", named_logs.choose_range(actions, first.action_range if first else None)),
        "losses": check_range("losses", named_logs.choose_range(losses, first.loss_range if first else None)),
    }
    columns = None if first is None else named_logs.columns_of(first, log)
    log = log if columns is None else named_logs.Numbers(log, columns)
    grid = Grid.paper() if grid is None else grid
    candidates = grid.candidates(rule=rule, epsilon=epsilon, seed=seed, **ranges)
    _check_bandwidths(candidates)
    options: dict[str, Any] = {"draw": seed if draw else None, "progress": progress}
    check_choice("engine", engine, ("local", "ray"))
    if engine == "local":
        trained = local.train(candidates, log, threads=threads, resume=resume, **options)
    else:
        from manul.offpolicy.optimization.engines import ray

        ray.reject_resume(resume)
        trained = ray.train(candidates, log, **options)
    if constant is None:
        constant = theory.off_policy_constant(horizon=trained.seen.rows, cells=len(candidates), failure=failure)
    table = Table(tuple(_row(candidate, number, trained, constant) for number, candidate in enumerate(candidates)))
    return Optimized(table, named_logs.with_columns(trained.agent(table.lowest), columns))


def _row(candidate: Candidate, number: int, trained: TrainingResult, constant: float) -> Row:
    agent: Any = candidate.agent
    (low, high), (lowest, highest) = agent.actions, known_range(agent.losses, "optimize")
    mean = float(trained.sums[number]) / trained.seen.rows
    penalty = theory.off_policy_penalty(
        mean_loss=mean,
        horizon=trained.seen.rows,
        bandwidth=agent.bandwidth / (high - low),
        minimum_density=min(trained.seen.lowest_density * (high - low), 1.0),
        constant=constant,
    )
    estimate, penalty = lowest + (highest - lowest) * mean, (highest - lowest) * penalty
    leaves = getattr(agent, "leaves", None)
    return Row(candidate.name, agent.bandwidth, leaves, estimate, penalty, estimate + penalty)


def _check_bandwidths(candidates: list[Candidate]) -> None:
    for candidate in candidates:
        if not getattr(candidate.agent, "bandwidth", 0) > 0:
            raise ParameterError(
                f"candidates must have a bandwidth above 0, got {candidate.agent!r} as {candidate.name!r}.",
                "candidates",
            )


def _check_penalty(penalty: float | str) -> float | None:
    """The constant of the penalty; None if it depends on the length of the log."""
    if penalty == "paper":
        return None
    return check_number("penalty", penalty, 0, math.inf, "Try 1, or 'paper'.", ends="[)")
