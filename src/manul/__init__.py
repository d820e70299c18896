"""Contextual bandits with continuous actions: learn which number to pick, from what each number led to."""

from manul import learners, policies, worlds
from manul.agents import Cats, ParetoGreedy, SmoothedGreedy
from manul.distribution import Distribution
from manul.errors import ManulError
from manul.files import load
from manul.log import Log
from manul.simulate import Run, simulate, simulate_many
from manul.types import Agent, Decision, Decisions, Policy

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Cats",
    "Decision",
    "Decisions",
    "Distribution",
    "Log",
    "ManulError",
    "ParetoGreedy",
    "Policy",
    "Run",
    "SmoothedGreedy",
    "learners",
    "load",
    "policies",
    "simulate",
    "simulate_many",
    "worlds",
]
