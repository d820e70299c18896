"""Holds the player of an agent, which is created for the first context: a row of numbers or named fields."""

from __future__ import annotations

import json
import sys
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic

import numpy as np

from manul import _core
from manul.agents.agent_card import agent_card
from manul.agents.learned_twice import LearnedBatches
from manul.agents.player import HostedPlayer
from manul.contexts import conversion
from manul.contexts.batches import NamedBatch, named_batch
from manul.contexts.misspelt_fields import warn_of_misspelt_fields
from manul.contexts.records import is_record
from manul.contexts.schema import ContextSchema
from manul.errors import InputError
from manul.utils import model_files

COUNTERS = ("decisions", "learned")  # counts of a player in a file; "learned" only if epsilon is a schedule
SKETCH = 64  # columns that the features of named contexts share if an agent has no weight tables


class PlayerHost(model_files.FileMixin, Generic[HostedPlayer]):
    """Holds the player of an agent; it is None before the first context."""

    def __init__(self, half_life: float | None) -> None:
        self.half_life = half_life
        self.player: HostedPlayer | None = None
        self._native: _core.BasePlayer | None = None
        self._width: int | None = None
        self._named = False
        self._latest: object = None  # the decision that was learned last
        self._batches = LearnedBatches()

    @abstractmethod
    def make_player(self, width: int) -> HostedPlayer:
        """A new player for contexts of this `width`."""

    @property
    def width(self) -> int | None:
        """The number of columns of a context; None before the first one, 0 for named contexts."""
        return self._width

    @property
    def schema(self) -> ContextSchema:
        """The fields of contexts that the agent has learned, by path, or the width of rows of numbers."""
        if not self._named or self._native is None:
            return ContextSchema(self._width)
        return ContextSchema.of_leaves({field: kind.name for field, kind in self._native.fields.items()})

    @property
    def named(self) -> bool:
        """Whether contexts are named fields, as the first one was."""
        return self._named

    def _repr_html_(self) -> str:
        return agent_card(self)

    @property
    def nbytes(self) -> int:
        """The size of the learned state in a file, in bytes."""
        return 0 if self.player is None else self.player.nbytes

    @property
    def decisions(self) -> int:
        return 0 if self.player is None else self.player.decisions

    def expected_nbytes(self, width: int | None) -> int:
        """About the memory of the agent after many rounds, for contexts of a `width`; None is for named contexts.

        >>> import manul
        >>> manul.Cats(leaves=1024, bandwidth=1/16).expected_nbytes(100)
        869240
        """
        try:  # a new player knows its sizes but uses hardly any memory before it learns
            player = self._make_named_player() if width is None else self.make_player(width)
            return player.most_nbytes if isinstance(player, _core.BasePlayer) else player.nbytes
        except MemoryError:
            return sys.maxsize

    def state(self) -> model_files.Arrays:
        """The learned state, as arrays by name."""
        return {} if self.player is None else {**self.player.state(), **self._counts(self.player)}

    def views(self) -> model_files.Arrays | None:
        """The learned state without copies of its arrays, which change when the agent learns, but not when it decides. None if
        the core does not hold it."""
        return None if self._native is None else {**self._native.views(), **self._counts(self._native)}

    def contents(self) -> model_files.Contents:
        """The contents of a file with the agent."""
        kind, settings = self._description()
        return kind, {**settings, **self._context_parameters()}, self.state()

    def pieces(self, views: model_files.Arrays) -> Iterator[bytes]:
        """The bytes of a file in pieces, with the arrays of `views`. Meanwhile the agent may decide, but not learn."""
        kind, settings = self._description()
        texts = {name: json.dumps(value, sort_keys=True) for name, value in {**settings, "width": self._width}.items()}
        texts["names"] = self._names_json()
        text = ", ".join(f"{json.dumps(name)}: {texts[name]}" for name in sorted(texts))
        return model_files.pieces(kind, f"{{{text}}}", views, trained_on=self.trained_on)

    @abstractmethod
    def _description(self) -> tuple[str, model_files.Parameters]:
        """The kind and the settings of a file, without those of contexts."""

    def _counts(self, player: Any) -> model_files.Arrays:
        return {name: np.array([getattr(player, name)], np.uint64) for name in self._counters(player)}

    def restore(self, player: HostedPlayer, arrays: model_files.Arrays) -> None:
        """Restore the state of a file, its `arrays`, in a new `player`."""
        state = dict(arrays)
        for name in self._counters(player):
            (count,) = model_files.vectors({name: state.pop(name)}, **{name: ("u8", 1)})
            if count[0] > model_files.MOST_ROUNDS:
                raise model_files.mismatch_error()
            setattr(player, name, int(count[0]))
        player.restore(state)

    def _counters(self, _player: HostedPlayer) -> tuple[str, ...]:
        """The counts of a player that a file has beside its arrays."""
        return COUNTERS[:1]

    def is_native(self, contexts: conversion.Row) -> bool:
        """Whether the core handles rows of `contexts` like these."""
        return isinstance(self.player_for(contexts), _core.BasePlayer)

    def start(self, width: int) -> HostedPlayer:
        """Create the player for contexts of a `width`."""
        return self._hold(self.make_player(width), width)

    def start_named(self, names: dict[str, Any] | None = None) -> HostedPlayer:
        """Create the player for named contexts, with the `names` of a file if given."""
        player, self._named = self._hold(self._make_named_player(), 0), True
        if names is not None:
            assert self._native is not None
            self._native.fields, self._native.names, self._native.columns = conversion.parse_names(names)
        return player

    def _hold(self, player: HostedPlayer, width: int) -> HostedPlayer:
        self.player, self._width = player, width
        self._native = player if isinstance(player, _core.BasePlayer) else None
        if self.half_life is not None and self._native is not None:
            self._native.forget(self.half_life)
        return player

    def player_for(self, rows: conversion.Row) -> HostedPlayer:
        """The player for `rows` of numbers; the first call creates it."""
        if self.player is None:
            return self.start(rows.shape[-1])
        if self._named:
            raise InputError("context must be a mapping like the first one, got a row of numbers.", "context")
        assert self._width is not None
        conversion.check_width(rows.shape[-1], self._width)
        return self.player

    def batch(self, contexts: Any) -> conversion.Row | NamedBatch:
        """Many `contexts`, as rows of numbers or with named fields; empty ones fit both."""
        if self._takes_rows():
            return conversion.number_rows(contexts)
        if self._named and isinstance(contexts, list) and not contexts:
            return NamedBatch([], 0)
        batch = named_batch(contexts)
        if batch is None:
            return conversion.matrix(contexts)
        return np.empty((len(batch), 0), np.float32) if self.player is None and batch.is_empty() else batch

    def _takes_rows(self) -> bool:
        return self.player is not None and not self._named

    @contextmanager
    def _player_and_contexts(self, batch: conversion.Row | NamedBatch) -> Iterator[tuple[HostedPlayer, Any]]:
        """The player, and a `batch` as it takes it; if a first batch of named contexts is rejected, the player goes."""
        if not isinstance(batch, NamedBatch):
            yield self.player_for(batch), batch
            return
        first = self.player is None
        try:
            with self._explain_rejection():
                yield self._player_for_names(), batch.contexts
        except BaseException:
            if first:
                self.player = self._native = self._width = None
                self._named = False
            raise

    def _warn_of_late_fields(self, batch: Any, stacklevel: int) -> None:
        """Warn of fields that a batch just learned has added, if they look misspelt."""
        if self._native is not None and self._native.late_fields:
            fields = self._native.fields
            warn_of_misspelt_fields(self._native.late_fields, fields, batch.__getitem__, stacklevel + 1)

    def player_and_context(self, context: Any) -> tuple[HostedPlayer, Any]:
        """The player, and the `context` converted for it; an empty context fits rows and named fields."""
        named = conversion.is_named(context) and not (self._takes_rows() and is_record(context))
        if named:
            fields = conversion.to_dict(context)
            if self._named or fields:
                return self._player_for_names(), fields
        row = conversion.row(None if named else context)
        if self._named and not len(row):
            return self._player_for_names(), {}
        return self.player_for(row), row

    def _context_parameters(self) -> dict[str, Any]:
        """The width or the names of contexts, for a file."""
        if not self._named or self._native is None:
            return {"width": self._width, "names": None}
        fields = {field: kind.name for field, kind in self._native.fields.items()}
        names = {"fields": fields, "features": self._native.names, "columns": self._native.columns}
        return {"width": self._width, "names": names}

    def _names_json(self) -> str:
        """The names of contexts as in `_context_parameters`, as JSON."""
        if not self._named or self._native is None:
            return "null"
        fields = {field: kind.name for field, kind in self._native.fields.items()}
        features, columns = self._native.names_json()
        return f'{{"columns": {columns}, "features": {features}, "fields": {json.dumps(fields, sort_keys=True)}}}'

    @contextmanager
    def _explain_rejection(self) -> Iterator[None]:
        """Turn a rejection by the core into an error that names the field."""
        try:
            yield
        except _core.Rejected:
            if self._native is None or self._native.fault[0] == _core.Fault.none:
                raise
            raise conversion.field_error(*self._native.fault, self._native.fields) from None

    def _make_named_player(self) -> HostedPlayer:
        """A new player for named contexts, whose features share the columns of a row."""
        player = self.make_player(SKETCH)
        if not isinstance(player, _core.BasePlayer):
            raise InputError(
                f"context must be a row of numbers for {type(self).__name__}, got a mapping. Encode it with manul.maps.Columns.",
                "context",
            )
        player.sketch_names()
        return player

    def _player_for_names(self) -> HostedPlayer:
        if self.player is None:
            return self.start_named()
        if not self._named:
            raise InputError(
                f"context must be a row of {self._width} numbers like the first one, got a mapping.", "context"
            )
        return self.player
