"""Group commit: one thread collects what has queued up, writes it in one transaction, and answers once it is durable."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from manul.service.errors import Problem, Unavailable
from manul.service.store import Collision, Store, StoreFailure, Transaction

log = logging.getLogger("manul.service")
T = TypeVar("T")
# Operations that are written in one transaction, and tries of one that other replicas stand in the way of.
MOST, TRIES = 512, 20
BUSY = "The store is busy with writes of other replicas. Nothing was changed; try again later."
FULL = "The store cannot be reached or cannot be written to. Nothing was changed; try again later."


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
        if not self.future.set_running_or_notify_cancel():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self._value)


Answers = Sequence[tuple[Operation, Exception | None]]


def answered(answers: Answers) -> None:
    """Tells each operation what became of it; one that fails at that keeps no other from being told."""
    for operation, error in answers:
        try:
            operation.answer(error)
        except Exception:
            log.exception("an answer could not be delivered")


def _settle(operation: Operation) -> None:
    """What follows from a durable operation; nothing that goes wrong here may undo it."""
    try:
        operation.kept()
    except Exception:
        log.exception("a durable operation could not be followed up")


class Writer(threading.Thread):
    """The one thread that writes. `deliver` hands answers to the thread that waits for them."""

    def __init__(self, store: Store, deliver: Callable[[Answers], None] = answered) -> None:
        super().__init__(name="manul-writer", daemon=True)
        self._store, self.deliver = store, deliver
        self._queue: SimpleQueue[Operation | None] = SimpleQueue()
        self.failing = False
        self.commits = 0
        self._stopping = False

    def submit(self, operation: Operation) -> None:
        """Have an operation written."""
        self._queue.put(operation)

    def call(self, function: Callable[[Transaction], T]) -> T:
        """Have a function of the transaction written, from a thread that may wait."""
        task = Task(function)
        self.submit(task)
        return task.future.result()

    def stop(self) -> None:
        """Write what has queued up, then end; once the store fails, the rest is refused at once."""
        self._stopping = True
        self._queue.put(None)
        self.join()

    @property
    def depth(self) -> int:
        """How many operations wait to be written."""
        return self._queue.qsize()

    def run(self) -> None:
        """Until stopped."""
        going = True
        while going:
            group = self._collected(self._queue.get())
            going = None not in group
            operations = [each for each in group if each is not None]
            if operations:
                self._deliver(self._written(operations))

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
        if self._stopping and self.failing:
            return [(each, Unavailable(FULL)) for each in operations]
        try:
            answers = self._committed(operations)
        except StoreFailure as failure:
            self._log_failure(failure)
            return [(each, Unavailable(FULL)) for each in operations]
        except Exception as error:
            # One of them is at fault, and the others must not suffer for it.
            if len(operations) > 1:
                return [pair for each in operations for pair in self._written([each])]
            return self._failed(operations[0], error, tries)
        if self.failing:
            log.info("the store takes writes again")
            self.failing = False
        return answers

    def _failed(self, operation: Operation, error: Exception, tries: int) -> Answers:
        if isinstance(error, Collision):
            return self._written([operation], tries - 1) if tries else [(operation, Unavailable(BUSY))]
        if isinstance(error, Problem):
            return [(operation, error)]
        log.error("an operation failed", exc_info=error)
        return [(operation, Problem("Internal error; see the server log."))]

    def _committed(self, operations: list[Operation]) -> Answers:
        answers: list[tuple[Operation, Exception | None]] = []
        with self._store.transaction() as transaction:
            for each in operations:
                try:
                    each.apply(transaction)
                    answers.append((each, None))
                except Problem as problem:
                    answers.append((each, problem))
        self.commits += 1
        for each, error in answers:
            if error is None:
                _settle(each)
        return answers

    def _log_failure(self, failure: StoreFailure) -> None:
        if not self.failing:
            log.error("the store takes no writes (%s): requests get 503 until it does", failure)
        self.failing = True
