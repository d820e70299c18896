"""The host of an agent's player, which is created for the first context: a row of numbers or named fields.

An agent has a host; `host_of` and `seen_by` are the way to it for what looks into agents, such as inspection and replays.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np

from manul import _core
from manul.contexts import conversion
from manul.contexts.batches import NamedBatch, named_batch
from manul.contexts.misspelt_fields import warn_of_misspelt_fields
from manul.contexts.records import is_record
from manul.errors import InputError
from manul.utils import model_files

COUNTERS = ("decisions", "learned")  # counts of a player in a file; "learned" only if epsilon is a schedule
SKETCH = 64  # columns that the features of named contexts share if an agent has no weight tables


class Seen(NamedTuple):
    """The contexts that an agent has seen: the number of columns, None before the first one, 0 for named fields."""

    width: int | None = None
    named: bool = False


class Hosting(Protocol):
    """An agent as its host knows it. The host does not keep it, so that both are freed at once."""

    _host: PlayerHost

    @property
    def _seen(self) -> Seen: ...
    def _make_player(self, width: int) -> Any: ...
    def _make_named_player(self) -> Any: ...


def host_of(agent: Any) -> PlayerHost:
    """The host of an agent, or of the agent behind a map."""
    hosting: Hosting = agent
    return hosting._host


def seen_by(agent: Any) -> Seen:
    """The contexts that an agent has seen, before it maps them."""
    hosting: Hosting = agent
    return hosting._seen


def expected_nbytes(agent: Any, width: int | None) -> int:
    """About the memory of an `agent` after many rounds, for contexts of a `width`; None is for named contexts.

    >>> import manul
    >>> expected_nbytes(manul.Cats(leaves=1024, bandwidth=1/16), 100)
    869240
    """
    hosting: Hosting = agent
    try:  # a new player knows its sizes but uses hardly any memory before it learns
        player = hosting._make_named_player() if width is None else hosting._make_player(width)
        nbytes: int = player.most_nbytes if isinstance(player, _core.BasePlayer) else player.nbytes
        return nbytes
    except MemoryError:
        return sys.maxsize


class PlayerHost:
    """Holds the player of an agent, which is None before the first context; `native` is the same one if it is of the core."""

    __slots__ = ("_fades", "half_life", "native", "player", "seen")

    def __init__(self, half_life: float | None, *, fades: bool) -> None:
        self.half_life, self._fades = half_life, fades
        self.player: Any = None
        self.native: Any = None
        self.seen = Seen()

    def empty(self) -> PlayerHost:
        """A host with the same settings, without a player."""
        return PlayerHost(self.half_life, fades=self._fades)

    @property
    def decisions(self) -> int:
        return 0 if self.player is None else self.player.decisions

    def state(self) -> model_files.Arrays:
        """The learned state, as arrays by name."""
        return {} if self.player is None else {**self.player.state(), **self._counts(self.player)}

    def views(self) -> model_files.Arrays | None:
        """The learned state without copies of its arrays, which change when the agent learns, but not when it decides. None if
        the core does not hold it."""
        return None if self.native is None else {**self.native.views(), **self._counts(self.native)}

    def context_texts(self) -> dict[str, str]:
        """The context parameters as JSON. The core writes the names, of which there may be millions, while other threads run."""
        width = json.dumps(self.seen.width)
        if not self.seen.named:
            return {"width": width, "names": "null"}
        features, columns = self.native.names_json()
        fields = json.dumps(self.fields, sort_keys=True)
        return {"width": width, "names": f'{{"columns": {columns}, "features": {features}, "fields": {fields}}}'}

    def _counts(self, player: Any) -> model_files.Arrays:
        return {name: np.array([getattr(player, name)], np.uint64) for name in self._counters(player)}

    def restore(self, player: Any, arrays: model_files.Arrays) -> None:
        """Restore the state of a file, its `arrays`, in a new `player`."""
        state = dict(arrays)
        for name in self._counters(player):
            (count,) = model_files.vectors({name: state.pop(name)}, **{name: ("u8", 1)})
            if count[0] > model_files.MOST_ROUNDS:
                raise model_files.mismatch_error()
            setattr(player, name, int(count[0]))
        player.restore(state)

    def _counters(self, player: Any) -> tuple[str, ...]:
        """The counts of a player that a file has beside its arrays."""
        return COUNTERS if self._fades and isinstance(player, _core.BasePlayer) else COUNTERS[:1]

    def start(self, agent: Hosting, width: int) -> Any:
        """Create the player for contexts of a `width`."""
        return self.hold(agent._make_player(width), Seen(width))

    def start_named(self, agent: Hosting, names: dict[str, Any] | None = None) -> Any:
        """Create the player for named contexts, with the `names` of a file if given."""
        player = self.hold(agent._make_named_player(), Seen(0, named=True))
        if names is not None:
            player.fields, player.names, player.columns = conversion.parse_names(names)
        return player

    def hold(self, player: Any, seen: Seen) -> Any:
        self.player, self.seen = player, seen
        self.native = player if isinstance(player, _core.BasePlayer) else None
        if self.half_life is not None and self.native is not None:
            self.native.forget(self.half_life)
        return player

    def player_for(self, agent: Hosting, rows: conversion.Row) -> Any:
        """The player for `rows` of numbers; the first call creates it."""
        if self.player is None:
            return self.start(agent, rows.shape[-1])
        if self.seen.named:
            raise InputError("context must be a mapping like the first one, got a row of numbers.", "context")
        assert self.seen.width is not None
        conversion.check_width(rows.shape[-1], self.seen.width)
        return self.player

    def is_native(self, agent: Hosting, rows: conversion.Row) -> bool:
        """Whether the core handles `rows` like these."""
        return isinstance(self.player_for(agent, rows), _core.BasePlayer)

    def batch(self, contexts: Any) -> conversion.Row | NamedBatch:
        """Many `contexts`, as rows of numbers or with named fields; empty ones fit both."""
        if self._takes_rows():
            return conversion.number_rows(contexts)
        if self.seen.named and isinstance(contexts, list) and not contexts:
            return NamedBatch([], 0)
        batch = named_batch(contexts)
        if batch is None:
            return conversion.matrix(contexts)
        return np.empty((len(batch), 0), np.float32) if self.player is None and batch.is_empty() else batch

    def _takes_rows(self) -> bool:
        return self.player is not None and not self.seen.named

    @contextmanager
    def player_and_contexts(self, agent: Hosting, batch: conversion.Row | NamedBatch) -> Iterator[tuple[Any, Any]]:
        """The player, and a `batch` as it takes it; if a first batch of named contexts is rejected, the player goes."""
        if not isinstance(batch, NamedBatch):
            yield self.player_for(agent, batch), batch
            return
        first = self.player is None
        try:
            with self.explain_rejection():
                yield self._player_for_names(agent), batch.contexts
        except BaseException:
            if first:
                self.player, self.native, self.seen = None, None, Seen()
            raise

    def warn_of_late_fields(self, batch: Any, stacklevel: int) -> None:
        """Warn of fields that a batch just learned has added, if they look misspelt."""
        if self.native is not None and self.native.late_fields:
            warn_of_misspelt_fields(self.native.late_fields, self.native.fields, batch.__getitem__, stacklevel + 1)

    def player_and_context(self, agent: Hosting, context: Any) -> tuple[Any, Any]:
        """The player, and the `context` converted for it; an empty context fits rows and named fields."""
        named = conversion.is_named(context) and not (self._takes_rows() and is_record(context))
        if named:
            fields = conversion.to_dict(context)
            if self.seen.named or fields:
                return self._player_for_names(agent), fields
        row = conversion.row(None if named else context)
        if self.seen.named and not len(row):
            return self._player_for_names(agent), {}
        return self.player_for(agent, row), row

    @property
    def fields(self) -> dict[str, str]:
        """The kinds of the named fields that were learned, by path."""
        return {field: kind.name for field, kind in self.native.fields.items()} if self.seen.named else {}

    def context_parameters(self) -> dict[str, Any]:
        """The width or the names of contexts, for a file."""
        if not self.seen.named:
            return {"width": self.seen.width, "names": None}
        names = {"fields": self.fields, "features": self.native.names, "columns": self.native.columns}
        return {"width": self.seen.width, "names": names}

    @contextmanager
    def explain_rejection(self) -> Iterator[None]:
        """Turn a rejection by the core into an error that names the field."""
        try:
            yield
        except _core.Rejected:
            what, field, value = (_core.Fault.none, "", "") if self.native is None else self.native.fault
            if what == _core.Fault.none:
                raise
            raise conversion.field_error(what, field, value, self.native.fields) from None

    def _player_for_names(self, agent: Hosting) -> Any:
        if self.player is None:
            return self.start_named(agent)
        if not self.seen.named:
            raise InputError(
                f"context must be a row of {self.seen.width} numbers like the first one, got a mapping.", "context"
            )
        return self.player
