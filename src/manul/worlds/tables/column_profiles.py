"""What a user should know about the columns of a table: their types, and values that are probably not what they seem."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.contexts.table_encoding import LEVELS, MISSING, Text
from manul.contexts.time_encoding import ISO, date_layouts
from manul.worlds.tables.written_numbers import PLAIN, WrittenNumbers, find_numbers, is_written_number

if TYPE_CHECKING:
    import pyarrow as pa

# Read as missing values without a warning, because programs write them; people write the others.
_QUIET = frozenset(("", "?", "na", "nan", "null", "none"))
_NOT_AVAILABLE = frozenset(("n/a", "n.a.", "n.a", "#n/a", "#na", "<na>", "n\\a"))
_DASHES = frozenset(("-", "--", "---", "\u2013", "\u2014", ".", ".."))
_WORDS = frozenset(("unknown", "missing", "not available", "nil", "(null)", "undefined", "#value!", "#div/0!"))
_SENTINELS = (-999.0, -9999.0, -99999.0)
_CODE = re.compile(r"0\d{2,}")
_KEY = re.compile(r"(^|[\W_])(id|uuid|guid|key|index)$|[a-z]I[dD]$", re.IGNORECASE)
LEAST_ROWS = 20  # in fewer rows, values are often all different by chance


@dataclass(frozen=True)
class Column:
    """The type of a column, an example, the format of its dates if it has some, and warnings, each one sentence."""

    name: str
    kind: str
    example: str
    levels: int | None = None
    layout: str | None = None
    warnings: tuple[str, ...] = ()
    grouped: int = 0  # values that are encoded as one, because others are more common

    @property
    def summary(self) -> str:
        """The type in words."""
        if self.levels is None:
            return self.kind
        grouped = f", {self.grouped:,} as other" if self.grouped else ""
        return f"{self.kind}, {self.levels:,} value{'' if self.levels == 1 else 's'}{grouped}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.kind,
            "example": self.example,
            "values": self.levels,
            "grouped": self.grouped,
        }


def profile(
    raw: pa.Table,
    cells: Mapping[str, pa.Array],
    targets: Sequence[str] = (),
    used: npt.NDArray[np.bool_] | None = None,
) -> tuple[Column, ...]:
    """Profile the columns of a table, given as it was read and after conversion to numbers and texts.

    `used` are the rows to which the encoding of texts is fitted; all by default.
    """
    first = next(iter(cells), None)
    return tuple(
        _Cells(name, raw.column(name), cell, name in targets, name == first, used).column()
        for name, cell in cells.items()
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of a column: as they are in the file, and after conversion."""

    name: str
    raw: pa.ChunkedArray
    converted: pa.Array
    is_target: bool
    is_first: bool
    used: npt.NDArray[np.bool_] | None = None

    @cached_property
    def texts(self) -> Counter[str]:
        """The number of rows of each text in the file; empty if the file has other values."""
        if str(self.raw.type) not in ("string", "large_string", "string_view"):
            return Counter()
        counts: Counter[str] = Counter()
        for each in self.raw.value_counts().to_pylist():
            counts[(each["values"] or "").strip()] += each["counts"]
        return counts

    @cached_property
    def known(self) -> list[str]:
        """The texts that are not read as missing values, the most common ones first."""
        return [text for text, _ in self.texts.most_common() if text.lower() not in (*_QUIET, "n/a")]

    @property
    def is_text(self) -> bool:
        return str(self.converted.type) == "string"

    def column(self) -> Column:
        layouts = self._date_layouts()
        has_times = str(self.raw.type).startswith(("timestamp", "date"))
        kind = "date" if layouts or has_times else "text" if self.is_text else "number"
        layout = layouts[0] if len(layouts) == 1 else ISO if has_times else None
        if len(layouts) > 1:
            kind = "text"
        levels = self.converted.drop_null().unique() if kind == "text" else None
        warnings = tuple(
            self._date_warnings(layouts, has_times=has_times) if layouts or has_times else self._warnings()
        )
        count, grouped = None if levels is None else len(levels), len(self.grouped) if kind == "text" else 0
        return Column(self.name, kind, self._example(), count, layout, warnings, grouped)

    @cached_property
    def grouped(self) -> Counter[str]:
        """The number of rows of each text that is encoded as one of the others; a missing text is a text, too."""
        if self.is_target or not self.is_text:
            return Counter()
        import pyarrow as pa

        values = self.converted if self.used is None else self.converted.filter(pa.array(self.used))
        counts = Counter({each["values"] or MISSING: each["counts"] for each in values.value_counts().to_pylist()})
        kept = {*Text.from_counts(self.name, counts, LEVELS).levels}
        return Counter({text: rows for text, rows in counts.items() if text not in kept})

    def _example(self) -> str:
        first = next(
            (value for value in self.raw.slice(0, 1000).to_pylist() if value is not None and str(value).strip()), ""
        )
        text = " ".join(f"{first:.6g}".split()) if isinstance(first, float) else " ".join(str(first).split())
        return text if len(text) <= 40 else f"{text[:39]}…"

    def _date_layouts(self) -> list[str]:
        return date_layouts(self.known) if self.is_text and self.known else []

    def _date_warnings(self, layouts: list[str], *, has_times: bool) -> Iterator[str]:
        example = self._example()
        if len(layouts) > 1:
            yield (
                f"column {self.name!r} has dates such as {example!r}, but day and month cannot be told apart, so it is "
                "read as text. Write dates like 2024-02-29."
            )
        elif layouts or has_times:
            yield (
                f"column {self.name!r} has dates such as {example!r}, which are used as days since 1970, month, weekday "
                "and, if they have times, the hour."
            )

    def _warnings(self) -> Iterator[str]:
        marker = self._marker()
        others = {text: self.texts[text] for text in self.known if text != marker}
        numbers = find_numbers(others) if self.is_text else None
        if numbers is not None and (numbers.others or not PLAIN.fullmatch(numbers.example)):
            yield self._numbers_warning(numbers)
        if marker is not None:
            yield self._marker_warning(marker, are_numbers=numbers is not None)
        if infinite := self._infinite_rows():
            rows = f"{infinite:,} row{'' if infinite == 1 else 's'}"
            yield f"column {self.name!r} has infinite numbers in {rows}, which are read as missing values."
        code = next((text for text in self.known if _CODE.fullmatch(text)), None)
        if code is not None and not self.is_text and not self.is_target:
            yield (
                f"column {self.name!r} has leading zeros, as in {code!r}, but is read as numbers, which have none. If it "
                f"is a code, write it with a letter, like {'c' + code!r}."
            )
        if not self.is_target and numbers is None and self._is_identifier():
            yield f"column {self.name!r} has a different value in every row, so it looks like an identifier. Remove it."
        elif self.grouped and numbers is None:
            yield self._grouped_warning()

    def _grouped_warning(self) -> str:
        count, rows = len(self.grouped), self.grouped.total()
        return (
            f"column {self.name!r} has {count + LEVELS:,} different values. The {LEVELS} most common ones are told apart; the other "
            f"{count:,}, in {rows:,} row{'' if rows == 1 else 's'}, are read as one value. If they matter, replace the column by one "
            "with fewer values, such as a region instead of a city."
        )

    def _infinite_rows(self) -> int:
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.is_text or self.is_target:
            return 0
        if pa.types.is_floating(self.raw.type):
            return int(pc.sum(pc.is_inf(self.raw)).as_py() or 0)
        return sum(rows for text, rows in self.texts.items() if text.lower().lstrip("+-") in ("inf", "infinity"))

    def _numbers_warning(self, numbers: WrittenNumbers) -> str:
        advice = f"plain numbers{' in one unit' if numbers.units > 1 else ''}, like 20740 or 9.5"
        if not numbers.others:
            return (
                f"column {self.name!r} has numbers stored as text, such as {numbers.example!r}, and is read as text. "
                f"Write {advice}."
            )
        return (
            f"column {self.name!r} has numbers in {numbers.rows:,} of {len(self.raw):,} rows, such as {numbers.example!r}, but is "
            f"read as text; other cells have texts such as {numbers.others[0]!r}. If it is a quantity, write {advice}, and leave "
            "the other cells empty."
        )

    def _marker(self) -> str | None:
        """The text that most likely marks missing values: in a column of numbers any, in one of texts a clear one."""
        candidates = [text for text in self.texts if text.lower() in _NOT_AVAILABLE | _DASHES | _WORDS]
        for text in sorted(candidates, key=lambda each: -self.texts[each]):
            others = [each for each in self.known if each not in candidates]
            numbers = bool(others) and all(map(is_written_number, others))
            longer = text in _DASHES and bool(others) and all(len(each) > 2 for each in others)
            if numbers or text.lower() in _NOT_AVAILABLE or longer:
                return text
        if not self.is_text and len(self.converted):
            numbers_here = self.converted.drop_null().to_numpy(zero_copy_only=False)
            lowest = float(numbers_here.min()) if len(numbers_here) else 0.0
            rest = numbers_here[numbers_here != lowest]
            if lowest in _SENTINELS and len(rest) and rest.min() >= 0:
                return f"{lowest:g}"
        return None

    def _marker_warning(self, marker: str, *, are_numbers: bool) -> str:
        rows = self.texts[marker] or int(np.sum(self.converted.to_numpy(zero_copy_only=False) == float(marker)))
        count = f"{rows:,} row{'' if rows == 1 else 's'}"
        if marker.lower() == "n/a":
            return f"column {self.name!r} has {marker!r} in {count}, which is read as a missing value."
        read = "a number" if not self.is_text else "text, and so are the numbers" if are_numbers else "text"
        return (
            f"column {self.name!r} has {marker!r} in {count}, probably for missing values, but it is read as {read}. "
            "Leave such cells empty."
        )

    def _is_identifier(self) -> bool:
        values, rows = self.converted, len(self.converted)
        if rows < LEAST_ROWS or values.null_count or len(values.unique()) < rows:
            return False
        if self.is_text:
            return True
        numbers = values.to_numpy(zero_copy_only=False)
        whole = bool((numbers == np.floor(numbers)).all())
        counted = self.is_first and numbers.min() in (0, 1) and numbers.max() - numbers.min() == rows - 1
        return whole and (bool(counted) or bool(_KEY.search(self.name)))
