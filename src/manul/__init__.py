"""Contextual bandits with continuous actions: learn which number to pick, from what each number led to."""

from typing import TYPE_CHECKING

from manul import learners, maps, offpolicy, policies, worlds
from manul.agents import AdaptiveCats, Auto, Cats, DiscreteLinear, DiscreteTree, Mapped, ParetoGreedy, SmoothedGreedy
from manul.distribution import Atoms, Distribution
from manul.errors import ManulError
from manul.files import load
from manul.log import Log, LogWriter
from manul.offpolicy import Grid, Optimized, evaluate, optimize
from manul.simulate import Run, simulate, simulate_many
from manul.training import train_tree
from manul.tree import TreePolicy
from manul.types import Agent, Decision, Decisions, Estimate, Policy

if TYPE_CHECKING:
    from manul.client import AsyncClient, Client

__version__ = "0.1.0"

__all__ = [
    "AdaptiveCats",
    "Agent",
    "AsyncClient",
    "Atoms",
    "Auto",
    "Cats",
    "Client",
    "Decision",
    "Decisions",
    "DiscreteLinear",
    "DiscreteTree",
    "Distribution",
    "Estimate",
    "Grid",
    "Log",
    "LogWriter",
    "ManulError",
    "Mapped",
    "Optimized",
    "ParetoGreedy",
    "Policy",
    "Run",
    "SmoothedGreedy",
    "TreePolicy",
    "evaluate",
    "learners",
    "load",
    "maps",
    "offpolicy",
    "optimize",
    "policies",
    "simulate",
    "simulate_many",
    "train_tree",
    "worlds",
]


def __getattr__(name: str) -> object:
    if name not in ("AsyncClient", "Client"):
        raise AttributeError(f"module 'manul' has no attribute {name!r}")
    from manul import client

    return getattr(client, name)
