"""The problems of the experiments: the selected data sets as worlds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from manul.errors import ParameterError
from manul.paper import datasets
from manul.paper.datasets.catalogue import SOURCES, check_name, find_file
from manul.utils.validation import check_whole_number
from manul.worlds.regression import Regression


@dataclass(frozen=True, eq=False)
class Problem:
    """A world with a name; `origin` describes the source of its rows."""

    name: str
    world: Regression
    seed: int
    origin: str

    @property
    def rounds(self) -> int:
        return len(self.world)

    @property
    def width(self) -> int:
        return int(self.world.contexts.shape[1])

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The settings that identify a result: a hash of the data, and the seed of the agents."""
        digest = hashlib.sha256(self.world.contexts.tobytes())
        digest.update(self.world.targets.tobytes())
        return {"dataset": self.name, "rounds": self.rounds, "data": digest.hexdigest()[:16], "seed": self.seed}

    def part(self, first: int, last: int) -> Regression:
        return Regression(self.world.contexts[first:last], self.world.targets[first:last])


@dataclass(frozen=True)
class Selection:
    """The selected data sets, by name or as the user's own table with its target."""

    names: Sequence[str] | None = None
    rounds: int | None = None
    seed: int = 0
    data: Path | None = None
    target: str | None = None

    def check(self) -> None:
        if self.rounds is not None:
            check_whole_number("rounds", self.rounds, 100, None, "Try 100000.")
        if self.is_own:
            if self.names is not None:
                raise ParameterError(
                    f"datasets and data cannot be combined if data is a table, got {', '.join(self.names)}.", "datasets"
                )
            return
        if self.target is not None:
            raise ParameterError(f"target requires data, got target {self.target!r} alone. Add --data FILE.", "target")
        for name in self._all:
            if check_name(name) != "ds":
                find_file(name, self.data)

    @property
    def is_own(self) -> bool:
        """Whether the data are the user's own table."""
        if self.data is None or self.data.is_dir() or not self.data.suffix:  # a folder need not exist
            return False
        if self.target is None:
            raise ParameterError(
                f"{self.data.name} needs a target, the column to predict. Add --target NAME.", "target"
            )
        return True

    def problems(self) -> list[Problem]:
        if self.is_own:
            assert self.data is not None
            assert self.target is not None
            table = datasets.read(self.data, target=self.target)
            return [self._shuffle(table, f"{self.data.name}, target {self.target}")]
        return [self._load(name) for name in self._all]

    @property
    def _all(self) -> Sequence[str]:
        return datasets.NAMES if self.names is None else tuple(dict.fromkeys(self.names))

    def _load(self, name: str) -> Problem:
        table = datasets.load(name, rows=self.rounds if name == "ds" else None, seed=self.seed, data=self.data)
        if name == "ds":
            return Problem(name, Regression(table.contexts, table.targets), self.seed, "generated as in the paper")
        return self._shuffle(table, f"OpenML file {SOURCES[name].file}")

    def _shuffle(self, table: datasets.Dataset, origin: str) -> Problem:
        world = table.shuffle(self.seed, self.rounds)
        low, high = table.span
        description = f"{origin}; rows shuffled with the seed, targets scaled from [{low:g}, {high:g}] to [0, 1]"
        return Problem(table.name, world, self.seed, description)
