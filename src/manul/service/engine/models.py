"""Agents of loops: created from settings, and loaded from bytes that may come from anybody."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import manul
from manul.actions.decision import Decision, Decisions, KnobsDecision
from manul.actions.knobs import Knobs
from manul.actions.schedules import from_description
from manul.agents.agent_registry import AGENTS
from manul.contexts.schema import Context
from manul.errors import InputError, ManulError
from manul.service.engine.action_space import SeveralKnobs, action_space
from manul.service.errors import Invalid
from manul.service.loop_settings import NewLoop, agent_settings
from manul.utils.rewards import AnyRange
from manul.utils.validation import Floats

Rows = Floats
# A range, or ranges by knob.
Within = Any
# Action, density, floor, and densities by knob.
Drawn = tuple[Any, float, float | None, dict[str, float] | None]


class LoopAgent(Protocol):
    actions: Any
    losses: AnyRange
    width: int | None

    def decide_again(self, number: int, context: Context, within: Within | None = None) -> Decision | KnobsDecision:
        """Draw the decision of a number without counting it."""

    def learn(self, context: Context, decision: Any, **outcome: float) -> None:
        """Learn from the loss of a decision."""

    def learn_many(self, contexts: Any, decisions: Any, **outcomes: Any) -> None:
        """Learn from the losses of many decisions, in order."""

    def distribution(self, context: Context, within: Within | None = None) -> Any:
        """The distribution that decisions are drawn from."""

    def save(self, path: str | Path) -> None:
        """Write to a `.manul` file."""


def make_agent(settings: NewLoop) -> LoopAgent:
    """A fresh agent for a loop.

    >>> make_agent(NewLoop(name="heating", actions=(20, 70)))
    Auto(actions=(20.0, 70.0), epsilon='auto', losses=(0.0, 1.0), seed=0)
    """
    given = {name: value for name, value in agent_settings(settings).items() if value is not None}
    outcomes = {"losses": settings.losses} if settings.rewards is None else {"rewards": settings.rewards}
    actions = action_space(settings).actions
    try:
        given["epsilon"] = from_description(given["epsilon"])
        agent: LoopAgent = AGENTS[given.pop("kind")].make(actions=actions, **outcomes, **given)
    except ManulError as error:
        raise Invalid(str(error), "agent") from None
    return agent


def estimated_bytes(settings: NewLoop, width: int | None) -> int:
    """About the memory that a loop's agent takes once it has learned for long, in contexts of a width; None: with names.

    >>> estimated_bytes(NewLoop(name="heating", actions=(20, 70)), 4096) // 2**20
    93
    """
    expected: int = make_agent(settings).expected_nbytes(width)  # type: ignore[attr-defined]
    return expected


def from_bytes(model: bytes) -> LoopAgent:
    """The agent of a `.manul` file; see `load_model` for bytes from outside."""
    try:
        agent: LoopAgent = manul.loads(model, name="model")
    except ManulError as error:
        raise Invalid(str(error), "model") from None
    return agent


def load_model(model: bytes, settings: NewLoop, context: Context | None) -> LoopAgent:
    """Load a model and check that it fits a loop; `context` is the loop's first, if there is one."""
    agent = from_bytes(model)
    for name in ("decide_again", "learn", "actions", "losses"):
        if not hasattr(agent, name):
            raise Invalid(f"The model is a {type(agent).__name__}, which cannot learn. Send a saved agent.", "model")
    space = action_space(settings)
    both = {"actions": (space.actions, agent.actions), "losses": (settings.losses, agent.losses)}
    for name, values in both.items():
        expected, actual = map(_range_text, values)
        if actual != expected:
            raise Invalid(f"The loop has {name} {expected}, but the model has {actual}.", "model")
    if isinstance(space, SeveralKnobs):
        given, own = _limits_text(space.described), _limits_text(agent.knobs)  # type: ignore[attr-defined]
        if own != given:
            raise Invalid(f"The loop has the limits {given}, but the model has {own}.", "model")
    if context is not None:
        try:
            drawn = agent.decide_again(0, context)
        except ManulError as error:
            raise Invalid(f"The model does not accept this loop's contexts: {error}", "model") from None
        finite = isinstance(drawn.action, dict) or np.isfinite(drawn.action)
        if not (finite and 0 < drawn.density < np.inf):
            raise Invalid("The model gives actions or densities that are not finite.", "model")
    return agent


def _limits_text(knobs: Knobs) -> str:
    return "; ".join(map(str, knobs.limits)) or "none"


def _range_text(span: Any) -> str:
    if isinstance(span, Mapping):
        return str(dict(Knobs.check(span).describe()))
    return span if isinstance(span, str) else str(tuple(map(float, span)))


def is_named(agent: LoopAgent) -> bool:
    """Whether an agent has seen contexts that are mappings.

    >>> agent = make_agent(NewLoop(name="heating", actions=(20, 70)))
    >>> _ = agent.distribution({"outdoor": 4.5})
    >>> is_named(agent)
    True
    """
    return bool(getattr(agent, "named", False))


def key(loop: str, given: str) -> int:
    """The number that seeds the draw of a caller's id; numbers below 2^63 are those of the service itself.

    >>> key("heating", "order-1") == key("heating", "order-1")
    True
    """
    digest = hashlib.blake2b(f"{loop}\0{given}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1 << 63


def matrix(contexts: Sequence[Any]) -> Rows | None:
    """Contexts as a matrix; None if any is a mapping.

    >>> matrix([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    if not all(isinstance(context, list) for context in contexts):
        return None
    try:
        return np.array(contexts, np.float64)
    except ValueError:
        raise InputError("contexts of one batch must have the same number of values.") from None


def draw_many(
    agent: Any, numbers: Sequence[int], contexts: Sequence[Any], rows: Rows | None, withins: Sequence[Within | None]
) -> Decisions | list[KnobsDecision]:
    """Draw many actions, each exactly as if it were drawn alone; `rows` is the matrix of the contexts."""
    if rows is None or not hasattr(agent, "decide_many_again") or isinstance(agent.actions, Mapping):
        each_drawn = [agent.decide_again(*each) for each in zip(numbers, contexts, withins, strict=True)]
        if isinstance(agent.actions, Mapping):
            return each_drawn
        floors = [np.nan if each.floor is None else each.floor for each in each_drawn]
        columns = ([each.action for each in each_drawn], [each.density for each in each_drawn], floors)
        actions, densities, known_floors = (np.array(column, np.float64) for column in columns)
        return Decisions(actions, densities, floors=known_floors)
    narrowed = [agent.actions if within is None else within for within in withins] if any(withins) else None
    drawn: Decisions = agent.decide_many_again(np.array(numbers, np.uint64), rows, narrowed)
    return drawn


def split(decisions: Decisions | list[KnobsDecision]) -> list[Drawn]:
    """Decisions one by one: action, density, floor, and densities by knob.

    >>> split(Decisions(np.array([0.5]), np.array([1.0])))
    [(0.5, 1.0, None, None)]
    """
    if isinstance(decisions, list):
        return [(each.action, each.density, each.floor, each.densities) for each in decisions]
    actions, densities, floors = decisions.actions.tolist(), decisions.densities.tolist(), decisions.floors
    known = [None] * len(actions) if floors is None else floors.tolist()
    return [(*each, None) for each in zip(actions, densities, known, strict=True)]


def try_out(agent: LoopAgent, context: Context, within: Within | None = None) -> None:
    """Raise an error if the agent cannot decide in a context; this does not count as a decision."""
    agent.decide_again(0, context, within)


def density_of(agent: LoopAgent, context: Context, action: Any, within: Within | None) -> tuple[float, float]:
    """The density of an action, and the largest density of any action; infinity if it is not known."""
    if not isinstance(action, Mapping):
        distribution = agent.distribution(context, within)
        return distribution.density(action), distribution.largest_density()
    several: Any = agent
    return float(several.densities_many([context], [action], [within])[0]), np.inf
