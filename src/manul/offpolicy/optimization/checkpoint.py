"""Training of all candidates in the threads of this machine, and checkpoints from which it can resume.

A checkpoint has agents as `.manul` files and sums in JSON.

A folder `rows-N` is complete before `progress.json` refers to it; only then is the previous folder deleted.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from manul.errors import FileError, ParameterError
from manul.logs.log import Log
from manul.logs.sample import Sample
from manul.offpolicy.optimization.grid import AnyAgent, Candidate
from manul.offpolicy.optimization.replay import LogSummary, Replay, TrainingResult, pieces
from manul.utils import model_files
from manul.utils.atomic_files import write_error, write_whole
from manul.utils.validation import check_has_rows

SECONDS = 10.0  # the shortest time between checkpoints, which is the most work that a crash loses
SHARE = 0.05  # the largest share of the time for writing checkpoints
PROGRESS = {"settings", "rows", "sums", "clipped", "checksums"}  # the keys of progress.json


class Checkpoint:
    """Saves a replay to a folder at intervals."""

    def __init__(self, folder: str | Path, replay: Replay, settings: dict[str, Any]) -> None:
        self.folder, self._replay = Path(folder), replay
        self._settings = json.loads(json.dumps({**settings, "agents": [repr(agent) for agent in replay.agents]}))
        self._saved, self._duration = time.monotonic(), 0.0

    def skip(self, pieces: Iterator[Log], seen: LogSummary) -> Iterator[Log]:
        """The pieces after the checkpoint, to which the replay is restored."""
        saved = self._read()
        if saved is None:
            yield from pieces
            return
        for piece in pieces:
            if seen.rows >= saved["rows"]:
                yield piece
                continue
            # The pieces may have other sizes than in the first run.
            split = min(len(piece), saved["rows"] - seen.rows)
            seen.add(piece.rows(slice(split)))
            if seen.rows == saved["rows"]:
                self._restore(saved, seen)
            if split < len(piece):
                yield piece.rows(slice(split, None))
        if seen.rows < saved["rows"]:
            raise self._mismatch(f"log: it has {seen.rows} rows, but the run had learned from {saved['rows']}")

    def keep(self, seen: LogSummary, *, now: bool = False) -> None:
        """Save the replay if it is time to, or with `now`."""
        if not now and time.monotonic() - self._saved < max(SECONDS, self._duration / SHARE):
            return
        start = time.monotonic()
        target = self.folder / f"rows-{self._replay.rows}"
        try:
            target.mkdir(parents=True, exist_ok=True)
            for name, agents in self._groups():
                for number, agent in enumerate(agents):
                    agent.save(target / f"{name}-{number:04}.manul")
            self._write(target, seen)
        except OSError as error:
            raise write_error(self.folder, error) from error
        self._saved = time.monotonic()
        self._duration = self._saved - start

    def _groups(self) -> list[tuple[str, list[AnyAgent]]]:
        both = [("agent", self._replay.agents), ("drawn", self._replay.snapshots)]
        return both[:1] if self._replay.snapshots is self._replay.agents else both

    def _write(self, target: Path, seen: LogSummary) -> None:
        progress = {
            "settings": self._settings,
            "rows": self._replay.rows,
            "sums": [float(total).hex() for total in self._replay.sums],
            "clipped": self._replay.clipped.tolist(),
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
            saved = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        if not isinstance(saved, dict) or saved.keys() != PROGRESS:
            raise self._unreadable("it is not a checkpoint")
        if saved["settings"] != self._settings:
            raise self._mismatch("settings")
        return saved

    def _unreadable(self, why: object) -> FileError:
        path = self.folder / "progress.json"
        return FileError(f"cannot read the checkpoint {path}: {why}. Delete {self.folder}, or give another folder.")

    def _restore(self, saved: dict[str, Any], seen: LogSummary) -> None:
        if seen.checksums != saved["checksums"]:
            raise self._mismatch("log: its rows differ")
        source = self.folder / f"rows-{saved['rows']}"
        for name, agents in self._groups():
            agents[:] = [model_files.load(source / f"{name}-{number:04}.manul") for number in range(len(agents))]
        self._replay.resume_from(saved["rows"], [float.fromhex(total) for total in saved["sums"]], saved["clipped"])

    def _mismatch(self, difference: str) -> ParameterError:
        return ParameterError(
            f"Cannot resume from {self.folder}: different {difference}. Choose a new folder.", "resume"
        )


def train(
    candidates: Sequence[Candidate],
    sample: Sample,
    *,
    draw: int | None,
    clip: float | None,
    threads: int | None,
    resume: str | Path | None,
    advance: Callable[[int], object],
) -> TrainingResult:
    """Train every candidate; with `resume`, continue the run in that folder."""
    replay, seen = Replay(candidates, draw=draw, threads=threads, clip=clip), LogSummary()
    checkpoint = None if resume is None else Checkpoint(resume, replay, {"draw": draw, "clip": clip})
    stream = pieces(sample.batches)
    for piece in stream if checkpoint is None else checkpoint.skip(stream, seen):
        replay.learn(piece)
        seen.add(piece)
        advance(len(piece))
        if checkpoint is not None:
            checkpoint.keep(seen)
    check_has_rows(seen.rows)
    if checkpoint is not None:
        checkpoint.keep(seen, now=True)
    return TrainingResult(seen, replay.sums, replay.clipped, lambda index: replay.snapshots[index])
