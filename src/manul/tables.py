"""Tables as people have them: CSV, Parquet, ARFF and Vowpal Wabbit's text, columns by name.

A column is numbers if all its cells are, and else texts; an empty cell, `NA`, `?` and the like are gaps.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.closest import remedy
from manul.errors import FileError, ParameterError
from manul.formats import lines as files
from manul.formats import vw
from manul.formats.problems import BadRow, Problems, shown
from manul.formats.rows import number
from manul.types import Floats

if TYPE_CHECKING:
    import pyarrow as pa

Column = Floats | list[str | None]
Table = dict[str, Column]
SUFFIXES = (".csv", ".tsv", ".parquet", ".arff", ".vw")
LABEL = "label"
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "none")
_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'([^']*)'|"([^"]*)"|(\S+))\s+\S""", re.IGNORECASE)


def read(path: str | Path) -> Table:
    """The columns of a file, in its order: numbers with nan for gaps, or texts with None for them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "three.csv").write_text("size,kind\\n1,a\\n,b\\n3,\\n")
    ...     read(Path(folder, "three.csv"))
    {'size': array([ 1., nan,  3.]), 'kind': ['a', 'b', None]}
    """
    source = Path(path)
    suffix = Path(source.name.lower().removesuffix(".gz")).suffix
    if suffix not in SUFFIXES:
        advice = remedy(suffix, SUFFIXES, "Rename it to say what it is.")
        raise ParameterError(
            f"{source} must end with {', '.join(SUFFIXES)}, or one of these and .gz; got {suffix!r}. {advice}"
        )
    with files.opened(source):
        pass
    reader = {".parquet": _parquet, ".arff": _arff, ".vw": _vw}.get(suffix, _csv)
    table = reader(source)
    if not table or not len(next(iter(table.values()))):
        raise FileError(f"{source} must have at least one row; got none. Check the file.")
    return table


def column(table: Table, name: str, path: str | Path, what: str = "target") -> Column:
    """One column; refuses a name that is not there.

    >>> column({"price": ["9"]}, "prise", "cars.csv")
    Traceback (most recent call last):
    manul.errors.ParameterError: target must be a column of cars.csv; got 'prise'. Did you mean price?
    """
    if name not in table:
        advice = remedy(name, table, f"It has {', '.join(list(table)[:20])}.")
        raise ParameterError(f"{what} must be a column of {path}; got {name!r}. {advice}")
    return table[name]


def _csv(path: Path) -> Table:
    import pyarrow as pa
    from pyarrow import csv as arrow

    problems = Problems(path)
    _, header = next(files.lines(problems), (0, ""))
    if not header.strip():
        return {}
    delimiter = max(",;\t", key=header.count)
    names = _names(path, next(csv.reader([header], delimiter=delimiter), []))
    options = arrow.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), null_values=MISSING, strings_can_be_null=True
    )
    try:
        with files.opened(path) as file:
            table = arrow.read_csv(
                file,
                arrow.ReadOptions(column_names=names, skip_rows=1),
                arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                options,
            )
    except (pa.ArrowInvalid, EOFError, OSError) as error:
        raise FileError(f"{path} must be a whole CSV table; got another ({shown(error)}). Mend that row.") from None
    return {name: _column(table.column(name)) for name in names}


def _parquet(path: Path) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with files.opened(path) as file:
            table = parquet.read_table(pa.BufferReader(file.read()))
    except (pa.ArrowInvalid, EOFError, OSError) as error:
        Problems(path).damaged("Parquet file", error)
    return {name: _column(table.column(place)) for place, name in enumerate(_names(path, table.column_names))}


def _arff(path: Path) -> Table:
    import pyarrow as pa

    source, names = files.lines(Problems(path)), []
    for _, line in source:
        if line.strip().lower().startswith("@data"):
            break
        found = _ATTRIBUTE.match(line.strip())
        if found:
            names.append(next(group for group in found.groups() if group is not None))
    columns: list[list[str | None]] = [[] for _ in _names(path, names)]
    for row, cells in _arff_rows(source):
        if len(cells) != len(names):
            raise FileError(
                f"{path}, row {row}, must have {len(names)} values, as many as attributes; got {len(cells)}. Mend it."
            )
        for cell, values in zip(cells, columns, strict=True):
            values.append(None if cell in MISSING else cell)
    return {name: _column(pa.chunked_array([pa.array(v, pa.string())])) for name, v in zip(names, columns, strict=True)}


def _arff_rows(source: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    for row, line in source:
        text = line.strip()
        if text and not text.startswith("%"):
            quote = '"' if '"' in text else "'"
            (cells,) = csv.reader([text], quotechar=quote, skipinitialspace=True)
            yield row, [cell.strip() for cell in cells]


def _vw(path: Path) -> Table:
    """Regression examples, `label |space name:value ...`; a feature that a row does not name is 0."""
    labels: list[float] = []
    rows: list[dict[str, float]] = []
    for row, line in files.lines(Problems(path)):
        head, *spaces = line.rstrip("\r\n").replace("\t", " ").split("|")
        if not line.strip():
            continue
        words = head.split()
        if words[:1] == ["ca"]:
            raise FileError(f"{path} must be a table of labels and features; got a log. Try manul optimize.")
        try:
            labels.append(number(LABEL, words[0] if words else None) or 0.0)
            rows.append(vw.context_of(spaces))
        except BadRow as bad:
            Problems(path).report(row, bad.column, bad.rule, bad.got)
    names = list(dict.fromkeys(name for features in rows for name in features))
    place = {name: at for at, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)))
    for at, features in enumerate(rows):
        matrix[at, [place[name] for name in features]] = list(features.values())
    return {LABEL: np.array(labels), **{name: matrix[:, at] for at, name in enumerate(names) if name != LABEL}}


def _names(path: Path, given: Sequence[str]) -> list[str]:
    names = [name.strip() or f"column {place}" for place, name in enumerate(given)]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise FileError(f"{path} must have each column once; got {doubled!r} twice. Rename one of them.")
    return names


def _column(values: pa.ChunkedArray) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    plain = values.cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        plain = pc.divide(plain.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).cast(pa.float64()), 1e6)
    elif pa.types.is_boolean(kind):
        plain = plain.cast(pa.int8())
    try:
        numbers: Any = pc.cast(pc.utf8_trim_whitespace(plain) if _is_text(kind) else plain, pa.float64(), safe=False)
        return np.asarray(numbers.to_numpy(), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts: list[str | None] = [None if value is None else str(value) for value in plain.to_pylist()]
        return texts


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
