"""Vowpal Wabbit's regression examples, `label |space name:value ...`, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manul.errors import FileError
from manul.logs.formats.readers import BadRow, Problems, number
from manul.logs.formats.text_lines import lines
from manul.logs.formats.vw import context_of

if TYPE_CHECKING:
    import pyarrow as pa

LABEL = "label"


def examples(path: Path) -> pa.Table:
    """Read a column for the label and one per feature; features that a row does not contain are 0."""
    import pyarrow as pa

    labels, rows = _parse(path)
    names = list(dict.fromkeys(name for features in rows for name in features))
    index = {name: column for column, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)))
    for row, features in enumerate(rows):
        matrix[row, [index[name] for name in features]] = list(features.values())
    return pa.table({LABEL: labels, **{name: matrix[:, column] for name, column in index.items() if name != LABEL}})


def is_log(path: Path) -> bool:
    """Whether a file has decisions, `ca action:cost:density`, instead of labels."""
    return next((line.split()[:1] == ["ca"] for _, line in lines(Problems(path)) if line.strip()), False)


def _parse(path: Path) -> tuple[list[float | None], list[dict[str, float]]]:
    labels: list[float | None] = []
    rows: list[dict[str, float]] = []
    problems = Problems(path)
    for row, line in lines(problems):
        head, *spaces = line.rstrip("\r\n").replace("\t", " ").split("|")
        words = head.split()
        if words[:1] == ["ca"]:
            raise FileError(f"{path} is a log of decisions, not a table of labels and features. Use manul optimize.")
        if line.strip():
            try:
                labels.append(number(LABEL, words[0]) if words else None)
                rows.append(context_of(spaces))
            except BadRow as bad:
                problems.report(row, bad.column, bad.rule, bad.got)
    return labels, rows
