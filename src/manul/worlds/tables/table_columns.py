"""The columns of a user's table: numeric or text, with missing values."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.contexts import data_frames
from manul.errors import FileError, InputError, ParameterError, missing_file, remedy
from manul.logs.formats.csv import MISSING
from manul.logs.formats.text_lines import is_gzipped, open_bytes
from manul.utils.foreign import can, is_pandas_frame
from manul.utils.validation import Floats
from manul.worlds.tables import arff, vw_examples
from manul.worlds.tables.written_numbers import is_written_number

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".csv", ".tsv", ".parquet", ".arff", ".vw")
EXCEL = (".xls", ".xlsx")
MOST_NAMED = 20  # columns that an error message lists


def read_columns(path: str | Path) -> dict[str, pa.Array]:
    """Read CSV, Parquet, ARFF or Vowpal Wabbit's text, each optionally with .gz, as arrays of float64 or text by name."""
    return read_table(path)[1]


def read_table(path: str | Path, suffix: str | None = None) -> tuple[pa.Table, dict[str, pa.Array]]:
    """Read a file as an Arrow table, with texts as they are, and its columns as `read_columns` gives them.

    The format is that of `suffix`; without one, that of the file.
    """
    import pyarrow as pa

    source = Path(path)
    suffix = suffix or suffix_of(source)
    if not source.is_file():
        raise missing_file(source)
    try:
        table: pa.Table = _READERS[suffix](source)
        return table, columns(table)
    except UnicodeDecodeError as error:
        raise FileError(f"{source}: the header is not UTF-8 text. Save the file as UTF-8.") from error
    except (pa.ArrowException, EOFError, OSError) as error:
        reason = str(error).splitlines()[0][:200]
        raise FileError(f"{source}: not a valid {suffix} file: {reason.rstrip('.')}.") from error


def columns(table: Any) -> dict[str, pa.Array]:
    """Convert the columns of an Arrow table, a data frame or a mapping of lists to float64 or text."""
    import pyarrow as pa

    if not isinstance(table, pa.Table):
        table = table.to_arrow() if can(table, "to_arrow") else _from_frame(table)
    names = table.column_names
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise InputError(f"columns must have different names, got {duplicate!r} twice.", "columns")
    return {name: _convert(name, table.column(name)) for name in names}


def numbers_of(column: pa.Array) -> Floats:
    """A numeric column as an array, with NaN for missing values."""
    numbers: Floats = column.fill_null(float("nan")).to_numpy(zero_copy_only=False)
    return numbers


def target_numbers(cells: Mapping[str, pa.Array], target: str, name: str) -> Floats:
    """The target column of a table, with NaN for missing values."""
    import pyarrow as pa

    if target not in cells:
        advice = remedy(target, cells, f"It has {', '.join(list(cells)[:MOST_NAMED])}.")
        raise ParameterError(f"target must be a column of {name}, got {target!r}. {advice}", "target")
    if not len(cells[target]):
        raise FileError(f"table {name} has no rows.")
    if pa.types.is_string(cells[target].type):
        row, text = _first_text(cells[target])
        advice = " Write plain numbers, like 20740 or 9.5." if is_written_number(text) else ""
        raise InputError(f"target {target!r} of {name} must be numeric, got {text!r} in row {row}.{advice}", "target")
    outcomes = numbers_of(cells[target])
    if not np.isfinite(outcomes).any():
        raise InputError(f"target {target!r} of {name} has no values.", "target")
    return outcomes


def suffix_of(path: Path, *, selectable: bool = False) -> str:
    """The format of a file, from its name; `selectable` says whether the caller could also select it.

    >>> suffix_of(Path("shop.CSV.gz"))
    '.csv'
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in SUFFIXES:
        problem = f"{path} must end with {', '.join(SUFFIXES)}, optionally with .gz, got {suffix!r}."
        close = get_close_matches(suffix, SUFFIXES, n=1)
        if suffix in EXCEL or close:
            raise ParameterError(
                f"{problem} {f'Did you mean {close[0]}?' if close else 'Save it as CSV first.'}", "path"
            )
        way = "use suffix='.vw' or another" if selectable else "rename it"
        raise ParameterError(f"{problem} If it is in one of these formats, {way}; otherwise convert it.", "path")
    return suffix


def _first_text(column: pa.Array) -> tuple[int, str]:
    for row, text in enumerate(column.to_pylist(), start=1):
        try:
            float(text if text is not None else 0)
        except ValueError:
            return row, text
    return 1, str(column[0])


def _from_frame(table: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(table, Mapping):
        try:
            return pa.table({str(name): pa.array(values) for name, values in table.items()})
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(
                f"columns must be lists of numbers or text of equal length: {str(error).rstrip('.')}.", "columns"
            ) from error
    if is_pandas_frame(table):
        return pa.Table.from_pandas(table, preserve_index=False)
    if data_frames.is_table(table):
        return data_frames.arrow_table(table)
    raise InputError(
        f"table must be a file, a data frame or a mapping of columns, got {type(table).__name__}.", "table"
    )


def _read_csv(path: Path) -> pa.Table:
    """Read CSV with Arrow, which is ten times as fast as the reader of logs but does not report the line of a bad row."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    with open_bytes(path) as stream:
        header = stream.readline().decode("utf-8-sig")
    delimiter = max(",;\t", key=header.count)
    names = [
        name.strip() or f"column {index}"
        for index, name in enumerate(next(csv.reader([header], delimiter=delimiter), []))
    ]
    with open_bytes(path) as stream:
        return arrow.read_csv(
            stream,
            arrow.ReadOptions(column_names=names, skip_rows=1),
            arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )


def _read_arff(path: Path) -> pa.Table:
    with open_bytes(path) as stream:
        return arff.rows(stream, arff.header(stream, path), path)


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    with open_bytes(path) as stream:
        return parquet.read_table(pa.BufferReader(stream.read()) if is_gzipped(path) else stream)


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".arff": _read_arff,
    ".vw": vw_examples.examples,
}


def _convert(name: str, column: pa.ChunkedArray) -> pa.Array:
    """Convert a column to float64 or text; times become seconds since 1970, infinities missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        array = pc.divide(array.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).cast(pa.float64()), 1e6)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _numbers_or_text(array.cast(pa.string()))
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise InputError(f"column {name!r} must be numbers or text, got {kind}.", name)
    numbers = array.cast(pa.float64(), safe=False)
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))


def _numbers_or_text(texts: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(texts)
    values = pc.if_else(
        pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(sorted(MISSING))), pa.scalar(None, pa.string()), trimmed
    )
    try:
        numbers = values.cast(pa.float64())
    except pa.ArrowInvalid:
        return values
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))
