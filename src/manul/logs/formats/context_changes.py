"""What a log changes in contexts: dates and flags become numbers, lists of texts become columns, absent fields missing values.

A log notes these changes, so that agents get flags and absent fields back as they were, and so that results on contexts
that had dates or lists are not trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manul.contexts.dates import DATE
from manul.contexts.records import is_missing

if TYPE_CHECKING:
    import pyarrow as pa

DATES, FLAGS, LISTS = "date", "flag", "list"


@dataclass(frozen=True)
class ContextChanges:
    """The fields that had another type, by name, and those whose gaps are absent fields."""

    converted: Mapping[str, str]
    absent: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """The changes in JSON values; `from_description` is the inverse."""
        return {"absent": [*self.absent], "converted": {**self.converted}}

    @staticmethod
    def from_description(description: Mapping[str, Any]) -> ContextChanges:
        """The changes of a description; raises ValueError or TypeError if it is none.

        >>> ContextChanges.from_description(ContextChanges({"at": "date"}).describe())
        ContextChanges(converted={'at': 'date'}, absent=())
        """
        changes = ContextChanges(dict(description["converted"]), tuple(description["absent"]))
        if not all(isinstance(text, str) for text in (*changes.absent, *changes.converted.values())):
            raise TypeError
        return changes


def join_changes(changes: Iterable[ContextChanges | None]) -> ContextChanges | None:
    """The changes of several logs; None if there are none.

    >>> join_changes([ContextChanges({"at": "date"}), None, ContextChanges({}, ("age",))])
    ContextChanges(converted={'at': 'date'}, absent=('age',))
    """
    every = [each for each in changes if each is not None]
    converted = {name: kind for each in every for name, kind in each.converted.items()}
    absent = tuple(dict.fromkeys(name for each in every for name in each.absent))
    return ContextChanges(converted, absent) if converted or absent else None


def absent_fields(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The fields that some rows lack; not those with missing values, which are told from absent ones no more.

    >>> absent_fields([{"age": 31, "city": None}, {"sky": "grey"}])
    ('age', 'sky')
    """
    names = dict.fromkeys(name for row in rows for name in row)
    lacking = [name for name in names if sum(name in row for row in rows) < len(rows)]
    return tuple(name for name in lacking if not any(is_missing(row[name]) for row in rows if name in row))


def converted_types(schema: pa.Schema) -> dict[str, str]:
    """The columns of a table that become numbers in a log.

    >>> import pyarrow as pa
    >>> converted_types(pa.schema([("at", pa.date32()), ("vip", pa.bool_()), ("age", pa.float64())]))
    {'at': 'date', 'vip': 'flag'}
    """
    import pyarrow as pa

    converted = {}
    for field in schema:
        if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type) or is_json_date(field.type):
            converted[field.name] = DATES
        elif pa.types.is_boolean(field.type):
            converted[field.name] = FLAGS
    return converted


def is_json_date(given: pa.DataType) -> bool:
    """Return whether a column has dates in the form of JSON."""
    import pyarrow as pa

    return pa.types.is_struct(given) and [part.name for part in given] == [DATE]


class FieldNotes:
    """Notes the fields of contexts one by one, with the types that are not kept.

    >>> notes = FieldNotes()
    >>> for context in ({"age": 31, "vip": True}, {"vip": None}, {"vip": False}):
    ...     notes.add(context, {name: "flag" for name, value in context.items() if isinstance(value, bool)})
    >>> notes.changes()
    ContextChanges(converted={'vip': 'flag'}, absent=('age',))
    """

    def __init__(self) -> None:
        self._rows, self._missing, self._converted = 0, set[str](), dict[str, str]()
        self._present, self._kept = dict[str, int](), set[str]()

    def add(self, context: Mapping[str, Any], converted: Mapping[str, str]) -> None:
        """Add a context, with the fields in it that had another type."""
        self._rows += 1
        self._converted |= converted
        for name, value in context.items():
            self._present[name] = self._present.get(name, 0) + 1
            if value is None:
                self._missing.add(name)
            elif name not in converted:
                self._kept.add(name)

    def changes(self) -> ContextChanges | None:
        """What a log of these contexts changes; a field is a flag only if all of its values are."""
        absent = [name for name, count in self._present.items() if count < self._rows and name not in self._missing]
        kinds = self._converted.items()
        converted = {name: kind for name, kind in kinds if kind != FLAGS or name not in self._kept}
        return join_changes([ContextChanges(converted, tuple(absent))])
