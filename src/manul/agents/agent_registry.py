"""Agents by name: what `manul run`, `optimize`, the service, `load` and the checks read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from manul.errors import ParameterError
from manul.types import Within
from manul.utils import model_files
from manul.utils.registry import Registry

USUAL_LEAVES, USUAL_SHARE = 512, Fraction(1, 32)  # good on all of thirteen real tables
_Make = TypeVar("_Make", bound=Callable[..., Any])


@dataclass(frozen=True)
class AgentEntry:
    """What makes an agent from `actions`, `losses`, `epsilon`, `seed` and its own settings, all by keyword."""

    name: str
    make: Callable[..., Any]
    settings: tuple[str, ...]
    service: bool

    def tree_settings(
        self, actions: Within, *, leaves: int | None = None, bandwidth: float | Fraction | None = None
    ) -> dict[str, Any]:
        """Leaves and bandwidth as given or as usual, if the agent has them; a `Fraction` is a share of the actions.

        >>> AGENTS["cats"].tree_settings((0.0, 32.0), leaves=64, bandwidth=Fraction(1, 8))
        {'leaves': 64, 'bandwidth': 4.0}
        """
        span = actions[1] - actions[0]
        share = USUAL_SHARE if bandwidth is None else bandwidth
        usual = {
            "leaves": USUAL_LEAVES if leaves is None else leaves,
            "bandwidth": float(share * span) if isinstance(share, Fraction) else share,
        }
        for setting, value in (("leaves", leaves), ("bandwidth", bandwidth)):
            if value is not None and setting not in self.settings:
                raise ParameterError(f"{setting} must be left out for {self.name}; got {value}. It has none.", setting)
        return {setting: value for setting, value in usual.items() if setting in self.settings}

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of the constructor, with their types."""
        return inspect.signature(self.make, eval_str=True).parameters


AGENTS = Registry[AgentEntry]("agent", "manul.agents", usual="auto")


def register_agent(
    name: str,
    *,
    settings: Sequence[str] = (),
    examples: Sequence[Callable[[int], Any]] | None = None,
    service: bool = True,
) -> Callable[[_Make], _Make]:
    """Registers an agent, so that it can be made by name, as in `manul run --agent NAME`, and its class be loaded.

    It is a class, or a function that makes one, with the keywords `actions`, `losses`, `epsilon`, `seed` and those named
    in `settings`; a class has `from_saved(parameters, arrays)`, as `manul.agents.base.BaseAgent` does. `examples` are
    functions of a seed that make agents for `manul.checks`; without them, one is made with no settings.
    With `service=False` loops of the service cannot have it.

    >>> import manul
    >>> @manul.register_agent("bold", settings=("leaves",))
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
