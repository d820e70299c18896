"""Contexts of a table or log in a file, for the effects of a policy's features."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from manul import _core
from manul.agents import Mapped
from manul.agents.base import BaseAgent
from manul.agents.player_host import host_of
from manul.contexts.maps import Columns
from manul.errors import InputError
from manul.inspection.context_table import ContextTable, context_table
from manul.logs.log import Log
from manul.worlds.tables.table_columns import SUFFIXES, read_table
from manul.worlds.tables.vw_examples import is_log

LOG_COLUMNS = {"action", "density"}  # a table with both is a log
_CONVERSIONS: dict[_core.Kind, Callable[[Any], Any]] = {
    _core.Kind.text: lambda value: f"{value:g}" if isinstance(value, float) else str(value),
    _core.Kind.flag: lambda value: str(value).lower() in ("true", "1", "1.0", "yes"),
    _core.Kind.time: lambda value: datetime.fromtimestamp(value, UTC) if isinstance(value, float) else value,
}


def read_contexts(path: str | Path, policy: Any, file_format: str | None = None) -> ContextTable:
    """The contexts in a table or log: the columns that the policy uses, with values of the types that it knows.

    The format is that of the suffix, or the one of this name.
    """
    table = context_table(_columns_or_log(Path(path), file_format))
    used = _used_columns(policy)
    if used is None:
        return table
    if not used.keys() & table.columns.keys():
        rule = f"must have columns that the policy uses: {', '.join(sorted(used)[:12])}"
        raise InputError(f"{path}: {rule}; got {', '.join(list(table.columns)[:12])}.", "data")
    known = table.only(used)
    converted = {name: _convert(column, used[name]) for name, column in known.columns.items()}
    return ContextTable(converted, known.named)


def _columns_or_log(path: Path, file_format: str | None) -> Any:
    """The columns of a table, or a log: a file in a format of logs only, or one with the columns of a log."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix if file_format is None else f".{file_format}"
    if suffix not in SUFFIXES or (suffix == ".vw" and is_log(path)):
        return Log.read(path, format=file_format)
    columns = {name: column.to_pylist() for name, column in read_table(path, suffix)[1].items()}
    return Log.read(path, format=file_format) if columns.keys() >= LOG_COLUMNS else columns


def _used_columns(policy: Any) -> dict[str, _core.Kind | None] | None:
    """The fields that a policy has seen, with their types; None if it takes rows of numbers, or any fields."""
    if isinstance(policy, Mapped) and isinstance(policy.features, Columns):
        return {column.name: None for column in policy.features.columns}
    host = host_of(policy) if isinstance(policy, BaseAgent) else None
    return (dict(host.native.fields) or None) if host is not None and host.seen.named else None


def _convert(column: list[Any], kind: _core.Kind | None) -> list[Any]:
    convert = _CONVERSIONS.get(kind) if kind is not None else None
    return column if convert is None else [None if value is None else convert(value) for value in column]
