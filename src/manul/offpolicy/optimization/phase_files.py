"""The files of an interrupted search for the best critic: the results of each phase, and critics in training.

A folder with critics is complete before its JSON file refers to it; only then is the previous folder deleted.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from manul.agents.auto import Auto
from manul.errors import FileError, ParameterError
from manul.offpolicy.cross_fitting import Position
from manul.offpolicy.optimization import checkpoint
from manul.utils import model_files
from manul.utils.atomic_files import write_error, write_whole


class PhaseFiles:
    """Results and critics by phase, in a folder; without a folder, nothing is kept."""

    def __init__(self, folder: Path | None, settings: dict[str, Any]) -> None:
        self._folder, self._settings = folder, json.loads(json.dumps(settings))
        self._saved, self._duration = time.monotonic(), 0.0
        if folder is None:
            return
        before = self._read("settings")
        if before is not None and before != self._settings:
            if not isinstance(before, dict):
                raise self._unreadable("settings", "it is not a checkpoint")
            different = "log" if before.get("log") != self._settings.get("log") else "settings"
            raise ParameterError(f"Cannot resume from {folder}: different {different}. Choose a new folder.", "resume")
        self.keep("settings", self._settings)

    def result(self, phase: str, like: Any) -> Any:
        """The result of a finished phase, which must have the shape of a list or the keys of a dict `like`, or None."""
        saved = self._read(phase)
        if saved is not None and _shape(saved) != _shape(like):
            raise self._unreadable(phase, "it is not a checkpoint")
        return saved

    def keep(self, phase: str, result: Any) -> None:
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._folder / f"{phase}.json", json.dumps(result))
        except OSError as error:
            raise write_error(self._folder, error) from error

    def critics(self, phase: str, count: int) -> tuple[Position, list[Auto]] | None:
        """The critics of a phase and how far they were trained, or None."""
        saved = self.result(phase, {"folder": "", "position": {}})
        if saved is None or self._folder is None:
            return None
        if _shape(saved["position"]) != _shape(asdict(Position())):
            raise self._unreadable(phase, "it is not a checkpoint")
        names = [self._folder / str(saved["folder"]) / f"critic-{number}.manul" for number in range(count)]
        return Position(**saved["position"]), [model_files.load(name) for name in names]

    def keep_critics(self, phase: str, position: Position, critics: Sequence[Auto], *, now: bool = False) -> None:
        """Save critics in training if it is time to, or with `now`."""
        wait = max(checkpoint.SECONDS, self._duration / checkpoint.SHARE)
        if self._folder is None or (not now and time.monotonic() - self._saved < wait):
            return
        start = time.monotonic()
        name = f"{phase}-{position.number}-{position.window}-{position.learned}"
        target = self._folder / name
        try:
            target.mkdir(parents=True, exist_ok=True)
            for number, critic in enumerate(critics):
                critic.save(target / f"critic-{number}.manul")
        except OSError as error:
            raise write_error(self._folder, error) from error
        self.keep(phase, {"folder": name, "position": asdict(position)})
        for old in self._folder.glob(f"{phase}-*"):
            if old != target:
                shutil.rmtree(old)
        self._saved = time.monotonic()
        self._duration = self._saved - start

    def _read(self, phase: str) -> Any:
        if self._folder is None or not (path := self._folder / f"{phase}.json").exists():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._unreadable(phase, error) from error

    def _unreadable(self, phase: str, why: object) -> FileError:
        advice = f"Delete {self._folder}, or give another folder."
        return FileError(f"cannot read the checkpoint {self._folder}/{phase}.json: {why}. {advice}")


def _shape(result: Any) -> Any:
    """The keys of a dict, the lengths of nested lists of numbers, or the type."""
    if isinstance(result, dict):
        return sorted(result)
    return (len(result), *{_shape(each) for each in result}) if isinstance(result, list) else type(result) is float
