"""The result of a run over a table: the losses, also in units of the target, beside those of simpler and better policies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from manul.agents.mapped import Mapped
from manul.logs.exploration_cost import ExplorationCost
from manul.logs.log import Log
from manul.utils.validation import Floats
from manul.worlds.regression import LossName
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
FEW_ROWS = 100  # a mean of fewer rows is shown with their number
LEAST_COMPARED = 20  # rows; the standard error of fewer says nothing
NO_USE = 0.95  # a regression with at least this share of the constant's loss has found next to nothing in the columns


@dataclass(frozen=True, eq=False)
class TableRun:
    """The result of a run: the agent as a policy for the table's columns, the log, and the losses."""

    agent: str
    settings: dict[str, Any]
    policy: Mapped
    log: Log
    run: Run
    table: TargetTable
    loss: LossName

    @cached_property
    def _regression(self) -> tuple[float, str] | None:
        return self.table.regression(self.loss)

    @cached_property
    def _losses(self) -> dict[str, float]:
        """The mean losses of the run and of other policies, by name."""
        losses = self.run.log.losses
        recent = float(losses[-self._recent_rows :].mean())
        outcome = self.log.outcome.keyword
        values = {f"mean_{outcome}": self.run.mean_loss, f"recent_{outcome}": recent}
        values["best_constant"] = float(self._constant_losses.mean())
        return values if self._regression is None else {**values, "regression": self._regression[0]}

    @property
    def _recent_rows(self) -> int:
        """The number of rows that are the last 5 %."""
        return max(1, len(self.run.log) // 20)

    @cached_property
    def _constant_losses(self) -> Floats:
        return self.table.constant_losses(self.loss)

    @property
    def objection(self) -> str | None:
        """A sentence if the agent is not clearly better, by two standard errors, than the best constant, and why; else None."""
        gaps = self.run.log.losses - self._constant_losses
        if len(gaps) < LEAST_COMPARED:
            return f"{len(gaps):,} rows are too few to compare the agent with the best constant."
        difference, error = _mean_and_error(gaps)
        if difference < -2 * error:
            return None
        outcome = self.log.outcome
        gap = f"{abs(difference):.2g} ± {2 * error:.1g}"
        if difference > 2 * error:
            direction = "lower" if outcome.higher else "higher"
            verdict = f"The agent did worse than the best constant: its mean {outcome.name} is {gap} {direction}."
        else:
            verdict = f"The agent did not do clearly better than the best constant: their mean {outcome.plural} differ by {gap}."
        return f"{verdict} That constant is known only after all {len(gaps):,} rows. {self._reason(gaps)}"

    def _reason(self, gaps: Floats) -> str:
        """What the rows say about why the agent is not better."""
        later, error = _mean_and_error(gaps[len(gaps) // 2 :])
        if later < -2 * error:
            return "In the second half of the rows the agent did better than the constant; the first half is what learning cost."
        if self.table.typical_targets is not None:
            return "Most targets are in a small part of the range of actions; with a narrower range, the agent may do better."
        if self._regression is None:
            return "With more rows, the agent may do better."
        if self._regression[0] >= NO_USE * self._losses["best_constant"]:
            return "A regression that knows the targets of other rows is hardly better, if at all: it finds little in these columns."
        return (
            "A regression that knows the targets of other rows does better, so these columns say something about the target. The "
            "agent sees each row once, and only the outcome of its own action: with more rows, it may do better."
        )

    @property
    def explored(self) -> float | None:
        """The share of the rows whose action was drawn outside the greedy window."""
        cost = self.run.exploration_cost
        return None if cost is None else cost.explored / cost.rows

    @property
    def _exploration(self) -> ExplorationCost | None:
        """What exploration cost; with rewards, it is no share of a loss."""
        cost = self.run.exploration_cost
        return replace(cost, mean_loss=None) if cost is not None and self.log.outcome.higher else cost

    def as_dict(self) -> dict[str, Any]:
        exploration = self._exploration
        stated = self.log.outcome.from_loss
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
            "warnings": [
                *(sentence for column in self.table.profiles for sentence in column.warnings),
                *([] if self.objection is None else [self.objection]),
            ],
        }

    def __str__(self) -> str:
        values = self.as_dict()
        values["actions"] = self.table.describe_actions()
        cost = str(self._exploration or "cost unknown: every action was drawn from the whole range")
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
        if name.startswith("recent_") and self._recent_rows < FEW_ROWS:
            parts.append("1 row" if self._recent_rows == 1 else f"{self._recent_rows} rows")
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


def _mean_and_error(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def _format(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
