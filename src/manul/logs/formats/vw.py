"""Vowpal Wabbit's text: `ca action:cost:density 'id|namespace name:value name ...`.

A feature of a namespace is named `namespace^name`, as in Vowpal Wabbit's audit; a feature that a row does not have is 0.
Characters that Vowpal Wabbit does not allow in a name are percent-encoded.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manul.errors import FileError
from manul.logs.formats import register_format
from manul.logs.formats.level_columns import LEVELS
from manul.logs.formats.log_schema import ARM, Metadata
from manul.logs.formats.readers import BadRow, Piece, Problems, number, reject_knobs
from manul.logs.formats.row_tables import Row, read_rows
from manul.logs.formats.text_columns import check_features, decision_columns, feature_rows
from manul.logs.formats.text_lines import Output, lines

if TYPE_CHECKING:
    import pyarrow as pa

SPECIAL = re.compile(r"[% \t\n\r:|]")
CODES = re.compile(r"%(25|20|09|0A|0D|3A|7C)")


def read(problems: Problems, size: int) -> Iterator[Piece]:
    """Read the rows of a file in pieces."""
    reject_knobs(problems.path, problems.knobs)
    return read_rows(problems, size, parse, lines)


def parse(line: str) -> Row | None:
    """Parse a row; return None for an empty line.

    >>> parse("ca 21.4:0.3:0.24 'a7|weather cold wind:3 |user age:30")
    Row(action=21.4, density=0.24, loss=0.3, optional={'id': 'a7'},
        context={'weather^cold': 1.0, 'weather^wind': 3.0, 'user^age': 30.0}, nested=True, rewards=False,
        estimated=False)
    """
    if not line.strip():
        return None
    head, *spaces = line.rstrip("\r\n").replace("\t", " ").split("|")
    words = [word for word in head.split(" ") if word]
    label = words[1].split(":") if len(words) > 1 and words[0] == "ca" else []
    if len(label) != 3 or len(words) > 3:
        raise BadRow("label", "ca action:cost:density", head.strip())
    action, loss, density = (
        number(name, text) for name, text in zip(("action", "loss", "density"), label, strict=True)
    )
    tag = {"id": unescape(words[2].removeprefix("'"))} if len(words) == 3 else {}
    return Row(action, density, loss, tag, context_of(spaces))


def context_of(spaces: list[str]) -> dict[str, float]:
    """Parse the features of a row, given the text after each bar.

    >>> context_of(["weather cold wind:3"])
    {'weather^cold': 1.0, 'weather^wind': 3.0}
    """
    context: dict[str, float] = {}
    for space in spaces:
        words = space.split(" ")
        namespace, _, weight = words[0].partition(":")
        prefix, factor = (unescape(namespace) + "^" if namespace else ""), _value(namespace, weight)
        for index, word in enumerate(filter(None, words[1:])):
            feature, _, text = word.partition(":")
            name = prefix + (unescape(feature) if feature else str(index))
            value = factor * _value(name, text)
            context[name] = value if name not in context else context[name] + value
    return context


def _value(name: str, text: str) -> float:
    return 1.0 if text == "" else number(name, text) or 0.0


def join(predictions: str | Path, features: str | Path) -> JoinedFiles:
    """Join the output of `vw -p` with the features of its input.

    `--cbify_reg` writes action:loss:density per row. `--cats` writes action,density; the loss is then the label of the
    input, a number or `ca action:cost:density` with that action.

    >>> import tempfile, pathlib, manul
    >>> folder = tempfile.TemporaryDirectory()
    >>> predictions, data = (pathlib.Path(folder.name, name) for name in ("log.acp", "data.vw"))
    >>> _ = predictions.write_text("0.2:0.1:3.85\\n"), data.write_text("0.3 | 0:1.5 1:2\\n")
    >>> manul.Log.read(join(predictions, data)).contexts
    array([[1.5, 2. ]], dtype=float32)
    >>> folder.cleanup()
    """
    return JoinedFiles(Path(predictions), Path(features))


class JoinedFiles:
    """Two files that are read together as one log."""

    def __init__(self, predictions: Path, features: Path) -> None:
        self.path, self.features = predictions, features

    def read(self, problems: Problems, size: int) -> Iterator[Piece]:
        """Read the rows of both files in pieces."""
        reject_knobs(problems.path, problems.knobs)
        return read_rows(problems, size, _parse_joined, self._lines)

    def _lines(self, problems: Problems) -> Iterator[tuple[int, str]]:
        decisions, examples = (lines(Problems(path)) for path in (problems.path, self.features))
        for decision, features in zip_longest(decisions, examples):
            if decision is None or features is None:
                short, long = (self.path, self.features) if decision is None else (self.features, self.path)
                raise FileError(f"{short} has fewer rows than {long}. Run vw -p again on all of {self.features}.")
            row, label = decision
            yield row, f"{label.strip()}\n{features[1]}" if label.strip() else ""


def _parse_joined(lines_of_both: str) -> Row | None:
    """Parse a line of predictions and the line of features below it."""
    prediction, _, example = lines_of_both.partition("\n")
    head, _, features = example.partition("|")
    if "," in prediction:
        action, _, density = prediction.partition(",")
        prediction = f"{action.strip()}:{_cost(head.split(), action)}:{density.strip()}"
    return parse(f"ca {prediction} |{features}" if prediction else "")


def _cost(label: list[str], action: str) -> str:
    """The cost of a predicted action in the label of its example."""
    words = label[1].split(":") if label[:1] == ["ca"] and len(label) > 1 else []
    if len(words) == 3:
        same = np.isclose(number("action", words[0]) or 0.0, number("action", action) or 0.0, rtol=1e-5, atol=0.0)
        if not same:
            raise BadRow("label", f"the cost of the predicted action {action.strip()}", label[1])
        return words[1]
    if not label or words:
        raise BadRow("label", "the cost of the predicted action, as a number", " ".join(label) or None)
    return label[0]


class Writer:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        reject_knobs(path, Metadata.from_arrow(schema.metadata).knobs)
        check_features(path, schema)
        lost = [name for name in ("low", "high", "floor", "time", ARM, LEVELS) if name in schema.names]
        lost += ["that densities were estimated"] if Metadata.from_arrow(schema.metadata).densities_estimated else []
        if lost:
            name = path.name.removesuffix(".partial")
            warnings.warn(f"{name} omits {', '.join(lost)}, which Vowpal Wabbit's text cannot store.", stacklevel=5)
        self._output = Output(path)

    def write(self, table: pa.Table) -> None:
        columns = decision_columns(table)
        tags = columns.get("id") or [None] * len(table)
        rows = zip(columns["action"], columns["loss"], columns["density"], tags, feature_rows(table), strict=True)
        for action, loss, density, tag, features in rows:
            name = "" if tag is None else f"'{escape(tag)}"
            self._output.write(f"ca {action}:{loss}:{density} {name}{_spaces(features)}\n")

    def close(self) -> None:
        self._output.close()


def split_name(name: str) -> tuple[str, str]:
    """Split a feature into its namespace and its name there.

    >>> split_name("user^age"), split_name("age"), split_name("age^")
    (('user', 'age'), ('', 'age'), ('', 'age^'))
    """
    space, mark, rest = name.partition("^")
    return (space, rest) if space and mark and rest else ("", name)


def _spaces(features: list[tuple[str, str]]) -> str:
    triples = [(*split_name(name), value) for name, value in features]
    spaces = []
    for space, members in groupby(triples, key=lambda feature: feature[0]):
        spaces.append("|" + " ".join([escape(space), *(_feature(name, value) for _, name, value in members)]))
    return " ".join(spaces) if spaces else "|"


def _feature(name: str, value: str) -> str:
    return escape(name) if value == "1" else f"{escape(name)}:{value}"


def escape(name: str) -> str:
    """Escape a name for Vowpal Wabbit.

    >>> escape("living room")
    'living%20room'
    """
    return SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", name)


def unescape(name: str) -> str:
    """Undo `escape`.

    >>> unescape("living%20room"), unescape("100%")
    ('living room', '100%')
    """
    return name if "%" not in name else CODES.sub(lambda code: chr(int(code[1], 16)), name)


register_format(".vw", read=read, writer=Writer)
