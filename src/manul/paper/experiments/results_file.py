"""A file of results, written after every measurement, so that an interrupted run can resume."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manul.errors import FileError
from manul.utils.atomic_files import write_whole

Result = dict[str, Any]


class ResultsFile:
    """Results in a JSON file, by the settings of the measurement.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ResultsFile(Path(folder, "cells.json")).add({"leaves": 4}, {"loss": 0.5})
    ...     ResultsFile(Path(folder, "cells.json")).get({"leaves": 4})
    {'loss': 0.5}
    """

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        self._results: dict[str, Result] = {}
        if path.exists():
            try:
                self._results = dict(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError) as error:
                raise FileError(f"{path}: cannot read earlier results: {error}. Delete it to start over.") from error

    def get(self, settings: Mapping[str, Any]) -> Result | None:
        return self._results.get(_key(settings))

    def add(self, settings: Mapping[str, Any], result: Result) -> None:
        with self._lock:
            self._results[_key(settings)] = result
            write_whole(self.path, json.dumps(dict(sorted(self._results.items())), indent=0))


def _key(settings: Mapping[str, Any]) -> str:
    return json.dumps(dict(settings), sort_keys=True)
