"""Agents: they decide, and learn from the losses of their decisions."""

from manul.agents.adaptive import AdaptiveCats
from manul.agents.auto import Auto
from manul.agents.cats import Cats
from manul.agents.discrete import DiscreteLinear, DiscreteTree
from manul.agents.greedy import ParetoGreedy, SmoothedGreedy
from manul.agents.mapped import Mapped
from manul.agents.player_host import expected_nbytes
from manul.agents.rollout import Rollout

__all__ = [
    "AdaptiveCats",
    "Auto",
    "Cats",
    "DiscreteLinear",
    "DiscreteTree",
    "Mapped",
    "ParetoGreedy",
    "Rollout",
    "SmoothedGreedy",
    "expected_nbytes",
]
