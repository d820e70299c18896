"""Runs an agent online over a table: each row is a context, and its target is the best action.

The loss of an action is its distance to the target, as a share of the range of actions, or the square of that share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from manul.actions.schedules import Epsilon
from manul.agents import Mapped
from manul.agents.agent_registry import AGENTS
from manul.contexts.table_encoding import Columns
from manul.errors import ParameterError
from manul.logs.formats.log_schema import RESERVED, Metadata
from manul.logs.log import Log
from manul.types import Floats, Within
from manul.utils.rewards import negate
from manul.utils.validation import check_range, check_seed
from manul.worlds import Regression
from manul.worlds.simulation import Run, simulate
from manul.worlds.tables.dataset import scale_targets
from manul.worlds.tables.table_columns import MOST_NAMED, numbers_of, read_columns, target_numbers
from manul.worlds.tables.vw_examples import LABEL

if TYPE_CHECKING:
    import pyarrow as pa

Column = Floats | list[str | None]


@dataclass(frozen=True, eq=False)
class TargetTable:
    """A table with targets: the columns of the contexts, their encoding, and the best actions."""

    fields: dict[str, Column]
    columns: Columns
    targets: Floats
    skipped: int
    clipped: int
    renamed_columns: tuple[str, ...]
    actions: Within

    @classmethod
    def read(cls, path: str | Path, *, target: str | None = None, actions: Within | None = None) -> TargetTable:
        """Read a file; rows without a target are skipped, targets outside the range of actions are clipped to it.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "cars.csv").write_text("age,price\\n1,20\\n9,5\\n4,\\n")
        ...     table = TargetTable.read(Path(folder, "cars.csv"), target="price")
        >>> table.targets, table.actions, table.skipped
        (array([20.,  5.]), (5.0, 20.0), 1)
        """
        cells = read_columns(path)
        name = target if target is not None else _label(cells, path)
        targets = target_numbers(cells, name, str(path))
        columns = {
            key: column.to_pylist() if str(column.type) == "string" else numbers_of(column)
            for key, column in cells.items()
            if key != name
        }
        known = np.isfinite(targets)
        targets, skipped = targets[known], int((~known).sum())
        low, high = (
            check_range("actions", actions)
            if actions is not None
            else scale_targets(targets, what=f"target {name!r} of {path}")[0]
        )
        renamed = tuple(key for key in columns if key in RESERVED)
        fields = {f"{key}_" if key in renamed else key: _take(column, known) for key, column in columns.items()}
        clipped = int(((targets < low) | (targets > high)).sum())
        return cls(fields, Columns.fit(fields), np.clip(targets, low, high), skipped, clipped, renamed, (low, high))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def typical_targets(self) -> Within | None:
        """The range of 99 % of the targets, or None if that is more than half the range of actions.

        >>> targets = np.append(np.arange(999.0), 5000.0)
        >>> TargetTable({}, Columns(()), targets, 0, 0, (), (0.0, 5000.0)).typical_targets
        (5.0, 994.0)
        """
        low, high = (float(end) for end in np.round(np.percentile(self.targets, (0.5, 99.5))))
        return (low, high) if low < high and high - low < (self.actions[1] - self.actions[0]) / 2 else None

    def shuffle(self, seed: int) -> TargetTable:
        """The table with its rows in random order.

        >>> columns = Columns.fit({"age": [1, 9, 4]})
        >>> table = TargetTable({"age": np.array([1, 9, 4])}, columns, np.array([3.0, 1.0, 2.0]), 0, 0, (), (0.0, 4.0))
        >>> table.shuffle(1).targets
        array([3., 1., 2.])
        """
        order = np.random.default_rng(check_seed(seed)).permutation(len(self))
        fields = {name: _take(column, order) for name, column in self.fields.items()}
        return replace(self, fields=fields, targets=self.targets[order])

    def world(self, loss: Literal["absolute", "squared"] = "absolute") -> Regression:
        """The table as a world whose contexts are rows of numbers."""
        return Regression(self.columns.rows(self.fields), self.targets, loss)

    def log(self, run: Run, *, rewards: bool = False) -> Log:
        """The log of a run, with the columns of the table as contexts."""
        import pyarrow as pa

        fields = {name: pa.array(values, from_pandas=True) for name, values in self.fields.items()}
        decisions = {"action": run.log.actions, "density": run.log.densities, "loss": run.log.losses}
        decisions |= {} if run.log.floors is None else {"floor": run.log.floors}
        table = pa.table({**fields, **decisions}).replace_schema_metadata(Metadata(rewards=rewards).to_arrow())
        return Log.from_table(table, action_range=self.actions, loss_range=(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class TableRun:
    """The result of a run: the agent as a policy for the table's columns, the log, and the losses."""

    agent: str
    settings: dict[str, Any]
    policy: Mapped
    log: Log
    run: Run
    best_constant: float
    table: TargetTable

    def as_dict(self) -> dict[str, Any]:
        """The results, for JSON."""
        losses, exploration = self.run.log.losses, self.run.exploration_cost
        recent = float(losses[-max(1, len(losses) // 20) :].mean())  # of the last 5 % of the rows
        outcome, stated = ("loss", float) if self.log.rewards is None else ("reward", negate)
        return {
            "agent": self.agent,
            **self.settings,
            "rows": len(losses),
            "left_out": self.table.skipped,
            "actions": list(self.table.actions),
            f"mean_{outcome}": stated(self.run.mean_loss),
            f"recent_{outcome}": stated(recent),
            "best_constant": stated(self.best_constant),
            "exploration": None if exploration is None else exploration.as_dict(),
            "seconds": self.run.seconds,
        }

    def __str__(self) -> str:
        low, high = self.table.actions
        exploration = str(self.run.exploration_cost or "cost unknown: every action was drawn from the whole range")
        values = {**self.as_dict(), "actions": f"{low:g} to {high:g}", "exploration": exploration}
        labels = {"left_out": "skipped rows", "recent_loss": "last 5 %", "recent_reward": "last 5 %"}
        return "\n".join(
            f"{labels.get(name, name.replace('_', ' ')):<14} {_format(value)}"
            for name, value in values.items()
            if value != 0 or name != "left_out"
        )


def run_agent(
    table: TargetTable,
    *,
    agent: str | None = None,
    leaves: int | None = None,
    bandwidth: float | Fraction | None = None,
    epsilon: Epsilon | Literal["auto"] | None = None,
    seed: int = 0,
    loss: Literal["absolute", "squared"] = "absolute",
    losses: Literal["known", "auto"] | None = None,
    rewards: Literal["known", "auto"] | None = None,
    progress: bool = False,
) -> TableRun:
    """Run an agent once over a table: Auto by default, Cats if `leaves` or `bandwidth` is given.

    The bandwidth is in units of the target; a `Fraction` is a share of the range of actions. Without `epsilon`, the agent's
    default is used. With `rewards`, the agent gets rewards, which are negative losses. With "auto", it does not know the
    range.

    >>> import numpy as np
    >>> sizes = np.arange(200.0) % 7
    >>> table = TargetTable({"size": sizes}, Columns.fit({"size": sizes}), 3 * sizes, 0, 0, (), (0.0, 18.0))
    >>> result = run_agent(table, leaves=16, bandwidth=Fraction(1, 8))
    >>> result.agent, result.settings["bandwidth"], len(result.log)
    ('cats', 2.25, 200)
    """
    name = agent or ("auto" if leaves is None and bandwidth is None else "cats")
    entry = AGENTS[name]
    settings = entry.tree_settings(table.actions, leaves=leaves, bandwidth=bandwidth)
    exploration = {} if epsilon is None else {"epsilon": epsilon}
    learner = entry.make(actions=table.actions, seed=seed, **exploration, **settings, **_ranges(losses, rewards))
    world = table.world(loss)
    run = simulate(learner, world, progress=progress)
    constant = float(np.median(world.targets) if loss == "absolute" else world.targets.mean())
    best_constant = float(world.losses(np.full(len(world), constant), table.actions).mean())
    policy = Mapped(agent=learner, features=table.columns)
    return TableRun(name, settings, policy, table.log(run, rewards=rewards is not None), run, best_constant, table)


def _ranges(losses: str | None, rewards: str | None) -> dict[str, Any]:
    if losses is not None and rewards is not None:
        raise ParameterError(f"losses and rewards exclude each other, got {losses!r} and {rewards!r}.", "rewards")
    name, limits = ("losses", (0.0, 1.0)) if rewards is None else ("rewards", (-1.0, 0.0))
    choice = losses if rewards is None else rewards
    return {} if choice is None else {name: "auto" if choice == "auto" else limits}


def _label(cells: Mapping[str, pa.Array], path: str | Path) -> str:
    if LABEL in cells and ".vw" in Path(path).suffixes:
        return LABEL
    names = ", ".join(list(cells)[:MOST_NAMED])
    raise ParameterError(f"target must be a column of {path}, got none. It has {names}.", "target")


def _take(column: Column, rows: Any) -> Column:
    if isinstance(column, list):
        return [column[row] for row in np.arange(len(column))[rows].tolist()]
    values: Floats = column[rows]
    return values


def _format(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
