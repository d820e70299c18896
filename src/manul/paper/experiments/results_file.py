"""What was measured, kept in a file after every result, so that a stopped run goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manul.errors import FileError
from manul.utils.atomic_files import write_whole

Result = dict[str, Any]


class Memory:
    """Results by what was measured, in a JSON file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Memory(Path(folder, "cells.json")).keep({"leaves": 4}, {"loss": 0.5})
    ...     Memory(Path(folder, "cells.json")).recall({"leaves": 4})
    {'loss': 0.5}
    """

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        self._results: dict[str, Result] = {}
        if path.exists():
            try:
                self._results = dict(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError) as error:
                raise FileError(f"{path} must be as it was written; got {error}. Delete it to start anew.") from error

    def recall(self, what: Mapping[str, Any]) -> Result | None:
        """The result, if it was kept."""
        return self._results.get(_key(what))

    def keep(self, what: Mapping[str, Any], result: Result) -> None:
        """Write a result down, beside all others."""
        with self._lock:
            self._results[_key(what)] = result
            write_whole(self.path, json.dumps(dict(sorted(self._results.items())), indent=0))


def _key(what: Mapping[str, Any]) -> str:
    return json.dumps(dict(what), sort_keys=True)
