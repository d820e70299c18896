"""Agents of loops: what loops ask of them, how they are made from settings, and loaded from bytes that may come from anybody."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

import manul
from manul.actions.decision import Decision, Decisions
from manul.actions.distributions import Distributions
from manul.actions.levels import DrawnWindows
from manul.actions.schedules import from_description
from manul.actions.space import ActionSpace
from manul.agents.agent_registry import AGENTS
from manul.contexts.schema import Context
from manul.errors import ManulError
from manul.outcomes import Outcome, outcome_of
from manul.policies.policy import TellsLevels
from manul.service.engine.loop_space import LoopSpace
from manul.service.errors import Invalid
from manul.service.loop_settings import LIMITS, NewLoop, agent_settings
from manul.utils.validation import Floats

if TYPE_CHECKING:
    from manul.agents.limited_auto import Ledger


@runtime_checkable
class LoopAgent(Protocol):
    """What a loop asks of its agent."""

    actions: Any
    space: ActionSpace
    outcome: Outcome
    current_epsilon: float

    def decide_again(self, number: int, context: Context, within: Any = None, **asked: Any) -> Decision:
        """Draw the decision of a number without counting it."""

    def decide_many_again(self, numbers: Any, contexts: Any, within: Any = None, **asked: Any) -> Any:
        """Draw the decisions of many numbers without counting them."""

    def learn(self, context: Context, decision: Any, **outcome: float) -> None:
        """Learn from the loss of a decision."""

    def learn_many(self, contexts: Any, decisions: Any, **outcomes: Any) -> None:
        """Learn from the losses of many decisions, in order."""

    def distribution(self, context: Context, within: Any = None) -> Any:
        """The distribution that decisions are drawn from."""

    def distributions(self, contexts: Any, within: Any = None) -> Distributions[Any]:
        """The distributions of many rows."""


def make_agent(settings: NewLoop, prior: Any = None) -> LoopAgent:
    """The agent of a loop before its first event; that of a loop with a prior is imported by this event."""
    given = {name: value for name, value in agent_settings(settings).items() if value is not None}
    given.pop("prior", None)
    if prior is not None:
        given["prior"] = prior
    actions = LoopSpace.of(settings).actions
    if settings.limits and given["kind"] != "auto":
        name = next(iter(settings.limits))
        raise Invalid(f"{name} is for the agent 'auto', got {given['kind']!r}. Leave it out.", name)
    given |= settings.limits
    try:
        given["epsilon"] = from_description(given["epsilon"])
        agent: LoopAgent = AGENTS[given.pop("kind")].make(actions=actions, **settings.learned.arguments, **given)
    except ManulError as error:
        raise Invalid(str(error), error.field if error.field in LIMITS else "agent") from None
    if settings.apprentice and isinstance(agent, manul.Auto):
        from manul.agents.auto import as_critic

        return as_critic(agent)  # it learns from decisions of others, and is judged by those that are in its windows
    return agent


def ledger_of(agent: object) -> Ledger:
    """The limits in expectation of an agent that has some."""
    from manul.agents.limited_auto import Ledger, LimitedAuto

    assert isinstance(agent, LimitedAuto)
    return Ledger(agent)


def from_bytes(model: bytes) -> Any:
    """The agent or policy of a `.manul` file; see `load_model` for bytes from outside."""
    try:
        return manul.loads(model, name="model")
    except ManulError as error:
        raise Invalid(str(error), "model") from None


def load_model(model: bytes, settings: NewLoop, context: Context | None) -> LoopAgent:
    """Load a model and check that it fits a loop; `context` is the loop's first, if there is one."""
    agent = from_bytes(model)
    if not isinstance(agent, LoopAgent):
        raise Invalid(f"The model is a {type(agent).__name__}, which cannot learn. Send a saved agent.", "model")
    own, sent = (_limits_of(each) for each in (make_agent(settings), agent))
    for name in LIMITS:
        if own[name] != sent[name]:
            raise Invalid(
                f"The loop has {name} {own[name] or 'none'}, but the model has {sent[name] or 'none'}.", "model"
            )
    if sent["mapped"]:
        raise Invalid("The model has limits in expectation behind a feature map, which loops do not take.", "model")
    both = {
        "actions": (LoopSpace.of(settings), agent.space),
        "losses": (settings.losses, outcome_of(agent).losses),
    }
    for name, values in both.items():
        expected, actual = map(_range_text, values)
        if actual != expected:
            raise Invalid(f"The loop has {name} {expected}, but the model has {actual}.", "model")
    if (agent.outcome.formula, agent.outcome.modelled) != (settings.learned.formula, settings.learned.modelled):
        wanted, has = (each.formula or "none" for each in (settings.learned, agent.outcome))
        raise Invalid(f"The loop has the formula {wanted}, but the model has {has}.", "model")
    given, between = (_limits_text(space) for space in (LoopSpace.of(settings), agent.space))
    if between != given:
        raise Invalid(f"The loop has the limits {given}, but the model has {between}.", "model")
    if context is not None:
        try:
            drawn = agent.decide_again(0, context)
        except ManulError as error:
            raise Invalid(f"The model does not accept this loop's contexts: {error}", "model") from None
        if not (np.isfinite(agent.space.positions(drawn.action)).all() and 0 < drawn.density < np.inf):
            raise Invalid("The model gives actions or densities that are not finite.", "model")
    return agent


def _limits_of(agent: object) -> dict[str, Any]:
    """The limits in expectation of an agent. Amounts may differ, because that of the loop counts."""
    from manul.agents.limits_in_expectation import limits_in_expectation
    from manul.agents.mapped import Mapped

    inside = agent.agent if isinstance(agent, Mapped) else agent
    names = LIMITS if limits_in_expectation(agent) else ()
    found: dict[str, Any] = {name: getattr(inside, name) if name in names else None for name in LIMITS}
    found["mapped"] = isinstance(agent, Mapped) and bool(names)
    found["carry"] = found["carry"] or None
    if found["spend_at_most"] is not None:
        formula, _, period = found["spend_at_most"]
        found["spend_at_most"] = (formula, period)
    return found


def _limits_text(space: ActionSpace) -> str:
    return "; ".join(map(str, space.limits)) or "none"


def _range_text(span: Any) -> str:
    if isinstance(span, ActionSpace):
        described = span.describe()
        return str(tuple(described) if span.is_number else dict(described))
    return span if isinstance(span, str) else str(tuple(map(float, span)))


def matrix_of(contexts: Sequence[Any]) -> Floats | None:
    """Contexts as a matrix; None if any is a mapping or has something else than numbers, or if their widths differ."""
    if {*map(type, contexts)} != {list}:
        return None
    widths = {*map(len, contexts)}
    if len(widths) > 1:
        return None
    (width,) = widths
    try:
        # In two thirds of the time of np.array.
        numbers = np.fromiter(chain.from_iterable(contexts), np.float64, len(contexts) * width)
    except (TypeError, ValueError):
        return None
    return numbers.reshape(len(contexts), width)


def draw_many(
    agent: LoopAgent, numbers: Sequence[int], contexts: Sequence[Any], matrix: Floats | None, withins: Sequence[Any]
) -> Decisions | list[Decision]:
    """Draw many actions, each exactly as if it were drawn alone; `matrix` has the contexts unless they are mappings."""
    if matrix is not None and agent.space.is_number:
        narrowed = [within or agent.actions for within in withins] if any(withins) else None
        drawn: Decisions = agent.decide_many_again(np.array(numbers, np.uint64), matrix, narrowed, **asked(agent))
        return drawn
    levels = asked(agent)
    return [agent.decide_again(*each, **levels) for each in zip(numbers, contexts, withins, strict=True)]


def asked(agent: LoopAgent) -> dict[str, bool]:
    """What is asked of an agent beside a decision: what it was drawn from, if the agent can tell."""
    return {"levels": True} if isinstance(agent, TellsLevels) and agent.tells_levels else {}


def split(decisions: Decisions | list[Decision]) -> tuple[Sequence[Any], ...]:
    """The actions, the densities, the floors, the densities by knob, the windows and the levels of decisions."""
    if isinstance(decisions, list):
        columns = [(each.action, each.density, each.floor, each.densities, *_drawn(each)) for each in decisions]
        return tuple(zip(*columns, strict=True))
    actions, nothing = decisions.actions.tolist(), [None] * len(decisions.actions)
    floors = nothing if decisions.floors is None else decisions.floors.tolist()
    windows = windows_of(decisions)
    rows = nothing if windows is None else windows.reshape(len(actions), -1).tolist()
    return actions, decisions.densities.tolist(), floors, nothing, rows, nothing


def windows_of(decisions: Decisions) -> Floats | None:
    """What many decisions were drawn from, as the core says it, if they say so."""
    return decisions.drawn.windows if isinstance(decisions.drawn, DrawnWindows) else None


def _drawn(decision: Decision) -> tuple[list[float] | None, list[list[float]] | None]:
    """What one decision was drawn from: its windows, or the levels of one knob."""
    if isinstance(decision.drawn, DrawnWindows):
        return decision.drawn.windows.tolist(), None
    if decision.levels is None:
        return None, None
    ((_, levels),) = decision.levels.items()
    return None, [list(each) for each in levels.row(0)] or None


def density_of(agent: LoopAgent, context: Context, action: Any, within: Any) -> tuple[float, float]:
    """The density of an action, and the largest density of any action; infinity if it is not known."""
    if not agent.space.is_number:
        return float(agent.distributions([context], [within]).density([action])[0]), np.inf
    distribution = agent.distribution(context, within)
    return distribution.density(action), distribution.largest_density()
