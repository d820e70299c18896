"""Vowpal Wabbit's best cell in hindsight, and every run kept in a file.

Every cell plays all rounds with one seed; the best six play them with every seed, and the smallest mean of these is
*the best*. No cell is judged by fewer rounds: small bandwidths start badly, and on flights the cell that wins after
200,000 rounds is the eighteenth after 20,000. Six, because one seed of Vowpal Wabbit can lose a fifth more than the next.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from manul.paper.experiments.vowpal_wabbit import Cell

FINALISTS = 6

Measure = Callable[[Cell, int, int], float]
"""The loss of a cell with a seed over the first rounds."""


@dataclass(frozen=True)
class Best:
    """The best cell, its loss with each seed, and what was run to find it."""

    cell: Cell
    losses: tuple[float, ...]
    runs: str


class Memory:
    """Losses of Vowpal Wabbit by the bytes of the data, the cell, the rounds and the seed, in a JSON file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.losses: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}

    def recall(self, data: str, cell: Cell, *, rounds: int, seed: int, measure: Callable[[], float]) -> float:
        """What was measured before, or is now."""
        key = " ".join([data, *(f"{name}={value}" for name, value in asdict(cell).items()), f"{rounds=} {seed=}"])
        if key not in self.losses:
            self.losses[key] = measure()
            print(f"  vw {shown(cell)} seed {seed} {rounds} rounds: {self.losses[key]:.4f}", file=sys.stderr)
            self._write()
        return self.losses[key]

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(self.path.name + ".partial")
        partial.write_text(json.dumps(self.losses, indent=0, sort_keys=True))
        partial.replace(self.path)


def best(cells: Sequence[Cell], measure: Measure, *, rounds: int, seeds: Sequence[int]) -> Best:
    """The cell with the smallest mean loss over the seeds, of those that were best with the first one.

    >>> cells = [Cell(kind="dtree", leaves=2**power) for power in range(1, 8)]
    >>> best(cells, lambda cell, seed, rounds: abs(cell.leaves - 16) / 100, rounds=100, seeds=(0, 1)).cell.leaves
    16
    """
    first = [measure(cell, seeds[0], rounds) for cell in cells]
    finalists = np.argsort(first, kind="stable")[:FINALISTS]
    losses = [(first[number], *(measure(cells[number], seed, rounds) for seed in seeds[1:])) for number in finalists]
    winner = int(np.argmin([np.mean(each) for each in losses]))
    runs = f"{len(cells)} cells, one seed; {len(finalists)} cells, {len(seeds)} seeds"
    return Best(cells[finalists[winner]], losses[winner], runs)


def shown(cell: Cell) -> str:
    """The settings of a cell in a few letters.

    >>> shown(Cell(kind="cats", leaves=16, bandwidth=1 / 8))
    'cats 16, 1/8'
    """
    return f"{cell.kind} {cell.leaves}" + (f", 1/{round(1 / cell.bandwidth)}" if cell.bandwidth else "")
