"""Logs of decisions and their losses: an Arrow table with views as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, Unpack, cast, overload, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Decision, Decisions, Within
from manul.actions.kinds.knob import Knob
from manul.actions.levels import KnobLevels, Levels
from manul.actions.pieces import Pieces
from manul.actions.space import UNNAMED, ActionSpace
from manul.contexts import data_frames
from manul.contexts.schema import ContextSchema
from manul.contexts.sparse_features import SparseFeatures
from manul.errors import FileError, InputError, ParameterError, require_package
from manul.logs import formats
from manul.logs.density_models import Density, estimate_densities, needs_density
from manul.logs.formats import arrays, arrow_tables, frame_tables, row_checks
from manul.logs.formats import log_schema as columns
from manul.logs.formats.level_columns import LEVELS, levels_of_column
from manul.logs.formats.log_schema import Metadata
from manul.logs.formats.readers import Piece, Problems
from manul.outcomes import Outcome, check_outcome_range, reject_text
from manul.outcomes.parts import PartsReader, part_column
from manul.utils import html_cards
from manul.utils.atomic_files import partial_path, put_in_place, write_error
from manul.utils.validation import Floats, check_choice, check_number, check_range, check_seed, check_whole_number

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

BATCH = 65_536  # rows: large enough for speed, small enough for memory
SHOWN, COLUMNS_SHOWN = 5, 20  # rows and columns of a log in a notebook
Selection = slice | npt.NDArray[np.int64]
Contexts = npt.NDArray[np.float32]
Fields = dict[str, npt.NDArray[Any]]
AnyKnobs = Mapping[str, Any] | Knob[Any] | ActionSpace | None
_View = TypeVar("_View")


@runtime_checkable
class Declares(Protocol):
    """An agent or a log, which says of another log what its file may not."""

    @property
    def space(self) -> ActionSpace | None: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def schema(self) -> ContextSchema: ...


class Declared(TypedDict, total=False):
    """What a table or file may not say about itself.

    `action_range` and `loss_range` or `reward_range` are ranges, `knobs` are several knobs, given as to an agent, and
    `like` is an agent, a log or a schema of contexts that says what the file and the others do not. `skip_bad` skips
    invalid rows instead of raising an error.
    """

    action_range: Within | None
    loss_range: Within | None
    reward_range: Within | None
    knobs: AnyKnobs
    like: Declares | ContextSchema | None
    skip_bad: bool


@dataclass(frozen=True)
class _Settings:
    """What is declared, with defaults."""

    action_range: Within | None = None
    loss_range: Within | None = None
    reward_range: Within | None = None
    knobs: AnyKnobs = None
    like: Declares | ContextSchema | None = None
    skip_bad: bool = False

    @property
    def ranges(self) -> tuple[Within | None, Within | None, Within | None]:
        """The ranges of actions, losses and rewards."""
        if self.loss_range is not None and self.reward_range is not None:
            given = f"{self.loss_range!r} and {self.reward_range!r}"
            raise ParameterError(f"loss_range and reward_range exclude each other, got {given}.", "reward_range")
        return (
            _range("action_range", self.action_range),
            _range("loss_range", self.loss_range, check_outcome_range),
            _range("reward_range", self.reward_range, check_outcome_range),
        )

    def problems(self, path: Path, *, needs_density: bool = True) -> Problems:
        schema, space, _ = self._likeness
        given = check_knobs(self.knobs)
        space = given or space
        knobs = None if space is None or space.is_number else space
        replaces = given is not None
        return Problems(
            path, self.skip_bad, needs_density=needs_density, knobs=knobs, replaces_knobs=replaces, like=schema
        )

    def declaration(self) -> Callable[[Metadata], Metadata]:
        """What adds to the metadata of a file what is declared."""
        ranges, (_, space, outcome) = self.ranges, self._likeness
        space = check_knobs(self.knobs) or space
        return partial(_declare, space=space, outcome=outcome, ranges=ranges)

    @property
    def _likeness(self) -> tuple[ContextSchema | None, ActionSpace | None, Outcome | None]:
        if self.like is None or isinstance(self.like, ContextSchema):
            return self.like, None, None
        _check_likeness(self.like)
        return self.like.schema, self.like.space, self.like.outcome


def _declare(metadata: Metadata, space: ActionSpace | None, outcome: Outcome | None, ranges: Any) -> Metadata:
    return metadata.with_missing(space, outcome).with_ranges(*ranges)


class Source(Protocol):
    """A source of log rows other than a path; `path` is used in errors."""

    path: Path

    def read(self, problems: Problems, size: int) -> Iterator[Piece]:
        """Read the rows in pieces."""


class Log:
    """Contexts, `actions`, `densities` and `losses` of rounds, and `lows` and `highs` if rounds had their own ranges.

    `times` are in seconds since 1970, `ids` are texts, and `floors` are the smallest densities, if known.
    `action_range` and `loss_range` are the declared ranges, (low, high); an `outcome` says what the losses are. A log
    of rewards has `rewards`; its losses are the negative rewards, and `reward_range` declares the range of the rewards.
    `densities_estimated` marks densities that were not logged but estimated; the mark is kept in files. If actions have
    several `knobs`, given as to an agent, actions and `densities_by_knob` are columns by knob, and `within` has the
    narrower ranges of each round, or None. `contexts` are rows of numbers, or a data frame, columns by name or a list of
    rows with names. `arms` says which arm of a rollout decided, "learner" or "baseline"; the column is called
    `rollout_arm`. `parts` are the parts of outcomes, columns by name with None or NaN for what was not seen; if the
    `outcome` has a formula, it gives the losses unless they are given. `levels` are what the actions were drawn from, as
    `decide_many(contexts, levels=True)` tells.

    Instead of actions, densities and what belongs to them, a log takes the `decisions` of an agent, one after the other or as
    `decide_many` returns them: `Log(contexts, decisions, losses, like=agent)`, or with `rewards`, numbers, or `parts`. `like`, an agent
    or a log, says what the actions and the outcome are.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> train, held_out = log.split(0.75)
    >>> len(train), len(held_out)
    (3, 1)
    >>> import manul
    >>> agent = manul.Auto(actions=(10, 50))
    >>> Log([{"age": 31}], [agent.decide({"age": 31}, levels=True)], [0.25], like=agent).action_range
    (10.0, 50.0)
    """

    @overload
    def __init__(
        self,
        contexts: Contexts | object,
        decisions: Decisions[Any] | Sequence[Decision[Any]],
        losses: npt.ArrayLike | None = None,
        /,
        *,
        rewards: npt.ArrayLike | None = None,
        parts: Mapping[str, npt.ArrayLike] | None = None,
        times: Floats | None = None,
        ids: Sequence[str | None] | None = None,
        like: Declares | None = None,
        action_range: Within | None = None,
        loss_range: Within | None = None,
        reward_range: Within | None = None,
        outcome: Outcome | None = None,
        knobs: AnyKnobs = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        contexts: Contexts | object,
        actions: Floats | Mapping[str, npt.ArrayLike],
        densities: Floats,
        losses: Floats | None = None,
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
        outcome: Outcome | None = None,
        densities_estimated: bool = False,
        knobs: AnyKnobs = None,
        densities_by_knob: Mapping[str, npt.ArrayLike] | None = None,
        within: Sequence[Mapping[str, Any] | None] | None = None,
        parts: Mapping[str, npt.ArrayLike] | None = None,
        levels: Levels | None = None,
    ) -> None: ...
    def __init__(
        self,
        contexts: Contexts | object,
        actions: Any,
        densities: Any = None,
        losses: Any = None,
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
        rewards: Any = False,
        outcome: Outcome | None = None,
        densities_estimated: bool = False,
        knobs: AnyKnobs = None,
        densities_by_knob: Mapping[str, npt.ArrayLike] | None = None,
        within: Sequence[Any] | None = None,
        parts: Mapping[str, npt.ArrayLike] | None = None,
        levels: Levels | None = None,
        like: Declares | None = None,
    ) -> None:
        if like is not None:
            _check_likeness(like)
            knobs = like.space if knobs is None and action_range is None else knobs
            outcome = like.outcome if outcome is None and not (loss_range or reward_range) else outcome
        if isinstance(actions, Decisions) or _are_decisions(actions):
            decisions = Decisions.of(actions)
            losses, rewards = _told(densities if losses is None else losses, rewards, outcome)
            if losses is None and parts is None:
                raise ParameterError("Decisions need losses, rewards or parts to be logged.", "losses")
            lows, highs, within = _narrower(decisions, check_knobs(knobs), action_range)
            actions, densities, floors = decisions.actions, decisions.densities, decisions.floors
            densities_by_knob, levels = decisions.densities_by_knob, decisions.levels
            arms = None if decisions.arms is None else decisions.arms.tolist()
            if ids is None and decisions.ids is not None:
                ids = [str(each) for each in decisions.ids]
        space = check_knobs(knobs)
        if losses is None and parts is not None:
            losses = _computed(contexts, actions, outcome, space, parts)
        if (lows is None) != (highs is None):
            raise ParameterError(
                "lows and highs must both be given or both be omitted.", "lows" if lows is None else "highs"
            )
        reject_text("losses", losses)
        losses = np.asarray(losses, np.float64)
        if losses.ndim != 1 or not isinstance(rewards, bool):
            rule = "losses must be one number per row; for a log of rewards, they are the negative rewards, and rewards=True."
            raise ParameterError(rule, "losses")
        named = frame_tables.context_table(contexts)
        contexts = contexts if named is None else named
        given: dict[str, Any] = {"contexts": contexts, "actions": actions, "densities": densities, "losses": losses}
        given |= {"lows": lows, "highs": highs, "floors": floors, "times": times, "ids": ids, "arms": arms}
        several, by_knob = space, {"densities_by_knob": densities_by_knob, "within": within}
        given["parts"] = None if parts is None else _part_columns(parts, outcome)
        if several is not None and several.is_number:
            action_range = action_range or several.ends
            several = None
        given |= _knob_views(several, {**given, **by_knob, "action_range": action_range})
        given["levels"] = None if levels is None else _check_levels(levels, several)
        counts = _lengths({**given, "within": within})
        if len(counts) != 1:
            raise ParameterError(f"The columns of a log must have one length, got lengths {sorted(counts)}.", "log")
        flags: Any = {"rewards": rewards, "densities_estimated": densities_estimated, "knobs": several}
        flags |= {"parts": parts is not None, "levels": levels is not None}
        self._metadata = Metadata(**flags).with_ranges(*_Settings(action_range, loss_range, reward_range).ranges)
        if outcome is not None:
            if rewards or loss_range or reward_range:
                other = "rewards" if rewards else "loss_range" if loss_range else "reward_range"
                raise ParameterError(f"outcome and {other} exclude each other: an outcome says both.", "outcome")
            self._metadata = self._metadata.with_outcome(Outcome.of(outcome=outcome))
        self._views = given
        self._table: pa.Table | None = None if named is None else arrays.named_table_of(given, self._metadata)
        self.skipped = 0
        if named is not None:
            del self._views["contexts"]

    @classmethod
    def from_table(cls, table: object, *, density: Density = "logged", **declared: Unpack[Declared]) -> Log:
        """Build a log from a `table` of any library or a dict of columns; columns that are not the log's own are the context.

        That is pandas, and whatever has Arrow's PyCapsule interface: Arrow, polars, DuckDB, Ibis and others.

        `declared` are `action_range` and `loss_range` or `reward_range`, and `knobs`, the ranges of several knobs; Arrow
        tables and pandas frames of a log have them, polars frames have not. `like`, the agent that decided, another log or
        a schema of contexts, says ranges and types that the table does not say. `skip_bad` skips invalid rows. With
        `density="estimate"`, densities are estimated from the contexts and actions, and need not be in the table.

        >>> log = Log.from_table({"age": [30, 41], "from": ["Bath", None], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
        >>> next(log.context_rows())
        {'age': 30.0, 'from': 'Bath'}
        """
        settings = _Settings(**declared)
        problems = settings.problems(Path("table"), needs_density=needs_density(density))
        given = frame_tables.arrow_table(table, has_knobs=problems.knobs is not None)
        piece = arrow_tables.SchemaAdapter(given.schema, problems).piece(given, 1)
        metadata = settings.declaration()(Metadata.from_arrow(piece.table.schema.metadata))
        rows = row_checks.valid_rows(piece.table, piece.rows, metadata, problems)
        log = cls._from_arrow(rows, metadata, problems.skipped)
        return log if problems.needs_density else estimate_densities(log)

    @classmethod
    def from_arrow(cls, table: pa.Table, **declared: Unpack[Declared]) -> Log:
        """Build a log from an Arrow `table`; `to_arrow` is the inverse. See `from_table` for what is `declared`.

        >>> import pyarrow
        >>> table = pyarrow.table({"age": [30, 41], "action": [1, 2], "density": [1, 1], "reward": [0, 1]})
        >>> Log.from_arrow(table).to_arrow().column_names
        ['action', 'density', 'reward', 'age']
        """
        _check_type(table, "pyarrow", "an Arrow table")
        return cls.from_table(table, **declared)

    def to_arrow(self) -> pa.Table:
        """The log as an Arrow table with its ranges in the metadata; see `from_arrow` for an example."""
        return frame_tables.stated_table(self.table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table of `to_arrow` for any library of data frames, such as `polars.DataFrame(log)`, by Arrow's PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @classmethod
    def from_pandas(cls, frame: pandas.DataFrame, **declared: Unpack[Declared]) -> Log:
        """Build a log from a pandas data `frame`, whose index must be plain row numbers; `to_pandas` is the inverse.

        See `from_table` for what is `declared`. Knobs are the columns action.NAME and density.NAME.

        >>> import pandas
        >>> frame = pandas.DataFrame({"age": [30, 41], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
        >>> Log.from_pandas(frame, action_range=(0, 4)).to_pandas().age.tolist()
        [30.0, 41.0]
        """
        _check_type(frame, "pandas", "a pandas data frame")
        return cls.from_table(frame, **declared)

    def to_pandas(self) -> pandas.DataFrame:
        """The log as a pandas data frame; see `from_pandas` for an example."""
        require_package("pandas")
        return frame_tables.to_pandas(self.table)

    @classmethod
    def from_polars(cls, frame: polars.DataFrame, **declared: Unpack[Declared]) -> Log:
        """Build a log from a polars data `frame`; `to_polars` is the inverse, but does not keep the ranges.

        See `from_table` for what is `declared`. Knobs are the columns action.NAME and density.NAME.

        >>> import polars
        >>> frame = polars.DataFrame({"age": [30, 41], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
        >>> Log.from_polars(frame).to_polars().columns
        ['action', 'density', 'loss', 'age']
        """
        _check_type(frame, "polars", "a polars data frame")
        return cls.from_table(frame, **declared)

    def to_polars(self) -> polars.DataFrame:
        """The log as a polars data frame; see `from_polars` for an example."""
        require_package("polars")
        frame: polars.DataFrame = frame_tables.to_polars(self.table)
        return frame

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
        density: Density = "logged",
        format: str | None = None,  # noqa: A002 - as in pandas and open
        **declared: Unpack[Declared],
    ) -> Log:
        """Read the whole log at a `path` into memory; `skipped` counts the invalid rows that `skip_bad` skipped.

        The format is that of the suffix, or `format`: "vw" reads Vowpal Wabbit's text from a file of any name. Parquet
        keeps types and ranges. CSV and JSON Lines do not: `like` says them, so that a column of a CSV file is a date
        again. See `from_table` for `density` and for what else is `declared`.

        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> target = pathlib.Path(folder.name, "run.csv.gz")
        >>> Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4)).write(target)
        >>> Log.read(target)
        Log(4 rows, 2 numbers per context)
        >>> folder.cleanup()
        """
        logged = needs_density(density)
        batches = Batches(path, BATCH, _Settings(**declared), needs_density=logged, file_format=format)
        log = cls.concat(list(batches))
        log.skipped = batches.skipped
        return log if logged else estimate_densities(log)

    @staticmethod
    def batches(
        path: str | Path | Source,
        size: int = BATCH,
        *,
        format: str | None = None,  # noqa: A002 - as in read
        **declared: Unpack[Declared],
    ) -> Batches:
        """Read the file at a `path` as logs of at most `size` rows, one after the other; the file may be larger than memory.

        See `read` for the `format`, and `from_table` for what is `declared`.

        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> target = pathlib.Path(folder.name, "run.parquet")
        >>> Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4)).write(target)
        >>> [len(batch) for batch in Log.batches(target, 3)]
        [3, 1]
        >>> folder.cleanup()
        """
        return Batches(path, size, _Settings(**declared), file_format=format)

    def write(self, path: str | Path) -> None:
        """Write the log to a `path` atomically, in the format of the suffix; see `read` for an example."""
        with LogWriter(path) as writer:
            writer.write(self)

    @staticmethod
    def concat(logs: Sequence[Log]) -> Log:
        """Concatenate `logs`, in order; sparse contexts may have different features.

        >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
        >>> len(Log.concat([log, log]))
        8
        """
        import pyarrow as pa

        if not logs:
            raise ParameterError("logs must have at least one log, got none.", "logs")
        logs = _with_common_types(_with_common_names(_with_common_levels(logs)))
        for log in logs[1:]:
            columns.require_same(logs[0].table.schema, log.table.schema)
        ranges = _hull([log.action_range for log in logs]), _hull([log.loss_range for log in logs])
        converted = {name: kind for log in logs for name, kind in log.converted.items()} or None
        metadata = replace(logs[0]._metadata, action_range=ranges[0], loss_range=ranges[1], converted=converted)
        table = pa.concat_tables([log.table.replace_schema_metadata(None) for log in logs])
        return Log._from_arrow(table, metadata, sum(log.skipped for log in logs))

    @property
    def table(self) -> pa.Table:
        """The log as an Arrow table."""
        if self._table is None:
            self._table = arrays.table_of(self._views, self._metadata)
        return self._table

    @property
    def action_range(self) -> Within | None:
        """The declared range of the actions, or None."""
        return self._metadata.action_range

    @property
    def knobs(self) -> ActionSpace | None:
        """The knobs of the actions, if they have several; otherwise None."""
        return self._metadata.knobs

    @property
    def space(self) -> ActionSpace | None:
        """What actions could be: the declared range or knobs; None if the log does not say."""
        if self._metadata.knobs is not None or self._metadata.action_range is None:
            return self._metadata.knobs
        return ActionSpace(self._metadata.action_range)

    @property
    def loss_range(self) -> Within | None:
        """The declared range of the losses, or None."""
        return self._metadata.loss_range

    @property
    def reward_range(self) -> Within | None:
        """The declared range of the rewards, or None; a log of losses has none."""
        span = self.outcome.rewards
        return None if isinstance(span, str) else span

    @property
    def outcome(self) -> Outcome:
        """What the log has: losses or rewards, and their range, which is "auto" if it is not declared."""
        return self._metadata.outcome

    @property
    def densities_estimated(self) -> bool:
        """Whether the densities were estimated instead of logged."""
        return self._metadata.densities_estimated

    @property
    def schema(self) -> ContextSchema:
        """The fields of the contexts, or the width of rows of numbers."""
        return columns.context_schema(self.table.schema)

    @property
    def converted(self) -> Mapping[str, str]:
        """The fields of contexts that an older version wrote as numbers although they had been dates or lists."""
        return self._metadata.converted or {}

    @property
    def contexts(self) -> Contexts:
        """The contexts as a matrix of numbers, with NaN for missing values; named features are in the order of their names."""
        return self._view("contexts", lambda: arrays.matrix(self.table, self._metadata))

    @property
    def fields(self) -> Fields | None:
        """The contexts as columns by name: numbers with NaN, other values with None for missing ones; None without names."""
        return None if self._table is None else self._view("fields", lambda: arrays.fields(self.table))

    @property
    def features(self) -> SparseFeatures | None:
        """The contexts as features by name, if they are stored so, as in Vowpal Wabbit's formats; otherwise None."""
        if self._table is None:
            return None
        return self._view("features", lambda: arrays.features(self.table, self._metadata))

    @property
    def actions(self) -> Any:
        """The chosen actions; columns by knob if there are several."""
        if self.knobs is None:
            return self._view("actions", lambda: columns.numbers(self.table, "action"))
        by_knob = self._view("actions", lambda: self._knob_columns("action"))
        return None if by_knob is None else self.knobs.unwrap(by_knob)

    @property
    def densities_by_knob(self) -> dict[str, Floats] | None:
        """The densities of the knobs, as columns by knob, or None."""
        return self._view("densities_by_knob", lambda: self._knob_columns("density_by_knob"))

    @property
    def within(self) -> Sequence[Mapping[str, Any] | None] | None:
        """The narrower ranges of the knobs in each round; None if every round had the whole ranges."""
        return None if self.knobs is None else self._view("within", self._withins)

    def _withins(self) -> Sequence[Mapping[str, Any] | None] | None:
        if self.knobs is None or "within" not in self.table.column_names:
            return None
        return [columns.parse_within(text, self.knobs) for text in self.table["within"].to_pylist()]

    def _knob_columns(self, name: str) -> dict[str, Any] | None:
        present = self.knobs is not None and name in self.table.column_names
        return columns.columns_of(self.table, name, self.knobs) if present else None  # type: ignore[arg-type]

    @property
    def densities(self) -> Floats:
        """The density of each action when it was drawn."""
        return self._view("densities", lambda: columns.numbers(self.table, "density"))

    @property
    def losses(self) -> Floats:
        """The loss of each action."""
        return self._view("losses", lambda: columns.numbers(self.table, "loss"))

    @property
    def rewards(self) -> Floats | None:
        """The reward of each action; None if the log has losses."""
        return self.outcome.from_loss(self.losses) if self.outcome.higher else None

    @property
    def parts(self) -> dict[str, Floats] | None:
        """The parts of the outcomes as columns by name, NaN if they were not seen; None if the log has none."""
        return self._view("parts", self._read_parts)

    def _read_parts(self) -> dict[str, Floats] | None:
        names = columns.part_columns(self.table.schema)
        return {name.removeprefix(columns.PART): columns.numbers(self.table, name) for name in names} or None

    def with_outcome(self, outcome: Outcome) -> Log:
        """The log with another `outcome`; the losses are computed from the parts of the log if it has a formula.

        >>> import manul
        >>> parts = {"bought": [True, False]}
        >>> log = Log(np.zeros((2, 1)), [30.0, 25.0], [0.02, 0.02], outcome=manul.Sale(cost=20.0), parts=parts)
        >>> log.rewards.tolist(), log.with_outcome(manul.Sale(cost=12.0)).rewards.tolist()
        ([10.0, 0.0], [18.0, 0.0])
        """
        import pyarrow as pa

        Outcome.of(outcome=outcome)
        if outcome.formula is None and outcome.higher != self.outcome.higher:
            has, given = (each.keywords for each in (self.outcome, outcome))
            raise ParameterError(f"outcome must have {has}, like the log, or a formula, got {given}.", "outcome")
        metadata, table = self._metadata.with_outcome(outcome), self.table
        losses = self.losses
        if outcome.formula is not None:
            missing = [name for name in outcome.modelled if name not in (self.parts or {})]
            if missing:
                has = f"only {', '.join(self.parts)}" if self.parts else "no parts at all"
                rule = f"log has no part {missing[0]!r}, which the formula needs; it has {has}"
                raise InputError(f"{rule}. Log what was reported as a column {columns.PART}{missing[0]}.", "log")
            known = {name: self.parts[name] for name in outcome.modelled} if self.parts is not None else {}
            named = self.fields is not None or self.features is not None
            contexts: Any = self.fields if named else self.contexts
            if self.features is not None:
                contexts = self.features.to_dicts()
            losses = compute_losses(outcome, self.space, contexts, self.actions, known)
            place = table.column_names.index("loss")
            table = table.set_column(place, "loss", pa.array(losses, pa.float64()))
        outcome.check(losses)
        return Log._from_arrow(table, metadata, self.skipped)

    @property
    def levels(self) -> Levels | None:
        """What the actions were drawn from, as uniform levels by knob; None if the log does not say."""
        return self._view("levels", self._read_levels)

    def _read_levels(self) -> Levels | None:
        if LEVELS not in self.table.column_names:
            return None
        return levels_of_column(columns.single_array(self.table, LEVELS), self.knobs)

    @property
    def pieces(self) -> Pieces | None:
        """What the actions were drawn from, as pieces of constant density by knob; None if the log does not say.

        >>> import manul
        >>> contexts, agent = np.zeros((1, 2)), manul.Cats(leaves=8, bandwidth=1/2, epsilon=0)
        >>> made = agent.decide_many(contexts, levels=True)
        >>> Log(contexts, made.actions, made.densities, np.ones(1), levels=made.levels).pieces[""].row(0)
        [(0.0, 1.0, 1.0)]
        """
        return None if self.levels is None else {name: each.pieces for name, each in self.levels.items()}

    @property
    def lows(self) -> Floats | None:
        """The lower ends of the ranges of rounds, or None."""
        return self._optional("lows")

    @property
    def highs(self) -> Floats | None:
        """The upper ends of the ranges of rounds, or None."""
        return self._optional("highs")

    @property
    def floors(self) -> Floats | None:
        """The smallest density that the logged policy gave any action of each round, or None; NaN if unknown."""
        return self._optional("floors")

    @property
    def times(self) -> Floats | None:
        """The time of each decision, in seconds since 1970; NaN if missing."""
        return self._optional("times")

    @property
    def ids(self) -> Sequence[str | None] | None:
        """The id of each decision."""
        return self._texts("ids")

    @property
    def arms(self) -> Sequence[str | None] | None:
        """The arm of a rollout that made each decision, "learner" or "baseline", or None."""
        return self._texts("arms")

    def _optional(self, view: str) -> Floats | None:
        name = arrays.VIEWS[view]
        present = name in self.table.column_names
        return self._view(view, lambda: columns.numbers(self.table, name) if present else None)

    def _texts(self, view: str) -> list[str | None] | None:
        name = arrays.TEXTS[view]
        present = name in self.table.column_names
        return self._view(view, lambda: self.table[name].to_pylist() if present else None)

    def _view(self, name: str, compute: Callable[[], _View]) -> _View:
        if name not in self._views:
            self._views[name] = compute()
        return cast(_View, self._views[name])

    def context_rows(self) -> Iterator[dict[str, Any]]:
        """Each context as a dict; missing values are None.

        >>> list(Log(np.ones((1, 2), np.float32), np.ones(1), np.ones(1), np.ones(1)).context_rows())
        [{'0': 1.0, '1': 1.0}]
        """
        layout = columns.context_layout(self.table.schema)
        if layout == "columns":
            named = {columns.field_name(name): self.table[name] for name in columns.user_columns(self.table.schema)}
            values = map(data_frames.arrow_values, named.values())
            yield from (dict(zip(named, row, strict=True)) for row in zip(*values, strict=True))
        elif layout == "dense":
            for row in self.contexts.tolist():
                yield {str(index): value for index, value in enumerate(row)}
        else:
            names = self._metadata.names
            for context in self.table["context"].to_pylist():
                pairs = zip(context["index"], context["value"], strict=True)
                yield {names[index] if names else str(index): value for index, value in pairs}

    def __len__(self) -> int:
        return len(self._views["losses"]) if self._table is None else len(self._table)

    def _repr_html_(self) -> str:
        shown = frame_tables.stated_table(self.rows(slice(SHOWN)).table)
        names = shown.column_names[:COLUMNS_SHOWN]
        return html_cards.table(repr(self), names, zip(*(shown[name].to_pylist() for name in names), strict=True))

    def __repr__(self) -> str:
        return f"Log({len(self)} rows, {columns.describe(self.table.schema)})"

    def with_estimated_densities(self, densities: Floats) -> Log:
        """The log with estimated `densities`, marked as such, and without floors and levels.

        >>> log = Log(np.zeros((2, 1), np.float32), np.ones(2), np.ones(2), np.ones(2))
        >>> log.with_estimated_densities(np.array([0.5, 2.0])).densities_estimated
        True
        """
        import pyarrow as pa

        table = self.table.drop_columns([name for name in (columns.FLOOR, LEVELS) if name in self.table.column_names])
        table = table.set_column(table.column_names.index("density"), "density", pa.array(densities, pa.float64()))
        return Log._from_arrow(table, replace(self._metadata, densities_estimated=True, levels=False), self.skipped)

    def rows(self, selection: Selection) -> Log:
        """The log of a `selection` of rounds.

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
        """Split off a `share` of the rounds; each part keeps its order.

        They are the first `by` "order", the earliest by "time", or "random" ones, which a `seed` chooses.

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
        settings: _Settings,
        *,
        needs_density: bool = True,
        file_format: str | None = None,
    ) -> None:
        check_whole_number("size", size, 1, None, f"Try {BATCH}.")
        if file_format is not None and not isinstance(path, str | Path):
            raise ParameterError(f"format must be None for a {type(path).__name__}, got {file_format!r}.", "format")
        self._source = formats.FileSource(Path(path), file_format) if isinstance(path, str | Path) else path
        self._problems = settings.problems(self._source.path, needs_density=needs_density)
        self._size, self._declare = size, settings.declaration()

    def __iter__(self) -> Iterator[Log]:
        pieces = self._source.read(self._problems, self._size)
        for table, skipped in _good_rows(pieces, self._problems, self._declare):
            yield Log._of_own_table(table, Metadata.from_arrow(table.schema.metadata), skipped)

    @property
    def skipped(self) -> int:
        """The number of skipped rows."""
        return self._problems.skipped


class LogWriter:
    """Writes logs to the file at a `path`, which appears when it is closed; after an error it does not.

    With `append`, it keeps the rows of an existing file, whose ranges are given as `knobs`, or are those of an agent or
    log that it is `like`, if the file does not have them.

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
        knobs: AnyKnobs = None,
        like: Declares | ContextSchema | None = None,
    ) -> None:
        self._path, self._format = Path(path), formats.format_of(Path(path), writing=True)
        self._partial = partial_path(self._path)
        self._file: formats.Writer | None = None
        self._schema: pa.Schema | None = None
        self._written = 0
        self._existing = Log.batches(path, knobs=knobs, like=like) if append and Path(path).exists() else ()

    def __enter__(self) -> LogWriter:
        try:
            for batch in self._existing:
                self.write(batch)
        except BaseException:
            self._abandon()
            raise
        return self

    def write(self, log: Log) -> None:
        """Add the rows of a `log`, which must have the columns of the first one, after checking that they can be read back."""
        table = log.table
        rows = np.arange(self._written + 1, self._written + len(table) + 1)
        row_checks.valid_rows(table, rows, Metadata.from_arrow(table.schema.metadata), Problems(self._path))
        try:
            if self._file is None or self._schema is None:
                self._file, self._schema = self._format.writer(self._partial, table.schema), table.schema
            table = _with_types_of(self._schema, arrays.with_levels(table, wanted=LEVELS in self._schema.names))
            columns.require_same(self._schema, table.schema)
            self._file.write(table.replace_schema_metadata(self._schema.metadata))
        except OSError as error:
            raise write_error(self._path, error) from error
        self._written += len(table)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            self._close()
        else:
            self._abandon()

    def _close(self) -> None:
        if self._file is None or not self._written:
            self._abandon()
            raise FileError(f"{self._path} must have at least one valid row, got none.")
        try:
            self._file.close()
            put_in_place(self._partial, self._path)
        except OSError as error:
            self._abandon()
            raise write_error(self._path, error) from error

    def _abandon(self) -> None:
        """Delete the partial file; an existing file at the path stays."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._partial.unlink(missing_ok=True)


def _with_common_levels(logs: Sequence[Log]) -> Sequence[Log]:
    """The logs, with unknown levels in those without any if others have them."""
    if len({log._metadata.levels for log in logs}) == 1:
        return logs
    tables = [arrays.with_levels(log.table, wanted=True) for log in logs]
    pairs = zip(tables, logs, strict=True)
    return [Log._from_arrow(table, replace(log._metadata, levels=True), log.skipped) for table, log in pairs]


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


def _range(name: str, value: Within | None, check: Callable[[str, Within], Within] = check_range) -> Within | None:
    return None if value is None else check(name, value)


def _check_type(table: object, package: str, kind: str) -> None:
    if not any(each.__module__.startswith(package) for each in type(table).__mro__):
        raise ParameterError(
            f"table must be {kind}, got {type(table).__name__}. Use Log.from_table for others.", "table"
        )


def _hull(ranges: Sequence[Within | None]) -> Within | None:
    """The smallest range that contains all ranges; None if one is not declared."""
    known = [limits for limits in ranges if limits is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(ranges) else None


def _check_likeness(like: object) -> None:
    if not isinstance(like, Declares):
        raise ParameterError(f"like must be an agent, a log or a ContextSchema, got {like!r:.60}.", "like")


def _are_decisions(values: Any) -> bool:
    if not isinstance(values, list | tuple) or not any(isinstance(each, Decision) for each in values):
        return False
    for row, each in enumerate(values):
        if not isinstance(each, Decision):
            raise InputError(f"decisions must be those of an agent, got {each!r:.60} in row {row}.", "decisions")
    return True


def _told(losses: Any, rewards: Any, outcome: Outcome | None) -> tuple[Any, bool]:
    """The losses of decisions that are told with `losses` or with `rewards`, and whether a mark of rewards is needed."""
    if isinstance(rewards, bool) or rewards is None:
        return losses, bool(rewards)
    if losses is not None:
        raise ParameterError("losses and rewards exclude each other: a log has one of them.", "rewards")
    reject_text("rewards", rewards)
    return 0.0 - np.asarray(rewards, np.float64), outcome is None  # zero has no sign


def _narrower(
    decisions: Decisions[Any], space: ActionSpace | None, action_range: Within | None
) -> tuple[Floats | None, Floats | None, Sequence[Any] | None]:
    """The narrower ranges of decisions: ends of ranges of numbers, or those of knobs."""
    withins = decisions.within
    if withins is None or not (space is None or space.is_number):
        return decisions.lows, decisions.highs, withins
    whole = action_range if space is None else space.ends
    if whole is None and any(each is None for each in withins):
        raise ParameterError("Some decisions had the whole range. Pass action_range, or like=agent.", "action_range")
    lows, highs = np.array([whole if each is None else each for each in withins], np.float64).T
    return lows, highs, None


def check_knobs(knobs: AnyKnobs) -> ActionSpace | None:
    """The space of actions that are no numbers, which is given as to an agent."""
    if knobs is None or isinstance(knobs, ActionSpace):
        return knobs
    if not isinstance(knobs, Mapping | Knob):
        raise ParameterError(f"knobs must be a mapping of names to knobs, got {knobs!r}.", "knobs")
    return ActionSpace(knobs)


def compute_losses(
    outcome: Outcome,
    space: ActionSpace | None,
    contexts: Any,
    actions: Any,
    parts: Mapping[str, npt.ArrayLike],
) -> Floats:
    """The losses that the formula of an `outcome` gives for `parts`, columns by name, of decisions in a `space`."""
    reader = PartsReader(outcome, space or ActionSpace((0.0, 1.0)))  # only the name of the action matters
    return outcome.to_loss(reader.values(actions, contexts, reader.table(parts)))


def _computed(contexts: Any, actions: Any, outcome: Outcome | None, space: ActionSpace | None, parts: Any) -> Floats:
    if outcome is None or outcome.formula is None:
        rule = "losses must be given, because no outcome with a formula computes them from the parts"
        raise ParameterError(f"{rule}. Try outcome=manul.Sale(cost=20.0).", "losses")
    return compute_losses(outcome, space, contexts, actions, parts)


def _part_columns(parts: Any, outcome: Outcome | None) -> dict[str, Floats]:
    if not isinstance(parts, Mapping) or not all(isinstance(name, str) and name for name in parts):
        raise ParameterError(f"parts must be columns by name, got {parts!r:.60}.", "parts")
    table: dict[str, Floats] = {}
    for name, column in parts.items():
        if outcome is not None and name in outcome.parts:
            table[name] = part_column(outcome, name, column)
            continue
        try:
            table[name] = np.array([np.nan if value is None else value for value in column], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"the part {name!r} must be numbers, got {column!r:.60}.", "parts") from None
    return table


def _knob_views(knobs: ActionSpace | None, views: Mapping[str, Any]) -> dict[str, Any]:
    """The actions, densities by knob and narrower ranges in the form of a log; those with one knob have no such columns."""
    if knobs is None:
        for name in ("densities_by_knob", "within"):
            if views[name] is not None:
                raise ParameterError(f"{name} is for logs with several knobs. Pass knobs={{...}} too.", name)
        if isinstance(views["actions"], Mapping):
            raise ParameterError("actions are columns by knob, so a log needs knobs={...} too.", "knobs")
        return {}
    for name in ("lows", "highs", "action_range"):
        if views[name] is not None:
            raise ParameterError(f"{name} is for logs with one knob. Give knobs their ranges, or use within.", name)
    densities, withins = views["densities_by_knob"], views["within"]
    actions = views["actions"] if knobs.is_named else knobs.wrap(views["actions"], "actions")
    return {
        "actions": row_checks.check_actions(actions, knobs),
        "densities_by_knob": None if densities is None else _densities(densities, knobs),
        "within": None if withins is None else _withins(withins, knobs),
    }


def _lengths(views: Mapping[str, Any]) -> set[int]:
    columns = [column for column in views.values() if column is not None]
    parts = [part for column in columns for part in (column.values() if isinstance(column, dict) else [column])]
    return {len(part) for part in parts}


def _densities(densities: Any, knobs: ActionSpace) -> dict[str, Any]:
    if not knobs.is_named:
        raise InputError("densities_by_knob is for knobs with names; this one has the densities.", "densities_by_knob")
    if not isinstance(densities, Mapping) or {*densities} != {*knobs.names}:
        raise InputError(
            f"densities_by_knob must map each of {', '.join(knobs.names)} to a column.", "densities_by_knob"
        )
    try:
        return {name: np.atleast_1d(np.asarray(densities[name], dtype=np.float64)) for name in knobs.names}
    except (TypeError, ValueError):
        raise InputError("densities_by_knob must be columns of numbers.", "densities_by_knob") from None


def _check_levels(levels: Any, knobs: ActionSpace | None) -> Levels:
    names = [UNNAMED] if knobs is None else knobs.names
    if not isinstance(levels, Mapping) or not all(isinstance(each, KnobLevels) for each in levels.values()):
        raise ParameterError(f"levels must be those of decisions, got {levels!r:.60}.", "levels")
    if {*levels} != {*names}:
        raise InputError(f"levels must have each of the knobs {names}, got {[*levels]}.", "levels")
    return {name: levels[name] for name in names}


def _withins(withins: Sequence[Any], knobs: ActionSpace) -> list[dict[str, Any] | None] | None:
    if isinstance(withins, Mapping):
        raise InputError("within must have one mapping per row, got a single one.", "within")
    checked = [columns.normal_within(within, knobs) for within in withins]
    return checked if any(within is not None for within in checked) else None


def _good_rows(
    pieces: Iterator[Piece], problems: Problems, declare: Callable[[Metadata], Metadata]
) -> Iterator[tuple[pa.Table, int]]:
    """Yield tables of valid rows with the number of rows skipped before each; raises FileError if no row is valid."""
    problems.skipped, count, before = 0, 0, 0
    for piece in pieces:
        metadata = declare(Metadata.from_arrow(piece.table.schema.metadata, problems.path))
        table = row_checks.valid_rows(piece.table, piece.rows, metadata, problems)
        count += len(table)
        if len(table):
            yield table.replace_schema_metadata(metadata.to_arrow()), problems.skipped - before
            before = problems.skipped
    if not count:
        skipped = f"{problems.skipped} skipped. Read it without skipping to see the first error"
        raise FileError(
            f"{problems.path} has no valid rows ({skipped})." if problems.skipped else f"{problems.path} has no rows."
        )


def _with_types_of(first: pa.Schema, table: pa.Table) -> pa.Table:
    """A table with the types of the first one, such as one in which a field has only missing values."""
    if not columns.user_columns(first) or {*first.names} != {*table.column_names} or first.equals(table.schema):
        return table
    known, added = columns.context_schema(first), columns.context_schema(table.schema)
    for name, field in known.merge(added).fields.items():
        if field != known.fields[name]:
            kinds = f"{known.fields[name].arrow()} in the first batch and {added.fields[name].arrow()} in a later one"
            raise FileError(f"the type of the field {name!r} is {kinds}. Join the batches with Log.concat first.", name)
    return arrays.with_types(table, known)
