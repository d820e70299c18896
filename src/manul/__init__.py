"""Contextual bandits with continuous actions: learn which number to pick, from what each number led to."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manul import errors, offpolicy, policies, worlds
    from manul.actions.distribution import Atoms, Distribution
    from manul.agents import (
        AdaptiveCats,
        Auto,
        Cats,
        DiscreteLinear,
        DiscreteTree,
        Mapped,
        ParetoGreedy,
        SmoothedGreedy,
        checks,
        learners,
    )
    from manul.contexts import maps
    from manul.errors import ManulError
    from manul.logs.log import Log, LogWriter
    from manul.offpolicy import Grid, Optimized, evaluate, optimize
    from manul.paper import datasets, theory
    from manul.policies.classifier_tree import TreePolicy
    from manul.policies.tree_training import train_tree
    from manul.service.client import AsyncClient, Client
    from manul.types import Agent, Decision, Decisions, Estimate, Policy
    from manul.utils import plotting
    from manul.utils.model_files import dumps, load, loads
    from manul.worlds.simulation import Run, simulate, simulate_many

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
    "plotting",
    "policies",
    "simulate",
    "simulate_many",
    "theory",
    "train_tree",
    "worlds",
]

# Where each name is from, so that it is imported when it is first used; modules that are public by another path below.
_NAMES = {
    "actions.distribution": "Atoms Distribution",
    "agents": "AdaptiveCats Auto Cats DiscreteLinear DiscreteTree Mapped ParetoGreedy SmoothedGreedy",
    "errors": "ManulError",
    "logs.log": "Log LogWriter",
    "offpolicy": "Grid Optimized evaluate optimize",
    "policies.classifier_tree": "TreePolicy",
    "policies.tree_training": "train_tree",
    "service.client": "AsyncClient Client",
    "types": "Agent Decision Decisions Estimate Policy",
    "utils.model_files": "dumps load loads",
    "worlds.simulation": "Run simulate simulate_many",
}
_MODULES = {
    "checks": "agents.checks",
    "datasets": "paper.datasets",
    "learners": "agents.learners",
    "maps": "contexts.maps",
    "plotting": "utils.plotting",
    "theory": "paper.theory",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        found = getattr(import_module(f"manul.{_HOMES[name]}"), name)
    elif name in __all__:
        found = import_module(f"manul.{_MODULES.get(name, name)}")
    else:
        raise AttributeError(f"module 'manul' has no attribute {name!r}", name=name, obj=import_module("manul"))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
