"""The result of a run over a table: the losses, also in units of the target, beside those of simpler and better policies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from manul.agents import Mapped
from manul.logs.log import Log
from manul.utils.rewards import negate
from manul.worlds.simulation import Run

if TYPE_CHECKING:
    from manul.worlds.table_run import TargetTable

LABELS = {
    "left_out": "skipped rows",
    "recent_loss": "last 5 %",
    "recent_reward": "last 5 %",
    "best_constant": "best constant",
}
MOST_COLUMNS = 40  # that are listed


@dataclass(frozen=True, eq=False)
class TableRun:
    """The result of a run: the agent as a policy for the table's columns, the log, and the losses."""

    agent: str
    settings: dict[str, Any]
    policy: Mapped
    log: Log
    run: Run
    table: TargetTable
    loss: Literal["absolute", "squared"]

    @cached_property
    def _regression(self) -> tuple[float, str] | None:
        return self.table.regression(self.loss)

    @cached_property
    def _losses(self) -> dict[str, float]:
        """The mean losses of the run and of other policies, by name."""
        losses = self.run.log.losses
        recent = float(losses[-max(1, len(losses) // 20) :].mean())  # of the last 5 % of the rows
        outcome = "loss" if self.log.rewards is None else "reward"
        values = {f"mean_{outcome}": self.run.mean_loss, f"recent_{outcome}": recent}
        values["best_constant"] = self.table.best_constant(self.loss)
        return values if self._regression is None else {**values, "regression": self._regression[0]}

    @property
    def explored(self) -> float | None:
        """The share of the rows whose action was drawn outside the greedy window."""
        cost = self.run.exploration_cost
        return None if cost is None else cost.explored / cost.rows

    def as_dict(self) -> dict[str, Any]:
        """The results, for JSON."""
        exploration = self.run.exploration_cost
        stated: Any = float if self.log.rewards is None else negate
        in_units = {name: self.table.in_units(loss, self.loss) for name, loss in self._losses.items()}
        return {
            "agent": self.agent,
            **self.settings,
            "rows": len(self.run.log),
            "left_out": self.table.skipped,
            "actions": self.table.stated_actions,
            **{name: stated(loss) for name, loss in self._losses.items()},
            "in_units": {name: stated(loss) for name, loss in in_units.items() if loss is not None} or None,
            "regression_model": None if self._regression is None else self._regression[1],
            "explored": self.explored,
            "exploration": None if exploration is None else exploration.as_dict(),
            "seconds": self.run.seconds,
            "columns": [column.as_dict() for column in self.table.profiles],
            "warnings": [sentence for column in self.table.profiles for sentence in column.warnings],
        }

    def __str__(self) -> str:
        values = self.as_dict()
        values["actions"] = self.table.describe_actions()
        cost = str(self.run.exploration_cost or "cost unknown: every action was drawn from the whole range")
        values["exploration"] = (
            cost if self.explored is None else f"{100 * self.explored:.2g} % of the rows, which cost {cost}"
        )
        shown = [
            name for name in values if name not in ("in_units", "regression_model", "explored", "columns", "warnings")
        ]
        lines = [
            f"{LABELS.get(name, name.replace('_', ' ')):<14} {_format(values[name])}{self._unit(name, values)}"
            for name in shown
            if values[name] != 0 or name != "left_out"
        ]
        return "\n".join(lines)

    def _unit(self, name: str, values: dict[str, Any]) -> str:
        """A loss in units of the target, and what the regression is."""
        parts = []
        if name in (values["in_units"] or {}):
            error = "" if self.loss == "absolute" else "root mean square, "
            parts.append(f"{error}{_format(values['in_units'][name])} in units of {self.table.target}")
        if name == "regression":
            parts.append(f"{values['regression_model']} that knows the targets of other rows")
        return f" ({'; '.join(parts)})" if parts else ""


def describe_columns(table: TargetTable) -> str:
    """One line per column of a table: name, type and an example.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from manul.worlds.table_run import TargetTable
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "cars.csv").write_text("age,fuel,price\\n1,gas,20\\n9,gas,5\\n")
    ...     print(describe_columns(TargetTable.read(Path(folder, "cars.csv"), target="price")))
    age    number         1
    fuel   text, 1 value  gas
    price  number         20
    """
    columns = table.profiles[:MOST_COLUMNS]
    names, kinds = (max(map(len, texts)) for texts in ([c.name for c in columns], [c.summary for c in columns]))
    lines = [f"{column.name:<{names}}  {column.summary:<{kinds}}  {column.example}" for column in columns]
    left_out = len(table.profiles) - len(columns)
    return "\n".join([*lines, *([f"and {left_out:,} more columns"] if left_out else [])])


def _format(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
