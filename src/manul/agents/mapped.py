"""Any agent behind a feature map: it sees the mapped contexts, and everything else is its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self, cast

import numpy as np
import numpy.typing as npt

from manul.actions.distribution import Atoms, Distribution
from manul.agents.agent_registry import AGENTS
from manul.agents.base import distributions
from manul.contexts import conversion
from manul.contexts.maps import Columns, Crosses, FeatureMap, Fourier, describe, from_description
from manul.errors import InputError, ManulError, ParameterError
from manul.policies.plottable import Drawn
from manul.types import Agent, Context, Decision, Decisions, Floats, Within
from manul.utils import model_files

Seen = conversion.Row | conversion.Fields


class Mappable(Agent, model_files.Saveable, Protocol):
    """An agent that names its ranges, shows its state and saves itself."""

    actions: Within
    losses: Within

    def state(self) -> model_files.Arrays:
        """All that decides how the agent goes on."""


@model_files.saveable(
    lambda seed: Mapped(agent=AGENTS["cats"].make(leaves=16, bandwidth=1 / 8, seed=seed), features=Crosses()),
    lambda seed: Mapped(agent=AGENTS["auto"].make(actions=(-2.0, 8.0), seed=seed), features=Fourier(count=8)),
)
class Mapped(Drawn):
    """An agent that sees each context through a feature map.

    >>> import manul
    >>> agent = Mapped(agent=manul.Cats(leaves=64, bandwidth=1/16), features=manul.maps.Crosses())
    >>> decision = agent.decide([0.3, 1.2])
    >>> agent.learn([0.3, 1.2], decision, loss=0.25)
    >>> agent.agent.width
    3
    """

    def __init__(self, *, agent: Mappable, features: FeatureMap) -> None:
        if not isinstance(agent, Agent):
            raise ParameterError(f"agent must decide and learn; got {agent!r}. Try manul.Auto().", "agent")
        if not callable(features):
            raise ParameterError(
                f"features must be a map or a function of one context; got {features!r}. Try manul.maps.Crosses().",
                "features",
            )
        self.agent, self.features = agent, features
        self.actions, self.losses = agent.actions, agent.losses
        self._width: int | None = None
        self._mapped_width: int | None = None

    @property
    def width(self) -> int | None:
        """How many numbers a context has before it is mapped; None before the first one and for contexts with names."""
        return self._width

    @property
    def decisions(self) -> int:
        """How many decisions were made."""
        return int(getattr(self.agent, "decisions", 0))

    @property
    def nbytes(self) -> int:
        """The memory that holds what was learned."""
        return int(getattr(self.agent, "nbytes", 0))

    def mapped(self, context: Context) -> Context:
        """A context as the agent sees it; nothing at all stays nothing.

        >>> import manul
        >>> agent = Mapped(agent=manul.Cats(leaves=64, bandwidth=1/16), features=manul.maps.Crosses())
        >>> agent.mapped({"size": 2.0, "age": 3.0})
        {'size': 2.0, 'age': 3.0, 'age*size': 6.0}
        """
        if context is None:
            return None
        seen = conversion.to_dict(context) if conversion.is_named(context) else conversion.row(context)
        return self._map(seen) if len(seen) else seen

    def distribution(self, context: Context, within: Within | None = None) -> Distribution | Atoms:
        """The distribution that `decide` draws from."""
        mapped = self.mapped(context)
        played = self.agent.distribution(mapped, within)
        self._fix(context, mapped)
        return played

    def decide(self, context: Context, within: Within | None = None) -> Decision:
        """Draw an action."""
        mapped = self.mapped(context)
        decision = self.agent.decide(mapped, within)
        self._fix(context, mapped)
        return decision

    def learn(self, context: Context, decision: Decision, loss: float) -> None:
        """Take in what a decision led to."""
        mapped = self.mapped(context)
        self.agent.learn(mapped, decision, loss)
        self._fix(context, mapped)

    def decide_again(self, number: int, context: Context, within: Within | None = None) -> Decision:
        """Draw the decision of a number without counting it, where the agent inside can."""
        mapped = self.mapped(context)
        decision: Decision = self.agent.decide_again(number, mapped, within)  # type: ignore[attr-defined]
        self._fix(context, mapped)
        return decision

    def decide_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> Decisions:
        """Draw an action for each row; `within` is one (low, high) per row."""
        rows, mapped = self._map_many(contexts)
        decisions = self.agent.decide_many(mapped, within)
        self._fix_many(rows, mapped)
        return decisions

    def densities_many(
        self, contexts: npt.ArrayLike, actions: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Floats:
        """The density of each row's action, which may have been drawn by another policy."""
        _, mapped = self._map_many(contexts)
        inside = getattr(self.agent, "densities_many", None)
        if inside is not None and isinstance(mapped, np.ndarray):
            return cast(Floats, inside(mapped, actions, within))
        asked = np.asarray(actions, dtype=np.float64)
        played = distributions(self.agent, mapped, within)
        return np.array([each.density(action) for each, action in zip(played, asked, strict=True)])

    def moments_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """The expected action of each row, and its expected square."""
        _, mapped = self._map_many(contexts)
        inside = getattr(self.agent, "moments_many", None)
        if inside is not None and isinstance(mapped, np.ndarray):
            return cast("tuple[Floats, Floats]", inside(mapped, within))
        played = distributions(self.agent, mapped, within)
        return np.array([each.mean() for each in played]), np.array([each.square() for each in played])

    def learn_many(self, contexts: npt.ArrayLike, decisions: Decisions, losses: npt.ArrayLike) -> None:
        """Take in what many decisions led to, in order; all of them or, where one cannot be used, none."""
        rows, mapped = self._map_many(contexts)
        self.agent.learn_many(mapped, decisions, losses)
        self._fix_many(rows, mapped)

    def state(self) -> model_files.Arrays:
        """All that decides how the agent goes on, as arrays."""
        return self.agent.state()

    def save(self, path: str | Path) -> None:
        """Write to a `.manul` file; maps that are functions of your own cannot be written."""
        model_files.write(path, *self.contents())

    def contents(self) -> model_files.Contents:
        """What a file of the agent holds."""
        features, features_arrays = describe(self.features)
        kind, parameters, arrays = model_files.contents(self.agent)
        inside = {"kind": kind, "parameters": parameters}
        widths = {"width": self._width, "mapped_width": self._mapped_width}
        named = {f"features.{name}": array for name, array in features_arrays.items()}
        named |= {f"agent.{name}": array for name, array in arrays.items()}
        return "Mapped", {"agent": inside, "features": features, **widths}, named

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """The agent that was saved with these parameters and arrays."""
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

    def __repr__(self) -> str:
        return f"Mapped(agent={self.agent!r}, features={self.features!r})"

    def _map(self, seen: Seen) -> Seen:
        if isinstance(seen, np.ndarray) and self._width is not None:
            conversion.check_width(len(seen), self._width)
        try:
            made = self.features(seen)
        except ManulError:
            raise
        except Exception as error:  # a map may be anybody's code
            raise _bad_map(f"map every context; got {type(error).__name__} ({_line(error)})") from error
        mapped = conversion.to_dict(made) if isinstance(made, Mapping) else _finite_row(made)
        if self._mapped_width is not None and (isinstance(mapped, dict) or len(mapped) != self._mapped_width):
            got = "a mapping" if isinstance(mapped, dict) else len(mapped)
            raise _bad_map(f"give rows of {self._mapped_width} numbers, as at first; got {got}")
        return mapped

    # One at a time, so that a context is mapped to the same bytes alone and among others.
    def _map_many(self, contexts: Any) -> tuple[Any, Any]:
        named = None if self._width is not None else conversion.to_dicts(contexts)
        rows = conversion.matrix(contexts) if named is None else named
        if isinstance(rows, np.ndarray) and (not rows.shape[1] or not len(rows)):
            return rows, self._empty(rows)
        if isinstance(self.features, Columns) and named is not None:
            table = {column.name: [row.get(column.name) for row in named] for column in self.features.columns}
            return rows, self.features.rows(table)
        mapped = [self._map(row) if len(row) else row for row in rows]
        if all(isinstance(each, dict) for each in mapped):
            return rows, mapped
        widths = {len(each) for each in mapped}
        if len(widths) > 1 or any(isinstance(each, dict) for each in mapped):
            raise _bad_map(f"give rows of one width; got {sorted(widths)} numbers")
        return rows, np.array(mapped, dtype=np.float32)

    def _empty(self, rows: conversion.Row) -> Any:
        if not rows.shape[1]:
            return rows
        return np.empty((0, len(self._map(np.zeros(rows.shape[1], np.float32)))), np.float32)

    # Only after the agent has taken the context: what it refuses changes nothing.
    def _fix(self, context: Any, mapped: Any) -> None:
        if isinstance(mapped, np.ndarray) and len(mapped) and self._mapped_width is None:
            self._mapped_width = len(mapped)
            self._width = None if conversion.is_named(context) else len(conversion.row(context))

    def _fix_many(self, rows: Any, mapped: Any) -> None:
        if isinstance(mapped, np.ndarray) and mapped.shape[1] and self._mapped_width is None:
            self._mapped_width = mapped.shape[1]
            self._width = rows.shape[1] if isinstance(rows, np.ndarray) else None


def _bad_map(what: str) -> InputError:
    return InputError(f"features must {what}. Fix the feature map.", "features")


def _finite_row(made: Any) -> conversion.Row:
    try:
        with np.errstate(over="ignore"):
            row = np.ascontiguousarray(made, dtype=np.float32)
    except (TypeError, ValueError):
        raise _bad_map(f"give a row of numbers or a mapping; got {_line(made)}") from None
    if row.ndim != 1:
        raise _bad_map(f"give one row per context; got an array of shape {row.shape}")
    if not np.isfinite(row).all():
        column = int(np.argmin(np.isfinite(row)))
        raise _bad_map(f"give finite numbers; got {row[column]} in column {column}")
    return row


def _line(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
