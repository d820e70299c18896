"""Agents that live in the core, whatever their settings."""

from __future__ import annotations

from manul import _core
from manul.agents.base import BaseAgent


class NativeAgent(BaseAgent[_core.Player]):
    """An agent whose player is native, so that whole tables can run in the core."""
