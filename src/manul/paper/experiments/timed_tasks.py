"""Runs measurements in parallel with a progress bar, and skips those whose results are already saved."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from manul.paper.experiments.results_file import Result, ResultsFile

Report = Callable[[float], None]


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
