"""The results of off-policy optimization: one row per candidate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from manul.utils.atomic_files import write_csv
from manul.utils.rewards import negate

MOST_PRINTED = 10  # rows of a table; of more candidates, the best are printed


class Row(NamedTuple):
    """One candidate: its bandwidth in action units, and its estimated loss with the penalty for its uncertainty."""

    candidate: str
    bandwidth: float | None
    leaves: int | None
    estimate: float
    penalty: float
    objective: float

    def mirrored(self) -> Row:
        """The row with rewards instead of losses: the objective is the reward minus the penalty.

        >>> Row("auto", 0.25, None, -43.0, 2.0, -41.0).mirrored()[3:]
        (43.0, 2.0, 41.0)
        """
        return self._replace(estimate=negate(self.estimate), objective=negate(self.objective))


@dataclass(frozen=True)
class Table:
    """One row per candidate, in the order of the grid; `references` are other policies, which are only printed.

    Of more than ten rows, the ten with the lowest objectives are printed, the lowest first. `chosen` is the index of the
    chosen row, by default the one with the lowest objective. If the log has `rewards`, the rows have negative rewards all
    the same, and rewards are printed and written: a column `reward`, and the objective is the reward minus the penalty.

    >>> print(Table((Row("Cats", 0.25, 4, 0.2, 0.01, 0.21), Row("Cats", 0.125, 8, 0.1, 0.02, 0.12))))
    candidate  bandwidth  leaves  estimate  penalty  objective
    Cats            0.25       4   0.20000  0.01000    0.21000
    Cats           0.125       8   0.10000  0.02000    0.12000  <- lowest
    """

    rows: tuple[Row, ...]
    references: tuple[Row, ...] = ()
    chosen: int | None = None
    rewards: bool = False

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
        candidate,bandwidth,leaves,estimate,penalty,objective
        Cats,0.25,4,0.2,0.01,0.21
        """
        write_csv(path, self._header, map(self._stated, (*self.rows, *self.references)))

    @property
    def _header(self) -> tuple[str, ...]:
        return tuple("reward" if self.rewards and name == "estimate" else name for name in Row._fields)

    def _stated(self, row: Row) -> Row:
        return row.mirrored() if self.rewards else row

    def __str__(self) -> str:
        printed = self._printed_rows()
        rows = map(self._stated, [*(self.rows[index] for index in printed), *self.references])
        cells = [self._header, *map(_cells, rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(Row._fields))]
        lines = []
        for row in cells:
            first, *rest = (text.rjust(width) for text, width in zip(row, widths, strict=True))
            lines.append("  ".join([row[0].ljust(len(first)), *rest]))
        marked, mark = (
            (self.lowest, "highest" if self.rewards else "lowest") if self.chosen is None else (self.chosen, "chosen")
        )
        lines[1 + printed.index(marked)] += f"  <- {mark}"
        if left_out := len(self) - len(printed):
            lines.append(f"and {left_out:,} more candidates")
        if self.rewards:
            lines.append("Rewards are means; higher is better. The objective is the reward minus the penalty.")
        if marked != self.lowest:
            lines.append(
                "Of candidates that this log cannot distinguish, the critic with the narrowest bandwidth is chosen."
            )
        return "\n".join(lines)

    def _printed_rows(self) -> list[int]:
        if len(self) <= MOST_PRINTED:
            return list(range(len(self)))
        best = sorted(range(len(self)), key=lambda index: self.rows[index].objective)[:MOST_PRINTED]
        return best if self.chosen is None or self.chosen in best else [*best, self.chosen]


def _cells(row: Row) -> tuple[str, ...]:
    losses = (f"{value:.5f}" for value in (row.estimate, row.penalty, row.objective))
    bandwidth = "" if row.bandwidth is None else f"{row.bandwidth:.6g}"
    return (row.candidate, bandwidth, "" if row.leaves is None else str(row.leaves), *losses)
