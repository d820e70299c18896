"""ARFF, the format of OpenML: a header of `@attribute name type` lines, then `@data` and rows as in CSV."""

from __future__ import annotations

import re
from pathlib import Path
from typing import IO, TYPE_CHECKING

from manul.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)\s+\S""", re.IGNORECASE)


def header(stream: IO[bytes], path: Path) -> list[str]:
    """Read the names of the columns, up to the first row of data."""
    names: list[str] = []
    for line in iter(stream.readline, b""):
        text = line.decode("utf-8", errors="replace").strip()
        if text.lower().startswith("@data"):
            return names
        if text.lower().startswith("@attribute"):
            match = _ATTRIBUTE.match(text)
            if match is None:
                raise FileError(f"{path}: expected '@attribute name type', got {text[:60]!r}.")
            names.append(_unquote(match[1]))
    raise FileError(f"{path}: no @data line; the file is incomplete or not in ARFF format.")


def rows(stream: IO[bytes], names: list[str], path: Path) -> pa.Table:
    """Read the rows after the header, with every cell as text."""
    import pyarrow as pa
    from pyarrow import csv

    body = b"\n".join(
        line for line in stream.read().splitlines() if line.strip() and not line.lstrip().startswith(b"%")
    )
    if body.lstrip()[:1] == b"{":
        raise FileError(f"{path}: sparse ARFF rows are not supported. Convert the file to CSV.")
    return csv.read_csv(
        pa.py_buffer(body + b"\n"),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(quote_char="'" if b"'" in body else '"'),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )


def _unquote(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] in "'\"" else name
