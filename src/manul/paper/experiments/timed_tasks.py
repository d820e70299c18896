"""Runs measurements in parallel with a progress bar, and skips those whose results a file already has."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from manul.errors import FileError
from manul.utils.atomic_files import write_whole

Result = dict[str, Any]
Report = Callable[[float], None]


class ResultsFile:
    """Results in a JSON file, by the settings of the measurement; it is written after each, so that a run can resume.

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

    def get_or_measure(self, settings: Mapping[str, Any], measure: Callable[[], Result]) -> Result:
        """The saved result, or a new one, which is saved."""
        result = self.get(settings)
        if result is None:
            result = measure()
            self.add(settings, result)
        return result


def _key(settings: Mapping[str, Any]) -> str:
    return json.dumps(dict(settings), sort_keys=True)


class StoppedError(Exception):
    """Raised inside a task when the run is being stopped."""


@dataclass(frozen=True)
class Task:
    """A measurement; `seconds` is its estimated duration, and `run` reports each share of it that is done."""

    settings: Mapping[str, Any]
    seconds: float
    run: Callable[[Report], Result]


@dataclass(frozen=True)
class TaskRunner:
    """Runs tasks in threads, and saves their results in a file."""

    file: ResultsFile
    threads: int | None = None
    progress: bool = False

    def results(self, tasks: Sequence[Task], title: str) -> list[Result]:
        """The results of the tasks in order; only tasks without a saved result run."""
        with _Bar(title, tasks, self.file, visible=self.progress) as bar, self._pool(bar) as pool:
            missing = [task for task in tasks if self.file.get(task.settings) is None]
            # The longest tasks start first, so that no thread is idle while the last one runs.
            for done in as_completed([pool.submit(self._measure, task, bar) for task in sorted(missing, key=_longest)]):
                done.result()
        results = [self.file.get(task.settings) for task in tasks]
        return [result for result in results if result is not None]

    def _measure(self, task: Task, bar: _Bar) -> None:
        self.file.add(task.settings, task.run(bar.report(task)))
        bar.close(task)

    @contextmanager
    def _pool(self, bar: _Bar) -> Iterator[ThreadPoolExecutor]:
        with ThreadPoolExecutor(self.threads or os.cpu_count() or 1) as pool:
            try:
                yield pool
            except BaseException:
                bar.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _longest(task: Task) -> float:
    return -task.seconds


class _Bar:
    def __init__(self, title: str, tasks: Sequence[Task], file: ResultsFile, *, visible: bool) -> None:
        self.stopped, self._lock = threading.Event(), threading.Lock()
        self._done: dict[int, float] = {}
        self._total = total = sum(task.seconds for task in tasks)
        before = sum(task.seconds for task in tasks if file.get(task.settings) is not None)
        style = "{desc}: {percentage:3.0f}%|{bar:30}| {elapsed} elapsed, {remaining} left"
        self._bar = tqdm(total=total, initial=before, desc=title, bar_format=style, disable=not visible)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def report(self, task: Task) -> Report:
        def report(share: float) -> None:
            if self.stopped.is_set():
                raise StoppedError
            self._add(task, share * task.seconds)

        return report

    def close(self, task: Task) -> None:
        self._add(task, task.seconds - self._done.get(id(task), 0.0))

    def _add(self, task: Task, seconds: float) -> None:
        with self._lock:
            self._done[id(task)] = self._done.get(id(task), 0.0) + seconds
            self._bar.update(min(seconds, self._total - self._bar.n))  # rounding could exceed the total
