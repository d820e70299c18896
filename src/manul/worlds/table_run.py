"""A table of one's own, played online: each row is a context, and its target the best action.

The loss of an action is its distance to the target, as a share of the range of actions (or the square of that).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from manul.agents import Mapped
from manul.agents.agent_registry import AGENTS
from manul.contexts.encoding import Columns
from manul.errors import ParameterError
from manul.logs.formats.log_schema import RESERVED
from manul.logs.log import Log
from manul.types import Floats, Within
from manul.utils.validation import check_range, check_seed
from manul.worlds import Regression
from manul.worlds.simulation import Run, simulate
from manul.worlds.tables.table_columns import MOST_NAMED, numbers_of, read_columns, target_numbers
from manul.worlds.tables.tables import scaled
from manul.worlds.tables.vw_examples import LABEL

if TYPE_CHECKING:
    import pyarrow as pa

Column = Floats | list[str | None]
Table = dict[str, Column]


@dataclass(frozen=True, eq=False)
class Example:
    """A table as a world: the columns that are its contexts, how they become numbers, and the targets."""

    fields: Table
    columns: Columns
    targets: Floats
    left_out: int
    moved: int
    renamed: tuple[str, ...]
    actions: Within

    @classmethod
    def read(cls, path: str | Path, *, target: str | None = None, actions: Within | None = None) -> Example:
        """A table from a file; rows without a target are left out, targets outside the actions are moved to the nearer end.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "cars.csv").write_text("age,price\\n1,20\\n9,5\\n4,\\n")
        ...     example = Example.read(Path(folder, "cars.csv"), target="price")
        >>> example.targets, example.actions, example.left_out
        (array([20.,  5.]), (5.0, 20.0), 1)
        """
        cells = read_columns(path)
        name = target if target is not None else _label(cells, path)
        wanted = target_numbers(cells, name, str(path))
        table = _table(cells)
        known = np.isfinite(wanted)
        low, high = (
            check_range("actions", actions)
            if actions is not None
            else scaled(wanted[known], what=f"target {name!r} of {path}")[0]
        )
        fields = {key: _chosen(values, known) for key, values in table.items() if key != name}
        renamed = tuple(key for key in fields if key in RESERVED)
        fields = {f"{key}_" if key in renamed else key: values for key, values in fields.items()}
        moved = int(((wanted[known] < low) | (wanted[known] > high)).sum())
        targets = np.clip(wanted[known], low, high)
        return cls(fields, Columns.fit(fields), targets, int((~known).sum()), moved, renamed, (low, high))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def usual(self) -> Within | None:
        """What 99 % of the targets lie in, where that is less than half of the actions.

        >>> targets = np.append(np.arange(999.0), 5000.0)
        >>> Example({}, Columns(()), targets, 0, 0, (), (0.0, 5000.0)).usual
        (5.0, 994.0)
        """
        low, high = (float(end) for end in np.round(np.percentile(self.targets, (0.5, 99.5))))
        return (low, high) if low < high and high - low < (self.actions[1] - self.actions[0]) / 2 else None

    def shuffled(self, seed: int) -> Example:
        """The rows in another order.

        >>> columns = Columns.fit({"age": [1, 9, 4]})
        >>> example = Example({"age": np.array([1, 9, 4])}, columns, np.array([3.0, 1.0, 2.0]), 0, 0, (), (0.0, 4.0))
        >>> example.shuffled(1).targets
        array([3., 1., 2.])
        """
        order = np.random.default_rng(check_seed(seed)).permutation(len(self))
        fields = {name: _chosen(values, order) for name, values in self.fields.items()}
        return replace(self, fields=fields, targets=self.targets[order])

    def world(self, loss: Literal["absolute", "squared"] = "absolute") -> Regression:
        """The table as a world of rows of numbers."""
        return Regression(self.columns.rows(self.fields), self.targets, loss)

    def log(self, run: Run) -> Log:
        """What a run decided, with the fields of the table as contexts."""
        import pyarrow as pa

        fields = {name: pa.array(values, from_pandas=True) for name, values in self.fields.items()}
        decided = {"action": run.log.actions, "density": run.log.densities, "loss": run.log.losses}
        return Log.from_table({**fields, **decided}, action_range=self.actions, loss_range=(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of playing a table: the agent as a policy that takes the table's fields, the log, and the losses."""

    agent: str
    settings: dict[str, Any]
    policy: Mapped
    log: Log
    run: Run
    best_constant: float
    example: Example

    def as_dict(self) -> dict[str, Any]:
        """The numbers of it, ready for JSON."""
        losses = self.run.log.losses
        return {
            "agent": self.agent,
            **self.settings,
            "rows": len(losses),
            "left_out": self.example.left_out,
            "actions": list(self.example.actions),
            "mean_loss": self.run.mean_loss,
            "recent_loss": float(losses[-max(1, len(losses) // 20) :].mean()),  # of the last 5 % of the rows
            "best_constant": self.best_constant,
            "seconds": self.run.seconds,
        }

    def __str__(self) -> str:
        low, high = self.example.actions
        values = {**self.as_dict(), "actions": f"{low:g} to {high:g}"}
        labels = {"left_out": "skipped rows", "recent_loss": "last 5 %"}
        return "\n".join(
            f"{labels.get(name, name.replace('_', ' ')):<14} {_format(value)}"
            for name, value in values.items()
            if value != 0 or name != "left_out"
        )


def play(
    example: Example,
    *,
    agent: str | None = None,
    leaves: int | None = None,
    bandwidth: float | Fraction | None = None,
    epsilon: float = 0.05,
    seed: int = 0,
    loss: Literal["absolute", "squared"] = "absolute",
    progress: bool = False,
) -> Outcome:
    """Play a table once through with an agent, Auto unless leaves or a bandwidth are given.

    A bandwidth is in units of the target; a `Fraction` is a share of the range of actions.

    >>> import numpy as np
    >>> sizes = np.arange(200.0) % 7
    >>> example = Example({"size": sizes}, Columns.fit({"size": sizes}), 3 * sizes, 0, 0, (), (0.0, 18.0))
    >>> outcome = play(example, leaves=16, bandwidth=Fraction(1, 8))
    >>> outcome.agent, outcome.settings["bandwidth"], len(outcome.log)
    ('cats', 2.25, 200)
    """
    name = agent or ("auto" if leaves is None and bandwidth is None else "cats")
    entry = AGENTS[name]
    settings = entry.tree_settings(example.actions, leaves=leaves, bandwidth=bandwidth)
    learner = entry.make(actions=example.actions, epsilon=epsilon, seed=seed, **settings)
    world = example.world(loss)
    run = simulate(learner, world, progress=progress)
    middle = float(np.median(world.targets) if loss == "absolute" else world.targets.mean())
    constant = float(world.losses(np.full(len(world), middle), example.actions).mean())
    policy = Mapped(agent=learner, features=example.columns)
    return Outcome(name, settings, policy, example.log(run), run, constant, example)


def _table(cells: Mapping[str, pa.Array]) -> Table:
    return {
        name: column.to_pylist() if str(column.type) == "string" else numbers_of(column)
        for name, column in cells.items()
    }


def _label(cells: Mapping[str, pa.Array], path: str | Path) -> str:
    if LABEL in cells and ".vw" in Path(path).suffixes:
        return LABEL
    raise ParameterError(
        f"target must be a column of {path}; got none. It has {', '.join(list(cells)[:MOST_NAMED])}.", "target"
    )


def _chosen(values: Column, which: Any) -> Column:
    if isinstance(values, list):
        places = np.arange(len(values))[which]
        return [values[place] for place in places.tolist()]
    chosen: Floats = values[which]
    return chosen


def _format(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
