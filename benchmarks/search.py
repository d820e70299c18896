"""The search for Vowpal Wabbit's best cell in hindsight, with all losses saved in a file.

Every cell runs over all rounds with one seed; the best six run with every seed, and the lowest mean loss of these wins.
Fewer rounds would mislead: small bandwidths start badly, and on flights the best cell after 200,000 rounds is the
eighteenth after 20,000. Six, because the losses of two seeds of Vowpal Wabbit can differ by a fifth.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from manul.paper.experiments.methods import EPSILON
from manul.paper.experiments.vowpal_wabbit import Cell

FINALISTS = 6

Measure = Callable[[Cell, int, int], float]
"""The loss of a cell with a seed over the first rounds."""


@dataclass(frozen=True)
class Best:
    """The best cell, its loss with each seed, and a description of the runs."""

    cell: Cell
    losses: tuple[float, ...]
    runs: str


class LossFile:
    """Losses of Vowpal Wabbit in a JSON file, by a hash of the data, the cell, the rounds and the seed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.losses: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}

    def get(self, data: str, cell: Cell, *, rounds: int, seed: int, measure: Callable[[], float]) -> float:
        """The saved loss, or the result of `measure`, which is then saved."""
        key = " ".join([data, *(f"{name}={value}" for name, value in asdict(cell).items()), f"{rounds=} {seed=}"])
        if key not in self.losses:
            self.losses[key] = measure()
            print(f"  vw {label(cell)} seed {seed} {rounds} rounds: {self.losses[key]:.4f}", file=sys.stderr)
            self._write()
        return self.losses[key]

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(self.path.name + ".partial")
        partial.write_text(json.dumps(self.losses, indent=0, sort_keys=True))
        partial.replace(self.path)


def best(
    cells: Sequence[Cell],
    measure: Measure,
    *,
    rounds: int,
    seeds: Sequence[int],
    epsilons: Sequence[float] = (EPSILON,),
) -> Best:
    """Find the cell with the lowest mean loss over the seeds, among those that are best with the first seed.

    These finalists run with all `epsilons`.

    >>> cells = [Cell(kind="dtree", leaves=2**power) for power in range(1, 8)]
    >>> best(cells, lambda cell, seed, rounds: abs(cell.leaves - 16) / 100, rounds=100, seeds=(0, 1)).cell.leaves
    16
    """
    first = [measure(cell, seeds[0], rounds) for cell in cells]
    leading = [cells[number] for number in np.argsort(first, kind="stable")[:FINALISTS]]
    finalists = [replace(cell, epsilon=epsilon) for epsilon in epsilons for cell in leading]
    known = {(cell, seeds[0]): loss for cell, loss in zip(cells, first, strict=True)}
    losses = [
        tuple(known[cell, seed] if (cell, seed) in known else measure(cell, seed, rounds) for seed in seeds)
        for cell in finalists
    ]
    winner = int(np.argmin([np.mean(each) for each in losses]))
    runs = f"{len(cells)} cells, one seed; {len(finalists)} cells, {len(seeds)} seeds"
    return Best(finalists[winner], losses[winner], runs)


def label(cell: Cell) -> str:
    """A short description of a cell.

    >>> label(Cell(kind="cats", leaves=16, bandwidth=1 / 8))
    'cats 16, 1/8'
    >>> label(Cell(kind="dtree", leaves=16, epsilon=0.01))
    'dtree 16, epsilon 0.01'
    """
    bandwidth = f", 1/{round(1 / cell.bandwidth)}" if cell.bandwidth else ""
    epsilon = f", epsilon {cell.epsilon:g}" if cell.epsilon != EPSILON else ""
    return f"{cell.kind} {cell.leaves}{bandwidth}{epsilon}"
