"""A pass over a log that can stop at any instant and go on later: agents as `.manul` files, sums in JSON.

A folder `rows-N` is written whole before `progress.json` names it, and only then the one before it goes away.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manul.errors import FileError, ParameterError
from manul.logs.log import Log
from manul.offpolicy.optimization.grid import AnyAgent
from manul.offpolicy.optimization.replay import LogSummary, Replay
from manul.utils import model_files
from manul.utils.atomic_files import write_error, write_whole

SECONDS = 10.0
SHARE = 0.05


class Checkpoint:
    """Keeps a replay in a folder, often enough to lose little and seldom enough to cost little."""

    def __init__(self, folder: str | Path, replay: Replay, settings: dict[str, Any]) -> None:
        self.folder, self._replay = Path(folder), replay
        self._settings = json.loads(json.dumps({**settings, "agents": [repr(agent) for agent in replay.agents]}))
        self._saved, self._took = time.monotonic(), 0.0

    def skip(self, pieces: Iterator[Log], seen: LogSummary) -> Iterator[Log]:
        """The pieces that are still to be learned; the replay is then as it was when it was kept."""
        kept = self._read()
        if kept is None:
            yield from pieces
            return
        for piece in pieces:
            if seen.rows >= kept["rows"]:
                yield piece
                continue
            # Pieces may be cut elsewhere than in the first run.
            split = min(len(piece), kept["rows"] - seen.rows)
            seen.add(piece.rows(slice(split)))
            if seen.rows == kept["rows"]:
                self._restore(kept, seen)
            if split < len(piece):
                yield piece.rows(slice(split, None))
        if seen.rows < kept["rows"]:
            raise self._other("log", f"one of {seen.rows} rows where {kept['rows']} were learned")

    def keep(self, seen: LogSummary, *, now: bool = False) -> None:
        """Write the replay where that is due, or now."""
        if not now and time.monotonic() - self._saved < max(SECONDS, self._took / SHARE):
            return
        started = time.monotonic()
        target = self.folder / f"rows-{self._replay.rows}"
        try:
            target.mkdir(parents=True, exist_ok=True)
            for name, agents in self._parts():
                for number, agent in enumerate(agents):
                    agent.save(target / f"{name}-{number:04}.manul")
            self._write(target, seen)
        except OSError as error:
            raise write_error(self.folder, error) from error
        self._saved = time.monotonic()
        self._took = self._saved - started

    def _parts(self) -> list[tuple[str, list[AnyAgent]]]:
        both = [("agent", self._replay.agents), ("drawn", self._replay.snapshots)]
        return both[:1] if self._replay.snapshots is self._replay.agents else both

    def _write(self, target: Path, seen: LogSummary) -> None:
        progress = {
            "settings": self._settings,
            "rows": self._replay.rows,
            "sums": [float(total).hex() for total in self._replay.sums],
            "checksums": seen.checksums,
        }
        write_whole(self.folder / "progress.json", json.dumps(progress, indent=1))
        for old in self.folder.glob("rows-*"):
            if old != target:
                shutil.rmtree(old)

    def _read(self) -> dict[str, Any] | None:
        path = self.folder / "progress.json"
        if not path.exists():
            return None
        try:
            kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FileError(f"{path} must be as it was written; got {error}. Start anew in another folder.") from error
        if kept.get("settings") != self._settings:
            raise self._other("settings", "others")
        return kept

    def _restore(self, kept: dict[str, Any], seen: LogSummary) -> None:
        if seen.checksums != kept["checksums"]:
            raise self._other("log", "other rows")
        source = self.folder / f"rows-{kept['rows']}"
        for name, agents in self._parts():
            agents[:] = [model_files.load(source / f"{name}-{number:04}.manul") for number in range(len(agents))]
        self._replay.resume_from(kept["rows"], [float.fromhex(total) for total in kept["sums"]])

    def _other(self, what: str, got: str) -> ParameterError:
        return ParameterError(
            f"resume must be of a run with the same {what}; got {got} in {self.folder}. Choose a new folder.", "resume"
        )
