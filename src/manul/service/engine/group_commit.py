"""Group commit: one thread writes all queued operations in one transaction, and answers once it is durable."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from manul.service.errors import INTERNAL, Problem, Unavailable
from manul.service.store import Collision, Lookup, Store, StoreFailure, Transaction

log = logging.getLogger("manul.service")
T = TypeVar("T")
# Operations per transaction, and attempts of one that collides with other replicas.
MAX_GROUP, MAX_ATTEMPTS = 512, 20
NO_SPAN: AbstractContextManager[Any] = nullcontext()
BUSY = "The store is busy with writes of other replicas. Nothing was changed; retry later."
UNWRITABLE = "The store is unreachable or not writable. Nothing was changed; retry later."


class SpanMaker(Protocol):
    """Makes a context manager that measures what runs inside it."""

    def __call__(self, name: str, **attributes: str | int) -> AbstractContextManager[Any]:
        """Start a span."""


def no_span(name: str, **attributes: str | int) -> AbstractContextManager[Any]:  # noqa: ARG001
    return NO_SPAN


class Operation:
    """Something to be written; its caller is told once it is durable, or why it is not."""

    def begin(self) -> Lookup | None:
        """Called before a transaction; returns what `apply` will read, to be read together for all operations."""
        return None

    def apply(self, transaction: Transaction) -> None:
        """Read and write. A Problem may be raised only before anything is written."""
        raise NotImplementedError

    def on_commit(self) -> None:
        """Called in the writer's thread as soon as the operation is durable."""

    def answer(self, error: Exception | None) -> None:
        """Tell the caller; called in the thread of the writer's `deliver`."""


_WAKE = Operation()  # in the queue of the writer: there is an urgent operation


class Task(Operation, Generic[T]):
    """A function of the transaction, and a future for its value."""

    def __init__(self, function: Callable[[Transaction], T]) -> None:
        self.future: Future[T] = Future()
        self._function = function
        self._value: T

    def apply(self, transaction: Transaction) -> None:
        self._value = self._function(transaction)

    def answer(self, error: Exception | None) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self._value)


Answers = Sequence[tuple[Operation, Exception | None]]


def deliver_answers(answers: Answers) -> None:
    """Tell each operation its result, even if another one fails to deliver its own."""
    for operation, error in answers:
        try:
            operation.answer(error)
        except Exception:
            log.exception("could not deliver an answer")


def _notify_commit(operation: Operation) -> None:
    """Call `on_commit`; the operation is durable whatever goes wrong here."""
    try:
        operation.on_commit()
    except Exception:
        log.exception("on_commit failed after a durable operation")


class Writer(threading.Thread):
    """The only thread that writes. `deliver` passes answers to the thread that waits for them."""

    def __init__(self, store: Store, deliver: Callable[[Answers], None] = deliver_answers) -> None:
        super().__init__(name="manul-writer", daemon=True)
        self._store, self.deliver = store, deliver
        self._queue: SimpleQueue[Operation | None] = SimpleQueue()
        self._urgent: deque[Operation] = deque()
        self.failing = False
        self.commits = 0
        self.span: SpanMaker = no_span
        self._stopping = False

    def submit(self, operation: Operation, *, urgent: bool = False) -> None:
        """Queue an operation; an urgent one is written before all others."""
        if urgent:
            self._urgent.append(operation)
            self._queue.put(_WAKE)
        else:
            self._queue.put(operation)

    def call(self, function: Callable[[Transaction], T]) -> T:
        """Run a function in a transaction and wait for its result."""
        task = Task(function)
        self.submit(task)
        return task.future.result()

    def stop(self) -> None:
        """Write everything that is queued, then stop; after a failure of the store, the rest is refused."""
        self._stopping = True
        self._queue.put(None)
        self.join()

    @property
    def depth(self) -> int:
        return self._queue.qsize()

    def run(self) -> None:
        going = True
        while going:
            first = self._queue.get()
            # Urgent operations have a transaction of their own, which takes less time than a full group.
            self._write_and_deliver([self._urgent.popleft() for _ in range(len(self._urgent))])
            group = self._collect(first)
            going = None not in group
            self._write_and_deliver([each for each in group if each is not None and each is not _WAKE])

    def _write_and_deliver(self, operations: list[Operation]) -> None:
        if operations:
            self._deliver(self._write(operations))

    def _deliver(self, answers: Answers) -> None:
        now = [pair for pair in answers if isinstance(pair[0], Task)]
        deliver_answers(now)
        later = [pair for pair in answers if not isinstance(pair[0], Task)]
        if later:
            self.deliver(later)

    def _collect(self, first: Operation | None) -> list[Operation | None]:
        group = [first]
        while len(group) < MAX_GROUP and group[-1] is not None:
            try:
                group.append(self._queue.get_nowait())
            except Empty:
                break
        return group

    def _write(self, operations: list[Operation], attempts: int = MAX_ATTEMPTS) -> Answers:
        if self._stopping and self.failing:
            return [(each, Unavailable(UNWRITABLE)) for each in operations]
        try:
            answers = self._commit(operations)
        except StoreFailure as failure:
            self._log_failure(failure)
            return [(each, Unavailable(UNWRITABLE)) for each in operations]
        except Exception as error:
            # Retry one by one, so that the failure of one does not affect the others; most collisions do not happen twice.
            if len(operations) > 1:
                if isinstance(error, Collision) and attempts == MAX_ATTEMPTS:
                    return self._write(operations, attempts - 1)
                return [pair for each in operations for pair in self._write([each])]
            return self._retry_or_fail(operations[0], error, attempts)
        if self.failing:
            log.info("the store is writable again")
            self.failing = False
        return answers

    def _retry_or_fail(self, operation: Operation, error: Exception, attempts: int) -> Answers:
        if isinstance(error, Collision):
            return self._write([operation], attempts - 1) if attempts else [(operation, Unavailable(BUSY))]
        if isinstance(error, Problem):
            return [(operation, error)]
        log.error("operation failed", exc_info=error)
        return [(operation, Problem(INTERNAL))]

    def _commit(self, operations: list[Operation]) -> Answers:
        answers: list[tuple[Operation, Exception | None]] = []
        lookups = [lookup for each in operations if (lookup := each.begin()) is not None]
        with self.span("write", operations=len(operations)), self._store.transaction() as transaction:
            transaction.prefetch(lookups)
            for each in operations:
                try:
                    each.apply(transaction)
                    answers.append((each, None))
                except Problem as problem:
                    answers.append((each, problem))
        self.commits += 1
        for each, error in answers:
            if error is None:
                _notify_commit(each)
        return answers

    def _log_failure(self, failure: StoreFailure) -> None:
        if not self.failing:
            log.error("the store is not writable (%s); answering 503 until it is", failure)
        self.failing = True
