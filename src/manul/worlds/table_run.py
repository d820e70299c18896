"""Runs an agent online over a table: each row is a context, and its target is the best action.

The loss of an action is its distance to the target, as a share of the range of actions, or the square of that share. With
several targets, each is the best value of a knob, and the loss is the mean of those of the knobs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from manul.actions.decision import Within
from manul.actions.schedules import Epsilon
from manul.agents.agent_registry import AGENTS
from manul.agents.mapped import Mapped
from manul.contexts import conversion
from manul.contexts.table_encoding import Columns, one_hot
from manul.errors import ParameterError
from manul.logs.formats.log_schema import Metadata, reserved_names
from manul.logs.log import Log
from manul.utils.validation import Floats, check_choice, check_range, check_seed
from manul.worlds.regression import LossName, Regression
from manul.worlds.several import Several
from manul.worlds.simulation import Run, simulate
from manul.worlds.table_report import TableRun
from manul.worlds.tables import column_profiles
from manul.worlds.tables.dataset import scale_targets
from manul.worlds.tables.regression_bound import held_out_predictions
from manul.worlds.tables.table_columns import MOST_NAMED, numbers_of, read_table, suffix_of, target_numbers
from manul.worlds.tables.vw_examples import LABEL

if TYPE_CHECKING:
    import pyarrow as pa

Column = Floats | list[Any]


class TypicalTargets(NamedTuple):
    """A range, and the share of the targets in it."""

    low: float
    high: float
    share: float


@dataclass(frozen=True, eq=False)
class TargetTable:
    """A table with targets: the columns of the contexts, their encoding, the best actions, and what the columns look like.

    `actions` are the range of the one target, whose values are a vector; with several targets, each of them is the best
    value of a knob, `actions` are the ranges by name, and `targets` has a column per knob.
    """

    fields: dict[str, Column]
    columns: Columns
    targets: Floats
    skipped: int
    clipped: int
    renamed_columns: tuple[str, ...]
    actions: Any
    target: str | None = None
    profiles: tuple[column_profiles.Column, ...] = ()

    @staticmethod
    def read(
        path: str | Path,
        *,
        target: str | Sequence[str] | None = None,
        actions: Within | None = None,
        suffix: str | None = None,
    ) -> TargetTable:
        """Read a file; rows without a target are skipped, targets outside the range of actions are clipped to it.

        With several targets, the table is one of knobs, whose ranges are those of the targets. The format is that of the
        file's suffix, or of `suffix`.
        """
        suffix = suffix or suffix_of(Path(path), selectable=True)
        raw, cells = read_table(path, suffix)
        names = _names(target, cells, path, has_label=suffix == ".vw")
        found = np.column_stack([target_numbers(cells, name, str(path)) for name in names])
        known = np.asarray(np.isfinite(found).all(axis=1))
        profiles = column_profiles.profile(raw, cells, names, known)
        columns = {each.name: _column(each, raw, cells) for each in profiles if each.name not in names}
        targets, skipped = found[known], int((~known).sum())
        given = None if actions is None else check_range("actions", actions)
        if given is not None and len(names) > 1:
            raise ParameterError(
                "actions is for one target. With several, the ranges are those of the targets.", "actions"
            )
        ranges = [
            given or scale_targets(column, what=f"target {name!r} of {path}")[0]
            for name, column in zip(names, targets.T, strict=True)
        ]
        renamed = tuple(key for key in columns if key in reserved_names(several=len(names) > 1))
        new_names = {key: f"{key}_" if key in renamed else key for key in columns}
        fields = {new_names[key]: _take(column, known) for key, column in columns.items()}
        dates = {new_names[each.name]: each.layout for each in profiles if each.layout and each.name in columns}
        low, high = np.array(ranges).T
        clipped = int(((targets < low) | (targets > high)).sum())
        targets, encoding = np.clip(targets, low, high), Columns.fit(fields, dates=dates)
        if len(names) > 1:
            knobs = dict(zip(names, ranges, strict=True))
            return TargetTable(fields, encoding, targets, skipped, clipped, renamed, knobs, None, profiles)
        return TargetTable(fields, encoding, targets[:, 0], skipped, clipped, renamed, ranges[0], names[0], profiles)

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def has_knobs(self) -> bool:
        """Whether the table has several targets."""
        return isinstance(self.actions, Mapping)

    @property
    def typical_targets(self) -> TypicalTargets | None:
        """A range of at least 99 % of the targets, or None if that is more than half the range of actions.

        None, too, if targets were clipped, because what they were is not known any more, or if there are several targets,
        because their ranges are those of the targets.
        """
        if self.has_knobs:
            return None
        low = float(np.percentile(self.targets, 0.5, method="lower"))
        high = float(np.percentile(self.targets, 99.5, method="higher"))
        if self.clipped or not low < high:
            return None
        power = math.floor(math.log10((high - low) / 20))  # round numbers, at most a twentieth wider at each end
        low = round(math.floor(low / 10.0**power) * 10.0**power, -power)
        high = round(math.ceil(high / 10.0**power) * 10.0**power, -power)
        first, last = self.actions
        low, high = max(low, first), min(high, last)
        share = float(((self.targets >= low) & (self.targets <= high)).mean())
        return TypicalTargets(low, high, share) if high - low < (last - first) / 2 else None

    def shuffle(self, seed: int) -> TargetTable:
        """The table with its rows in random order."""
        order = np.random.default_rng(check_seed(seed)).permutation(len(self))
        fields = {name: _take(column, order) for name, column in self.fields.items()}
        return replace(self, fields=fields, targets=self.targets[order])

    def world(self, loss: LossName = "absolute") -> Regression | Several:
        """The table as a world whose contexts are rows of numbers, with one knob or several."""
        if not self.has_knobs:
            return Regression(self._contexts, self.targets, loss)
        check_choice("loss", loss, ("absolute", "squared"))

        def expected(numbers: Any, columns: Any) -> Floats:
            chosen = np.column_stack([columns[name] for name in self.actions]).astype(np.float64)
            return self._losses(chosen, self.targets[numbers], loss)

        best = dict(zip(self.actions, self.targets.T, strict=True))
        contexts, none = conversion.matrix(one_hot(self._contexts)), np.zeros(len(self))
        return Several(contexts=contexts, actions=self.actions, expected=expected, best=best, noise=none)

    def constant_losses(self, loss: LossName) -> Floats:
        """The loss of the best constant action, which is the same in all rows, in each row."""
        targets = self._target_columns
        constant = np.median(targets, axis=0) if loss == "absolute" else targets.mean(axis=0)
        return self._losses(constant, targets, loss)

    def regression(self, loss: LossName) -> tuple[float, str] | None:
        """The mean loss of a regression per target that knows the targets of other rows, and its model; None for a few rows."""
        found = [held_out_predictions(self._contexts, column, loss) for column in self._target_columns.T]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        low, high = self._ranges.T
        chosen = np.clip(np.column_stack([each.values for each in known]), low, high)
        losses = self._losses(chosen, self._target_columns[known[0].rows], loss)
        return float(losses.mean()), known[0].model

    def in_units(self, mean_loss: float, loss: LossName) -> float | None:
        """A mean loss in units of the target: the mean absolute or the root mean square error.

        None for several targets, which may have different units.
        """
        if self.has_knobs:
            return None
        low, high = self.actions
        return float((mean_loss if loss == "absolute" else math.sqrt(mean_loss)) * (high - low))

    @property
    def stated_actions(self) -> Any:
        """The range of actions, or the ranges by knob, for JSON."""
        return {name: list(span) for name, span in self.actions.items()} if self.has_knobs else list(self.actions)

    def describe_actions(self) -> str:
        if not self.has_knobs:
            return "{:g} to {:g}".format(*self.actions)
        return ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in self.actions.items())

    def log(self, run: Run) -> Log:
        """The log of a run, with the columns of the table as contexts."""
        import pyarrow as pa

        fields = {name: pa.array(values, from_pandas=True) for name, values in self.fields.items()}
        decided = run.log.table.drop_columns("context")
        decisions = {name: decided.column(name) for name in decided.column_names}
        metadata = Metadata(knobs=run.log.knobs).with_outcome(run.log.outcome)
        table = pa.table({**fields, **decisions}).replace_schema_metadata(metadata.to_arrow())
        return Log.from_table(table, action_range=run.log.action_range, loss_range=(0.0, 1.0))

    @property
    def _contexts(self) -> Any:
        return self.columns.rows(self.fields, len(self))

    @property
    def _target_columns(self) -> Floats:
        return self.targets.reshape(len(self), -1)

    @property
    def _ranges(self) -> Floats:
        return np.array([*self.actions.values()] if self.has_knobs else [self.actions])

    def _losses(self, chosen: Floats, targets: Floats, loss: LossName) -> Floats:
        """The mean over the targets of the distance as a share of the range, or of its square."""
        low, high = self._ranges.T
        shares = np.abs(chosen - targets) / (high - low)
        losses: Floats = (shares if loss == "absolute" else shares**2).mean(axis=1)
        return losses


def run_agent(
    table: TargetTable,
    *,
    agent: str | None = None,
    leaves: int | None = None,
    bandwidth: float | Fraction | None = None,
    epsilon: Epsilon | Literal["auto"] | None = None,
    seed: int = 0,
    loss: LossName = "absolute",
    losses: Literal["known", "auto"] | None = None,
    rewards: Literal["known", "auto"] | None = None,
    progress: bool = False,
) -> TableRun:
    """Run an agent once over a table: Auto by default, Cats if `leaves` or `bandwidth` is given.

    The bandwidth is in units of the target; a `Fraction` is a share of the range of actions. Without `epsilon`, the agent's
    default is used. With `rewards`, the agent gets rewards, which are negative losses. With "auto", it does not know the
    range.
    """
    name = agent or ("auto" if leaves is None and bandwidth is None else "cats")
    entry = AGENTS[name]
    if table.has_knobs and name != "auto":
        raise ParameterError(f"agent must be auto for several targets; {name} sets one knob.", "agent")
    one_knob = (0.0, 1.0) if table.has_knobs else table.actions
    settings = entry.tree_settings(one_knob, leaves=leaves, bandwidth=bandwidth)
    exploration = {} if epsilon is None else {"epsilon": epsilon}
    learner = entry.make(actions=table.actions, seed=seed, **exploration, **settings, **_ranges(losses, rewards))
    run = simulate(learner, table.world(loss), progress=progress)
    log, policy = table.log(run), Mapped(agent=learner, features=table.columns)
    return TableRun(name, settings, policy, log, run, table, loss)


def _ranges(losses: str | None, rewards: str | None) -> dict[str, Any]:
    if losses is not None and rewards is not None:
        raise ParameterError(f"losses and rewards exclude each other, got {losses!r} and {rewards!r}.", "rewards")
    name, limits = ("losses", (0.0, 1.0)) if rewards is None else ("rewards", (-1.0, 0.0))
    choice = losses if rewards is None else rewards
    return {} if choice is None else {name: "auto" if choice == "auto" else limits}


def _names(
    target: str | Sequence[str] | None, cells: Mapping[str, pa.Array], path: str | Path, *, has_label: bool
) -> list[str]:
    names = [target] if isinstance(target, str) else [*(target or ())]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise ParameterError(f"target must name different columns, got {repeated[0]!r} twice.", "target")
    if not names and not has_label:
        columns = ", ".join(list(cells)[:MOST_NAMED])
        raise ParameterError(f"target must be a column of {path}, got none. It has {columns}.", "target")
    return names or [LABEL]


def _column(profile: column_profiles.Column, raw: pa.Table, cells: Mapping[str, pa.Array]) -> Column:
    import pyarrow as pa

    if str(cells[profile.name].type) == "string":
        return list(cells[profile.name].to_pylist())
    if profile.layout is None:
        return numbers_of(cells[profile.name])
    times = raw.column(profile.name)
    zone = times.type.tz if pa.types.is_timestamp(times.type) else None  # dates have none
    return list(times.cast(pa.timestamp("us", zone), safe=False).to_pylist())


def _take(column: Column, rows: Any) -> Column:
    if isinstance(column, list):
        return [column[row] for row in np.arange(len(column))[rows].tolist()]
    values: Floats = column[rows]
    return values
