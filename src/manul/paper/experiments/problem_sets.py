"""What is played: the sets that were asked for, as worlds of so many rounds."""

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
from manul.worlds import Regression

SUFFIXED = ("csv", "arff", "parquet", "gz")


@dataclass(frozen=True, eq=False)
class Problem:
    """A world with a name; `origin` says where its rows are from."""

    name: str
    world: Regression
    seed: int
    origin: str

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return len(self.world)

    @property
    def width(self) -> int:
        """How many numbers a context has."""
        return int(self.world.contexts.shape[1])

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What a result is a result of: the bytes of the world, and the seed of the agents."""
        digest = hashlib.sha256(self.world.contexts.tobytes())
        digest.update(self.world.targets.tobytes())
        return {"dataset": self.name, "rounds": self.rounds, "data": digest.hexdigest()[:16], "seed": self.seed}

    def part(self, first: int, last: int) -> Regression:
        """Some of the rounds."""
        return Regression(self.world.contexts[first:last], self.world.targets[first:last])


@dataclass(frozen=True)
class Wanted:
    """Which problems were asked for; a file of one's own with its target takes the place of the named sets."""

    names: Sequence[str] | None = None
    rounds: int | None = None
    seed: int = 0
    data: Path | None = None
    target: str | None = None

    def check(self) -> None:
        """Refuses what cannot work before anything is played."""
        if self.rounds is not None:
            check_whole_number("rounds", self.rounds, 100, None, "Try 100000.")
        if self.is_own:
            if self.names is not None:
                raise ParameterError(
                    f"datasets must be left out if data is a table; got {', '.join(self.names)}.", "datasets"
                )
            return
        if self.target is not None:
            raise ParameterError(f"target must go with data; got {self.target!r}. Add --data FILE.", "target")
        for name in self._all:
            if check_name(name) != "ds":
                find_file(name, self.data)

    @property
    def is_own(self) -> bool:
        """Whether a file takes the place of the named sets."""
        if self.data is None or self.data.suffix.lstrip(".").lower() not in SUFFIXED:
            return False
        if self.target is None:
            raise ParameterError(
                f"target must be the column of {self.data.name} to predict; got none. Add --target NAME.", "target"
            )
        return True

    def problems(self) -> list[Problem]:
        """Read or draw them all."""
        if self.is_own:
            assert self.data is not None
            assert self.target is not None
            read = datasets.read(self.data, target=self.target)
            return [self._shuffled(read, f"{self.data.name}, target {self.target}")]
        return [self._named(name) for name in self._all]

    @property
    def _all(self) -> Sequence[str]:
        return datasets.NAMES if self.names is None else tuple(dict.fromkeys(self.names))

    def _named(self, name: str) -> Problem:
        read = datasets.load(name, rows=self.rounds if name == "ds" else None, seed=self.seed, data=self.data)
        if name == "ds":
            return Problem(name, Regression(read.contexts, read.targets), self.seed, "drawn by the authors' recipe")
        return self._shuffled(read, f"OpenML file {SOURCES[name].file}")

    def _shuffled(self, read: datasets.Dataset, origin: str) -> Problem:
        world = read.shuffled(self.seed, self.rounds)
        low, high = read.span
        told = f"{origin}; rows in the order of the seed, targets from [{low:g}, {high:g}] to [0, 1]"
        return Problem(read.name, world, self.seed, told)
