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
    """The names of the columns; the stream is then at the first row.

    >>> import io
    >>> header(io.BytesIO(b"% words\\n@relation r\\n@attribute 'a b' numeric\\n@attribute c {x,y}\\n@data\\n1,x\\n"), Path("r.arff"))
    ['a b', 'c']
    """
    names: list[str] = []
    for line in iter(stream.readline, b""):
        text = line.decode("utf-8", errors="replace").strip()
        if text.lower().startswith("@data"):
            return names
        if text.lower().startswith("@attribute"):
            found = _ATTRIBUTE.match(text)
            if found is None:
                raise FileError(f"{path} must have lines '@attribute name type'; got {text[:60]!r}. Save it again.")
            names.append(_unquoted(found[1]))
    raise FileError(f"{path} must have a line @data; got none. Check that it is a whole ARFF file.")


def rows(stream: IO[bytes], names: list[str], path: Path) -> pa.Table:
    """The rows after the header, every cell as text."""
    import pyarrow as pa
    from pyarrow import csv

    body = b"\n".join(
        line for line in stream.read().splitlines() if line.strip() and not line.lstrip().startswith(b"%")
    )
    if body.lstrip()[:1] == b"{":
        raise FileError(f"{path} must have one cell per column in every row; got sparse rows. Convert it to CSV.")
    return csv.read_csv(
        pa.py_buffer(body + b"\n"),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(quote_char="'" if b"'" in body else '"'),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )


def _unquoted(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] in "'\"" else name
