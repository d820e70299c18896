"""The tables of a store as rows, for backups: the same names and columns for every store, whatever tables it uses itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from manul.service.store import Counts
from manul.service.store.reading import HISTORY
from manul.utils.registry import Registry

Value = bool | int | float | str | bytes | None
Row = tuple[Value, ...]
COUNTS = ("loop", *Counts.__struct_fields__)
# The tables of a backup, and the columns that order their rows. Loops come first, because the others refer to them.
KEYS = {"loops": "number", "counts": "loop", "firsts": "loop"} | {name: f"loop, {key}" for name, key in HISTORY.items()}


# Why nothing is restored, if not all loops are restored and if they are.
ALREADY = ("the loop {loop!r}. Delete it first.", "loops. Restore to a new store, or one of them with --loop.")


class Tables(Protocol):
    """The tables of a store at one moment, to be read, or those to be filled in one transaction; `version` is that of the
    schema."""

    store: str
    version: int

    def columns(self, table: str) -> list[str]:
        """The columns of a table."""

    def rows(self, table: str) -> Generator[Row, None, None]:
        """The rows of a table in the order of its key, without those of deleted loops."""

    def last_loop(self) -> int:
        """The highest number of a loop so far, also of deleted ones."""

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert rows; columns that are not given get their defaults."""

    def set_last_loop(self, number: int) -> None:
        """Give new loops higher numbers than this."""


class TableAccess(NamedTuple):
    """How the tables of a store at an address are read and written, both context managers, and brought to the current version.

    What was written is durable after the block of `writing`; if it raises, the store is as it was before. `writing` is for a
    store without loops or, if it is given the name of a loop, for one without this loop.
    """

    reading: Callable[[str], AbstractContextManager[Tables]]
    writing: Callable[[str, str | None], AbstractContextManager[Tables]]
    # Returns the version before and after; None if the store has no versions.
    migrating: Callable[[str], tuple[int, int]] | None = None


TABLES = Registry[TableAccess]("store of a backup", "manul.service.store", suggestion="decisions.db")


def selection(table: str, columns: Iterable[str]) -> str:
    existing = "" if table == "loops" else " WHERE loop IN (SELECT number FROM loops)"
    return f"SELECT {', '.join(columns)} FROM {table}{existing} ORDER BY {KEYS[table]}"


def converters(types: Iterable[str]) -> list[Callable[[Value], Value]]:
    """Functions that convert values of any store to SQL types: stores differ in how they keep texts and booleans."""
    return [CONVERSIONS.get(each.lower(), _as_it_is) for each in types]


def _as_it_is(value: Value) -> Value:
    return value


def _text(value: Value) -> Value:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _bytes(value: Value) -> Value:
    return value.encode() if isinstance(value, str) else value


def _boolean(value: Value) -> Value:
    return bool(value) if isinstance(value, int) else value


CONVERSIONS = {"text": _text, "blob": _bytes, "bytea": _bytes, "boolean": _boolean}
