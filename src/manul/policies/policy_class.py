"""What a policy class must have, and how it gets into a file."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from manul.contexts.conversion import Row
from manul.errors import FileError, ParameterError
from manul.types import Decision, Within
from manul.utils.model_files import Arrays, Parameters


class Learner(Protocol):
    """Minimises the smoothed loss over a policy class, one example after the other."""

    def action(self, context: Row, within: Within) -> float:
        """The best policy's action; one outside `within` is moved to its nearer end, so `within` may be ignored."""

    def learn(self, context: Row, decision: Decision, loss: float) -> None:
        """Take in an example whose loss is scaled to [0, 1] and whose `decision.within` is never None."""

    def state(self) -> Arrays:
        """A copy of all that was learned, as arrays."""

    def restore(self, arrays: Arrays) -> None:
        """Go back to a state; raises KeyError or ValueError where the arrays do not fit."""


@runtime_checkable
class Estimating(Protocol):
    """A learner that knows the estimated loss of its best policy over the whole past, V_t of the paper."""

    def estimate(self) -> float:
        """The IPS estimate of the smoothed loss of the policy that `action` plays."""


@runtime_checkable
class PolicyClass(Protocol):
    """Something that starts a learner for contexts of a width, a range of actions and a bandwidth."""

    def start(self, width: int, actions: Within, bandwidth: float) -> Learner:
        """A learner that has seen nothing."""


_Class = TypeVar("_Class", bound=type)
_SAVEABLE: dict[str, type] = {}


def saveable(kind: _Class) -> _Class:
    """Register a dataclass of settings under its own name, so that agents with it can be saved and loaded.

    >>> import dataclasses
    >>> @saveable
    ... @dataclasses.dataclass(frozen=True)
    ... class Mine:
    ...     rate: float = 0.1
    >>> described(Mine())
    {'name': 'Mine', 'rate': 0.1}
    """
    if not is_dataclass(kind):
        raise ParameterError(f"a saveable class must be a dataclass; got {kind!r}. Put @dataclass above the class.")
    _SAVEABLE[kind.__name__] = kind
    return kind


def described(policies: PolicyClass) -> Parameters:
    """A policy class as it is written into a file.

    >>> from manul.policies import Tree
    >>> described(Tree(leaves=8))
    {'name': 'Tree', 'leaves': 8}
    """
    if type(policies) is not _SAVEABLE.get(type(policies).__name__):
        raise FileError(
            f"policies must be of a saveable class; got {policies!r}. Register a dataclass with policies.saveable.",
            "policies",
        )
    settings: Any = policies
    return {"name": type(policies).__name__, **asdict(settings)}


def from_description(description: Parameters) -> PolicyClass:
    """The policy class that was written into a file.

    >>> from_description({"name": "Tree", "leaves": 8})
    Tree(leaves=8)
    """
    settings = dict(description)
    name = settings.pop("name")
    if name not in _SAVEABLE:
        raise FileError(
            f"policies must be one of {', '.join(sorted(_SAVEABLE))}; got {name}. Register it with policies.saveable.",
            "policies",
        )
    made: PolicyClass = _SAVEABLE[name](**settings)
    return made


def checked_policies(policies: PolicyClass) -> PolicyClass:
    """Refuses what cannot start a learner.

    >>> from manul.policies import Linear
    >>> checked_policies(Linear())
    Linear(rate=0.01)
    """
    if not isinstance(policies, PolicyClass) or isinstance(policies, type):
        raise ParameterError(
            f"policies must have start(width, actions, bandwidth); got {policies!r}. Try policies.Linear().", "policies"
        )
    return policies
