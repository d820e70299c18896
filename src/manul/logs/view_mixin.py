"""The columns of a log as arrays, which are computed when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.knobs import Knobs
from manul.contexts import arrow_values
from manul.contexts.schema import ContextSchema
from manul.contexts.sparse_features import SparseFeatures
from manul.logs.formats import arrays, knob_checks, knob_columns, row_checks
from manul.logs.formats import log_schema as columns
from manul.logs.formats.log_schema import Metadata
from manul.utils.rewards import negate_pair
from manul.utils.validation import Floats

if TYPE_CHECKING:
    import pyarrow as pa

Contexts = npt.NDArray[np.float32]
Fields = dict[str, npt.NDArray[Any]]
_View = TypeVar("_View")


class ViewMixin:
    """The views of a log and what its metadata says; a log made of arrays has them as views from the start."""

    _metadata: Metadata
    _views: dict[str, Any]
    _table: pa.Table | None

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
    def knobs(self) -> Knobs | None:
        """The knobs of the actions, if they have several; otherwise None."""
        return self._metadata.knobs

    @property
    def loss_range(self) -> Within | None:
        """The declared range of the losses, or None."""
        return self._metadata.loss_range

    @property
    def reward_range(self) -> Within | None:
        """The declared range of the rewards, or None; a log of losses has none."""
        span = self._metadata.loss_range
        return negate_pair(span) if span is not None and self._metadata.rewards else None

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
            return self._view("actions", lambda: row_checks.numbers(self.table, "action"))
        return self._view("actions", lambda: self._knob_columns("action"))

    @property
    def densities_by_knob(self) -> dict[str, Floats] | None:
        """The densities of the knobs, as columns by knob, or None."""
        if self.knobs is None:
            return None
        columns: dict[str, Floats] | None = self._view(
            "densities_by_knob", lambda: self._knob_columns("density_by_knob")
        )
        return columns

    @property
    def within(self) -> Sequence[Mapping[str, Any] | None] | None:
        """The narrower ranges of the knobs in each round; None if every round had the whole ranges."""
        return None if self.knobs is None else self._view("within", self._withins)

    def _withins(self) -> Sequence[Mapping[str, Any] | None] | None:
        if self.knobs is None or "within" not in self.table.column_names:
            return None
        return [knob_checks.parse_within(text, self.knobs) for text in self.table["within"].to_pylist()]

    def _knob_columns(self, name: str) -> Any:
        present = self.knobs is not None and name in self.table.column_names
        return knob_columns.columns_of(self.table, name, self.knobs) if present else None  # type: ignore[arg-type]

    @property
    def densities(self) -> Floats:
        """The density of each action when it was drawn."""
        return self._view("densities", lambda: row_checks.numbers(self.table, "density"))

    @property
    def losses(self) -> Floats:
        """The loss of each action."""
        return self._view("losses", lambda: row_checks.numbers(self.table, "loss"))

    @property
    def rewards(self) -> Floats | None:
        """The reward of each action; None if the log has losses."""
        return 0.0 - self.losses if self._metadata.rewards else None

    @property
    def lows(self) -> Floats | None:
        """The lower ends of the ranges of rounds, or None."""
        return self._view("lows", lambda: arrays.optional(self.table, "low"))

    @property
    def highs(self) -> Floats | None:
        """The upper ends of the ranges of rounds, or None."""
        return self._view("highs", lambda: arrays.optional(self.table, "high"))

    @property
    def floors(self) -> Floats | None:
        """The smallest density that the logged policy gave any action of each round, or None; NaN if unknown."""
        return self._view("floors", lambda: arrays.optional(self.table, "floor"))

    @property
    def times(self) -> Floats | None:
        """The time of each decision, in seconds since 1970; NaN if missing."""
        return self._view("times", lambda: arrays.optional(self.table, "time"))

    @property
    def ids(self) -> Sequence[str | None] | None:
        """The id of each decision."""
        return self._view("ids", lambda: self._texts("id"))

    @property
    def arms(self) -> Sequence[str | None] | None:
        """The arm of a rollout that made each decision, "learner" or "baseline", or None."""
        return self._view("arms", lambda: self._texts(columns.ARM))

    def _texts(self, name: str) -> list[str | None] | None:
        return self.table[name].to_pylist() if name in self.table.column_names else None

    def _view(self, name: str, compute: Callable[[], _View]) -> _View:
        if name not in self._views:
            self._views[name] = compute()
        return cast(_View, self._views[name])

    def context_rows(self) -> Iterator[dict[str, Any]]:
        """Each context as a dict; missing values are None.

        >>> import manul
        >>> list(manul.Log(np.ones((1, 2), np.float32), np.ones(1), np.ones(1), np.ones(1)).context_rows())
        [{'0': 1.0, '1': 1.0}]
        """
        layout = columns.context_layout(self.table.schema)
        if layout == "columns":
            named = {columns.field_name(name): self.table[name] for name in columns.user_columns(self.table.schema)}
            values = map(arrow_values.values, named.values())
            yield from (dict(zip(named, row, strict=True)) for row in zip(*values, strict=True))
        elif layout == "dense":
            for row in self.contexts.tolist():
                yield {str(index): value for index, value in enumerate(row)}
        else:
            names = self._metadata.names
            for context in self.table["context"].to_pylist():
                pairs = zip(context["index"], context["value"], strict=True)
                yield {names[index] if names else str(index): value for index, value in pairs}
