"""The player of an agent: it starts with the first context, for rows of numbers or for fields with names."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic

import numpy as np

from manul import _core
from manul.agents.player import AnyPlayer
from manul.contexts import conversion
from manul.errors import InputError
from manul.utils import model_files

SKETCH = 64  # columns that the features of contexts with names share, where an agent has no tables for them


class PlayerHost(ABC, Generic[AnyPlayer]):
    """Holds the player of an agent, which is None before the first context."""

    def __init__(self, half_life: float | None) -> None:
        self.half_life = half_life
        self.player: AnyPlayer | None = None
        self._native: _core.Player | None = None
        self._width: int | None = None
        self._names = False

    @abstractmethod
    def make_player(self, width: int) -> AnyPlayer:
        """A fresh player for contexts of this width."""

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
        return 0 if self.player is None else self.player.nbytes

    @property
    def decisions(self) -> int:
        """How many decisions were made."""
        return 0 if self.player is None else self.player.decisions

    def expected_nbytes(self, width: int | None) -> int:
        """About the memory that the agent takes once it has learned for long, in contexts of a width; None: with names.

        >>> import manul
        >>> manul.Cats(leaves=1024, bandwidth=1/16).expected_nbytes(100)
        869240
        """
        try:  # a fresh player has the sizes, but hardly any memory before it learns
            return (self._make_named_player() if width is None else self.make_player(width)).nbytes
        except MemoryError:
            return sys.maxsize

    def state(self) -> model_files.Arrays:
        """All that decides how the agent goes on, as arrays."""
        if self.player is None:
            return {}
        return {**self.player.state(), "decisions": np.array([self.player.decisions], dtype=np.uint64)}

    def restore(self, player: AnyPlayer, arrays: model_files.Arrays) -> None:
        """Bring a fresh player to the state of a file."""
        learned = dict(arrays)
        (decisions,) = model_files.vectors({"decisions": learned.pop("decisions")}, decisions=("u8", 1))
        if decisions[0] > model_files.MOST_ROUNDS:
            raise model_files.mismatch_error()
        player.decisions = int(decisions[0])
        player.restore(learned)

    def is_native(self, contexts: conversion.Row) -> bool:
        """Whether contexts like these are played wholly in the core."""
        return isinstance(self.player_for(contexts), _core.Player)

    def start(self, width: int) -> AnyPlayer:
        """Begin with contexts of a width."""
        return self._hold(self.make_player(width), width)

    def start_named(self, names: dict[str, Any] | None = None) -> AnyPlayer:
        """Begin with contexts with names: with those of a file, or none."""
        player, self._names = self._hold(self._make_named_player(), 0), True
        if names is not None:
            assert self._native is not None
            self._native.fields, self._native.names, self._native.columns = conversion.parse_names(names)
        return player

    def _hold(self, player: AnyPlayer, width: int) -> AnyPlayer:
        self.player, self._width = player, width
        self._native = player if isinstance(player, _core.Player) else None
        if self.half_life is not None and self._native is not None:
            self._native.forget(self.half_life)
        return player

    def player_for(self, rows: conversion.Row) -> AnyPlayer:
        """The player for rows of numbers."""
        if self.player is None:
            return self.start(rows.shape[-1])
        if self._names:
            raise InputError(
                "context must be a mapping of fields, as the first one was; got a row of numbers. Name them.", "context"
            )
        assert self._width is not None
        conversion.check_width(rows.shape[-1], self._width)
        return self.player

    def player_and_context(self, context: Any) -> tuple[AnyPlayer, Any]:
        """The player, and the context as it takes it. Nothing at all fits both kinds of contexts."""
        if conversion.is_named(context):
            fields = conversion.to_dict(context)
            if self._names or fields:
                return self._player_for_names(), fields
        row = conversion.row(None if conversion.is_named(context) else context)
        if self._names and not len(row):
            return self._player_for_names(), {}
        return self.player_for(row), row

    def contexts_saved(self) -> dict[str, Any]:
        """How contexts come, as it is written into a file."""
        if not self._names or self._native is None:
            return {"width": self._width, "names": None}
        fields = {field: kind.name for field, kind in self._native.fields.items()}
        names = {"fields": fields, "features": self._native.names, "columns": self._native.columns}
        return {"width": self._width, "names": names}

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turns a refusal of the core into a sentence about the field that it did not take."""
        try:
            yield
        except _core.Rejected:
            if self._native is None or self._native.fault[0] == _core.Fault.none:
                raise
            raise conversion.field_error(*self._native.fault, self._native.fields) from None

    def _make_named_player(self) -> AnyPlayer:
        """A fresh player for contexts with names: their features share the columns of a row."""
        player = self.make_player(SKETCH)
        if not isinstance(player, _core.Player):
            raise InputError(
                f"context must be a row of numbers for {type(self).__name__}; got a mapping. Encode it first.",
                "context",
            )
        player.sketch_names()
        return player

    def _player_for_names(self) -> AnyPlayer:
        if self.player is None:
            return self.start_named()
        if not self._names:
            raise InputError(
                f"context must be a row of {self._width} numbers, as the first one was; got a mapping. "
                "Start a new agent for it.",
                "context",
            )
        return self.player
