"""One decision problem while it is served: its agent, what it has learned, and what is still to be learned."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from manul.errors import ManulError
from manul.service.engine import models
from manul.service.errors import Invalid
from manul.service.insights.history import History
from manul.service.insights.traffic import Traffic
from manul.service.loop_settings import NewLoop
from manul.service.store import OUTCOMES, Event, LoopRow, Snapshot, Store, StoreFailure
from manul.service.store.blocks import Decided
from manul.types import Decision, Decisions, Floats, Within

log = logging.getLogger("manul.service")
Fact = tuple[Event, Decided | None]
# Outcomes that are learned under one hold of the lock: decisions wait for no more than these.
AT_ONCE = 32
# Events kept in memory for the learner; beyond these it reads them from the store.
MOST_QUEUED = 20_000
_settings = msgspec.json.Decoder(NewLoop)


class Loop:
    """A loop. Deciding and learning take turns under its lock; the model is a function of settings and events alone."""

    def __init__(self, row: LoopRow) -> None:
        self.row = row
        self.number, self.name, self.created = row.number, row.name, row.created
        self.paused, self.apprentice = row.paused, row.apprentice
        self.settings = _settings.decode(row.settings)
        self.agent = models.make_agent(self.settings)
        self.model = self.learned = self.refused = 0
        self.first: Any = None
        self._shape: Any = None
        self.history, self.traffic = History(self.settings.actions), Traffic()
        self.lock = threading.Lock()
        self.queue: deque[Fact] = deque()
        # Until it has caught up, a loop reads its events from the store and queues none.
        self.behind = True
        self._queueing = threading.Lock()
        self._waiters: list[tuple[int, Future[None]]] = []

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot."""
        agent = models.from_bytes(snapshot.model)
        with self.lock:
            self.agent, self.model = agent, snapshot.event
            self.learned, self.refused = snapshot.learned, snapshot.refused
        self.history.restore(snapshot.history)
        self._tell_waiters(self.model)

    def meet(self, context: Any) -> None:
        """The context of the first stored decision fixes what contexts look like; without one, the agent starts anew."""
        with self.lock:
            if self.model == 0:
                self.agent = models.make_agent(self.settings)
            self.first = self._shape = context
            self._start()

    def context(self, given: Any) -> Any:
        """A context as it is stored: a missing or empty one becomes an empty one of the loop's kind."""
        if given:
            return given
        return {} if isinstance(self._shape, dict) or models.is_named(self.agent) else []

    @property
    def begun(self) -> bool:
        """Whether a context has fixed what contexts look like."""
        return self._shape is not None

    def meet_first(self, store: Store) -> None:
        """Meet the first decision that is durable; one that is not says nothing."""
        first = store.first_decision(self.number)
        self.meet(None if first is None else first.context)

    def take_back(self) -> None:
        """A decision did not become durable: if it was the first, it says nothing about contexts."""
        if self.first is None:
            self.meet(None)

    def check(self, context: Any, within: Within | None) -> None:
        """Refuses a context or a range that could not be decided in."""
        with self.lock, self._refusing():
            self.agent.distribution(context, within)
            self._shape = context if self._shape is None else self._shape

    def draw(self, number: int, context: Any, within: Within | None) -> tuple[float, float, int]:
        """An action, its density and the last event that the model contains."""
        # The core takes an array as it is; a list would go the long way.
        seen = context if isinstance(context, dict) else np.array(context, np.float64)
        with self.lock:
            try:
                action, density, _ = self.agent.decide_again(number, seen, within)
            except ManulError as error:
                self._start()
                raise refusal(error) from None
            if self._shape is None:
                self._shape = context
            return action, density, self.model

    def draw_many(
        self,
        numbers: Sequence[int],
        contexts: Sequence[Any],
        rows: models.Rows | None,
        withins: Sequence[Within | None],
    ) -> tuple[Floats, Floats, int]:
        """Many decisions from one state of the model; `rows` is the matrix of the contexts where they have no names."""
        with self.lock, self._refusing():
            actions, densities = models.draw_many(self.agent, numbers, contexts, rows, withins)
            self._shape = contexts[0] if self._shape is None else self._shape
            return actions, densities, self.model

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except ManulError as error:
            self._start()
            raise refusal(error) from None

    def _start(self) -> None:
        """An agent that has learned nothing knows the shape of contexts from one that was taken, never from one refused."""
        if self.first is None and self.model == 0:
            self.agent = models.make_agent(self.settings)
        if self._shape is not None and self.agent.width is None:
            # A field may have been learned as another kind than the first context had it: then there is nothing to meet.
            with suppress(ManulError):
                self.agent.distribution(self._shape)

    def enqueue(self, facts: Sequence[Fact]) -> None:
        """Have events learned that are in the store now."""
        with self._queueing:
            if not self.behind and len(self.queue) + len(facts) > MOST_QUEUED:
                self.behind = True
                self.queue.clear()
            if not self.behind:
                self.queue.extend(facts)

    def fall_behind(self) -> None:
        """Read the next events from the store, whatever was queued."""
        with self._queueing:
            self.behind = True
            self.queue.clear()

    @property
    def queued(self) -> int:
        """How many events wait in memory to be learned."""
        return len(self.queue)

    def caught_up(self, events: int) -> bool:
        """Whether nothing is left to read of a store with that many events; from then on events are queued."""
        with self._queueing:
            if self.model >= events:
                self.behind = False
            return not self.behind

    def dequeue(self, limit: int) -> list[Fact]:
        """The next events that the model does not contain."""
        with self._queueing:
            taken = [self.queue.popleft() for _ in range(min(limit, len(self.queue)))]
        return [fact for fact in taken if fact[0].number > self.model]

    def learn(self, facts: Sequence[Fact], imported: Callable[[int], bytes]) -> None:
        """Take in the next events, in order."""
        some: list[Fact] = []
        for fact in facts:
            if fact[0].kind == "import":
                self._learn_some(some)
                self._import(fact[0], imported)
                some = []
            some.append(fact)
            if len(some) == AT_ONCE:
                self._learn_some(some)
                some = []
        self._learn_some(some)
        self._tell_waiters(self.model)

    def reached(self, event: int) -> Future[None]:
        """A future of the moment when the model contains an event, or when the loop stops learning."""
        future: Future[None] = Future()
        with self._queueing:
            self._waiters.append((event, future))
        self._tell_waiters(self.model)
        return future

    def stop_waiting(self) -> None:
        """Release everybody who waits for an event: the loop does not learn any more."""
        self._tell_waiters(None)

    def _tell_waiters(self, model: int | None) -> None:
        with self._queueing:
            told = [each for each in self._waiters if model is None or each[0] <= model]
            self._waiters = [each for each in self._waiters if each not in told]
        for _, future in told:
            if future.set_running_or_notify_cancel():
                future.set_result(None)

    def latest_contexts(self, count: int) -> list[Any]:
        """The newest of the contexts it learned in that its agent takes; before any, the first it was asked in."""
        with self.history.settled() as settled:
            contexts = [self.context(each) for each in settled.contexts]
        if not contexts and self._shape is not None:
            contexts = [self._shape]
        return list(islice(filter(self._takes, reversed(contexts)), count))[::-1]

    def _takes(self, context: Any) -> bool:
        try:
            with self.lock:
                self.agent.distribution(context)
        except ManulError:
            return False
        return True

    def snapshot(self) -> Snapshot:
        """The model as it is now; to be called where it learns."""
        with self.lock:
            model = models.to_bytes(self.agent)
            return Snapshot(self.model, model, self.learned, self.refused, self.history.to_bytes())

    def _import(self, event: Event, imported: Callable[[int], bytes]) -> None:
        with self._set_aside(event):
            agent = models.from_bytes(imported(event.number))
            if self.first is not None:
                agent.distribution(self.first)
            with self.lock:
                self.agent, self.model = agent, event.number

    def _learn_some(self, facts: Sequence[Fact]) -> None:
        """Count events, then learn those that are outcomes."""
        self.history.add(facts)
        run = [fact for fact in facts if fact[0].kind in OUTCOMES]
        with self.lock:
            if run and not self.learn_together(run):
                for event, decided in run:
                    with self._set_aside(event):
                        self.learn_one(event, decided)
                    self.model = event.number
            self.refused += sum(event.kind == "damaged" for event, _ in facts)
            self.model = facts[-1][0].number if facts else self.model

    def learn_together(self, run: Sequence[Fact]) -> bool:
        """Learn outcomes in one call if their contexts are rows of one width; otherwise nothing is learned."""
        decided = [each for _, each in run if each is not None and isinstance(each.context, list)]
        if len(decided) < len(run) or len({len(each.context) for each in decided}) > 1:
            return False
        rows = np.array([each.context for each in decided], np.float64)
        outcomes, losses = [self._outcome(each) for each in decided], [event.loss for event, _ in run]
        try:
            self.agent.learn_many(rows, _columns(outcomes, self.settings.actions), losses)
        except ManulError:
            return False
        self.learned += len(run)
        return True

    def learn_one(self, event: Event, decided: Decided | None) -> None:
        """Learn one outcome."""
        if decided is None:
            raise LookupError(f"decision {event.decision} cannot be read from the store")
        self.agent.learn(decided.context, self._outcome(decided), event.loss)
        self.learned += 1

    @contextmanager
    def _set_aside(self, event: Event) -> Iterator[None]:
        """An event that cannot be learned is counted and logged; those after it are learned all the same."""
        try:
            yield
        except (MemoryError, StoreFailure):
            raise
        except Exception as error:
            self.refused += 1
            why = f"{type(error).__name__}: {error}"
            log.warning(
                "an event cannot be learned and is set aside",
                extra={"loop": self.name, "event": event.number, "decision": event.decision, "why": why},
            )

    def _outcome(self, decided: Decided) -> Decision:
        """Where the density of an action is not known, it is learned as if drawn evenly."""
        low, high = decided.within or self.settings.actions
        density = 1.0 / (high - low) if decided.density is None else decided.density
        return Decision(decided.action, density, decided.within)


def refusal(error: ManulError, field: str = "context") -> Invalid:
    """A refusal of the library as one of the service."""
    message = str(error)
    return Invalid(message, "within" if message.startswith("within") else field)


def _columns(outcomes: Sequence[Decision], actions: Within) -> Decisions:
    drawn, densities = ([each[place] for each in outcomes] for place in (0, 1))
    if not any(each.within for each in outcomes):
        return Decisions(np.array(drawn), np.array(densities))
    ends = np.array([each.within or actions for each in outcomes], np.float64)
    return Decisions(np.array(drawn), np.array(densities), ends[:, 0], ends[:, 1])
