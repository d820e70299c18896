"""The shell that every agent shares: checks, conversions, single and batch forms, saving."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.distribution import Atoms, Distribution
from manul.actions.ranges import Actions
from manul.actions.smoothing import explore, smooth
from manul.contexts import conversion
from manul.errors import InputError
from manul.policies.plottable import Drawn
from manul.types import Context, Decision, Decisions, Floats, Within
from manul.utils import model_files
from manul.utils.validation import check_epsilon, check_half_life, check_outcomes, check_range, check_seed, check_shape

_NOTHING = np.empty(0)
SKETCH = 64


class Player(Protocol):
    """What plays and learns inside a shell: it gets rows and numbers that are checked already."""

    decisions: int

    @property
    def nbytes(self) -> int:
        """The memory that holds what was learned."""

    def window(self, context: conversion.Row, low: float, high: float) -> tuple[float, float]:
        """The centre and the bandwidth that are played where nothing is explored."""

    def decide(self, context: conversion.Row, low: float, high: float) -> tuple[float, float]:
        """Draw an action; it comes with its density."""

    def learn(
        self, context: conversion.Row, action: float, density: float, loss: float, low: float, high: float
    ) -> None:
        """Take in what a decision led to."""

    def decide_many(
        self, contexts: conversion.Row, lows: Floats, highs: Floats, actions: Floats, densities: Floats
    ) -> None:
        """Draw an action for each row into the last two arrays; empty ends mean the whole range."""

    def learn_many(
        self, contexts: conversion.Row, actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats
    ) -> None:
        """Take in what many decisions led to: all of them or none."""

    def state(self) -> model_files.Arrays:
        """A copy of all that was learned."""

    def restore(self, saved: model_files.Arrays) -> None:
        """Go back to a state; raises KeyError or ValueError where the arrays do not fit."""


_Player = TypeVar("_Player", bound=Player)


class Shell(Drawn, ABC, Generic[_Player]):
    """An agent around a player; its width is that of the first context it sees."""

    def __init__(
        self, *, actions: Within, losses: Within, epsilon: float, seed: int, half_life: float | None = None
    ) -> None:
        self.actions = check_range("actions", actions)
        self.losses = check_range("losses", losses)
        self.epsilon = check_epsilon(epsilon)
        self.seed = check_seed(seed)
        self.half_life = check_half_life(half_life)
        self._range = Actions(*self.actions)
        self._core: _Player | None = None
        self._native: _core.Player | None = None
        self._width: int | None = None
        self._names = False

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What the constructor needs to make this agent again."""

    @abstractmethod
    def _player(self, width: int) -> _Player:
        """A fresh player for contexts of this width."""

    @property
    def narrowest_bandwidth(self) -> float:
        """The smallest bandwidth that a narrowed range must have room for."""
        return 0.0

    def narrowed(self, within: Within | None) -> Within:
        """The range of one decision; refuses one that leaves nothing to play."""
        return self._range.narrow(within, self.narrowest_bandwidth)

    def _played(self, centre: float, bandwidth: float, within: Within) -> Distribution | Atoms:
        return explore(smooth(centre, bandwidth, within), self.epsilon, within)

    @property
    def width(self) -> int | None:
        """How many numbers a context has; None before the first one, 0 for contexts with names."""
        return self._width

    @property
    def named(self) -> bool:
        """Whether contexts have names, as the first one had."""
        return self._names

    @property
    def nbytes(self) -> int:
        """The memory that holds what was learned."""
        return 0 if self._core is None else self._core.nbytes

    @property
    def decisions(self) -> int:
        """How many decisions were made."""
        return 0 if self._core is None else self._core.decisions

    def distribution(self, context: Context, within: Within | None = None) -> Distribution | Atoms:
        """The distribution that `decide` draws from."""
        low, high = self.narrowed(within)
        player, seen = self.player_and_context(context)
        with self._explained():
            centre, bandwidth = player.window(seen, low, high)
        return self._played(centre, bandwidth, (low, high))

    def decide(self, context: Context, within: Within | None = None) -> Decision:
        """Draw an action."""
        low, high = self.actions if within is None else self.narrowed(within)
        try:
            action, density = self._native.decide(context, low, high)  # type: ignore[union-attr,call-overload]
        except (AttributeError, TypeError, _core.Rejected):
            player, seen = self.player_and_context(context)
            with self._explained():
                action, density = player.decide(seen, low, high)
        return Decision(action, density, within)

    def learn(self, context: Context, decision: Decision, loss: float) -> None:
        """Take in what a decision led to."""
        try:
            action, density, within = decision
        except (TypeError, ValueError):
            raise InputError(
                f"decision must be what decide returned; got {decision!r}. Pass it on as it is.", "decision"
            ) from None
        low, high = self.actions if within is None else self.narrowed(within)
        try:
            self._native.learn(context, action, density, loss, low, high)  # type: ignore[union-attr,call-overload]
        except (AttributeError, TypeError, _core.Rejected):
            outcome = (_number("action", action), _number("density", density), _number("loss", loss), [low], [high])
            self.check_outcomes(*map(_numbers, outcome))
            player, seen = self.player_and_context(context)
            with self._explained():
                player.learn(seen, float(action), float(density), float(loss), low, high)

    def decide_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> Decisions:
        """Draw an action for each row; `within` is one (low, high) per row."""
        names = self._named_rows(contexts)
        if names is not None:
            return self._decide_named(names, within)
        rows = conversion.matrix(contexts)
        lows, highs = self._ends(within, len(rows))
        player = self.player_for(rows)
        actions, densities = np.empty(len(rows)), np.empty(len(rows))
        player.decide_many(rows, lows, highs, actions, densities)
        return Decisions(actions, densities, *((lows, highs) if within is not None else (None, None)))

    def decide_again(self, number: int, context: Context, within: Within | None = None) -> Decision:
        """Draw the decision of a number, which is any below 2^64, without counting it."""
        low, high = self.actions if within is None else self.narrowed(within)
        try:
            action, density = self._native.decide_again(context, low, high, number)  # type: ignore[union-attr,call-overload]
        except (AttributeError, TypeError, _core.Rejected):
            player, seen = self.player_and_context(context)
            with self._explained():
                action, density = self._drawn(player, seen, low, high, number)
        return Decision(action, density, within)

    def decide_many_again(
        self, numbers: npt.ArrayLike, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Decisions:
        """Draw the decision of each row's number without counting it."""
        rows, keys = conversion.matrix(contexts), np.ascontiguousarray(numbers, dtype=np.uint64)
        lows, highs = self._ends(within, len(rows))
        player = self.player_for(rows)
        actions, densities = np.empty(len(rows)), np.empty(len(rows))
        if isinstance(player, _core.Player):
            player.decide_many_again(rows, lows, highs, keys, actions, densities)
        else:
            ends = zip(lows, highs, strict=True) if len(lows) else [self.actions] * len(rows)
            for place, (row, (low, high)) in enumerate(zip(rows, ends, strict=True)):
                actions[place], densities[place] = self._drawn(player, row, low, high, int(keys[place]))
        return Decisions(actions, densities, *((lows, highs) if within is not None else (None, None)))

    def _drawn(self, player: _Player, seen: Any, low: float, high: float, number: int) -> tuple[float, float]:
        if isinstance(player, _core.Player):
            return player.decide_again(seen, low, high, number)
        counted = player.decisions
        try:
            player.decisions = number
            return player.decide(seen, low, high)
        finally:
            player.decisions = counted

    def densities_many(
        self, contexts: npt.ArrayLike, actions: npt.ArrayLike, within: npt.ArrayLike | None = None
    ) -> Floats:
        """The density of each row's action, which may have been drawn by another policy."""
        names, asked = self._named_rows(contexts), _numbers(actions)
        rows: Any = conversion.matrix(contexts) if names is None else names
        check_shape("actions", asked, len(rows))
        lows, highs = self._ends(within, len(rows))
        player = self.player_for(rows) if names is None else None
        if not isinstance(player, _core.Player):
            played = self._each(rows, within)
            return np.array([each.density(action) for each, action in zip(played, asked, strict=True)])
        densities = np.empty(len(rows))
        player.densities_many(rows, lows, highs, asked, densities)
        return densities

    def moments_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """The expected action of each row, and its expected square."""
        names = self._named_rows(contexts)
        rows: Any = conversion.matrix(contexts) if names is None else names
        lows, highs = self._ends(within, len(rows))
        player = self.player_for(rows) if names is None else None
        means, squares = np.empty(len(rows)), np.empty(len(rows))
        if isinstance(player, _core.Player):
            player.moments_many(rows, lows, highs, means, squares)
        else:
            for number, played in enumerate(self._each(rows, within)):
                means[number], squares[number] = played.mean(), played.square()
        return means, squares

    def learn_many(self, contexts: npt.ArrayLike, decisions: Decisions, losses: npt.ArrayLike) -> None:
        """Take in what many decisions led to, in order; all of them or, where one cannot be used, none."""
        names = self._named_rows(contexts)
        rows = conversion.matrix(contexts) if names is None else np.empty((len(names), 0), np.float32)
        actions, densities, paid = (_numbers(each) for each in (decisions.actions, decisions.densities, losses))
        lows = _NOTHING if decisions.lows is None else _numbers(decisions.lows)
        highs = _NOTHING if decisions.highs is None else _numbers(decisions.highs)
        for name, array in (("actions", actions), ("densities", densities), ("losses", paid)):
            check_shape(name, array, len(rows))
        self.check_outcomes(
            actions, densities, paid, *((lows, highs) if len(lows) else np.array(self.actions)[:, np.newaxis])
        )
        if names is None:
            self.player_for(rows).learn_many(rows, actions, densities, paid, lows, highs)
        else:
            self._learn_named(names, actions, densities, paid, lows, highs)

    def state(self) -> model_files.Arrays:
        """All that decides how the agent goes on, as arrays."""
        if self._core is None:
            return {}
        return {**self._core.state(), "decisions": np.array([self._core.decisions], dtype=np.uint64)}

    def contents(self) -> model_files.Contents:
        """What a file of the agent holds."""
        return type(self).__name__, {**self._settings_saved(), **self._contexts()}, self.state()

    def save(self, path: str | Path) -> None:
        """Write to a `.manul` file."""
        model_files.write(path, *self.contents())

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """The agent that was saved with these parameters and arrays."""
        width, names = parameters.pop("width"), parameters.pop("names")
        agent = cls._from_parameters(parameters)
        if width is None and names is None and not arrays:
            return agent
        columns = model_files.check_width(width) if names is None else SKETCH
        if (names is not None and width != 0) or not agent._fits(columns, arrays):
            raise model_files.mismatch_error()
        agent.restore(agent.start(columns) if names is None else agent._start_named(names), arrays)
        return agent

    def expected_nbytes(self, width: int | None) -> int:
        """About the memory that the agent takes once it has learned for long, in contexts of a width; None: with names.

        >>> import manul
        >>> manul.Cats(leaves=1024, bandwidth=1/16).expected_nbytes(100)
        869240
        """
        try:  # a fresh player has the sizes, but hardly any memory before it learns
            return (self._named_player() if width is None else self._player(width)).nbytes
        except MemoryError:
            return sys.maxsize

    def _settings_saved(self) -> model_files.Parameters:
        return self.parameters

    @classmethod
    def _from_parameters(cls, parameters: model_files.Parameters) -> Self:
        settings: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
        return cls(**settings)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items() if value is not None)
        return f"{type(self).__name__}({shown})"

    def restore(self, player: _Player, arrays: model_files.Arrays) -> None:
        """Bring a fresh player to the state of a file."""
        learned = dict(arrays)
        (decisions,) = model_files.vectors({"decisions": learned.pop("decisions")}, decisions=("u8", 1))
        if decisions[0] > model_files.MOST_ROUNDS:
            raise model_files.mismatch_error()
        player.decisions = int(decisions[0])
        player.restore(learned)

    def _fits(self, width: int, arrays: model_files.Arrays) -> bool:
        """Whether arrays can be this agent's, as far as must be known before a player is made."""
        return width <= sum(array.size for array in arrays.values())  # there is a number for each at least

    def is_native(self, contexts: conversion.Row) -> bool:
        """Whether contexts like these are played wholly in the core."""
        return isinstance(self.player_for(contexts), _core.Player)

    def start(self, width: int) -> _Player:
        """Begin with contexts of a width."""
        self._core, self._width = self._player(width), width
        self._native = self._core if isinstance(self._core, _core.Player) else None
        self._forget()
        return self._core

    def _forget(self) -> None:
        if self.half_life is not None and self._native is not None:
            self._native.forget(self.half_life)

    def player_for(self, rows: conversion.Row) -> _Player:
        """The player for rows of numbers."""
        if self._core is None:
            return self.start(rows.shape[-1])
        if self._names:
            raise InputError(
                "context must be a mapping of fields, as the first one was; got a row of numbers. Name them.", "context"
            )
        assert self._width is not None
        conversion.check_width(rows.shape[-1], self._width)
        return self._core

    def player_and_context(self, context: Any) -> tuple[_Player, Any]:
        """The player, and the context as it takes it. Nothing at all fits both kinds of contexts."""
        if (
            self._names
            and context is not None
            and not conversion.is_named(context)
            and not len(conversion.row(context))
        ):
            context = None
        if conversion.is_named(context) and (self._names or len(conversion.to_dict(context))):
            return self._started_named(), conversion.to_dict(context)
        if self._names and context is None:
            return self._started_named(), {}
        row = conversion.row(None if conversion.is_named(context) else context)
        return self.player_for(row), row

    def _contexts(self) -> dict[str, Any]:
        """How contexts come, as it is written into a file."""
        if not self._names or self._native is None:
            return {"width": self._width, "names": None}
        fields = {field: kind.name for field, kind in self._native.fields.items()}
        names = {"fields": fields, "features": self._native.names, "columns": self._native.columns}
        return {"width": self._width, "names": names}

    def _named_player(self) -> _Player:
        """A fresh player for contexts with names: their features share the columns of a row."""
        player = self._player(SKETCH)
        if not isinstance(player, _core.Player):
            raise InputError(
                f"context must be a row of numbers for {type(self).__name__}; got a mapping. Encode it first.",
                "context",
            )
        player.sketch_names()
        return player

    def _start_named(self, names: dict[str, Any] | None = None) -> _Player:
        self._core, self._width, self._names = self._named_player(), 0, True
        assert isinstance(self._core, _core.Player)
        self._native = self._core
        self._forget()
        if names is not None:
            fields, known, columns = conversion.parse_names(names)
            self._core.fields, self._core.names, self._core.columns = fields, known, columns
        return self._core

    def _started_named(self) -> _Player:
        if self._core is None:
            return self._start_named()
        if not self._names:
            raise InputError(
                f"context must be a row of {self._width} numbers, as the first one was; got a mapping. Start a new agent for it.",
                "context",
            )
        return self._core

    def _named_rows(self, contexts: Any) -> list[conversion.Fields] | None:
        if self._core is not None and not self._names:
            return None
        return conversion.to_dicts(contexts)

    def _decide_named(self, contexts: list[conversion.Fields], within: npt.ArrayLike | None) -> Decisions:
        lows, highs = self._ends(within, len(contexts))
        ranges = zip(lows, highs, strict=True) if len(lows) else [None] * len(contexts)
        for each in contexts:
            self.distribution(each)
        made = [self.decide(each, ends) for each, ends in zip(contexts, ranges, strict=True)]
        actions, densities = (np.array([each[i] for each in made], dtype=np.float64) for i in (0, 1))
        return Decisions(actions, densities, *((lows, highs) if within is not None else (None, None)))

    def _learn_named(
        self,
        contexts: list[conversion.Fields],
        actions: Floats,
        densities: Floats,
        losses: Floats,
        lows: Floats,
        highs: Floats,
    ) -> None:
        for each in contexts:
            self.distribution(each)
        for number, each in enumerate(contexts):
            within = (float(lows[number]), float(highs[number])) if len(lows) else None
            self.learn(each, Decision(float(actions[number]), float(densities[number]), within), float(losses[number]))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns a refusal of the core into a sentence about the field that it did not take."""
        try:
            yield
        except _core.Rejected:
            if self._native is None or self._native.fault[0] == _core.Fault.none:
                raise
            raise conversion.field_error(*self._native.fault, self._native.fields) from None

    def _ends(self, within: npt.ArrayLike | None, count: int) -> tuple[Floats, Floats]:
        if within is None:
            return _NOTHING, _NOTHING
        pairs = np.asarray(within, dtype=np.float64)
        check_shape("within", pairs, count, 2)
        for low, high in pairs:
            self.narrowed((low, high))
        return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])

    def _each(self, rows: Any, within: npt.ArrayLike | None) -> list[Distribution | Atoms]:
        pairs = [None] * len(rows) if within is None else [(low, high) for low, high in np.asarray(within).tolist()]
        return [self.distribution(row, ends) for row, ends in zip(rows, pairs, strict=True)]

    def check_outcomes(self, actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats) -> None:
        """Refuses outcomes that cannot be learned from."""
        check_outcomes(actions, densities, losses, lows, highs, loss_range=self.losses)


def _number(name: str, value: object) -> list[float]:
    try:
        return [float(value)]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number; got {value!r}. Convert it first.", name) from None


def _numbers(values: npt.ArrayLike) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float64)
