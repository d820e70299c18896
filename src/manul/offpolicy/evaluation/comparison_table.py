"""The table of a comparison of policies: losses or rewards, paired differences with intervals, and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from manul.offpolicy.estimate import Objection
from manul.outcomes import LOSSES, Outcome
from manul.utils import html_cards
from manul.utils.atomic_files import write_csv

_HEADER = ("policy", "against", "segment", "loss", "difference", "low", "high", "verdict", "rows", "effective size")


class RewardDifference(NamedTuple):
    """The mean reward of a policy, and how much higher it is than that of the other policy, with an interval."""

    value: float
    difference: float
    low: float
    high: float


class ComparisonRow(NamedTuple):
    """The loss of a policy minus that of the one it is compared with, with an interval; negative is better.

    If the `outcome` is a reward, `loss` and the differences are negative rewards all the same; `reward` has the rewards.
    """

    policy: str
    against: str
    segment: object
    loss: float
    difference: float
    low: float
    high: float
    rows: int
    effective_size: float
    objections: tuple[Objection, ...] = ()
    outcome: Outcome = LOSSES

    @property
    def reward(self) -> RewardDifference | None:
        """The mean reward and its difference, of which positive is better; None if the log has losses.

        >>> row = ComparisonRow("new", "logged", None, -43.0, -3.0, -5.0, -1.0, 1000, 120.0)
        >>> row._replace(outcome=Outcome.of(rewards="auto")).reward
        RewardDifference(value=43.0, difference=3.0, low=1.0, high=5.0)
        """
        return RewardDifference(*self.numbers) if self.outcome.higher else None

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """The loss, or the reward, and its difference with the ends of the interval, as they are printed."""
        shown = self.outcome.from_loss
        return shown(self.loss), shown(self.difference), *self.outcome.flip((self.low, self.high))

    @property
    def usable(self) -> bool:
        return all(objection.severity != "error" for objection in self.objections)

    @property
    def verdict(self) -> str:
        """Whether the interval shows that the policy is better or worse; with an objection that is an error, it does not."""
        if not self.usable:
            return "not shown"
        return "better" if self.high < 0 else "worse" if self.low > 0 else "not shown"


@dataclass(frozen=True)
class Comparison:
    """One row per policy and segment.

    >>> print(Comparison((ComparisonRow("new", "logged", None, 0.2, -0.1, -0.15, -0.05, 1000, 120.0),)))
    policy  against    loss  difference      low     high  verdict   rows  effective size
       new   logged  0.2000     -0.1000  -0.1500  -0.0500   better  1,000             120
    low and high: 95 % confidence interval of the difference
    """

    rows: tuple[ComparisonRow, ...]
    level: float = 0.95
    smoothing: tuple[tuple[str, str], ...] = ()  # names of functions, and the windows around their actions

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def outcome(self) -> Outcome:
        """What the log has: losses or rewards, which are printed."""
        return self.rows[0].outcome if self.rows else LOSSES

    @property
    def usable(self) -> bool:
        return all(row.usable for row in self.rows)

    def _repr_html_(self) -> str:
        names, *rows = self._table()
        return html_cards.table("Comparison", names, rows, self._notes())

    def _table(self) -> list[tuple[str, ...]]:
        """The names of the columns, and the cells of each row."""
        table = [tuple(map(self._stated, _HEADER)), *map(_cells, self.rows)]
        if all(row.segment is None for row in self.rows):
            table = [cells[:2] + cells[3:] for cells in table]
        return table

    def _notes(self) -> list[str]:
        """What is below the table, with all objections."""
        own = "" if all(row.segment is None for row in self.rows) else ", for each row on its own"
        better = f"; a higher {self.outcome.name} is better" if self.outcome.higher else ""
        notes = [f"low and high: {100 * self.level:g} % confidence interval of the difference{own}{better}"]
        notes += [f"{name}: smoothed over {window}" for name, window in self.smoothing]
        return notes + [f"{_name(row)}: {objection}" for row in self.rows for objection in row.objections]

    def __str__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)) for cells in table]
        return "\n".join(lines + self._notes())

    def _stated(self, name: str) -> str:
        return self.outcome.keyword if name == "loss" else name

    def to_csv(self, path: str | Path) -> None:
        """Write the table as CSV, with full precision; with a column `reward` instead of `loss` if the log has rewards.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     row = ComparisonRow("new", "logged", None, 0.2, -0.1, -0.15, -0.05, 1000, 120.0)
        ...     Comparison((row,)).to_csv(Path(folder, "table.csv"))
        ...     print(Path(folder, "table.csv").read_text())
        policy,against,segment,loss,difference,low,high,rows,effective_size,objections
        new,logged,,0.2,-0.1,-0.15,-0.05,1000,120.0,
        """
        names = [self._stated(name) for name in ComparisonRow._fields if name != "outcome"]
        rows = (
            (*row[:3], *row.numbers, row.rows, row.effective_size, " ".join(map(str, row.objections)))
            for row in self.rows
        )
        write_csv(path, names, rows)


def _name(row: ComparisonRow) -> str:
    return row.policy if row.segment is None else f"{row.policy}, {row.segment}"


def _cells(row: ComparisonRow) -> tuple[str, ...]:
    numbers = (f"{number:.4f}" if row.usable else "unknown" for number in row.numbers)
    size = f"{row.effective_size:,.0f}"
    return row.policy, row.against, str(row.segment), *numbers, row.verdict, f"{row.rows:,}", size
