"""Contextual bandits with continuous actions: learn which number to pick, from what each number led to."""

from manul import learners, maps, policies, worlds
from manul.agents import AdaptiveCats, Auto, Cats, DiscreteLinear, DiscreteTree, Mapped, ParetoGreedy, SmoothedGreedy
from manul.distribution import Atoms, Distribution
from manul.errors import ManulError
from manul.files import load
from manul.log import Log
from manul.simulate import Run, simulate, simulate_many
from manul.training import train_tree
from manul.tree import TreePolicy
from manul.types import Agent, Decision, Decisions, Policy

__version__ = "0.1.0"

__all__ = [
    "AdaptiveCats",
    "Agent",
    "Atoms",
    "Auto",
    "Cats",
    "Decision",
    "Decisions",
    "DiscreteLinear",
    "DiscreteTree",
    "Distribution",
    "Log",
    "ManulError",
    "Mapped",
    "ParetoGreedy",
    "Policy",
    "Run",
    "SmoothedGreedy",
    "TreePolicy",
    "learners",
    "load",
    "maps",
    "policies",
    "simulate",
    "simulate_many",
    "train_tree",
    "worlds",
]
