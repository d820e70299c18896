"""The candidates of off-policy optimisation: cells of (bandwidth, leaves), and other agents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, Literal, Protocol, Self, runtime_checkable

from manul.actions.decision import Within
from manul.actions.ranges import Actions
from manul.actions.schedules import Epsilon
from manul.agents.agent_registry import AGENTS, AgentEntry
from manul.agents.base import BaseAgent
from manul.agents.cats import Cats
from manul.agents.learners import CoinBetting
from manul.errors import ParameterError
from manul.utils.validation import check_bandwidth, check_choice, check_leaves

Rule = Literal["path", "paper", "margin"]
Cell = tuple[float, int]
AnyAgent = BaseAgent[Any]
Make = Callable[..., AnyAgent]
RULES: dict[str, Make] = {
    "path": Cats,
    "paper": Cats.paper,
    "margin": partial(Cats.paper, learner=CoinBetting(target="margin")),
}


@runtime_checkable
class HasBandwidth(Protocol):
    bandwidth: float | None


def bandwidth_of(agent: AnyAgent) -> float | None:
    """The bandwidth of an agent; 0 if it has no density, None if it chooses one in every decision."""
    return agent.bandwidth if isinstance(agent, HasBandwidth) else 0.0


@dataclass(frozen=True)
class Candidate:
    """An untrained agent with a name; copies of it are trained."""

    name: str
    agent: AnyAgent

    @property
    def bandwidth(self) -> float | None:
        return bandwidth_of(self.agent)


@dataclass(frozen=True, init=False)
class Grid:
    """Cells of (bandwidth as a share of the range, leaves): the given cells and all pairs of `bandwidths` and `leaves`.

    `others` are other candidates: names of registered agents, which get default settings, or a mapping of names to
    functions of the keywords actions, losses, epsilon and seed that return agents.

    >>> import manul
    >>> def line(**settings):
    ...     return manul.agents.SmoothedGreedy(policies=manul.policies.Linear(), bandwidth=1/16, **settings)
    >>> len(Grid(bandwidths=[1/4, 1/8], leaves=[16, 64], others={"line": line}))
    5
    >>> Grid(bandwidths=[1/4], leaves=[16], others=["linear"]).others.keys()
    dict_keys(['linear'])
    """

    cells: tuple[Cell, ...]
    others: Mapping[str, Make] = field(default_factory=dict)

    def __init__(
        self,
        *,
        bandwidths: Iterable[float] = (),
        leaves: Iterable[int] = (),
        cells: Iterable[Cell] = (),
        others: Mapping[str, Make] | Iterable[str] = (),
    ) -> None:
        whole = Actions(0.0, 1.0)
        pairs = dict.fromkeys([*cells, *product(bandwidths, leaves)])
        cells = tuple((check_bandwidth(share, whole), check_leaves(count)) for share, count in pairs)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "others", _others(others))
        if not len(self):
            raise ParameterError("grid must have at least one cell, got none. Try Grid.paper().", "grid")

    @classmethod
    def paper(cls, *, half: bool = True) -> Self:
        """The paper's grid J: h in 2^-13..2^-1, K in 2^2..2^13 and hK in 2^0..2^11; its experiments omit h = 1/2.

        >>> len(Grid.paper()), len(Grid.paper(half=False))
        (89, 78)
        """
        widest = 1 if half else 2
        powers = product(range(widest, 14), range(2, 14))
        return cls(cells=[(2.0**-h, 2**k) for h, k in powers if 0 <= k - h <= 11])

    @classmethod
    def small(cls) -> Self:
        """The cells of the paper's grid that are chosen most often: h in 2^-6..2^-3 and K in 2^3..2^7.

        >>> len(Grid.small())
        14
        """
        return cls(cells=[(2.0**-h, 2**k) for h, k in product(range(3, 7), range(2, 8)) if 0 <= k - h <= 4])

    def __len__(self) -> int:
        return len(self.cells) + len(self.others)

    def candidates(
        self, *, rule: Rule, actions: Within, losses: Within, epsilon: Epsilon, seed: int
    ) -> list[Candidate]:
        """The agents to train.

        >>> Grid(cells=[(1/8, 16)]).candidates(
        ...     rule="path", actions=(0, 32), losses=(0, 1), epsilon=0, seed=0)[0].agent
        Cats(actions=(0.0, 32.0), leaves=16, bandwidth=4.0, epsilon=0.0, ...)
        """
        check_choice("rule", rule, RULES)
        common = {"actions": actions, "losses": losses, "epsilon": epsilon, "seed": seed}
        name, span = "Cats" if rule == "path" else "Cats.paper", actions[1] - actions[0]
        trees = [
            Candidate(name, RULES[rule](bandwidth=share * span, leaves=leaves, **common))
            for share, leaves in self.cells
        ]
        return trees + [Candidate(other, make(**common)) for other, make in self.others.items()]


def _others(others: Mapping[str, Make] | Iterable[str]) -> dict[str, Make]:
    if isinstance(others, Mapping):
        return dict(others)
    return {name: partial(_make_registered, AGENTS[name]) for name in others}


def _make_registered(entry: AgentEntry, *, actions: Within, **common: Any) -> AnyAgent:
    agent: AnyAgent = entry.make(actions=actions, **entry.tree_settings(actions), **common)
    return agent
