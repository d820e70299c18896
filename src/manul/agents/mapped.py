"""An agent behind a feature map: the agent learns from the mapped contexts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Decision, Decisions, Within
from manul.actions.distributions import Distributions, distributions_of
from manul.actions.space import ActionSpace
from manul.agents.agent_card import agent_card
from manul.agents.agent_registry import AGENTS
from manul.agents.player_host import PlayerHost, Seen, host_of, seen_by
from manul.contexts import conversion
from manul.contexts.maps import Columns, Crosses, FeatureMap, Features, Fourier, describe, from_description
from manul.contexts.schema import Context, Contexts, ContextSchema
from manul.errors import InputError, ManulError, ParameterError
from manul.outcomes import Outcome, PartValue, outcome_of
from manul.outcomes.parts import PartsReader
from manul.policies.plot_mixin import PlotMixin
from manul.policies.policy import Agent, TellsLevels
from manul.utils import model_files

RowOrFields = conversion.Row | conversion.Fields


class SaveableAgent(Agent, model_files.Saveable, Protocol):
    """An agent with a range of actions and an outcome that can be saved."""

    actions: Any
    outcome: Outcome

    def decide_again(self, number: int, context: Context, within: Any = None, *, levels: bool = False) -> Decision:
        """Draw the decision with this number without counting it; `levels` as in `decide`."""


@model_files.saveable(
    lambda seed: Mapped(agent=AGENTS["cats"].make(leaves=16, bandwidth=1 / 8, seed=seed), features=Crosses()),
    lambda seed: Mapped(agent=AGENTS["auto"].make(actions=(-2.0, 8.0), seed=seed), features=Fourier(count=8)),
)
class Mapped(PlotMixin, model_files.FileMixin):
    """An `agent` behind a feature map, `features`, one of `manul.maps`, which is applied to each context.

    >>> import manul
    >>> agent = Mapped(agent=manul.Cats(leaves=64, bandwidth=1/16), features=manul.maps.Crosses())
    >>> decision = agent.decide([0.3, 1.2])
    >>> agent.learn([0.3, 1.2], decision, loss=0.25)
    >>> agent.agent.schema.width
    3
    """

    def __init__(self, *, agent: SaveableAgent, features: FeatureMap) -> None:
        if not isinstance(agent, Agent):
            raise ParameterError(f"agent must be an agent such as manul.Auto(), got {agent!r}.", "agent")
        if not callable(features):
            rule = "a feature map such as manul.maps.Crosses() or a function of a context"
            raise ParameterError(f"features must be {rule}, got {features!r}.", "features")
        self.agent, self.features = agent, features
        self.actions = agent.actions
        self.space: ActionSpace = agent.space
        self._reader = PartsReader.of(outcome_of(agent), agent.space)
        self._width: int | None = None
        self._mapped_width: int | None = None

    @property
    def outcome(self) -> Outcome:
        """What the agent inside learns from."""
        return self.agent.outcome

    @property
    def schema(self) -> ContextSchema:
        """The fields of contexts before mapping, if the map is fitted to a table; otherwise their width."""
        return self.features.schema if isinstance(self.features, Columns) else ContextSchema(self._width)

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"agent": self.agent, "features": self.features}

    @property
    def _host(self) -> PlayerHost:
        return host_of(self.agent)

    @property
    def _seen(self) -> Seen:
        turned_into_rows = self._mapped_width is not None and self._width is None
        return Seen(self._width, turned_into_rows or seen_by(self.agent).named)

    @property
    def current_epsilon(self) -> float:
        """The epsilon of the next decision, if the agent inside has one."""
        epsilon: float = self.agent.current_epsilon  # type: ignore[attr-defined]
        return epsilon

    @property
    def nbytes(self) -> int:
        """The memory of the learned state, in bytes."""
        return int(getattr(self.agent, "nbytes", 0))

    def map(self, context: Context) -> Context:
        """Apply the feature map to a `context`; an empty context stays empty.

        >>> import manul
        >>> agent = Mapped(agent=manul.Cats(leaves=64, bandwidth=1/16), features=manul.maps.Crosses())
        >>> agent.map({"size": 2.0, "age": 3.0})
        {'size': 2.0, 'age': 3.0, 'age*size': 6.0}
        """
        if context is None:
            return None
        features = conversion.to_dict(context) if conversion.is_named(context) else conversion.row(context)
        return self._map(features) if len(features) or self._has_columns(features) else features

    def distribution(self, context: Context, within: Any = None) -> Any:
        """The distribution that `decide` draws from, for a `context` and `within` as there."""
        mapped = self.map(context)
        distribution = self.agent.distribution(mapped, within)
        self._fix(context, mapped)
        return distribution

    @property
    def tells_levels(self) -> bool:
        """Whether decisions can say what they were drawn from, as those of the agent inside."""
        return isinstance(self.agent, TellsLevels) and self.agent.tells_levels

    def decide(self, context: Context, within: Within | None = None, *, levels: bool = False) -> Decision:
        """Draw an action for a `context`; `within` narrows the range of actions.

        With `levels`, the decision says what it was drawn from, if the agent inside can tell.
        """
        mapped = self.map(context)
        decision = self.agent.decide(mapped, within, **_asked(levels=levels))
        self._fix(context, mapped)
        return decision

    def best(self, context: Context, within: Within | None = None) -> float:
        """The greedy action, if the agent inside has one. `context` and `within` are as in `decide`."""
        mapped = self.map(context)
        action: float = self.agent.best(mapped, within)  # type: ignore[attr-defined]
        self._fix(context, mapped)
        return action

    def learn(
        self,
        context: Context,
        decision: Decision,
        loss: float | None = None,
        *,
        reward: float | None = None,
        parts: Mapping[str, PartValue] | None = None,
    ) -> None:
        """Learn from the `loss` of a `decision` in its `context`, or from its `reward` if the agent inside was made with rewards.

        If the outcome has a formula, `parts` are enough. The formula sees the context before it is mapped: if it needs numbers
        of the context, the agent inside is told its value alone.
        """
        mapped = self.map(context)
        outcome: Any = {"loss": loss, "reward": reward, "parts": parts}
        if parts is not None and self._reader is not None and self._reader.fields:
            outcome = self.outcome.told(self._reader.read(context, decision.action, loss, reward, parts).loss)
        self.agent.learn(mapped, decision, **{name: value for name, value in outcome.items() if value is not None})
        self._fix(context, mapped)

    def decide_again(
        self, number: int, context: Context, within: Within | None = None, *, levels: bool = False
    ) -> Decision:
        """Draw the decision with this `number` for a `context`, `within` and `levels` as in `decide`, without counting it,
        if the agent inside can.
        """
        mapped = self.map(context)
        decision = self.agent.decide_again(number, mapped, within, **_asked(levels=levels))
        self._fix(context, mapped)
        return decision

    def decide_many(
        self, contexts: Contexts, within: npt.ArrayLike | None = None, *, levels: bool = False
    ) -> Decisions:
        """Draw an action for each row of `contexts`; `within` has one (low, high) per row, and `levels` are as in `decide`."""
        rows, mapped = self._map_many(contexts)
        decisions = self.agent.decide_many(mapped, within, **_asked(levels=levels))
        self._fix_many(rows, mapped)
        return decisions

    def decide_many_again(
        self, numbers: npt.ArrayLike, contexts: Contexts, within: npt.ArrayLike | None = None, *, levels: bool = False
    ) -> Decisions:
        """Draw the decisions with these `numbers`, for `contexts`, `within` and `levels` as in `decide_many`, without
        counting them, if the agent inside can.
        """
        rows, mapped = self._map_many(contexts)
        decisions: Decisions = self.agent.decide_many_again(numbers, mapped, within, **_asked(levels=levels))  # type: ignore[attr-defined]
        self._fix_many(rows, mapped)
        return decisions

    def distributions(self, contexts: Contexts, within: Any = None) -> Distributions[Any]:
        """The distributions that `decide_many` draws from, for `contexts` and `within` as there; valid until the agent learns."""
        return distributions_of(self.agent, self._map_many(contexts)[1], within)

    def learn_many(
        self,
        contexts: Contexts,
        decisions: Decisions,
        losses: npt.ArrayLike | None = None,
        *,
        rewards: npt.ArrayLike | None = None,
        parts: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        """Learn from the `losses`, `rewards` or `parts` of many `decisions` in their `contexts`, in order; if one of them is invalid,
        from none."""
        rows, mapped = self._map_many(contexts)
        outcomes: Any = {"losses": losses, "rewards": rewards, "parts": parts}
        if parts is not None and self._reader is not None and self._reader.fields:
            told = self._reader.read_many(contexts, decisions.actions, losses, rewards, parts)
            outcomes = self.outcome.told_many(told.losses)
        given = {name: value for name, value in outcomes.items() if value is not None}
        self.agent.learn_many(mapped, decisions, **given)
        self._fix_many(rows, mapped)

    def __reduce__(self) -> tuple[Any, ...]:
        return model_files.by_attributes(self)

    def _contents(self) -> model_files.Contents:
        features, features_arrays = describe(self.features)
        kind, parameters, arrays = model_files.contents(self.agent)
        inside = {"kind": kind, "parameters": parameters}
        widths = {"width": self._width, "mapped_width": self._mapped_width}
        both = {f"features.{name}": array for name, array in features_arrays.items()}
        both |= {f"agent.{name}": array for name, array in arrays.items()}
        return "Mapped", {"agent": inside, "features": features, **widths}, both

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """The agent that was saved with these `parameters` and `arrays`."""
        inside, features, *widths = (parameters[name] for name in ("agent", "features", "width", "mapped_width"))
        split = model_files.split_by_prefix(arrays)
        if len(parameters) != 4 or not split.keys() <= {"agent", "features"}:
            raise model_files.mismatch_error()
        agent = model_files.restore(inside["kind"], inside["parameters"], split.get("agent", {}))
        mapped = cls(agent=agent, features=from_description(features, split.get("features", {})))
        mapped._width, mapped._mapped_width = (
            None if width is None else model_files.check_width(width) for width in widths
        )
        return mapped

    def _repr_html_(self) -> str:
        return agent_card(self)

    def __repr__(self) -> str:
        return f"Mapped(agent={self.agent!r}, features={self.features!r})"

    def _map(self, context: RowOrFields) -> RowOrFields:
        if isinstance(context, np.ndarray) and self._width is not None:
            conversion.check_width(len(context), self._width)
        try:
            result = self.features(context)
        except ManulError:
            raise
        except Exception as error:  # a feature map may raise anything
            raise InputError(f"features failed with {type(error).__name__}: {_shorten(error)}", "features") from error
        mapped = conversion.to_dict(result) if isinstance(result, Mapping) else _finite_row(result)
        if self._mapped_width is not None and (isinstance(mapped, dict) or len(mapped) != self._mapped_width):
            got = "a mapping" if isinstance(mapped, dict) else len(mapped)
            raise _map_error(f"{self._mapped_width} numbers as for the first context", got)
        return mapped

    def _has_columns(self, features: RowOrFields) -> bool:
        """Whether a context without any field is mapped too, to missing values or zeros."""
        return isinstance(features, dict) and isinstance(self.features, Columns | Features)

    # One at a time, so that a context is mapped to the same bytes alone and in a batch.
    def _map_many(self, contexts: Any) -> tuple[Any, Any]:
        fields = None if self._width is not None else conversion.to_dicts(contexts)
        rows = conversion.matrix(contexts) if fields is None else fields
        if isinstance(rows, np.ndarray) and (not rows.shape[1] or not len(rows)):
            return rows, self._empty(rows)
        if isinstance(self.features, Columns) and fields is not None:
            table = {column.name: [row.get(column.name) for row in fields] for column in self.features.columns}
            return rows, self.features.rows(table)
        if isinstance(self.features, Features) and fields:
            return rows, np.array([self._map(row) for row in fields], dtype=np.float32)
        mapped = [self._map(row) if len(row) else row for row in rows]
        if all(isinstance(each, dict) for each in mapped):
            return rows, mapped
        widths = {len(each) for each in mapped}
        if len(widths) > 1 or any(isinstance(each, dict) for each in mapped):
            raise _map_error("rows of the same width", f"widths {sorted(widths)}")
        return rows, np.array(mapped, dtype=np.float32)

    def _empty(self, rows: conversion.Row) -> Any:
        if not rows.shape[1]:
            return rows
        return np.empty((0, len(self._map(np.zeros(rows.shape[1], np.float32)))), np.float32)

    # Called after the agent has accepted the context, so that a rejected one changes nothing.
    def _fix(self, context: Any, mapped: Any) -> None:
        if isinstance(mapped, np.ndarray) and len(mapped) and self._mapped_width is None:
            self._mapped_width = len(mapped)
            self._width = None if conversion.is_named(context) else len(conversion.row(context))

    def _fix_many(self, rows: Any, mapped: Any) -> None:
        if isinstance(mapped, np.ndarray) and mapped.shape[1] and self._mapped_width is None:
            self._mapped_width = mapped.shape[1]
            self._width = rows.shape[1] if isinstance(rows, np.ndarray) else None


def _asked(*, levels: bool) -> dict[str, Any]:
    """What is asked of the agent inside, which need not know of levels unless they are asked for."""
    return {"levels": True} if levels else {}


def _map_error(rule: str, got: object) -> InputError:
    return InputError(f"features must return {rule}, got {got}.", "features")


def _finite_row(result: Any) -> conversion.Row:
    try:
        with np.errstate(over="ignore"):
            row = np.ascontiguousarray(result, dtype=np.float32)
    except (TypeError, ValueError):
        raise _map_error("a row of numbers or a mapping", _shorten(result)) from None
    if row.ndim != 1:
        raise _map_error("one row per context", f"an array of shape {row.shape}")
    if not np.isfinite(row).all():
        column = int(np.argmin(np.isfinite(row)))
        raise _map_error("finite numbers", f"{row[column]} in column {column}")
    return row


def _shorten(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
