"""Tables of results: rows of names and numbers, written as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manul.actions.decision import Within
from manul.offpolicy.evaluation.intervals import ClopperPearson
from manul.utils.atomic_files import write_csv

Row = dict[str, Any]


def clopper_pearson(mean: float, rounds: int, level: float = 0.95) -> Within:
    """The paper's interval for a mean of losses in [0, 1].

    >>> [round(end, 3) for end in clopper_pearson(0.5, 100)]
    [0.398, 0.602]
    """
    interval = ClopperPearson()
    interval.count, interval.total = rounds, mean * rounds
    return interval.ends(level, 1.0)


def loss_row(dataset: str, player: str, leaves: int | None, bandwidth: float | None, loss: float, rounds: int) -> Row:
    """The row of a mean loss of one method with its settings."""
    low, high = clopper_pearson(loss, rounds)
    row: Row = {"dataset": dataset, "player": player, "leaves": leaves, "bandwidth": bandwidth, "rounds": rounds}
    return {**row, "loss": loss, "low": low, "high": high}


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV at full precision, atomically.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder, "t.csv"), [{"player": "Auto", "loss": 0.5, "leaves": None}])
    ...     Path(folder, "t.csv").read_text().splitlines()
    ['player,loss,leaves', 'Auto,0.5,']
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    write_csv(path, names, ([row.get(name) for name in names] for row in rows))


def power_of_two(power: int) -> str:
    """2 with a superscript exponent in Unicode, because matplotlib typesets formulas slowly.

    >>> power_of_two(-13)
    '2⁻¹³'
    """
    return "2" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] if digit != "-" else "⁻" for digit in str(power))
