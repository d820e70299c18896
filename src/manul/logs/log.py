"""Logs of decisions and their losses: an Arrow table with views as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.knobs import Knobs
from manul.contexts.schema import ContextSchema
from manul.errors import InputError, ParameterError
from manul.logs import formats
from manul.logs.density_models import Density, estimate_densities, needs_density
from manul.logs.formats import arrays, arrow_tables, frame_tables, output_file, row_checks
from manul.logs.formats import log_schema as columns
from manul.logs.formats.file_errors import Problems
from manul.logs.formats.log_schema import Metadata
from manul.logs.frame_mixin import FrameMixin
from manul.logs.knob_views import check_knobs, knob_views, lengths
from manul.logs.like import Declaration, DeclaringAgent, declaration
from manul.logs.view_mixin import Contexts, ViewMixin
from manul.utils import html_cards
from manul.utils.rewards import reject_text
from manul.utils.validation import Floats, check_choice, check_number, check_range, check_seed, check_whole_number

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 65_536  # rows: large enough for speed, small enough for memory
SHOWN, COLUMNS_SHOWN = 5, 20  # rows and columns of a log in a notebook
Selection = slice | npt.NDArray[np.int64]


class Source(Protocol):
    """A source of log rows other than a path; `path` is used in errors."""

    path: Path

    def read(self, problems: Problems, size: int) -> Iterator[formats.Piece]:
        """Read the rows in pieces."""


class Log(ViewMixin, FrameMixin):
    """Contexts, actions, densities and losses of rounds, and lows and highs if rounds had their own ranges.

    A log of rewards has `rewards`; its losses are the negative rewards, and `reward_range` declares the range of the
    rewards. `densities_estimated` marks densities that were not logged but estimated; the mark is kept in files. If actions
    have several `knobs`, given as to an agent, actions and `densities_by_knob` are columns by knob, and `within` has the
    narrower ranges of each round, or None. Contexts are rows of numbers, or a data frame, columns by name or a list of rows
    with names. `arms` says which arm of a rollout decided, "learner" or "baseline"; the column is called `rollout_arm`.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> train, held_out = log.split(0.75)
    >>> len(train), len(held_out)
    (3, 1)
    """

    def __init__(
        self,
        contexts: Contexts | object,
        actions: Floats | Mapping[str, npt.ArrayLike],
        densities: Floats,
        losses: Floats,
        lows: Floats | None = None,
        highs: Floats | None = None,
        *,
        floors: Floats | None = None,
        times: Floats | None = None,
        ids: Sequence[str | None] | None = None,
        arms: Sequence[str | None] | None = None,
        action_range: Within | None = None,
        loss_range: Within | None = None,
        reward_range: Within | None = None,
        rewards: bool = False,
        densities_estimated: bool = False,
        knobs: Mapping[str, Any] | Knobs | None = None,
        densities_by_knob: Mapping[str, npt.ArrayLike] | None = None,
        within: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> None:
        if (lows is None) != (highs is None):
            raise ParameterError(
                "lows and highs must both be given or both be omitted.", "lows" if lows is None else "highs"
            )
        reject_text("losses", losses)
        losses = np.asarray(losses, np.float64)
        named = frame_tables.context_table(contexts)
        contexts = contexts if named is None else named
        given: dict[str, Any] = {"contexts": contexts, "actions": actions, "densities": densities, "losses": losses}
        given |= {"lows": lows, "highs": highs, "floors": floors, "times": times, "ids": ids}
        given |= {"arms": arms}
        several, by_knob = check_knobs(knobs), {"densities_by_knob": densities_by_knob, "within": within}
        given |= knob_views(several, {**given, **by_knob, "action_range": action_range})
        counts = lengths({**given, "within": within})
        if len(counts) != 1:
            raise ParameterError(f"The columns of a log must have one length, got lengths {sorted(counts)}.", "log")
        flags: Any = {"rewards": rewards, "densities_estimated": densities_estimated, "knobs": several}
        self._metadata = Metadata(**flags).with_ranges(*_ranges(action_range, loss_range, reward_range))
        self._views = given
        self._table: pa.Table | None = None if named is None else arrays.named_table_of(given, self._metadata)
        self.skipped = 0
        if named is not None:
            del self._views["contexts"]

    @classmethod
    def from_table(
        cls,
        table: object,
        *,
        action_range: Within | None = None,
        loss_range: Within | None = None,
        reward_range: Within | None = None,
        skip_bad: bool = False,
        density: Density = "logged",
        knobs: Mapping[str, Any] | Knobs | None = None,
        like: DeclaringAgent | Log | ContextSchema | None = None,
    ) -> Log:
        """Build a log from an Arrow table, data frame or dict of columns; columns that are not the log's own are the context.

        `like`, an agent, a log or a schema of contexts, says ranges and types that the table does not say, as in `read`.
        With `density="estimate"`, densities are estimated from the contexts and actions, and need not be in the table.

        >>> log = Log.from_table({"age": [30, 41], "from": ["Bath", None], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
        >>> next(log.context_rows())
        {'age': 30.0, 'from': 'Bath'}
        """
        given = frame_tables.arrow_table(table)
        said = _declaration(like, knobs)
        options: Any = {"needs_density": needs_density(density), "knobs": said.knobs, "like": said.schema}
        problems = Problems(Path("table"), skip_bad, **options)
        piece = arrow_tables.SchemaAdapter(given.schema, problems).piece(given, 1)
        ranges = _ranges(action_range, loss_range, reward_range)
        metadata = (
            Metadata.from_arrow(piece.table.schema.metadata).with_missing_ranges(*said.ranges).with_ranges(*ranges)
        )
        log = cls._from_arrow(
            row_checks.valid_rows(piece.table, piece.rows, metadata, problems), metadata, problems.skipped
        )
        return log if problems.needs_density else estimate_densities(log)

    @classmethod
    def _from_arrow(cls, table: pa.Table, metadata: Metadata, skipped: int = 0) -> Log:
        return cls._of_own_table(table.replace_schema_metadata(metadata.to_arrow()), metadata, skipped)

    @classmethod
    def _of_own_table(cls, table: pa.Table, metadata: Metadata, skipped: int = 0) -> Log:
        """A log of a table that has the metadata already; encoding many names takes a while."""
        log = cls.__new__(cls)
        log._metadata, log._views, log._table, log.skipped = metadata, {}, table, skipped
        return log

    @classmethod
    def read(
        cls,
        path: str | Path | Source,
        *,
        action_range: Within | None = None,
        loss_range: Within | None = None,
        reward_range: Within | None = None,
        skip_bad: bool = False,
        density: Density = "logged",
        knobs: Mapping[str, Any] | Knobs | None = None,
        like: DeclaringAgent | Log | ContextSchema | None = None,
        format: str | None = None,  # noqa: A002 - as in pandas and open
    ) -> Log:
        """Read a whole log into memory; `skipped` counts the invalid rows that `skip_bad` skipped.

        Parquet keeps types and ranges. CSV and JSON Lines do not: `like`, the agent that decided, another log or a schema
        of contexts, says them, so that a column of a CSV file is a date again.

        The format is that of the suffix, or `format`: "vw" reads Vowpal Wabbit's text from a file of any name.

        With `density="estimate"`, densities are estimated from the contexts and actions, and need not be in the file.

        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> target = pathlib.Path(folder.name, "run.csv.gz")
        >>> Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4)).write(target)
        >>> Log.read(target)
        Log(4 rows, 2 numbers per context)
        >>> folder.cleanup()
        """
        ranges, logged = _ranges(action_range, loss_range, reward_range), needs_density(density)
        options: Any = {"skip_bad": skip_bad, "needs_density": logged, "like": _declaration(like, knobs)}
        batches = Batches(path, BATCH, *ranges, **options, file_format=format)
        log = cls.concat(list(batches))
        log.skipped = batches.skipped
        return log if logged else estimate_densities(log)

    @staticmethod
    def batches(
        path: str | Path | Source,
        size: int = BATCH,
        *,
        action_range: Within | None = None,
        loss_range: Within | None = None,
        reward_range: Within | None = None,
        skip_bad: bool = False,
        knobs: Mapping[str, Any] | Knobs | None = None,
        like: DeclaringAgent | Log | ContextSchema | None = None,
        format: str | None = None,  # noqa: A002 - as in read
    ) -> Batches:
        """Read a file as logs of at most `size` rows, one after the other; the file may be larger than memory.

        `like` and `format` are those of `read`.

        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> target = pathlib.Path(folder.name, "run.parquet")
        >>> Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4)).write(target)
        >>> [len(batch) for batch in Log.batches(target, 3)]
        [3, 1]
        >>> folder.cleanup()
        """
        ranges = _ranges(action_range, loss_range, reward_range)
        said = _declaration(like, knobs)
        return Batches(path, size, *ranges, skip_bad=skip_bad, like=said, file_format=format)

    def write(self, path: str | Path) -> None:
        """Write the log atomically, in the format of the suffix; see `read` for an example."""
        with LogWriter(path) as writer:
            writer.write(self)

    @staticmethod
    def concat(logs: Sequence[Log]) -> Log:
        """Concatenate logs, in order; sparse contexts may have different features.

        >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
        >>> len(Log.concat([log, log]))
        8
        """
        import pyarrow as pa

        if not logs:
            raise ParameterError("logs must have at least one log, got none.", "logs")
        logs = _with_common_types(_with_common_names(logs))
        for log in logs[1:]:
            columns.require_same(logs[0].table.schema, log.table.schema)
        ranges = [_hull([getattr(log, name) for log in logs]) for name in ("action_range", "loss_range")]
        converted = {name: kind for log in logs for name, kind in log.converted.items()} or None
        metadata = replace(logs[0]._metadata, action_range=ranges[0], loss_range=ranges[1], converted=converted)
        table = pa.concat_tables([log.table.replace_schema_metadata(None) for log in logs])
        return Log._from_arrow(table, metadata, sum(log.skipped for log in logs))

    def __len__(self) -> int:
        return len(self._views["losses"]) if self._table is None else len(self._table)

    def _repr_html_(self) -> str:
        shown = frame_tables.stated_table(self.rows(slice(SHOWN)).table)
        names = shown.column_names[:COLUMNS_SHOWN]
        return html_cards.table(repr(self), names, zip(*(shown[name].to_pylist() for name in names), strict=True))

    def __repr__(self) -> str:
        return f"Log({len(self)} rows, {columns.describe(self.table.schema)})"

    def with_estimated_densities(self, densities: Floats) -> Log:
        """The log with estimated densities, marked as such, and without floors.

        >>> log = Log(np.zeros((2, 1), np.float32), np.ones(2), np.ones(2), np.ones(2))
        >>> log.with_estimated_densities(np.array([0.5, 2.0])).densities_estimated
        True
        """
        import pyarrow as pa

        table = self.table.drop_columns([columns.FLOOR] if columns.FLOOR in self.table.column_names else [])
        table = table.set_column(table.column_names.index("density"), "density", pa.array(densities, pa.float64()))
        return Log._from_arrow(table, replace(self._metadata, densities_estimated=True), self.skipped)

    def rows(self, selection: Selection) -> Log:
        """The log of a selection of rounds.

        >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
        >>> len(log.rows(slice(1, 3)))
        2
        """
        if isinstance(selection, slice) and selection.step in (None, 1):
            first, last, _ = selection.indices(len(self))
            return Log._of_own_table(self.table.slice(first, max(last - first, 0)), self._metadata)
        return Log._of_own_table(self.table.take(np.arange(len(self))[selection]), self._metadata)

    def split(
        self, share: float, by: Literal["order", "time", "random"] = "order", *, seed: int = 0
    ) -> tuple[Log, Log]:
        """Split off a share of the rounds: the first, the earliest, or random ones. Each part keeps its order.

        >>> log = Log(np.zeros((4, 2), np.float32), np.arange(4.0), np.ones(4), np.ones(4))
        >>> log.split(0.5, by="random", seed=2)[0].actions
        array([2., 3.])
        """
        check_number("share", share, 0, 1, "Try 0.8.", ends="()")
        check_choice("by", by, ("order", "time", "random"))
        cut = round(len(self) * share)
        if by == "order":
            return self.rows(slice(cut)), self.rows(slice(cut, None))
        if by == "time":
            order = np.argsort(self._complete_times(), kind="stable")
            return self.rows(order[:cut]), self.rows(order[cut:])
        order = np.random.default_rng(check_seed(seed)).permutation(len(self))
        return self.rows(np.sort(order[:cut])), self.rows(np.sort(order[cut:]))

    def _complete_times(self) -> Floats:
        if self.times is None:
            raise InputError("log has no times to split by. Split by 'order' or 'random'.", "log")
        missing = np.flatnonzero(np.isnan(self.times))
        if len(missing):
            raise InputError(
                f"Splitting by time needs a time in every row; row {missing[0]} has none. Split by 'order'.",
                "times",
            )
        return self.times


class Batches:
    """A file as a sequence of logs; each iteration reads it again, and `skipped` belongs to the last one."""

    def __init__(
        self,
        path: str | Path | Source,
        size: int,
        action_range: Within | None,
        loss_range: Within | None,
        reward_range: Within | None = None,
        *,
        skip_bad: bool,
        needs_density: bool = True,
        like: Declaration = Declaration(),  # noqa: B008 - it is frozen
        file_format: str | None = None,
    ) -> None:
        check_whole_number("size", size, 1, None, f"Try {BATCH}.")
        if file_format is not None and not isinstance(path, str | Path):
            raise ParameterError(f"format must be None for a {type(path).__name__}, got {file_format!r}.", "format")
        self._source = formats.FileSource(Path(path), file_format) if isinstance(path, str | Path) else path
        options: Any = {"needs_density": needs_density, "knobs": like.knobs, "like": like.schema}
        self._problems = Problems(self._source.path, skip_bad, **options)
        self._size, self._ranges, self._like = size, (action_range, loss_range, reward_range), like.ranges

    def __iter__(self) -> Iterator[Log]:
        pieces = self._source.read(self._problems, self._size)
        for table, skipped in formats.good_rows(pieces, self._problems, self._ranges, self._like):
            yield Log._of_own_table(table, Metadata.from_arrow(table.schema.metadata), skipped)

    @property
    def skipped(self) -> int:
        """The number of skipped rows."""
        return self._problems.skipped


class LogWriter:
    """Writes logs to a file, which appears when it is closed; after an error it does not.

    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> target = pathlib.Path(folder.name, "run.jsonl")
    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> with LogWriter(target) as writer:
    ...     writer.write(log)
    ...     writer.write(log)
    >>> with LogWriter(target, append=True) as writer:
    ...     writer.write(log)
    >>> len(Log.read(target))
    12
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | Path,
        *,
        append: bool = False,
        knobs: Mapping[str, Any] | Knobs | None = None,
        like: DeclaringAgent | Log | ContextSchema | None = None,
    ) -> None:
        self._file = output_file.TableWriter(Path(path))
        self._existing = Log.batches(path, knobs=knobs, like=like) if append and Path(path).exists() else ()

    def __enter__(self) -> LogWriter:
        try:
            for batch in self._existing:
                self.write(batch)
        except BaseException:
            self._file.abandon()
            raise
        return self

    def write(self, log: Log) -> None:
        """Add the rows of a log, which must have the columns of the first one."""
        self._file.write(log.table)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            self._file.close()
        else:
            self._file.abandon()


def _with_common_names(logs: Sequence[Log]) -> Sequence[Log]:
    """The logs, with the names of all features in each if their contexts are sparse and the names differ."""
    given = [log._metadata.names for log in logs]
    names = tuple(sorted({name for each in given for name in each or ()}))
    if None in given or len({*given}) == 1:
        return logs
    metadata = [replace(log._metadata, names=names, width=len(names)) for log in logs]
    tables = [arrays.with_names(log.table, names) for log in logs]
    return [Log._from_arrow(table, each, log.skipped) for table, each, log in zip(tables, metadata, logs, strict=True)]


def _with_common_types(logs: Sequence[Log]) -> Sequence[Log]:
    """The logs, with columns of one type for each field of contexts, such as times of several zones."""
    names = [columns.user_columns(log.table.schema) for log in logs]
    same = all(log.table.schema.equals(logs[0].table.schema) for log in logs)
    if same or not names[0] or any({*each} != {*names[0]} for each in names):
        return logs
    merged = reduce(lambda one, other: one.merge(other), (log.schema for log in logs))
    return [Log._of_own_table(arrays.with_types(log.table, merged), log._metadata, log.skipped) for log in logs]


def _declaration(like: object, knobs: object) -> Declaration:
    return declaration(like, is_log=isinstance(like, Log), knobs=knobs)


def _range(name: str, value: Within | None) -> Within | None:
    return None if value is None else check_range(f"{name}_range", value)


def _ranges(actions: Within | None, losses: Within | None, rewards: Within | None) -> tuple[Within | None, ...]:
    """The checked ranges of actions, losses and rewards."""
    if losses is not None and rewards is not None:
        raise ParameterError(
            f"loss_range and reward_range exclude each other, got {losses!r} and {rewards!r}.", "reward_range"
        )
    return _range("action", actions), _range("loss", losses), _range("reward", rewards)


def _hull(ranges: Sequence[Within | None]) -> Within | None:
    """The smallest range that contains all ranges; None if one is not declared."""
    known = [limits for limits in ranges if limits is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(ranges) else None
