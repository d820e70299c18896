"""The protocols of a policy class and its learner, and how agents with a policy class are saved."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from manul.actions.decision import Decision, Within
from manul.contexts.conversion import Row
from manul.errors import FileError, ParameterError
from manul.utils.model_files import Arrays, Parameters


class Learner(Protocol):
    """Minimises the smoothed loss over a policy class online."""

    def action(self, context: Row, within: Within) -> float:
        """The action of the best policy; the agent clips it to `within`."""

    def learn(self, context: Row, decision: Decision, loss: float) -> None:
        """Learn from an example; the loss is scaled to [0, 1] and `decision.within` is not None."""

    def state(self) -> Arrays:
        """Copy the state of the learner into arrays."""

    def restore(self, arrays: Arrays) -> None:
        """Restore a state; raises KeyError or ValueError if the arrays do not fit."""


@runtime_checkable
class Estimating(Protocol):
    """A learner that estimates the loss of its best policy from all examples so far."""

    def estimate(self) -> float:
        """The IPS estimate of the smoothed loss of the policy that `action` uses."""


@runtime_checkable
class PolicyClass(Protocol):
    """A set of policies to learn from; `width` is the number of features of a context."""

    def start(self, width: int, actions: Within, bandwidth: float) -> Learner:
        """Start a learner without data."""


_Class = TypeVar("_Class", bound=type)
_SAVEABLE: dict[str, type] = {}


def saveable(kind: _Class) -> _Class:
    """Register a policy class, which must be a dataclass, so that agents with it can be saved and loaded.

    >>> import dataclasses
    >>> @saveable
    ... @dataclasses.dataclass(frozen=True)
    ... class Mine:
    ...     rate: float = 0.1
    >>> describe(Mine())
    {'name': 'Mine', 'rate': 0.1}
    """
    if not is_dataclass(kind):
        raise ParameterError(f"a saveable class must be a dataclass, got {kind!r}.", "kind")
    _SAVEABLE[kind.__name__] = kind
    return kind


def is_saveable(policies: PolicyClass) -> bool:
    """Whether a file can hold a policy class.

    >>> import manul
    >>> is_saveable(manul.policies.Linear())
    True
    """
    return type(policies) is _SAVEABLE.get(type(policies).__name__)


def describe(policies: PolicyClass) -> Parameters:
    """Describe a policy class as parameters for a file."""
    if not is_saveable(policies):
        raise FileError(
            f"cannot save an agent with policies={policies!r}. Register its class with policies.saveable.",
            "policies",
        )
    settings: Any = policies
    return {"name": type(policies).__name__, **asdict(settings)}


def from_description(description: Parameters) -> PolicyClass:
    """Create the policy class from its description in a file."""
    settings = dict(description)
    name = settings.pop("name")
    if name not in _SAVEABLE:
        raise FileError(f"unknown policy class {name}. Register it with policies.saveable before loading.", "policies")
    policies: PolicyClass = _SAVEABLE[name](**settings)
    return policies


def check_policies(policies: PolicyClass) -> PolicyClass:
    """Check that an object is a policy class."""
    if not isinstance(policies, PolicyClass) or isinstance(policies, type):
        raise ParameterError(
            f"policies must have a method start(width, actions, bandwidth), got {policies!r}. Try policies.Linear().",
            "policies",
        )
    return policies
