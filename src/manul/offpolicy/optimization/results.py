"""The results of off-policy optimization: one row per candidate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from manul.offpolicy.evaluation.objections import SMALL
from manul.outcomes import LOSSES, Outcome
from manul.utils import html_cards
from manul.utils.atomic_files import write_csv

MOST_PRINTED = 10  # rows of a table; of more candidates, the best are printed


class Row(NamedTuple):
    """One candidate: its bandwidth in action units, and its estimated loss with the penalty for its uncertainty.

    `effective_size` is the effective number of logged decisions that match those of the candidate.
    """

    candidate: str
    bandwidth: float | None
    leaves: int | None
    estimate: float
    penalty: float
    objective: float
    effective_size: float = math.nan

    def stated(self, outcome: Outcome) -> Row:
        """The row in the sign of the outcome: the objective of rewards is the reward minus the penalty."""
        return self._replace(estimate=outcome.from_loss(self.estimate), objective=outcome.from_loss(self.objective))


@dataclass(frozen=True)
class Table:
    """One row per candidate, in the order of the grid; `references` are other policies, which are only printed.

    Of more than ten rows, the ten with the lowest objectives are printed, the lowest first. `chosen` is the index of the
    chosen row, by default the one with the lowest objective. If the `outcome` of the log is a reward, the rows have negative
    rewards all the same, and rewards are printed and written: a column `reward`, and the objective is the reward minus the penalty.
    Estimates from fewer than 30 matching decisions are printed as "?".

    >>> print(Table((Row("Cats", 0.25, 4, 0.2, 0.01, 0.21, 70), Row("Cats", 0.125, 8, 0.1, 0.02, 0.12, 9))))
    candidate  bandwidth  leaves  estimate  penalty  objective  matching
    Cats            0.25       4   0.20000  0.01000    0.21000        70
    Cats           0.125       8         ?        ?          ?         9  <- lowest
    ?: fewer than 30 logged decisions match those of the candidate.
    """

    rows: tuple[Row, ...]
    references: tuple[Row, ...] = ()
    chosen: int | None = None
    outcome: Outcome = LOSSES

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def lowest(self) -> int:
        """The index of the row with the lowest objective; the first one if several have it."""
        return min(range(len(self)), key=lambda index: self.rows[index].objective)

    def to_csv(self, path: str | Path) -> None:
        """Write the table as CSV, with full precision.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Table((Row("Cats", 0.25, 4, 0.2, 0.01, 0.21),)).to_csv(Path(folder, "table.csv"))
        ...     print(Path(folder, "table.csv").read_text())
        candidate,bandwidth,leaves,estimate,penalty,objective,effective_size
        Cats,0.25,4,0.2,0.01,0.21,nan
        """
        write_csv(path, self._header, map(self._stated, (*self.rows, *self.references)))

    @property
    def _header(self) -> tuple[str, ...]:
        return tuple("reward" if self.outcome.higher and name == "estimate" else name for name in Row._fields)

    def _stated(self, row: Row) -> Row:
        return row.stated(self.outcome)

    @property
    def marked(self) -> int:
        """The index of the row that is marked when the table is printed."""
        return self.lowest if self.chosen is None else self.chosen

    def cells(self) -> list[list[str]]:
        """The names of the columns and the rows that are printed; the last cell of each row is empty or a mark."""
        printed = self._printed_rows()
        rows = [self._stated(row) for row in [*(self.rows[index] for index in printed), *self.references]]
        counted = any(not math.isnan(row.effective_size) for row in rows)
        columns = len(Row._fields) if counted else len(Row._fields) - 1
        cells = [[*cells[:columns], ""] for cells in ((*self._header[:-1], "matching"), *map(_cells, rows))]
        best = "highest" if self.outcome.higher else "lowest"
        cells[1 + printed.index(self.marked)][-1] = f"<- {best if self.chosen is None else 'chosen'}"
        return cells

    def notes(self) -> list[str]:
        """What is printed below the table."""
        notes = []
        if any(_few_match(row) for row in [*(self.rows[index] for index in self._printed_rows()), *self.references]):
            notes.append(f"?: fewer than {SMALL:g} logged decisions match those of the candidate.")
        if left_out := len(self) - len(self._printed_rows()):
            notes.append(f"and {left_out:,} more candidates")
        if self.outcome.higher:
            notes.append("Rewards are means; higher is better. The objective is the reward minus the penalty.")
        if self.marked != self.lowest:
            notes.append(
                "Of candidates that this log cannot distinguish, the critic with the narrowest bandwidth is chosen."
            )
        return notes

    def _repr_html_(self) -> str:
        names, *rows = self.cells()
        return html_cards.table("Candidates", names, rows, self.notes())

    def __str__(self) -> str:
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)][:-1]
        lines = []
        for *row, mark in cells:
            first, *rest = (text.rjust(width) for text, width in zip(row, widths, strict=True))
            lines.append("  ".join([row[0].ljust(len(first)), *rest, *([mark] if mark else [])]))
        return "\n".join([*lines, *self.notes()])

    def _printed_rows(self) -> list[int]:
        if len(self) <= MOST_PRINTED:
            return list(range(len(self)))
        best = sorted(range(len(self)), key=lambda index: self.rows[index].objective)[:MOST_PRINTED]
        return best if self.chosen is None or self.chosen in best else [*best, self.chosen]


def _few_match(row: Row) -> bool:
    return row.effective_size < SMALL  # not if it is NaN


def _cells(row: Row) -> tuple[str, ...]:
    losses = ("?" if _few_match(row) else f"{value:.5f}" for value in (row.estimate, row.penalty, row.objective))
    bandwidth = "" if row.bandwidth is None else f"{row.bandwidth:.6g}"
    size = "" if math.isnan(row.effective_size) else f"{row.effective_size:,.0f}"
    return row.candidate, bandwidth, "" if row.leaves is None else str(row.leaves), *losses, size
