"""Rollouts: an agent takes over from a baseline step by step, by evidence and within a guarantee."""

from manul.agents.rollout.rollout import Rollout as Rollout

__all__ = ["Rollout"]
