"""The registry of agents, for `manul run`, `optimize`, the service, `load` and the checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from manul.actions.decision import Within
from manul.errors import ParameterError
from manul.utils import model_files
from manul.utils.registry import Registry

DEFAULT_LEAVES, DEFAULT_BANDWIDTH = 512, Fraction(1, 32)  # work well on each of the thirteen benchmark tables
_Make = TypeVar("_Make", bound=Callable[..., Any])


@dataclass(frozen=True)
class AgentEntry:
    """A registered agent; `make` takes `actions`, `losses`, `epsilon`, `seed` and `settings` as keywords."""

    name: str
    make: Callable[..., Any]
    settings: tuple[str, ...]
    service: bool

    def tree_settings(
        self, actions: Within, *, leaves: int | None = None, bandwidth: float | Fraction | None = None
    ) -> dict[str, Any]:
        """Leaves and bandwidth, with defaults, if the agent has them; a `Fraction` is a share of the range of actions.

        >>> AGENTS["cats"].tree_settings((0.0, 32.0), leaves=64, bandwidth=Fraction(1, 8))
        {'leaves': 64, 'bandwidth': 4.0}
        """
        for setting, value in (("leaves", leaves), ("bandwidth", bandwidth)):
            if value is not None and setting not in self.settings:
                raise ParameterError(f"agent {self.name} has no setting {setting}, got {value}.", setting)
        width = DEFAULT_BANDWIDTH if bandwidth is None else bandwidth
        if isinstance(width, Fraction):
            width = float(width * (actions[1] - actions[0]))
        tree = {"leaves": DEFAULT_LEAVES if leaves is None else leaves, "bandwidth": width}
        return {setting: value for setting, value in tree.items() if setting in self.settings}

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.make, eval_str=True).parameters


AGENTS = Registry[AgentEntry]("agent", "manul.agents", suggestion="auto")


def register_agent(
    name: str,
    *,
    settings: Sequence[str] = (),
    examples: Sequence[Callable[[int], Any]] | None = None,
    service: bool = True,
) -> Callable[[_Make], _Make]:
    """Register an agent under a `name`, as in `manul run --agent NAME`.

    Decorate a class, or a function that returns an agent, with the keywords `actions`, `losses`, `epsilon`, `seed` and
    those listed in `settings`. A class also needs `from_saved(parameters, arrays)`, which
    `manul.agents.base.BaseAgent` has, and can then be loaded from files. `examples` are functions of a seed that return
    agents for `manul.checks`; the default is one agent without settings. With `service=False`, the service does not
    offer the agent.

    >>> import manul
    >>> @manul.register.agent("bold", settings=("leaves",))
    ... def bold(*, leaves, **settings):
    ...     return manul.Cats(leaves=leaves, bandwidth=1/4, **settings | {"epsilon": 0.5})
    >>> AGENTS["bold"].make(leaves=8, seed=7)
    Cats(actions=(0.0, 1.0), leaves=8, bandwidth=0.25, epsilon=0.5, losses=(0.0, 1.0), seed=7, table_bits=20)
    >>> AGENTS.remove("bold")
    """

    def register(make: _Make) -> _Make:
        AGENTS.add(name, AgentEntry(name, make, tuple(settings), service), module=make.__module__)
        if isinstance(make, type):
            model_files.saveable(*([lambda seed: make(seed=seed)] if examples is None else examples))(make)
        return make

    return register
