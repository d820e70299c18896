"""The card of an agent in a notebook: its settings and its counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from manul.utils.html_cards import card


def agent_card(agent: Any) -> str:
    """The settings of an agent, its decisions so far, the epsilon of the next one, and its memory."""
    return card(type(agent).__name__, [*_settings(agent), *_counts(getattr(agent, "agent", agent))])


def _settings(agent: Any) -> Iterator[tuple[str, object]]:
    for name, value in getattr(agent, "parameters", {"agent": agent}).items():
        if name == "actions" and isinstance(value, Mapping):
            yield from ((f"knob {knob}", described) for knob, described in value.items())
        elif name == "agent":
            inside = getattr(value, "agent", value)
            yield "agent", type(inside).__name__
            yield from _settings(inside)
        elif value is not None:
            yield name, value
    if hasattr(agent, "features"):
        yield "features", agent.features


def _counts(agent: Any) -> Iterator[tuple[str, object]]:
    yield "decisions", f"{agent.decisions:,}"
    yield "epsilon now", agent.current_epsilon
    yield "memory", f"{agent.nbytes / 1024:,.1f} KiB"
