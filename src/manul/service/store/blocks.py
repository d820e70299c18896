"""Blocks: decisions that were made together, packed into one row of the store, at a tenth of the cost of one row each."""

from __future__ import annotations

import secrets
from base64 import b32encode
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from manul.utils.validation import Floats

Context = list[float] | dict[str, Any]
# A number or an option and its range or options, or values and ranges by knob.
Action = Any
Within = Any
UNKNOWN = float("nan")
OWN = "~"  # begins the ids that the service makes; those of callers begin with a letter or a digit


def new_epoch() -> str:
    """A text for the ids of the decisions that one process makes in one loop: numbers are given out again after a reset, a
    deletion or a restore, but not with the same epoch."""
    # 40 random bits: of a thousand epochs of a loop, two are equal with a probability of 5e-7.
    return b32encode(secrets.token_bytes(5)).decode().lower()


class RolloutTicket(NamedTuple):
    """What a rollout, named by the event that started it, needs to know of a decision: whether the learner made it, the
    learner's share, the step, the period, the predicted loss, and the centre of its terms. Data of earlier versions has no predictions."""

    rollout: int
    learner: bool
    share: float
    level: int
    period: int
    predicted: float | None = None
    centre: float | None = None

    @property
    def arm(self) -> Literal["learner", "baseline"]:
        """Who made the decision."""
        return "learner" if self.learner else "baseline"


class DecisionRow(NamedTuple):
    """One decision as it is stored; `density` is None if the caller chose the action and did not report a density.

    `floor` is the smallest density of any action of the range; None if it is unknown, as in data of earlier versions. Of
    several knobs, `action`, `within` and `densities` are mappings. `ticket` is None if no rollout was running. `epoch` is part
    of the id that the service gives; None in data of earlier versions. `asked` is the action that the caller of a rollout would
    have chosen, if the decision has an id. `windows` are what the knobs were drawn from, four numbers for each
    (`actions.levels.DrawnWindows`); a decision of a rollout has `levels` instead, four numbers each. Both are None if that is unknown.
    `requested` is the range that was asked for, empty for the whole one, if `within` is what a budget has left of it.
    """

    number: int
    id: str | None
    context: Context
    within: Within | None
    action: Action
    density: float | None
    time: float
    model: int
    observed: bool = False
    floor: float | None = None
    densities: dict[str, float] | None = None
    ticket: RolloutTicket | None = None
    epoch: str | None = None
    asked: Action | None = None
    windows: list[float] | None = None
    levels: list[list[float]] | None = None
    requested: list[float] | None = None

    @property
    def public_id(self) -> str:
        """The id for callers: theirs, or one made from the number and the epoch, which earlier versions did not have."""
        if self.id is not None:
            return self.id
        return f"{OWN}{self.number}" if self.epoch is None else f"{OWN}{self.number}.{self.epoch}"


def decision_rows(rows: Iterable[tuple[Any, ...]]) -> list[DecisionRow]:
    """Decisions of tuples of all their fields, in less than half the time of the constructor."""
    new = tuple.__new__
    return [new(DecisionRow, each) for each in rows]


class DamagedBlock(Exception):  # noqa: N818 - the state of a row
    """A block that cannot be read."""


class KnobValues(msgspec.Struct, frozen=True, omit_defaults=True):
    """The action of a decision with several knobs, the density of each, and their ranges if those were narrowed.

    Actions of one knob that are not all numbers have an empty name.
    """

    action: dict[str, str | int | float | bool]
    densities: dict[str, float] | None = None
    within: dict[str, list[str | int | float | bool]] | None = None


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Decisions by column. Arrays are little-endian bytes; contexts are a matrix of numbers, or one JSON text each, and
    actions are numbers or, of several knobs, the JSON text of `KnobValues` each."""

    count: int
    time: float
    model: int
    numbers: bytes
    actions: bytes | list[bytes]
    densities: bytes
    contexts: bytes | list[bytes]
    ends: bytes | None = None
    ids: list[str | None] | None = None
    observed: bool = False
    floors: bytes | None = None
    tickets: list[RolloutTicket | None] | None = None
    epoch: str | None = None
    asked: list[Any] | None = None
    windows: bytes | None = None
    levels: list[list[list[float]] | None] | None = None
    requested: list[list[float] | None] | None = None

    @property
    def first(self) -> int:
        return int.from_bytes(self.numbers[:8], "little")

    @property
    def last(self) -> int:
        return int.from_bytes(self.numbers[-8:], "little")

    def decisions(self) -> list[DecisionRow]:
        return self._rows(np.arange(self.count))

    def select(self, numbers: Sequence[int]) -> list[DecisionRow | None]:
        """The decisions with some numbers; None for each number that the block does not contain."""
        own, wanted = np.frombuffer(self.numbers, "<u8"), np.array(numbers, np.uint64)
        places = np.searchsorted(own, wanted).clip(max=self.count - 1)
        found = own[places] == wanted
        if found.all():
            return list(self._rows(places))
        rows = iter(self._rows(places[found]))
        return [next(rows) if each else None for each in found]

    @property
    def size(self) -> int:
        contexts = self.contexts if isinstance(self.contexts, list) else [self.contexts]
        knobs = self.actions if isinstance(self.actions, list) else []
        drawn = len(self.windows or b"") + sum(200 * len(each or ()) for each in self.levels or ())
        return 400 + 60 * self.count + sum(map(len, contexts)) + sum(map(len, knobs)) + drawn

    def _rows(self, places: Any) -> list[DecisionRow]:
        at: list[int] = places.tolist()
        nothing: list[Any] = [None] * len(at)
        numbers = np.frombuffer(self.numbers, "<u8")[places].tolist()
        densities, floors = (_known(column, places, nothing) for column in (self.densities, self.floors))
        lists = (self.ids, self.tickets, self.asked, self.levels, self.requested)
        ids, tickets, asked, levels, cut = (
            nothing if each is None else [each[place] for place in at] for each in lists
        )
        contexts = self._contexts(places, at)
        shared = (repeat(self.time), repeat(self.model), repeat(self.observed))
        actions, withins, by_knob = self._knobs(places, at)
        first = (numbers, ids, contexts, withins, actions, densities)
        last = (floors, by_knob, tickets, repeat(self.epoch), asked, self._windows(places, nothing), levels, cut)
        return decision_rows(zip(*first, *shared, *last, strict=False))

    def _windows(self, places: Any, nothing: list[None]) -> list[Any]:
        if self.windows is None:
            return list(nothing)
        windows = np.frombuffer(self.windows, "<f8").reshape(self.count, -1)[places].tolist()
        return [None if each[-1] != each[-1] else each for each in windows]

    def _knobs(self, places: Any, at: Sequence[int]) -> Iterable[Sequence[Any]]:
        """The actions, the narrower ranges and the densities by knob."""
        if isinstance(self.actions, list):
            return zip(*[_split(_knobs_decoder.decode(self.actions[place])) for place in at], strict=True)
        withins: list[Within | None] = [None] * len(at)
        if self.ends is not None:
            ends = np.frombuffer(self.ends, "<f8").reshape(-1, 2)[places].tolist()
            withins = [None if low != low else (low, high) for low, high in ends]
        actions = np.frombuffer(self.actions, "<f8")[places].tolist()
        return actions, withins, [None] * len(at)

    def _contexts(self, places: Any, at: Sequence[int]) -> list[Context]:
        if isinstance(self.contexts, bytes):
            contexts: list[Context] = np.frombuffer(self.contexts, "<f8").reshape(self.count, -1)[places].tolist()
            return contexts
        return [_context_decoder.decode(self.contexts[place]) for place in at]


def _known(column: bytes | None, places: Any, nothing: list[None]) -> list[float | None]:
    """Numbers of a column; those that are not known are None."""
    if column is None:
        return list(nothing)
    return [None if value != value else value for value in np.frombuffer(column, "<f8")[places].tolist()]


def _split(knobs: KnobValues) -> tuple[Action, Within | None, dict[str, float] | None]:
    if "" not in knobs.action:
        return knobs.action, knobs.within, knobs.densities
    return knobs.action[""], None if knobs.within is None else knobs.within[""], None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Block)
_knobs_decoder = msgspec.json.Decoder(KnobValues)
_context_decoder: msgspec.json.Decoder[Context] = msgspec.json.Decoder(list[Any] | dict[str, Any])


def pack(decisions: Sequence[DecisionRow]) -> Block:
    """Pack decisions that share time, model, kind and epoch, in the order of their numbers."""
    head = decisions[0]
    densities = [UNKNOWN if each.density is None else each.density for each in decisions]
    floors = np.array([UNKNOWN if each.floor is None else each.floor for each in decisions])
    block = pack_columns(
        head.time,
        head.model,
        [each.number for each in decisions],
        pack_actions(decisions),
        np.array(densities),
        [each.context for each in decisions],
        [each.within for each in decisions] if has_numbers(decisions) else [],
        floors if any(each.floor is not None for each in decisions) else None,
        head.epoch,
    )
    lists: dict[str, list[Any]] = {
        "ids": [each.id for each in decisions],
        "tickets": [each.ticket for each in decisions],
        "asked": [each.asked for each in decisions],
        "levels": [each.levels for each in decisions],
        "requested": [each.requested for each in decisions],
    }
    kept = {name: values for name, values in lists.items() if any(each is not None for each in values)}
    return msgspec.structs.replace(block, observed=head.observed, windows=_pack_windows(decisions), **kept)


def _pack_windows(decisions: Sequence[DecisionRow]) -> bytes | None:
    """The windows of decisions; unknown ones are NaN, and None if no decision has any."""
    size = max((len(each.windows) for each in decisions if each.windows is not None), default=0)
    if not size:
        return None
    return np.array([each.windows or [UNKNOWN] * size for each in decisions], "<f8").tobytes()


def pack_columns(
    time: float,
    model: int,
    numbers: Sequence[int],
    actions: Floats | list[bytes],
    densities: Floats,
    contexts: Sequence[Context] | Floats,
    withins: Sequence[Within | None],
    floors: Floats | None = None,
    epoch: str | None = None,
    windows: Floats | None = None,
) -> Block:
    """Pack decisions without ids that are given as columns; see `pack` for an example."""
    return Block(
        count=len(numbers),
        time=time,
        model=model,
        numbers=np.array(numbers, "<u8").tobytes(),
        actions=actions if isinstance(actions, list) else actions.astype("<f8", copy=False).tobytes(),
        densities=densities.astype("<f8", copy=False).tobytes(),
        contexts=pack_contexts(contexts),
        ends=pack_ranges(withins),
        floors=None if floors is None else floors.astype("<f8", copy=False).tobytes(),
        epoch=epoch,
        windows=None if windows is None else windows.astype("<f8", copy=False).tobytes(),
    )


def pack_actions(decisions: Sequence[DecisionRow]) -> Floats | list[bytes]:
    """The actions of decisions: numbers, or of several knobs or options one JSON text each."""
    if has_numbers(decisions):
        return np.array([each.action for each in decisions])
    return [msgspec.json.encode(_knob_values(each)) for each in decisions]


def has_numbers(decisions: Sequence[DecisionRow]) -> bool:
    """Whether all actions are numbers, within pairs of numbers, as those of one range or of steps are."""
    return all(
        isinstance(each.action, float) and (each.within is None or isinstance(each.within, tuple)) for each in decisions
    )


def _knob_values(decision: DecisionRow) -> KnobValues:
    """An action as it is stored: that of one knob without a name has an empty one."""
    action, within = decision.action, decision.within
    if isinstance(action, dict):
        return KnobValues(action, decision.densities, within)
    return KnobValues({"": action}, None, None if within is None else {"": list(within)})


def pack_contexts(contexts: Sequence[Context] | Floats) -> bytes | list[bytes]:
    """Pack contexts: lists of one length as a matrix of numbers, others as one JSON text each."""
    if isinstance(contexts, np.ndarray):
        return contexts.astype("<f8", copy=False).tobytes()
    if any(isinstance(each, dict) for each in contexts) or len({len(each) for each in contexts}) > 1:
        return [msgspec.json.encode(each) for each in contexts]
    return np.array(contexts, "<f8").tobytes()


def pack_ranges(withins: Sequence[Within | None]) -> bytes | None:
    """Pack the ranges of decisions; None if all had the full range."""
    if not any(withins):
        return None
    return np.array([(UNKNOWN, UNKNOWN) if within is None else within for within in withins], "<f8").tobytes()


def ranges(blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """The first and last numbers of runs of consecutive blocks."""
    runs: list[tuple[int, int]] = []
    for block in blocks:
        adjacent = bool(runs) and block.first == runs[-1][1] + 1
        first = runs.pop()[0] if adjacent else block.first
        runs.append((first, block.last))
    return runs


def encode(block: Block) -> bytes:
    return _encoder.encode(block)


def decode(body: bytes) -> Block:
    """Decode a block, or raise DamagedBlock; see `encode` for an example."""
    try:
        block = _decoder.decode(body)
        for context in block.contexts if isinstance(block.contexts, list) else ():
            _context_decoder.decode(context)
        for action in block.actions if isinstance(block.actions, list) else ():
            _knobs_decoder.decode(action)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise DamagedBlock(str(error)) from error
    if not _is_whole(block):
        raise DamagedBlock(f"its columns do not have {block.count} rows")
    return block


def _is_whole(block: Block) -> bool:
    contexts, actions = block.contexts, block.actions
    return (
        block.count > 0
        and all(len(array) == 8 * block.count for array in (block.numbers, block.densities))
        and len(actions) == (8 * block.count if isinstance(actions, bytes) else block.count)
        and (len(contexts) % (8 * block.count) == 0 if isinstance(contexts, bytes) else len(contexts) == block.count)
        and (block.floors is None or len(block.floors) == 8 * block.count)
        and (block.ends is None or len(block.ends) == 16 * block.count)
        and (block.windows is None or len(block.windows) % (32 * block.count) == 0)
        and all(
            each is None or len(each) == block.count
            for each in (block.ids, block.tickets, block.asked, block.levels, block.requested)
        )
    )
