"""Vowpal Wabbit's text: `ca action:cost:density 'id|namespace name:value name ...`.

A feature of a namespace is called `namespace^name`, as Vowpal Wabbit's own audit calls it; one that a row does not name
is 0. Signs that Vowpal Wabbit cannot have in a name are written as %20 and so on.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from manul.errors import FileError
from manul.logs.formats import Piece
from manul.logs.formats.file_errors import BadRow, Problems
from manul.logs.formats.row_tables import Row, number, read_rows
from manul.logs.formats.text_columns import decision_columns, feature_rows
from manul.logs.formats.text_lines import Output, lines

if TYPE_CHECKING:
    import pyarrow as pa

SIGNS = re.compile(r"[% \t\n\r:|]")
CODES = re.compile(r"%(25|20|09|0A|0D|3A|7C)")


def read(problems: Problems, size: int) -> Iterator[Piece]:
    """The rows of a file in pieces."""
    return read_rows(problems, size, parse, lines)


def parse(line: str) -> Row | None:
    """One row; None for an empty line.

    >>> parse("ca 21.4:0.3:0.24 'a7|weather cold wind:3 |user age:30")
    Row(action=21.4, density=0.24, loss=0.3, optional={'id': 'a7'},
        context={'weather^cold': 1.0, 'weather^wind': 3.0, 'user^age': 30.0}, nested=True)
    """
    if not line.strip():
        return None
    head, *spaces = line.rstrip("\r\n").replace("\t", " ").split("|")
    words = [word for word in head.split(" ") if word]
    label = words[1].split(":") if len(words) > 1 and words[0] == "ca" else []
    if len(label) != 3 or len(words) > 3:
        raise BadRow("label", "ca action:cost:density", head.strip())
    action, loss, density = (number(name, it) for name, it in zip(("action", "loss", "density"), label, strict=True))
    tag = {"id": unescape(words[2].removeprefix("'"))} if len(words) == 3 else {}
    return Row(action, density, loss, tag, context_of(spaces))


def context_of(spaces: list[str]) -> dict[str, float]:
    """The features of a row, from what stands behind each bar.

    >>> context_of(["weather cold wind:3"])
    {'weather^cold': 1.0, 'weather^wind': 3.0}
    """
    context: dict[str, float] = {}
    for space in spaces:
        words = space.split(" ")
        named, _, weight = words[0].partition(":")
        prefix, factor = (unescape(named) + "^" if named else ""), _value(named, weight)
        for nameless, word in enumerate(filter(None, words[1:])):
            written, _, text = word.partition(":")
            name = prefix + (unescape(written) if written else str(nameless))
            value = factor * _value(name, text)
            context[name] = value if name not in context else context[name] + value
    return context


def _value(name: str, text: str) -> float:
    return 1.0 if text == "" else number(name, text) or 0.0


def join(predictions: str | Path, features: str | Path) -> JoinedFiles:
    """What `vw --cbify_reg -p` wrote, action:loss:density per row, with the features it was given, row by row.

    >>> import tempfile, pathlib, manul
    >>> folder = tempfile.TemporaryDirectory()
    >>> predicted, given = (pathlib.Path(folder.name, name) for name in ("log.acp", "data.vw"))
    >>> _ = predicted.write_text("0.2:0.1:3.85\\n"), given.write_text("0.3 | 0:1.5 1:2\\n")
    >>> manul.Log.read(join(predicted, given)).contexts
    array([[1.5, 2. ]], dtype=float32)
    >>> folder.cleanup()
    """
    return JoinedFiles(Path(predictions), Path(features))


class JoinedFiles:
    """Two files that are read side by side as one log."""

    def __init__(self, predictions: Path, features: Path) -> None:
        self.path, self.features = predictions, features

    def read(self, problems: Problems, size: int) -> Iterator[Piece]:
        """The rows of both files in pieces."""
        return read_rows(problems, size, parse, self._lines)

    def _lines(self, problems: Problems) -> Iterator[tuple[int, str]]:
        decided, given = (lines(Problems(path)) for path in (problems.path, self.features))
        for decision, features in zip_longest(decided, given):
            if decision is None or features is None:
                short, long = (self.path, self.features) if decision is None else (self.features, self.path)
                raise FileError(
                    f"{short} must have as many rows as {long}; got fewer. Run vw again with -p on the whole of {self.features}."
                )
            row, label = decision
            yield row, f"ca {label.strip()} |{features[1].partition('|')[2]}" if label.strip() else ""


class Writer:
    """A file being written."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        lost = [name for name in ("low", "high", "time") if name in schema.names]
        if lost:
            where = path.name.removesuffix(".partial")
            warnings.warn(
                f"{where} leaves out {', '.join(lost)}: Vowpal Wabbit's text has no place for it.", stacklevel=5
            )
        self._output = Output(path)

    def write(self, table: pa.Table) -> None:
        """Add some rows."""
        columns = decision_columns(table)
        tags = columns.get("id") or [None] * len(table)
        rows = zip(columns["action"], columns["loss"], columns["density"], tags, feature_rows(table), strict=True)
        for action, loss, density, tag, features in rows:
            name = "" if tag is None else f"'{escape(tag)}"
            self._output.write(f"ca {action}:{loss}:{density} {name}{_spaces(features)}\n")

    def close(self) -> None:
        """Everything is in the file afterwards."""
        self._output.close()


def split_name(name: str) -> tuple[str, str]:
    """The namespace of a feature, and its name there.

    >>> split_name("user^age"), split_name("age"), split_name("age^")
    (('user', 'age'), ('', 'age'), ('', 'age^'))
    """
    space, mark, rest = name.partition("^")
    return (space, rest) if space and mark and rest else ("", name)


def _spaces(features: list[tuple[str, str]]) -> str:
    named = [(*split_name(name), value) for name, value in features]
    spaces = []
    for space, members in groupby(named, key=lambda feature: feature[0]):
        spaces.append("|" + " ".join([escape(space), *(_feature(name, value) for _, name, value in members)]))
    return " ".join(spaces) if spaces else "|"


def _feature(name: str, value: str) -> str:
    return escape(name) if value == "1" else f"{escape(name)}:{value}"


def escape(name: str) -> str:
    """A name that Vowpal Wabbit can read.

    >>> escape("living room")
    'living%20room'
    """
    return SIGNS.sub(lambda sign: f"%{ord(sign[0]):02X}", name)


def unescape(name: str) -> str:
    """A name as it was before it was escaped.

    >>> unescape("living%20room"), unescape("100%")
    ('living room', '100%')
    """
    return name if "%" not in name else CODES.sub(lambda code: chr(int(code[1], 16)), name)
