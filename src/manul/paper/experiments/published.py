"""The authors' published results, from the output of their notebook; losses are scaled to [0, 1]."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from manul.paper.experiments import methods

NAMES = {
    "BNG_wisconsin": "wisconsin",
    "BNG_auto_price": "auto_price",
    "BNG_cpu_act": "cpu_act",
    "black_friday": "black_friday",
    "ds_5": "ds",
    "zurich": "zurich_delay",
}
METHODS = {"cats": methods.PAPER, "disc_tree": methods.TREE, "disc_linear": methods.LINEAR}
# The number of rows that the published times are for.
ROWS = dict.fromkeys(NAMES.values(), 1_000_000) | {"black_friday": 166_821, "zurich_delay": 5_465_575}


@dataclass(frozen=True)
class Online:
    """One cell; `player` is our name for the same method."""

    dataset: str
    player: str
    leaves: int
    bandwidth: float | None
    loss: float
    seconds: float

    @property
    def microseconds(self) -> float:
        return self.seconds * 1e6 / ROWS[self.dataset]


@dataclass(frozen=True)
class Offline:
    """Test losses of the logging policy and of CATS_Off, each with half the width of its interval."""

    dataset: str
    initial: float
    initial_half: float
    optimised: float
    optimised_half: float


@cache
def online() -> tuple[Online, ...]:
    """All published cells."""
    return tuple(
        Online(
            NAMES[row["dataset"]],
            METHODS[row["model"]],
            int(row["K"]),
            int(row["bandwidth_in_leaves"]) / int(row["K"]) or None,
            float(row["progressive_abs_loss"]),
            float(row["seconds"]),
        )
        for row in _rows("paper_online.csv")
    )


@cache
def best(dataset: str, player: str) -> Online | None:
    """The published cell with the lowest loss.

    >>> best("ds", "Cats.paper").loss
    0.094689
    """
    cells = [cell for cell in online() if (cell.dataset, cell.player) == (dataset, player)]
    return min(cells, key=lambda cell: cell.loss, default=None)


@cache
def offline() -> dict[str, Offline]:
    """The published test losses, by dataset."""
    rows = (list(row.values()) for row in _rows("paper_offline.csv"))
    return {NAMES[name]: Offline(NAMES[name], *map(float, numbers)) for name, *numbers in rows}


def _rows(name: str) -> list[dict[str, str]]:
    text = files("manul.paper.experiments").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
