"""Logs from and to data frames of pandas and polars, and Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from manul.errors import ParameterError, require_package
from manul.logs.formats import frame_tables

if TYPE_CHECKING:
    from typing import Self

    import pandas
    import polars
    import pyarrow as pa

    from manul.actions.decision import Within
    from manul.actions.knobs import Knobs
    from manul.contexts.schema import ContextSchema
    from manul.logs.like import DeclaringAgent
    from manul.logs.log import Log


class FrameMixin:
    """The conversions of a log; its columns that are not the log's own are the context.

    `action_range` and `loss_range` or `reward_range` declare the ranges, `knobs` those of several knobs, or `like` all of
    them. Arrow tables and pandas frames keep them, polars frames do not. In data frames, knobs are the columns action.NAME
    and density.NAME.
    """

    if TYPE_CHECKING:

        @property
        def table(self) -> pa.Table:
            """The log as a table."""

        @classmethod
        def from_table(
            cls,
            table: object,
            *,
            action_range: Within | None = None,
            loss_range: Within | None = None,
            reward_range: Within | None = None,
            skip_bad: bool = False,
            knobs: Mapping[str, Any] | Knobs | None = None,
            like: Any = None,
        ) -> Self:
            """Build a log from any table."""

    @classmethod
    def from_arrow(
        cls,
        table: pa.Table,
        *,
        action_range: Within | None = None,
        loss_range: Within | None = None,
        reward_range: Within | None = None,
        skip_bad: bool = False,
        knobs: Mapping[str, Any] | Knobs | None = None,
        like: DeclaringAgent | Log | ContextSchema | None = None,
    ) -> Self:
        """Build a log from an Arrow table; `to_arrow` is the inverse.

        >>> import manul, pyarrow
        >>> table = pyarrow.table({"age": [30, 41], "action": [1, 2], "density": [1, 1], "reward": [0, 1]})
        >>> manul.Log.from_arrow(table).to_arrow().column_names
        ['action', 'density', 'reward', 'age']
        """
        _check_type(table, "to_pydict", "an Arrow table")
        ranges = {"action_range": action_range, "loss_range": loss_range, "reward_range": reward_range}
        options: Any = {**ranges, "skip_bad": skip_bad, "knobs": knobs, "like": like}
        return cls.from_table(table, **options)

    def to_arrow(self) -> pa.Table:
        """The log as an Arrow table with its ranges in the metadata; see `from_arrow` for an example."""
        return frame_tables.stated_table(self.table)

    @classmethod
    def from_pandas(
        cls,
        frame: pandas.DataFrame,
        *,
        action_range: Within | None = None,
        loss_range: Within | None = None,
        reward_range: Within | None = None,
        skip_bad: bool = False,
        knobs: Mapping[str, Any] | Knobs | None = None,
        like: DeclaringAgent | Log | ContextSchema | None = None,
    ) -> Self:
        """Build a log from a pandas data frame, whose index must be plain row numbers; `to_pandas` is the inverse.

        >>> import manul, pandas
        >>> frame = pandas.DataFrame({"age": [30, 41], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
        >>> manul.Log.from_pandas(frame, action_range=(0, 4)).to_pandas().age.tolist()
        [30.0, 41.0]
        """
        _check_type(frame, "set_axis", "a pandas data frame")
        ranges = {"action_range": action_range, "loss_range": loss_range, "reward_range": reward_range}
        options: Any = {**ranges, "skip_bad": skip_bad, "knobs": knobs, "like": like}
        return cls.from_table(frame, **options)

    def to_pandas(self) -> pandas.DataFrame:
        """The log as a pandas data frame; see `from_pandas` for an example."""
        require_package("pandas")
        return frame_tables.to_pandas(self.table)

    @classmethod
    def from_polars(
        cls,
        frame: polars.DataFrame,
        *,
        action_range: Within | None = None,
        loss_range: Within | None = None,
        reward_range: Within | None = None,
        skip_bad: bool = False,
        knobs: Mapping[str, Any] | Knobs | None = None,
        like: DeclaringAgent | Log | ContextSchema | None = None,
    ) -> Self:
        """Build a log from a polars data frame; `to_polars` is the inverse, but does not keep the ranges.

        >>> import manul, polars
        >>> frame = polars.DataFrame({"age": [30, 41], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
        >>> manul.Log.from_polars(frame).to_polars().columns
        ['action', 'density', 'loss', 'age']
        """
        _check_type(frame, "iter_columns", "a polars data frame")
        ranges = {"action_range": action_range, "loss_range": loss_range, "reward_range": reward_range}
        options: Any = {**ranges, "skip_bad": skip_bad, "knobs": knobs, "like": like}
        return cls.from_table(frame, **options)

    def to_polars(self) -> polars.DataFrame:
        """The log as a polars data frame; see `from_polars` for an example."""
        require_package("polars")
        frame: polars.DataFrame = frame_tables.to_polars(self.table)
        return frame


def _check_type(table: Any, method: str, kind: str) -> None:
    if not hasattr(table, method):
        raise ParameterError(
            f"table must be {kind}, got {type(table).__name__}. Use Log.from_table for others.", "table"
        )
