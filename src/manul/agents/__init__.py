"""Agents: they decide, and learn from what each decision led to."""

from manul.agents.cats import Cats
from manul.agents.discrete import DiscreteLinear, DiscreteTree

__all__ = ["Cats", "DiscreteLinear", "DiscreteTree"]
