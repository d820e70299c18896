"""Group commit: one thread collects what has queued up, writes it in one transaction, and answers once it is durable."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from manul.service.problems import Problem, Unavailable
from manul.service.store import Collision, Store, StoreFailure, Transaction

log = logging.getLogger("manul.service")
T = TypeVar("T")
MOST = 512
QUICK = 0.003
TRIES = 20
BUSY = "store must be free to write; other replicas were in the way each time. Nothing was changed: try again later."
FULL = "store must have room to write; it has none or cannot be reached. Nothing was changed: try again later."


class Operation:
    """Something to be written; whoever waits for it is told once it is durable, or why it is not."""

    def apply(self, transaction: Transaction) -> None:
        """Read and write; a Problem may come out only before anything is written."""
        raise NotImplementedError

    def kept(self) -> None:
        """In the writer's thread, as soon as it is durable."""

    def answer(self, error: Exception | None) -> None:
        """Tell whoever waits, in the thread of the writer's `deliver`."""


class Task(Operation, Generic[T]):
    """A function of the transaction, and a future for its value."""

    def __init__(self, function: Callable[[Transaction], T]) -> None:
        self.future: Future[T] = Future()
        self._function = function
        self._value: T

    def apply(self, transaction: Transaction) -> None:
        """Call the function."""
        self._value = self._function(transaction)

    def answer(self, error: Exception | None) -> None:
        """Set the future."""
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self._value)


Answers = Sequence[tuple[Operation, Exception | None]]


def answered(answers: Answers) -> None:
    """Tells each operation what became of it."""
    for operation, error in answers:
        operation.answer(error)


class Writer(threading.Thread):
    """The one thread that writes. `deliver` hands answers to the thread that waits for them."""

    def __init__(self, store: Store, deliver: Callable[[Answers], None] = answered) -> None:
        super().__init__(name="manul-writer", daemon=True)
        self._store, self.deliver = store, deliver
        self._queue: SimpleQueue[Operation | None] = SimpleQueue()
        self.failing = False
        self.commits = 0
        self._turn = threading.Lock()
        self._usual = 0.0

    def submit(self, operation: Operation) -> None:
        """Have an operation written."""
        self._queue.put(operation)

    def at_once(self, operation: Operation) -> bool:
        """Write in the caller's thread where that is free and commits are quick, which saves two changes of threads."""
        if self._usual > QUICK or not self._turn.acquire(blocking=False):
            return False
        try:
            answers = self._written([operation])
        finally:
            self._turn.release()
        answered(answers)
        return True

    def call(self, function: Callable[[Transaction], T]) -> T:
        """Have a function of the transaction written, from a thread that may wait."""
        task = Task(function)
        self.submit(task)
        return task.future.result()

    def stop(self) -> None:
        """Write what has queued up, then end."""
        self._queue.put(None)
        self.join()

    def run(self) -> None:
        """Until stopped."""
        going = True
        while going:
            group = self._collected(self._queue.get())
            going = None not in group
            operations = [each for each in group if each is not None]
            if operations:
                with self._turn:
                    answers = self._written(operations)
                self._deliver(answers)

    def _deliver(self, answers: Answers) -> None:
        now = [pair for pair in answers if isinstance(pair[0], Task)]
        answered(now)
        later = [pair for pair in answers if not isinstance(pair[0], Task)]
        if later:
            self.deliver(later)

    def _collected(self, first: Operation | None) -> list[Operation | None]:
        group = [first]
        while len(group) < MOST and group[-1] is not None:
            try:
                group.append(self._queue.get_nowait())
            except Empty:
                break
        return group

    def _written(self, operations: list[Operation], tries: int = TRIES) -> Answers:
        try:
            answers = self._committed(operations)
        except StoreFailure as failure:
            self._log_failure(failure)
            return [(each, Unavailable(FULL)) for each in operations]
        except Collision:
            if len(operations) > 1:
                return [pair for each in operations for pair in self._written([each])]
            return self._written(operations, tries - 1) if tries else [(operations[0], Unavailable(BUSY))]
        except Exception as error:
            # One of them is at fault, and the others must not suffer for it.
            if len(operations) > 1:
                return [pair for each in operations for pair in self._written([each])]
            if isinstance(error, Problem):
                return [(operations[0], error)]
            log.exception("an operation failed")
            return [(operations[0], Problem("service must not fail; it did. Its log says more."))]
        if self.failing:
            log.info("the store takes writes again")
            self.failing = False
        return answers

    def _committed(self, operations: list[Operation]) -> Answers:
        answers: list[tuple[Operation, Exception | None]] = []
        began = time.perf_counter()
        with self._store.transaction() as transaction:
            for each in operations:
                try:
                    each.apply(transaction)
                    answers.append((each, None))
                except Problem as problem:
                    answers.append((each, problem))
        self.commits += 1
        self._usual += 0.1 * (time.perf_counter() - began - self._usual)
        for each, error in answers:
            if error is None:
                each.kept()
        return answers

    def _log_failure(self, failure: StoreFailure) -> None:
        if not self.failing:
            log.error("the store takes no writes (%s): requests get 503 until it does", failure)
        self.failing = True
