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
from manul.agents import Mapped
from manul.agents.agent_registry import AGENTS
from manul.contexts import conversion
from manul.contexts.table_encoding import Columns
from manul.errors import ParameterError
from manul.logs.formats.log_schema import Metadata, reserved_names
from manul.logs.log import Log
from manul.utils.validation import Floats, check_choice, check_range, check_seed
from manul.worlds import Regression
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
    """A table with targets: the columns of the contexts, their encoding, the best actions, and what the columns look like."""

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

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "cars.csv").write_text("age,price\\n1,20\\n9,5\\n4,\\n")
        ...     table = TargetTable.read(Path(folder, "cars.csv"), target="price")
        >>> table.targets, table.actions, table.skipped
        (array([20.,  5.]), (5.0, 20.0), 1)
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
            return KnobTable(fields, encoding, targets, skipped, clipped, renamed, knobs, None, profiles)
        return TargetTable(fields, encoding, targets[:, 0], skipped, clipped, renamed, ranges[0], names[0], profiles)

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def typical_targets(self) -> TypicalTargets | None:
        """A range of at least 99 % of the targets, or None if that is more than half the range of actions.

        None, too, if targets were clipped: what they were is not known any more.

        >>> targets = np.append(np.arange(999.0), 5000.0)
        >>> TargetTable({}, Columns(()), targets, 0, 0, (), (0.0, 5000.0)).typical_targets
        TypicalTargets(low=0.0, high=1000.0, share=0.999)
        """
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
        """The table with its rows in random order.

        >>> columns = Columns.fit({"age": [1, 9, 4]})
        >>> table = TargetTable({"age": np.array([1, 9, 4])}, columns, np.array([3.0, 1.0, 2.0]), 0, 0, (), (0.0, 4.0))
        >>> table.shuffle(1).targets
        array([3., 1., 2.])
        """
        order = np.random.default_rng(check_seed(seed)).permutation(len(self))
        fields = {name: _take(column, order) for name, column in self.fields.items()}
        return replace(self, fields=fields, targets=self.targets[order])

    def world(self, loss: Literal["absolute", "squared"] = "absolute") -> Regression:
        """The table as a world whose contexts are rows of numbers."""
        return Regression(self.columns.rows(self.fields, len(self)), self.targets, loss)

    def constant_losses(self, loss: Literal["absolute", "squared"]) -> Floats:
        """The loss of the best constant action, which is the same in all rows, in each row.

        >>> ages = {"age": np.array([1.0, 9.0, 4.0])}
        >>> table = TargetTable(ages, Columns.fit(ages), np.array([3.0, 1.0, 2.0]), 0, 0, (), (0.0, 4.0))
        >>> table.constant_losses("absolute")
        array([0.25, 0.25, 0.  ])
        """
        constant = float(np.median(self.targets) if loss == "absolute" else self.targets.mean())
        return self.world(loss).losses(np.full(len(self), constant), self.actions)

    def regression(self, loss: Literal["absolute", "squared"]) -> tuple[float, str] | None:
        """The mean loss of a regression that knows the targets of other rows, and its model; None for a few rows.

        >>> ages = {"age": np.arange(40.0)}
        >>> TargetTable(ages, Columns.fit(ages), 2 * ages["age"], 0, 0, (), (0.0, 78.0)).regression("squared")[1]
        'gradient boosting'
        """
        predictions = held_out_predictions(self.columns.rows(self.fields, len(self)), self.targets, loss)
        if predictions is None:
            return None
        low, high = self.actions
        shares = np.abs(np.clip(predictions.values, low, high) - self.targets[predictions.rows]) / (high - low)
        return float((shares if loss == "absolute" else shares**2).mean()), predictions.model

    def in_units(self, mean_loss: float, loss: Literal["absolute", "squared"]) -> float | None:
        """A mean loss in units of the target: the mean absolute or the root mean square error.

        >>> TargetTable({}, Columns(()), np.array([3.0, 1.0]), 0, 0, (), (0.0, 4.0)).in_units(0.25, "squared")
        2.0
        """
        low, high = self.actions
        return float((mean_loss if loss == "absolute" else math.sqrt(mean_loss)) * (high - low))

    @property
    def stated_actions(self) -> Any:
        """The range of actions, for JSON."""
        return list(self.actions)

    def describe_actions(self) -> str:
        """The range of actions in words."""
        return "{:g} to {:g}".format(*self.actions)

    def log(self, run: Run, *, rewards: bool = False) -> Log:
        """The log of a run, with the columns of the table as contexts."""
        import pyarrow as pa

        fields = {name: pa.array(values, from_pandas=True) for name, values in self.fields.items()}
        decided = run.log.table.drop_columns("context")
        decisions = {name: decided.column(name) for name in decided.column_names}
        metadata = Metadata(rewards=rewards, knobs=run.log.knobs)
        table = pa.table({**fields, **decisions}).replace_schema_metadata(metadata.to_arrow())
        return Log.from_table(table, action_range=run.log.action_range, loss_range=(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class KnobTable(TargetTable):
    """A table with several targets, one column each: the best values of knobs, whose ranges are the actions by name.

    >>> table = KnobTable({}, Columns(()), np.array([[1.0, 5.0], [2.0, 9.0]]), 0, 0, (), {"a": (0.0, 2.0), "b": (5.0, 9.0)})
    >>> table.constant_losses("absolute"), table.describe_actions()
    (array([0.375, 0.375]), 'a 0 to 2, b 5 to 9')
    """

    @property
    def typical_targets(self) -> TypicalTargets | None:
        """None: the ranges of several knobs are those of the targets."""
        return None

    def world(self, loss: Literal["absolute", "squared"] = "absolute") -> Any:
        """The table as a world with several knobs."""
        check_choice("loss", loss, ("absolute", "squared"))
        power = 1 if loss == "absolute" else 2

        def expected(numbers: Any, columns: Any) -> Floats:
            chosen = np.column_stack([columns[name] for name in self.actions]).astype(np.float64)
            return self._losses(chosen, self.targets[numbers], power)

        best = dict(zip(self.actions, self.targets.T, strict=True))
        contexts = conversion.matrix(self.columns.rows(self.fields, len(self)))
        none = np.zeros(len(self))
        return Several(contexts=contexts, actions=self.actions, expected=expected, best=best, noise=none)

    def _losses(self, chosen: Floats, targets: Floats, power: int) -> Floats:
        spans = np.array([high - low for low, high in self.actions.values()])
        losses: Floats = ((np.abs(chosen - targets) / spans) ** power).mean(axis=1)
        return losses

    def regression(self, loss: Literal["absolute", "squared"]) -> tuple[float, str] | None:
        """The mean loss of one regression per knob, and the model; None for a few rows."""
        contexts = self.columns.rows(self.fields, len(self))
        found = [held_out_predictions(contexts, column, loss) for column in self.targets.T]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        low, high = np.array([*self.actions.values()]).T
        chosen = np.clip(np.column_stack([each.values for each in known]), low, high)
        losses = self._losses(chosen, self.targets[known[0].rows], 1 if loss == "absolute" else 2)
        return float(losses.mean()), known[0].model

    def in_units(self, mean_loss: float, loss: Literal["absolute", "squared"]) -> float | None:  # noqa: ARG002
        """None: several targets may have different units."""
        return None

    def constant_losses(self, loss: Literal["absolute", "squared"]) -> Floats:
        """The loss of the best constant action, which is the same in all rows, in each row."""
        constant = np.median(self.targets, axis=0) if loss == "absolute" else self.targets.mean(axis=0)
        return self._losses(constant, self.targets, 1 if loss == "absolute" else 2)

    @property
    def stated_actions(self) -> Any:
        """The ranges by knob, for JSON."""
        return {name: list(span) for name, span in self.actions.items()}

    def describe_actions(self) -> str:
        """The ranges in words."""
        return ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in self.actions.items())


def run_agent(
    table: TargetTable,
    *,
    agent: str | None = None,
    leaves: int | None = None,
    bandwidth: float | Fraction | None = None,
    epsilon: Epsilon | Literal["auto"] | None = None,
    seed: int = 0,
    loss: Literal["absolute", "squared"] = "absolute",
    losses: Literal["known", "auto"] | None = None,
    rewards: Literal["known", "auto"] | None = None,
    progress: bool = False,
) -> TableRun:
    """Run an agent once over a table: Auto by default, Cats if `leaves` or `bandwidth` is given.

    The bandwidth is in units of the target; a `Fraction` is a share of the range of actions. Without `epsilon`, the agent's
    default is used. With `rewards`, the agent gets rewards, which are negative losses. With "auto", it does not know the
    range.

    >>> import numpy as np
    >>> sizes = np.arange(200.0) % 7
    >>> table = TargetTable({"size": sizes}, Columns.fit({"size": sizes}), 3 * sizes, 0, 0, (), (0.0, 18.0))
    >>> result = run_agent(table, leaves=16, bandwidth=Fraction(1, 8))
    >>> result.agent, result.settings["bandwidth"], len(result.log)
    ('cats', 2.25, 200)
    """
    name = agent or ("auto" if leaves is None and bandwidth is None else "cats")
    entry = AGENTS[name]
    if isinstance(table, KnobTable) and name != "auto":
        raise ParameterError(f"agent must be auto for several targets; {name} sets one knob.", "agent")
    one_knob = (0.0, 1.0) if isinstance(table, KnobTable) else table.actions
    settings = entry.tree_settings(one_knob, leaves=leaves, bandwidth=bandwidth)
    exploration = {} if epsilon is None else {"epsilon": epsilon}
    learner = entry.make(actions=table.actions, seed=seed, **exploration, **settings, **_ranges(losses, rewards))
    run = simulate(learner, table.world(loss), progress=progress)
    log, policy = table.log(run, rewards=rewards is not None), Mapped(agent=learner, features=table.columns)
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
    return list(times.cast(pa.timestamp("us", getattr(times.type, "tz", None)), safe=False).to_pylist())


def _take(column: Column, rows: Any) -> Column:
    if isinstance(column, list):
        return [column[row] for row in np.arange(len(column))[rows].tolist()]
    values: Floats = column[rows]
    return values
