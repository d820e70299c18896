"""The card of an agent in a notebook: its settings and its counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from manul.agents.player_host import host_of
from manul.policies.policy import Agent
from manul.utils.html_cards import card


def agent_card(agent: Any) -> str:
    """The settings of an agent, its decisions so far, the epsilon of the next one, and its memory."""
    return card(type(agent).__name__, [*_settings(agent.parameters), *_counts(agent)])


def _settings(parameters: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in parameters.items():
        if name == "actions" and isinstance(value, Mapping):
            yield from ((f"knob {knob}", described) for knob, described in value.items())
        elif isinstance(value, Agent):
            yield name, type(value).__name__
            yield from _settings(value.parameters)  # type: ignore[attr-defined]
        elif value is not None:
            yield name, value


def _counts(agent: Any) -> Iterator[tuple[str, object]]:
    yield "decisions", f"{host_of(agent).decisions:,}"
    yield "epsilon now", agent.current_epsilon
    yield "memory", f"{agent.nbytes / 1024:,.1f} KiB"
