"""The methods of the experiments: those of the paper with all their settings, and manul's own agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log2
from typing import Any

from manul.agents.adaptive import AdaptiveCats
from manul.agents.agent_registry import DEFAULT_BANDWIDTH, DEFAULT_LEAVES
from manul.agents.auto import Auto
from manul.agents.cats import Cats
from manul.agents.discrete import DiscreteLinear, DiscreteTree
from manul.agents.learners import CoinBetting
from manul.offpolicy.optimization.grid import Grid, Rule
from manul.policies.policy import Agent

EPSILON = 0.05
POWERS = range(1, 14)
_MARGIN = CoinBetting(target="margin")

PAPER, MARGIN, TREE, LINEAR = "Cats.paper", "Cats.paper, margin", "dTree", "dLinear"
OURS, DEFAULT, ADAPTIVE, AUTO = (
    "Cats",
    f"Cats(leaves={DEFAULT_LEAVES}, bandwidth={DEFAULT_BANDWIDTH})",
    "AdaptiveCats",
    "Auto",
)
# Methods whose time per round is proportional to the leaves, not to their logarithm.
EVERY_LEAF = (LINEAR, "VW dLinear")
CONSTANT, OPTIMUM = "best constant", "smoothed optimum"
INITIAL = "initial (logged)"
RULES: dict[Rule, str] = {"paper": "CATS_Off (paper)", "path": "CATS_Off (rule of Cats)"}


@dataclass(frozen=True)
class Player:
    """A method with its settings; `make` returns a new agent for a seed, `cost` is the estimated time per round in µs."""

    name: str
    leaves: int | None
    bandwidth: float | None
    make: Callable[[int], Agent]
    cost: float


def tree(name: str, leaves: int, bandwidth: float) -> Player:
    """A variant of CATS."""
    settings: dict[str, Any] = {"leaves": leaves, "bandwidth": bandwidth, "epsilon": EPSILON}
    makers: dict[str, Callable[[int], Agent]] = {
        PAPER: lambda seed: Cats.paper(seed=seed, **settings),
        MARGIN: lambda seed: Cats.paper(seed=seed, learner=_MARGIN, **settings),
    }
    make = makers.get(name, lambda seed: Cats(seed=seed, **settings))
    cost = 0.25 + 0.04 * log2(leaves) if name in makers else 0.5 + 0.13 * log2(leaves)
    return Player(name, leaves, bandwidth, make, cost)


def discrete(name: str, leaves: int) -> Player:
    kind = DiscreteTree if name == TREE else DiscreteLinear
    cost = 0.1 + 0.05 * log2(leaves) if name == TREE else 0.2 + 0.026 * leaves
    return Player(name, leaves, None, lambda seed: kind(leaves=leaves, epsilon=EPSILON, seed=seed), cost)


def online() -> Iterator[Player]:
    """Three variants of CATS over the paper's grid, the comparators with the paper's settings, and manul's agents."""
    for name in (PAPER, MARGIN, OURS):
        yield from (tree(name, leaves, bandwidth) for bandwidth, leaves in Grid.paper().cells)
    for name in (TREE, LINEAR):
        yield from (discrete(name, 2**power) for power in POWERS)
    yield tree(DEFAULT, DEFAULT_LEAVES, float(DEFAULT_BANDWIDTH))
    yield Player(ADAPTIVE, 256, None, lambda seed: AdaptiveCats(leaves=256, epsilon=EPSILON, seed=seed), 14.0)
    yield Player(AUTO, None, None, lambda seed: Auto(epsilon=EPSILON, seed=seed), 14.0)
