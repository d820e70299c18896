"""Which limits in expectation an agent has, for what cannot keep them."""

from __future__ import annotations

from manul.agents.auto import Auto
from manul.agents.mapped import Mapped


def limits_in_expectation(agent: object) -> tuple[str, ...]:
    """The arguments with which an agent, also one behind a map, has limits in expectation.

    >>> import manul
    >>> limits_in_expectation(manul.Auto(outcome=manul.Sale(), keep=("bought", ">=", 0.05)))
    ('keep',)
    """
    inside = agent.agent if isinstance(agent, Mapped) else agent
    limits = {"spend_at_most": inside.spend_at_most, "keep": inside.keep} if isinstance(inside, Auto) else {}
    return tuple(name for name, limit in limits.items() if limit is not None)
