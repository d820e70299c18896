"""Contextual bandits with continuous actions: learn which number to choose from the results of past choices."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manul import checks as checks
    from manul import errors as errors
    from manul import inspection as inspection
    from manul import offpolicy as offpolicy
    from manul import plotting as plotting
    from manul import policies as policies
    from manul import worlds as worlds
    from manul.actions import schedules as schedules
    from manul.actions.decision import Decision as Decision
    from manul.actions.decision import Decisions as Decisions
    from manul.actions.distribution import Atoms as Atoms
    from manul.actions.distribution import Distribution as Distribution
    from manul.actions.kinds.choice import Choice as Choice
    from manul.actions.kinds.span import Span as Span
    from manul.actions.kinds.stepped import Stepped as Stepped
    from manul.actions.space import ActionSpace as ActionSpace
    from manul.agents import AdaptiveCats as AdaptiveCats
    from manul.agents import Auto as Auto
    from manul.agents import Cats as Cats
    from manul.agents import DiscreteLinear as DiscreteLinear
    from manul.agents import DiscreteTree as DiscreteTree
    from manul.agents import Mapped as Mapped
    from manul.agents import ParetoGreedy as ParetoGreedy
    from manul.agents import Rollout as Rollout
    from manul.agents import SmoothedGreedy as SmoothedGreedy
    from manul.agents import learners as learners
    from manul.agents.agent_registry import register_agent as register_agent
    from manul.contexts import maps as maps
    from manul.contexts.schema import ContextSchema as ContextSchema
    from manul.errors import ManulError as ManulError
    from manul.logs.density_models import register_density_model as register_density_model
    from manul.logs.formats import register_format as register_format
    from manul.logs.log import Log as Log
    from manul.logs.log import LogWriter as LogWriter
    from manul.offpolicy import Comparison as Comparison
    from manul.offpolicy import Grid as Grid
    from manul.offpolicy import Optimized as Optimized
    from manul.offpolicy import compare as compare
    from manul.offpolicy import evaluate as evaluate
    from manul.offpolicy import optimize as optimize
    from manul.offpolicy.estimate import Estimate as Estimate
    from manul.offpolicy.estimate import Objection as Objection
    from manul.offpolicy.evaluation.estimators import register_estimator as register_estimator
    from manul.offpolicy.evaluation.intervals import register_interval as register_interval
    from manul.offpolicy.evaluation.outcome_model import register_outcome_model as register_outcome_model
    from manul.outcomes import Outcome as Outcome
    from manul.outcomes import Wait as Wait
    from manul.paper import datasets as datasets
    from manul.policies import theory as theory
    from manul.policies.classifier_tree import TreePolicy as TreePolicy
    from manul.policies.policy import Agent as Agent
    from manul.policies.policy import Policy as Policy
    from manul.policies.tree_training import train_tree as train_tree
    from manul.service.client import AsyncClient as AsyncClient
    from manul.service.client import Client as Client
    from manul.service.store.store_registry import register_store as register_store
    from manul.utils.model_files import dumps as dumps
    from manul.utils.model_files import load as load
    from manul.utils.model_files import loads as loads
    from manul.worlds.simulation import Run as Run
    from manul.worlds.simulation import simulate as simulate
    from manul.worlds.simulation import simulate_many as simulate_many

__version__ = "0.1.0"

# The module that defines each public name. A name is imported when it is first used, so `import manul` is fast.
_NAMES = {
    "actions.decision": "Decision Decisions",
    "actions.distribution": "Atoms Distribution",
    "actions.kinds.choice": "Choice",
    "actions.kinds.span": "Span",
    "actions.kinds.stepped": "Stepped",
    "actions.space": "ActionSpace",
    "agents": "AdaptiveCats Auto Cats DiscreteLinear DiscreteTree Mapped ParetoGreedy Rollout SmoothedGreedy",
    "agents.agent_registry": "register_agent",
    "errors": "ManulError",
    "logs.density_models": "register_density_model",
    "logs.formats": "register_format",
    "contexts.schema": "ContextSchema",
    "logs.log": "Log LogWriter",
    "offpolicy": "Comparison Grid Optimized compare evaluate optimize",
    "offpolicy.evaluation.estimators": "register_estimator",
    "offpolicy.evaluation.intervals": "register_interval",
    "offpolicy.evaluation.outcome_model": "register_outcome_model",
    "offpolicy.estimate": "Estimate Objection",
    "outcomes": "Outcome Wait",
    "policies.classifier_tree": "TreePolicy",
    "policies.policy": "Agent Policy",
    "policies.tree_training": "train_tree",
    "service.client": "AsyncClient Client",
    "service.store.store_registry": "register_store",
    "utils.model_files": "dumps load loads",
    "worlds.simulation": "Run simulate simulate_many",
}
_PUBLIC_MODULES = (
    "actions.schedules agents.learners checks contexts.maps errors inspection offpolicy paper.datasets policies plotting "
    "policies.theory worlds"
)
_MODULES = {path.rpartition(".")[2]: path for path in _PUBLIC_MODULES.split()}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(import_module(f"manul.{_HOMES[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"manul.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'manul' has no attribute {name!r}", name=name, obj=import_module("manul"))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
