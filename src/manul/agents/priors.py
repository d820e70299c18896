"""What another agent knows, as the prior of a new one: her critic as it is now, without the rounds that it has learned from.

The core (`src/core/critic/prior.hpp`) predicts with it and lets evidence drop it. A new agent reads contexts like the other
one: rows of the same width, or named features in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.actions.decision import Decisions
from manul.agents.player_host import Seen, host_of
from manul.errors import InputError, ParameterError
from manul.utils import model_files

if TYPE_CHECKING:
    from manul.logs.log import Log

PREFIX = "1."  # of the arrays of a prior in the state of a player
RING = 2**22  # entries of named contexts in the memory of an agent
ROWS = 2048  # the rounds that the core remembers of a prior, more than a process that is not retired needs
_OWN = ("start", "prior", "prior_losses", "prices")
PARTS = {"part_scales", "part_experts", "parts", "judge"}  # arrays of the models of an outcome's parts
_PER_ROUND = ("contexts", "actions", "losses", "predictions", "tree_targets")


@dataclass(frozen=True)
class Prior:
    """The critic of an agent that has learned from so many `rounds`, and the contexts that it has seen.

    `parts` are her settings for the parts of the outcome, if she predicts them; files have what a new agent took over.
    """

    rounds: int
    seen: Seen = field(repr=False)
    names: Mapping[str, Any] | None = field(repr=False, compare=False)
    arrays: model_files.Arrays = field(repr=False, compare=False)
    parts: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    def give(self, player: Any, make: Callable[..., Any]) -> Any:
        """Let a new `player` for the same contexts start from the prior; `make` makes one like it with other settings."""
        critic = {PREFIX + name: array for name, array in self.arrays.items() if name not in PARTS}
        self._name(player)
        player.restore({**player.state(), **critic})
        if self.parts is not None:
            sister = self._name(make(parts=self.parts))
            sister.restore({**sister.state(), **{name: self.arrays[name] for name in PARTS}})
            player.inherit(sister)  # unless the parts are others
        return player

    def _name(self, player: Any) -> Any:
        if self.names is not None:
            player.fields, player.names, player.columns = (
                self.names["fields"],
                self.names["features"],
                self.names["columns"],
            )
        return player

    def check_seen(self, seen: Seen) -> None:
        """Check that contexts are like those that the prior has learned."""
        if seen != self.seen:
            rule = "a mapping" if self.seen.named else f"a row of {self.seen.width} numbers"
            got = "a mapping" if seen.named else f"a row of {seen.width} numbers"
            raise InputError(f"context must be {rule}, as those of the prior, got {got}.", "context")


def prior_of(given: Any, agent: Any, parts_of: Callable[[Any], Mapping[str, Any] | None]) -> Prior:
    """The prior of a new `agent`: another Auto, the path of its file, or a log, from which one is trained first.

    `parts_of` returns the settings of an agent for the parts of its outcome.
    """
    if isinstance(given, Prior):
        return given
    if isinstance(given, str | Path):
        given = model_files.load(given)
    from manul.logs.log import Log  # few priors are logs

    if isinstance(given, Log):
        given = _train(given, agent)
    if not agent.space.is_number:
        raise ParameterError("prior is for actions (low, high); with other knobs, use start.", "prior")
    if not (isinstance(given, type(agent)) or isinstance(agent, type(given))) or not given.space.is_number:
        raise ParameterError(
            f"prior must be an Auto with the same actions, the path of its file or a log, got {_kind(given)}.", "prior"
        )
    _check_same(given, agent)
    host = host_of(given)
    if host.native is None or not host.native.learned:
        raise ParameterError("prior must have learned from decisions, got an agent that has not.", "prior")
    names = None
    if host.seen.named:
        names = {"fields": host.native.fields, "features": host.native.names, "columns": host.native.columns}
    arrays = _without_rounds(host.native.state())
    parts = parts_of(given) if arrays.keys() >= PARTS else None
    return Prior(host.native.learned, host.seen, names, arrays, parts)


def prior_in(arrays: model_files.Arrays, player: Any, seen: Seen) -> Prior | None:
    """The prior in the `arrays` of an agent's file, whose new `player` has its names; None without one."""
    if "prior_losses" not in arrays:
        return None
    own = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
    names = {"fields": player.fields, "features": player.names, "columns": player.columns} if seen.named else None
    (units,) = model_files.vectors({"units": own["units"]}, units=("f8", 5))
    return Prior(int(units[0]), seen, names, own)


def _kind(given: Any) -> str:
    return repr(given) if isinstance(given, int | float | str) else type(given).__name__


def _check_same(given: Any, agent: Any) -> None:
    if given.space != agent.space:
        raise ParameterError(
            f"prior must have the actions {agent.space.describe()} of the agent, got {given.space.describe()}.", "prior"
        )
    if (given.outcome.better, given.losses) != (agent.outcome.better, agent.losses):
        own, other = (f"{each.outcome.keywords} {each.outcome.range}" for each in (agent, given))
        raise ParameterError(f"prior must learn from the same outcome as the agent, {own}, got {other}.", "prior")


def _train(log: Log, agent: Any) -> Any:
    """An agent like the new one that has learned from a log."""
    if log.space is not None and log.space != agent.space:
        raise ParameterError(
            f"prior must have the actions {agent.space.describe()} of the agent, got {log.space.describe()}.", "prior"
        )
    if log.outcome.better != agent.outcome.better:
        raise ParameterError(
            f"prior must learn from {agent.outcome.keywords} as the agent does, got a log of {log.outcome.keywords}.",
            "prior",
        )
    from manul.agents.auto import Auto  # which imports this module

    trained: Any = Auto(actions=agent.space, outcome=agent.outcome)
    contexts: Any = list(log.context_rows()) if log.schema.fields else log.contexts
    decisions = Decisions(log.actions, log.densities, log.lows, log.highs)
    try:
        trained.learn_many(contexts, decisions, **agent.outcome.told_many(log.losses))
    except InputError as error:
        raise ParameterError(f"prior must be a log that the agent can learn from: {error}", "prior") from None
    return trained


def _without_rounds(arrays: model_files.Arrays) -> model_files.Arrays:
    """The arrays of a critic for a memory of `ROWS` rounds, and without any if nothing predicts with them any more."""
    rounds, running = int(arrays["units"][0]), arrays["early"][0] and arrays["early"][1]
    # Her own start and prior, which is what she knew at first, stay behind.
    kept = {name: array for name, array in arrays.items() if name not in _OWN and not name.startswith(PREFIX)}
    forest = np.zeros_like(arrays["forest"])
    forest[0] = arrays["forest"][0]  # the trees; the next one does not grow any more
    kept["forest"] = forest
    capacity = len(arrays["predictions"])
    rows = min(ROWS, capacity)
    latest = np.arange(max(0, rounds - rows), rounds if running else 0)
    for name in _PER_ROUND:
        if name in arrays:
            per_round = arrays[name].reshape(capacity, -1)
            fewer = np.zeros((rows, per_round.shape[1]), per_round.dtype)
            fewer[latest % rows] = per_round[latest % capacity]
            kept[name] = fewer.reshape(-1)
    return kept | _fewer_contexts(arrays, latest, rows) if "spans" in arrays else kept


def _fewer_contexts(arrays: model_files.Arrays, latest: Any, rows: int) -> model_files.Arrays:
    """The named contexts of the latest rounds."""
    rounds, capacity = int(arrays["units"][0]), len(arrays["predictions"])
    spans = np.zeros((min(rows, rounds), 2), np.uint64)
    entries: list[Any] = []
    written = 0
    old = arrays["spans"].reshape(-1, 2)
    for number in latest[latest >= arrays["ring"][1]]:
        start, sizes = (int(value) for value in old[number % capacity])
        size = sizes & 0xFFFFFFFF
        spans[number % rows] = written, sizes
        entries.append(arrays["entries"][start % RING :][:size])
        written += size
    oldest = max(float(rounds - len(spans)), float(arrays["ring"][1]))
    return {
        "entries": np.concatenate([np.zeros(0, np.uint64), *entries]),
        "spans": spans.reshape(-1),
        "ring": np.array([written, oldest]),
    }
