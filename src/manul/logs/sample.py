"""A log under study: the one place that says what its batches have in common, and how often they may be read."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np

from manul.actions.decision import Within
from manul.actions.space import ActionSpace
from manul.contexts.table_encoding import LogColumns
from manul.errors import InputError, ParameterError
from manul.logs.column_fitting import fit_columns
from manul.logs.log import BATCH, Batches, Declares, Log
from manul.logs.rows import NUMBER, UNIT, Rows, encode_contexts, join_rows
from manul.outcomes import LOSSES, AnyRange, Outcome
from manul.utils.validation import (
    LOG_DENSITIES,
    USABLE,
    check_has_rows,
    check_range,
    check_taken,
    reject,
    usable_densities,
)

SIZE = 8192  # rows per piece; results depend on it in the last digits
SMALL = 1024  # rows: batches of more are left as they are
Logs = Log | Iterable[Log]
ContextKind = Literal["numbers", "fields", "features"]


@dataclass(frozen=True)
class Survey:
    """The number of rows, checksums of their columns, and whether some of the densities were estimated."""

    rows: int
    checksums: dict[str, int]
    estimated: bool = False


@dataclass(frozen=True, eq=False)
class Sample:
    """The batches of a log, and what is declared of them: every off-policy function begins with `Sample.of`.

    `space` is that of the actions, whose range is `declared` if it was given or logged, and `scale` is the range of the
    losses. The first batch says what the `outcome` is, whether the densities were `estimated`,
    and the fields that an older version wrote as numbers (`converted`); the first one with contexts says what `kind` they are.
    """

    batches: Iterable[Log]
    space: ActionSpace = NUMBER
    declared: bool = False
    scale: Within = UNIT
    outcome: Outcome = LOSSES
    estimated: bool = False
    converted: Mapping[str, str] = field(default_factory=dict)
    kind: ContextKind = "numbers"

    @classmethod
    def of(
        cls,
        log: Logs,
        *,
        actions: Within | None = None,
        losses: AnyRange | None = None,
        rewards: AnyRange | None = None,
        outcome: Outcome | None = None,
        like: Declares | None = None,
        purpose: str = "This",
        passes: int = 1,
    ) -> Sample:
        """Look at the first batch, join small batches, and fill in the ranges: given ones, those of the log, or (0, 1).

        If the log does not declare its ranges, as text does not, they are those of `like`, an agent or another log.
        `losses` or `rewards` may be "auto": then the range is that of the log, which is read for it. `purpose` reads the
        log in several `passes`, for which an iterator is refused. An `outcome` replaces that of the log: its formula computes
        the losses from the parts of the log.

        >>> log = Log(np.zeros((4, 1), np.float32), np.ones(4), np.ones(4), -np.arange(1.0, 5.0), rewards=True)
        >>> Sample.of([log, log], rewards="auto").scale
        (-4.0, -1.0)
        """
        if passes > 1:
            _reject_iterator(log, purpose)
        first, log = _peek(log)
        if outcome is not None:
            Outcome.of(losses=losses, rewards=rewards, outcome=outcome)
            first = None if first is None else first.with_outcome(outcome)
            log = (each.with_outcome(outcome) for each in log) if isinstance(log, Iterator) else _Repriced(log, outcome)
            losses, rewards = (None, outcome.range) if outcome.higher else (outcome.range, None)
        given = _loss_range(first, losses, rewards)
        if like is not None and given is None and (first is None or first.loss_range is None):
            given = like.loss_range if isinstance(like, Log) else like.outcome.losses
        if first is not None and first.knobs is not None and actions is not None:
            raise ParameterError("actions applies to logs with one knob; this one has its own knobs.", "actions")
        if isinstance(given, str):
            _reject_iterator(log, "The range 'auto'")
            given = observed_range(log)
        space = None if first is None else first.space
        if actions is not None:
            space = ActionSpace(check_range("actions", actions))
        if space is None and like is not None and like.space is not None and like.space.is_number:
            space = like.space
        scale = _checked("losses", first.loss_range if given is None and first is not None else given) or UNIT
        if first is None:
            return cls([], space or NUMBER, space is not None, scale)
        return cls(
            log if isinstance(log, Batches | Iterator) else _Joined(log),
            space or NUMBER,
            space is not None,
            scale,
            first.outcome,
            first.densities_estimated,
            first.converted,
            _kind(chain([first], () if isinstance(log, Iterator) else log)),
        )

    @property
    def span(self) -> Within:
        """The range of actions that are numbers; (0, 1) for others."""
        return self.space.ends if self.space.is_number else UNIT

    def repeatable(self, purpose: str) -> Sample:
        """The sample, whose log is read again; an iterator can be read only once."""
        _reject_iterator(self.batches, purpose)
        return self

    def require_logged_densities(self) -> None:
        if not self.space.is_number and self.estimated:
            raise InputError(
                "With several knobs, densities must be logged, but those of this log were estimated.", "log"
            )

    def pieces(
        self, size: int = SIZE, *, progress: bool = False, seen: Callable[[Log], None] = lambda _batch: None
    ) -> Iterator[Rows]:
        """The rows of all batches in pieces of one size, which the last may not reach; `seen` gets each batch first.

        >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
        >>> [(piece.first, len(piece)) for piece in Sample.of([log, log]).pieces(size=3)]
        [(0, 3), (3, 3), (6, 2)]
        """
        pieces = self._pieces(size, seen)
        if not progress:
            yield from pieces
            return
        from tqdm import tqdm

        with tqdm(total=self.count, unit=" rows", unit_scale=True) as bar:
            for rows in pieces:
                yield rows
                bar.update(len(rows))

    def _pieces(self, size: int, seen: Callable[[Log], None]) -> Iterator[Rows]:
        buffer: list[Rows] = []
        first = count = 0
        for batch in self._alike_batches():
            seen(batch)
            rows = Rows.of(batch, space=self.space, scale=self.scale, columns=self.columns)
            self._check_space(rows)
            for start in range(0, len(batch), size):
                buffer.append(rows.select(slice(start, start + size)))
                count += len(buffer[-1])
                if count >= size:
                    piece = join_rows(buffer, first)
                    yield piece.select(slice(0, size))
                    buffer, count, first = [piece.select(slice(size, None))], count - size, first + size
        if count:
            yield join_rows(buffer, first)

    def _alike_batches(self) -> Iterator[Log]:
        for batch in self.batches:
            if batch.outcome.better != self.outcome.better:
                raise InputError("logs must all have losses or all have rewards, got both.", "logs")
            yield batch

    @property
    def count(self) -> int | None:
        """The number of rows, if it is known without reading a file."""
        log = self.batches.log if isinstance(self.batches, _Joined) else self.batches
        log = log.log if isinstance(log, _Repriced) else log
        return sum(map(len, log)) if isinstance(log, Sequence) else None

    def columns(self) -> LogColumns | None:
        """The columns of named contexts, fitted to all rows; None if contexts are rows of numbers."""
        return self._fitted

    @cached_property
    def _fitted(self) -> LogColumns | None:
        return fit_columns(self.repeatable("Encoding named contexts").batches)

    def encoded(self) -> Sample:
        """The same with contexts that are rows of numbers."""
        if self.kind == "numbers":
            return self
        columns = self.repeatable("Training on named contexts").columns()
        return self if columns is None else self.over(Encoded(self.batches, columns))

    def whole(self) -> Log:
        """All rows in one log, in memory."""
        return _concat([*self.batches])

    def over(self, batches: Iterable[Log]) -> Sample:
        """The same with other batches, which hold the same rows."""
        return replace(self, batches=batches)

    def survey(self, *, contexts: bool = False) -> Survey:
        """Read the log once, with checksums of `contexts` if asked for; raise InputError if it has no rows or an invalid one.

        >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
        >>> Sample.of([log, log]).survey().rows
        8
        """
        rows, estimated, checksums = 0, False, dict[str, int]()
        for batch in self._alike_batches():
            if len(batch):
                self._check(batch)
            rows += len(batch)
            estimated = estimated or batch.densities_estimated
            for name, column in [*_outcomes(batch), *(_contexts(batch) if contexts else ())]:
                checksums[name] = zlib.crc32(column, checksums.get(name, 0))
        check_has_rows(rows)
        return Survey(rows, checksums, estimated)

    def _check_space(self, rows: Rows) -> None:
        if rows.space != self.space:
            raise InputError("All batches must have the same knobs, in the same order.", "log")

    def _check(self, batch: Log) -> None:
        rows = Rows.of(batch, space=self.space)
        self._check_space(rows)
        if not self.space.is_number:
            batch.outcome.with_losses(self.scale).check(batch.losses)
            reject(~usable_densities(batch.densities), batch.densities, "density", USABLE, LOG_DENSITIES)
            return
        lows, highs = rows.ends()
        check_taken(batch.actions, batch.densities, lows, highs, logged=True)
        batch.outcome.with_losses(self.scale).check(batch.losses)


class Encoded:
    """Batches whose named contexts are encoded as rows of numbers."""

    def __init__(self, log: Iterable[Log], columns: LogColumns) -> None:
        self.log, self.columns = log, columns

    def __iter__(self) -> Iterator[Log]:
        for batch in self.log:
            for first in range(0, len(batch), SIZE):  # encoded contexts may be wide
                part = batch.rows(slice(first, first + SIZE))
                contexts = encode_contexts(self.columns, part.fields, part.features, len(part))
                outcomes = part.actions, part.densities, part.losses, part.lows, part.highs
                outcome = replace(part.outcome, range="auto")
                yield Log(contexts, *outcomes, floors=part.floors, outcome=outcome, levels=part.levels)


class _Repriced:
    """Batches whose losses are those of another outcome."""

    def __init__(self, log: Iterable[Log], outcome: Outcome) -> None:
        self.log, self.outcome = log, outcome

    def __iter__(self) -> Iterator[Log]:
        return (batch.with_outcome(self.outcome) for batch in self.log)


class _Joined:
    """Small batches of a log, such as single rows, joined if they are alike: each pass over many costs time per batch."""

    def __init__(self, log: Iterable[Log]) -> None:
        self.log = log

    def __iter__(self) -> Iterator[Log]:
        waiting: list[Log] = []
        rows = 0
        for batch in self.log:
            small = len(batch) <= SMALL
            if waiting and not (small and rows < BATCH and _are_alike(waiting[0], batch)):
                yield _concat(waiting)
                waiting, rows = [], 0
            if small:
                waiting.append(batch)
                rows += len(batch)
            else:
                yield batch
        if waiting:
            yield _concat(waiting)


def observed_range(log: Logs) -> Within:
    """The smallest range that contains the losses of a log, within 1e100; wider if all are equal."""
    batches = [log] if isinstance(log, Log) else log
    ends = [(float(batch.losses.min()), float(batch.losses.max())) for batch in batches if len(batch)]
    low, high = min((end for end, _ in ends), default=0.0), max((end for _, end in ends), default=0.0)
    low, high = max(low, -1e100), min(high, 1e100)
    return low, high if low < high else low + max(1.0, 1e-9 * abs(low))


def _peek(log: Logs) -> tuple[Log | None, Iterable[Log]]:
    """The first batch of a log and all of its batches."""
    if isinstance(log, Log):
        return log, [log]
    if isinstance(log, Iterator):
        first = next(log, None)
        return first, log if first is None else chain([first], log)
    return next(iter(log), None), log


def _kind(batches: Iterable[Log]) -> ContextKind:
    for batch in batches:
        if batch.features is not None:
            return "features"
        if batch.fields is not None:
            return "fields"
        if len(batch) and batch.contexts.shape[1]:
            break
    return "numbers"


def _reject_iterator(log: Logs, purpose: str) -> None:
    if isinstance(log, Iterator):
        raise ParameterError(f"{purpose} reads the log twice, but log is an iterator. Pass a list of logs.", "log")


def _loss_range(first: Log | None, losses: AnyRange | None, rewards: AnyRange | None) -> AnyRange | None:
    """The range of losses that is given as such or as that of rewards, which only a log of rewards has."""
    if losses is None and rewards is None:
        return None
    span = Outcome.of(losses=losses, rewards=rewards).losses
    if rewards is not None and first is not None and not first.outcome.higher:
        raise ParameterError("rewards is for logs of rewards; this one has losses. Use losses=(low, high).", "rewards")
    return span


def _checked(name: str, span: Within | None) -> Within | None:
    return None if span is None else check_range(name, span)


def _concat(logs: list[Log]) -> Log:
    return logs[0] if len(logs) == 1 else Log.concat(logs)


def _are_alike(one: Log, other: Log) -> bool:
    return bool(one.table.schema.equals(other.table.schema, check_metadata=True))


def _outcomes(batch: Log) -> Iterator[tuple[str, bytes]]:
    rows, names = Rows.of(batch), ("densities", "losses", "lows", "highs", "floors")
    columns = {"actions": rows.positions, **{name: vars(rows)[name] for name in names}}
    yield from ((name, np.asarray(each, np.float64).tobytes()) for name, each in columns.items() if each is not None)
    if batch.within is not None:
        yield "within", "".join(f"{within!r}\n" for within in batch.within).encode()


def _contexts(batch: Log) -> Iterator[tuple[str, bytes]]:
    if batch.features is not None:
        yield "features", "".join(f"{row}\n" for row in batch.features.to_dicts()).encode()
    elif batch.fields is None:
        yield "contexts", np.asarray(batch.contexts, np.float32).tobytes()
    for name, column in (batch.fields or {}).items():
        if column.dtype != object:
            yield f"field {name}", column.tobytes()
        else:
            yield f"field {name}", "".join(f"{value!r}\n" for value in column.tolist()).encode()
