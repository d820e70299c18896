"""What a file does not say: the types of contexts and the ranges, which a reader takes from an agent, a log or a schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from manul.actions.decision import Within
from manul.actions.knobs import Knobs
from manul.contexts.schema import ContextSchema
from manul.errors import ParameterError
from manul.logs.knob_views import check_knobs


class DeclaringAgent(Protocol):
    """What an agent says of its logs: the fields of its contexts, its actions, and the range of its outcomes."""

    actions: Any
    losses: Any
    rewards: Any

    @property
    def schema(self) -> ContextSchema:
        """The fields of contexts."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The schema of contexts, the ranges, and the knobs if there are several; None if it is not said."""

    schema: ContextSchema | None = None
    action_range: Within | None = None
    loss_range: Within | None = None
    reward_range: Within | None = None
    knobs: Knobs | None = None

    @property
    def ranges(self) -> tuple[Within | None, Within | None, Within | None]:
        return self.action_range, self.loss_range, self.reward_range


def declaration(like: Any, *, is_log: bool, knobs: Any = None) -> Declaration:
    """What an agent, a log (`is_log`) or a schema declares; `knobs` that are given come first.

    >>> declaration(ContextSchema(3), is_log=False).schema.width
    3
    """
    given = check_knobs(knobs)
    if like is None:
        return Declaration(knobs=given)
    if isinstance(like, ContextSchema):
        return Declaration(schema=like, knobs=given)
    if is_log:
        ranges = {"loss_range": like.loss_range} if like.rewards is None else {"reward_range": like.reward_range}
        return Declaration(schema=like.schema, action_range=like.action_range, knobs=given or like.knobs, **ranges)
    try:
        schema, actions, losses, rewards = like.schema, like.actions, like.losses, like.rewards
    except AttributeError:
        raise ParameterError(f"like must be an agent, a log or a ContextSchema, got {like!r:.60}.", "like") from None
    several = given or (None if isinstance(actions, tuple) else check_knobs(actions))
    ranges = {"loss_range": losses} if rewards is None else {"reward_range": rewards}
    numbers = {name: span for name, span in ranges.items() if not isinstance(span, str)}
    return Declaration(schema=schema, action_range=None if several else actions, knobs=several, **numbers)
