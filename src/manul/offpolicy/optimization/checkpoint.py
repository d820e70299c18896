"""Checkpoints from which an interrupted search resumes: agents as `.manul` files, and results in JSON.

A folder with agents is complete before its JSON file refers to it; only then is the previous folder deleted.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from manul.agents.auto import Auto
from manul.errors import FileError, ParameterError
from manul.logs.log import Log
from manul.logs.sample import Sample
from manul.offpolicy.cross_fitting import Position
from manul.offpolicy.optimization.grid import AnyAgent, Candidate
from manul.offpolicy.optimization.replay import LogSummary, Replay, TrainingResult, pieces
from manul.utils import model_files
from manul.utils.atomic_files import write_error, write_whole
from manul.utils.validation import check_has_rows

SECONDS = 10.0  # the shortest time between checkpoints, which is the most work that a crash loses
SHARE = 0.05  # the largest share of the time for writing checkpoints
PROGRESS = {"settings", "rows", "sums", "clipped", "checksums"}  # the keys of progress.json


class _Folder:
    """JSON files, and folders of agents that they refer to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._saved, self._duration = time.monotonic(), 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time to save agents again."""
        return time.monotonic() - self._saved >= max(SECONDS, self._duration / SHARE)

    def read(self, name: str) -> Any:
        """The value of a JSON file, or None if there is none."""
        if not (path := self.path / f"{name}.json").exists():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self.unreadable(name, error) from error

    def write(self, name: str, value: Any) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.path / f"{name}.json", json.dumps(value, indent=1))
        except OSError as error:
            raise write_error(self.path, error) from error

    def save(self, kind: str, state: str, agents: Mapping[str, AnyAgent], name: str, value: Any) -> None:
        """Save agents in the folder `kind-state` and a JSON file that refers to it, and delete older folders of the kind."""
        start, target = time.monotonic(), self.path / f"{kind}-{state}"
        try:
            target.mkdir(parents=True, exist_ok=True)
            for agent_name, agent in agents.items():
                agent.save(target / f"{agent_name}.manul")
        except OSError as error:
            raise write_error(self.path, error) from error
        self.write(name, value)
        for old in self.path.glob(f"{kind}-*"):
            if old != target:
                shutil.rmtree(old)
        self._saved = time.monotonic()
        self._duration = self._saved - start

    def load(self, folder: str, names: Sequence[str]) -> list[Any]:
        return [model_files.load(self.path / folder / f"{name}.manul") for name in names]

    def unreadable(self, name: str, why: object = "it is not a checkpoint") -> FileError:
        advice = f"Delete {self.path}, or give another folder."
        return FileError(f"cannot read the checkpoint {self.path / name}.json: {why}. {advice}")

    def mismatch(self, difference: str) -> ParameterError:
        return ParameterError(f"Cannot resume from {self.path}: different {difference}. Choose a new folder.", "resume")


class Checkpoint:
    """Saves a replay to a folder at intervals."""

    def __init__(self, folder: str | Path, replay: Replay, settings: dict[str, Any]) -> None:
        self._folder, self._replay = _Folder(Path(folder)), replay
        self._settings = json.loads(json.dumps({**settings, "agents": [repr(agent) for agent in replay.agents]}))

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
            raise self._folder.mismatch(f"log: it has {seen.rows} rows, but the run had learned from {saved['rows']}")

    def keep(self, seen: LogSummary, *, now: bool = False) -> None:
        """Save the replay if it is time to, or with `now`."""
        if not now and not self._folder.is_due:
            return
        progress = {
            "settings": self._settings,
            "rows": self._replay.rows,
            "sums": [float(total).hex() for total in self._replay.sums],
            "clipped": self._replay.clipped.tolist(),
            "checksums": seen.checksums,
        }
        agents = {name: agent for names, agents in self._groups() for name, agent in zip(names, agents, strict=True)}
        self._folder.save("rows", str(self._replay.rows), agents, "progress", progress)

    def _groups(self) -> list[tuple[list[str], list[AnyAgent]]]:
        groups = [("agent", self._replay.agents), ("drawn", self._replay.snapshots)]
        if self._replay.snapshots is self._replay.agents:
            groups.pop()
        return [([f"{name}-{number:04}" for number in range(len(agents))], agents) for name, agents in groups]

    def _read(self) -> dict[str, Any] | None:
        saved = self._folder.read("progress")
        if saved is None:
            return None
        if not isinstance(saved, dict) or saved.keys() != PROGRESS:
            raise self._folder.unreadable("progress")
        if saved["settings"] != self._settings:
            raise self._folder.mismatch("settings")
        return saved

    def _restore(self, saved: dict[str, Any], seen: LogSummary) -> None:
        if seen.checksums != saved["checksums"]:
            raise self._folder.mismatch("log: its rows differ")
        for names, agents in self._groups():
            agents[:] = self._folder.load(f"rows-{saved['rows']}", names)
        self._replay.resume_from(saved["rows"], [float.fromhex(total) for total in saved["sums"]], saved["clipped"])


class PhaseFiles:
    """Results and critics of the search for the best critic, by phase; without a folder, nothing is kept."""

    def __init__(self, folder: Path | None, settings: dict[str, Any]) -> None:
        self._folder = None if folder is None else _Folder(folder)
        if self._folder is None:
            return
        settings = json.loads(json.dumps(settings))
        before = self._folder.read("settings")
        if before is not None and before != settings:
            if not isinstance(before, dict):
                raise self._folder.unreadable("settings")
            raise self._folder.mismatch("log" if before.get("log") != settings.get("log") else "settings")
        self.keep("settings", settings)

    def result(self, phase: str, like: Any) -> Any:
        """The result of a finished phase, which must have the shape of a list or the keys of a dict `like`, or None."""
        if self._folder is None:
            return None
        saved = self._folder.read(phase)
        if saved is not None and _shape(saved) != _shape(like):
            raise self._folder.unreadable(phase)
        return saved

    def keep(self, phase: str, result: Any) -> None:
        if self._folder is not None:
            self._folder.write(phase, result)

    def critics(self, phase: str, count: int) -> tuple[Position, list[Auto]] | None:
        """The critics of a phase and how far they were trained, or None."""
        saved = self.result(phase, {"folder": "", "position": {}})
        if saved is None or self._folder is None:
            return None
        if _shape(saved["position"]) != _shape(asdict(Position())):
            raise self._folder.unreadable(phase)
        critics = self._folder.load(str(saved["folder"]), [f"critic-{number}" for number in range(count)])
        return Position(**saved["position"]), critics

    def keep_critics(self, phase: str, position: Position, critics: Sequence[Auto], *, now: bool = False) -> None:
        """Save critics in training if it is time to, or with `now`."""
        if self._folder is None or not (now or self._folder.is_due):
            return
        name = f"{position.number}-{position.window}-{position.learned}"
        agents = {f"critic-{number}": critic for number, critic in enumerate(critics)}
        self._folder.save(phase, name, agents, phase, {"folder": f"{phase}-{name}", "position": asdict(position)})


def _shape(result: Any) -> Any:
    """The keys of a dict, the lengths of nested lists of numbers, or the type."""
    if isinstance(result, dict):
        return sorted(result)
    return (len(result), *{_shape(each) for each in result}) if isinstance(result, list) else type(result) is float


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
