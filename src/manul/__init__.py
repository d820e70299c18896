"""Contextual bandits with continuous actions: learn which number to choose from the results of past choices."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manul import agents as agents
    from manul import checks as checks
    from manul import errors as errors
    from manul import inspection as inspection
    from manul import offpolicy as offpolicy
    from manul import plotting as plotting
    from manul import policies as policies
    from manul import register as register
    from manul import worlds as worlds
    from manul.actions import schedules as schedules
    from manul.actions.decision import Decision as Decision
    from manul.actions.decision import Decisions as Decisions
    from manul.actions.distribution import Distribution as Distribution
    from manul.actions.kinds.choice import Choice as Choice
    from manul.actions.kinds.span import Span as Span
    from manul.actions.kinds.stepped import Stepped as Stepped
    from manul.actions.space import ActionSpace as ActionSpace
    from manul.agents import AdaptiveCats as AdaptiveCats
    from manul.agents import Auto as Auto
    from manul.agents import Cats as Cats
    from manul.agents import Mapped as Mapped
    from manul.agents import Rollout as Rollout
    from manul.agents import learners as learners
    from manul.contexts import maps as maps
    from manul.contexts.schema import ContextSchema as ContextSchema
    from manul.errors import ManulError as ManulError
    from manul.logs.log import Log as Log
    from manul.logs.log import LogWriter as LogWriter
    from manul.offpolicy import compare as compare
    from manul.offpolicy import doctor as doctor
    from manul.offpolicy import evaluate as evaluate
    from manul.offpolicy import optimize as optimize
    from manul.offpolicy.estimate import Estimate as Estimate
    from manul.outcomes import Outcome as Outcome
    from manul.outcomes import Wait as Wait
    from manul.outcomes.ready_made import Bid as Bid
    from manul.outcomes.ready_made import Sale as Sale
    from manul.paper import datasets as datasets
    from manul.policies import theory as theory
    from manul.service.client import AsyncClient as AsyncClient
    from manul.service.client import Client as Client
    from manul.utils.model_files import dumps as dumps
    from manul.utils.model_files import load as load
    from manul.utils.model_files import loads as loads
    from manul.worlds.simulation import simulate as simulate

__version__ = "0.1.0"

# The module that defines each public name. A name is imported when it is first used, so `import manul` is fast.
_NAMES = {
    "actions.decision": "Decision Decisions",
    "actions.distribution": "Distribution",
    "actions.kinds.choice": "Choice",
    "actions.kinds.span": "Span",
    "actions.kinds.stepped": "Stepped",
    "actions.space": "ActionSpace",
    "agents": "AdaptiveCats Auto Cats Mapped Rollout",
    "errors": "ManulError",
    "contexts.schema": "ContextSchema",
    "logs.log": "Log LogWriter",
    "offpolicy": "compare doctor evaluate optimize",
    "offpolicy.estimate": "Estimate",
    "outcomes": "Outcome Wait",
    "outcomes.ready_made": "Bid Sale",
    "service.client": "AsyncClient Client",
    "utils.model_files": "dumps load loads",
    "worlds.simulation": "simulate",
}
_PUBLIC_MODULES = (
    "actions.schedules agents agents.learners checks contexts.maps errors inspection offpolicy paper.datasets plotting policies "
    "policies.theory register worlds"
)
_MODULES = {path.rpartition(".")[2]: path for path in _PUBLIC_MODULES.split()}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOMES, *_MODULES])


if not TYPE_CHECKING:  # otherwise type checkers would accept any name

    def __getattr__(name):
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
