"""Agents: they decide, and learn from what each decision led to."""

from manul.agents.cats import Cats
from manul.agents.general import ParetoGreedy, SmoothedGreedy

__all__ = ["Cats", "ParetoGreedy", "SmoothedGreedy"]
