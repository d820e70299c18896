"""Agents: they decide, and learn from what each decision led to."""

from manul.agents.adaptive import AdaptiveCats
from manul.agents.cats import Cats

__all__ = ["AdaptiveCats", "Cats"]
