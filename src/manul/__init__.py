"""Contextual bandits with continuous actions: learn which number to pick, from what each number led to."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manul import checks, datasets, errors, learners, maps, offpolicy, plots, policies, theory, worlds
    from manul.agents import (
        AdaptiveCats,
        Auto,
        Cats,
        DiscreteLinear,
        DiscreteTree,
        Mapped,
        ParetoGreedy,
        SmoothedGreedy,
    )
    from manul.client import AsyncClient, Client
    from manul.distribution import Atoms, Distribution
    from manul.errors import ManulError
    from manul.files import dumps, load, loads
    from manul.log import Log, LogWriter
    from manul.offpolicy.estimators import evaluate
    from manul.offpolicy.grid import Grid
    from manul.offpolicy.optimize import Optimized, optimize
    from manul.simulation import Run, simulate, simulate_many
    from manul.training import train_tree
    from manul.tree import TreePolicy
    from manul.types import Agent, Decision, Decisions, Estimate, Policy

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
    "checks",
    "datasets",
    "dumps",
    "errors",
    "evaluate",
    "learners",
    "load",
    "loads",
    "maps",
    "offpolicy",
    "optimize",
    "plots",
    "policies",
    "simulate",
    "simulate_many",
    "theory",
    "train_tree",
    "worlds",
]

# Where each name is from, so that it is imported when it is first used.
_NAMES = {
    "agents": "AdaptiveCats Auto Cats DiscreteLinear DiscreteTree Mapped ParetoGreedy SmoothedGreedy",
    "client": "AsyncClient Client",
    "distribution": "Atoms Distribution",
    "errors": "ManulError",
    "files": "dumps load loads",
    "log": "Log LogWriter",
    "offpolicy": "Grid Optimized evaluate optimize",
    "simulation": "Run simulate simulate_many",
    "training": "train_tree",
    "tree": "TreePolicy",
    "types": "Agent Decision Decisions Estimate Policy",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        found = getattr(import_module(f"manul.{_HOMES[name]}"), name)
    elif name in __all__:
        found = import_module(f"manul.{name}")
    else:
        raise AttributeError(f"module 'manul' has no attribute {name!r}", name=name, obj=import_module("manul"))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
