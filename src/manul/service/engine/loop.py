"""A loop while it is served: its agent, what it has learned, and the queue of events to learn."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from manul.actions.decision import Decision, Decisions
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_progress import Ticket
from manul.errors import ManulError
from manul.offpolicy.evaluation.empirical_likelihood import UNKNOWN_BOUND
from manul.outcomes import outcome_of
from manul.service.engine import models
from manul.service.engine.loop_rollout import LoopRollout, OwnerAct, keep, note_arrived
from manul.service.engine.loop_space import LoopSpace
from manul.service.errors import Invalid
from manul.service.insights.history import History
from manul.service.insights.traffic import Traffic
from manul.service.loop_settings import stored_loop
from manul.service.store import OUTCOMES, Event, LoopRow, Membership, Snapshot, Store, StoreFailure
from manul.service.store.blocks import DecisionRow, RolloutTicket, new_epoch
from manul.utils import model_files

log = logging.getLogger("manul.service")
Fact = tuple[Event, DecisionRow | None]


class Drawn(NamedTuple):
    """A drawn decision, the last event that the model contained, and its ticket if a rollout is running."""

    decision: Decision
    model: int
    ticket: RolloutTicket | None


# Outcomes that are learned per acquisition of the lock; decisions wait for at most so many.
LEARN_BATCH = 32
# Events queued in memory for the learner; beyond these it reads them from the store.
MAX_QUEUED = 20_000


class Loop:
    """A loop. Decisions and learning share a lock; the model is a function of the settings and the events alone."""

    def __init__(self, row: LoopRow) -> None:
        self.row = row
        self.number, self.name, self.created = row.number, row.name, row.created
        self.epoch = new_epoch()
        self.paused, self.apprentice = row.paused, row.apprentice
        self.changed = 0.0  # when this replica paused, resumed or promoted it, by time.monotonic()
        self.settings = stored_loop(row.settings)
        self.space = LoopSpace.of(self.settings)
        self.agent = models.make_agent(self.settings)
        self.model = self.learned = self.refused = 0
        self.rollout: LoopRollout | None = None
        # Rollouts that were started by events up to this one were aborted, even if that is not learned yet.
        self.stopped = row.stopped
        # Decisions of the rollout that are not judged yet, and numbers that no decision got.
        self.in_flight, self.voids = InFlight(), deque[int]()
        self.first: Any = None
        self._shape: Any = None
        self.history, self.traffic = History(self.space.titled), Traffic()
        self.lock = threading.Lock()
        self.queue: deque[Fact] = deque()
        # While it is behind, a loop reads its events from the store and queues none.
        self.behind = True
        self._queueing = threading.Lock()
        self._waiters: list[tuple[int, Future[None]]] = []
        self.membership: Callable[[], Membership] = lambda: Membership(1, 0)
        # The generation of the replicas in which decisions of others were last read.
        self.generation = 0

    def restore(self, snapshot: Snapshot) -> None:
        agent = models.from_bytes(snapshot.model)
        rollout = LoopRollout.from_bytes(self.settings, snapshot.rollout) if snapshot.rollout else None
        with self.lock:
            self.agent, self.model = agent, snapshot.event
            self._follow(rollout)
            self.learned, self.refused = snapshot.learned, snapshot.refused
        self.history.restore(snapshot.history)
        self._notify_waiters(self.model)

    def set_first(self, context: Any) -> None:
        """Take the shape of contexts from the first stored decision; None if there is none, and the agent starts anew."""
        with self.lock:
            if self.model == 0:
                self.agent = models.make_agent(self.settings)
            self.first = self._shape = context
            self._start()

    def context(self, context: Any) -> Any:
        """A context as it is stored: a missing one becomes an empty row or mapping, as the loop uses."""
        if context:
            return context
        return {} if isinstance(self._shape, dict) or models.is_named(self.agent) else []

    @property
    def has_shape(self) -> bool:
        return self._shape is not None

    def read_first(self, store: Store) -> None:
        """Take the shape of contexts from the first decision in the store."""
        first = store.first_decision(self.number)
        self.set_first(None if first is None else first.context)

    def forget_unstored(self) -> None:
        """Forget the shape of contexts if the decision it came from could not be stored."""
        if self.first is None:
            self.set_first(None)

    def check(self, context: Any, within: models.Within | None) -> None:
        """Refuse a context or a range in which the agent cannot decide."""
        with self.lock, self._translate_errors():
            models.try_out(self.agent, context, within)
            self._shape = context if self._shape is None else self._shape

    def draw(
        self, number: int, key: int, context: Any, within: models.Within | None, callers_action: Any = None
    ) -> Drawn:
        """Draw the action of a decision with a number; `key` seeds the draw, and `callers_action` is what the caller would choose."""
        # The core takes an array without a conversion.
        features = context if isinstance(context, dict) else np.array(context, np.float64)
        with self.lock:
            try:
                if self.rollout is not None:
                    return self._draw_arm(self.rollout, number, key, features, within, callers_action)
                decision = self.agent.decide_again(key, features, within)
            except ManulError as error:
                self._start()
                raise refusal(error) from None
            if self._shape is None:
                self._shape = context
            return Drawn(decision, self.model, None)

    def _draw_arm(
        self,
        rollout: LoopRollout,
        number: int,
        key: int,
        features: Any,
        within: models.Within | None,
        callers_action: Any,
    ) -> Drawn:
        replicas, generation = self.membership()
        playing = replicas > 0 and generation == self.generation and not self.is_stopped(rollout)
        known = self.in_flight if playing else None
        decision, ticket = rollout.draw(self.agent, key, features, within, callers_action, known)
        # Each replica knows only its own decisions. Every other one may make as many, even if it dies afterwards.
        keep(self.in_flight, number, Ticket(*ticket[1:]), replicas)
        if self._shape is None:
            self._shape = features if isinstance(features, dict) else features.tolist()
        return Drawn(decision, self.model, ticket)

    def draw_many(
        self,
        numbers: Sequence[int],
        contexts: Sequence[Any],
        rows: models.Rows | None,
        withins: Sequence[models.Within | None],
    ) -> tuple[Decisions | list[Decision], int]:
        """Draw many actions from one state of the model; `rows` is the matrix of the contexts unless they are mappings."""
        with self.lock, self._translate_errors():
            decisions = models.draw_many(self.agent, numbers, contexts, rows, withins)
            self._shape = contexts[0] if self._shape is None else self._shape
            return decisions, self.model

    def is_stopped(self, rollout: LoopRollout) -> bool:
        """Whether a rollout was aborted, even if that is not learned yet."""
        return rollout.event <= self.stopped

    def stop(self, event: int) -> None:
        """Give the learner no more traffic in rollouts that were started by events up to this one."""
        self.stopped = max(self.stopped, event)

    def void(self, numbers: Sequence[int]) -> None:
        """Note numbers that no decision has got, so that a rollout does not wait for their losses."""
        rollout = self.rollout
        if rollout is not None:
            self.voids.extend(number for number in numbers if number >= rollout.progress.next)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except ManulError as error:
            self._start()
            raise refusal(error) from None

    def _start(self) -> None:
        """Restore the shape of contexts of an agent that has learned nothing, so that a refused context leaves no trace."""
        if self.first is None and self.model == 0:
            self.agent = models.make_agent(self.settings)
        if self._shape is not None and self.agent.width is None:
            # The first context may not fit any more, if a field was later learned with another type.
            with suppress(ManulError):
                models.try_out(self.agent, self._shape)

    def enqueue(self, facts: Sequence[Fact]) -> None:
        with self._queueing:
            if not self.behind and len(self.queue) + len(facts) > MAX_QUEUED:
                self.behind = True
                self.queue.clear()
            if not self.behind:
                self.queue.extend(facts)

    def fall_behind(self) -> None:
        """Drop the queue; the next events are read from the store."""
        with self._queueing:
            self.behind = True
            self.queue.clear()

    def update_behind(self, events: int) -> None:
        """Queue events from now on if the model contains all that the store has."""
        with self._queueing:
            if self.model >= events:
                self.behind = False

    def dequeue(self, limit: int) -> list[Fact]:
        """The next events that the model does not contain."""
        with self._queueing:
            facts = [self.queue.popleft() for _ in range(min(limit, len(self.queue)))]
        return [fact for fact in facts if fact[0].number > self.model]

    def learn(self, facts: Sequence[Fact], read_model: Callable[[int], bytes]) -> None:
        """Learn the next events, in order; `read_model` reads the model of an import event."""
        batch: list[Fact] = []
        for fact in facts:
            if fact[0].kind in ("import", "rollout"):
                self._learn_batch(batch)
                apply = self._import if fact[0].kind == "import" else self._apply_act
                apply(fact[0], read_model)
                batch = []
            batch.append(fact)
            if len(batch) == LEARN_BATCH:
                self._learn_batch(batch)
                batch = []
        self._learn_batch(batch)
        self._notify_waiters(self.model)

    def wait_for(self, event: int) -> Future[None]:
        """A future that completes once the model contains an event, or once the loop stops learning."""
        future: Future[None] = Future()
        with self._queueing:
            self._waiters.append((event, future))
        self._notify_waiters(None if self.paused else self.model)
        return future

    def stop_waiting(self) -> None:
        """Complete all futures of `wait_for`: the loop does not learn any more."""
        self._notify_waiters(None)

    def _notify_waiters(self, model: int | None) -> None:
        with self._queueing:
            ready = [each for each in self._waiters if model is None or each[0] <= model]
            self._waiters = [each for each in self._waiters if each not in ready]
        for _, future in ready:
            if future.set_running_or_notify_cancel():
                future.set_result(None)

    def latest_contexts(self, count: int) -> list[Any]:
        """The latest contexts with an outcome that the agent accepts; before there are any, the first context."""
        with self.history.snapshot() as history:
            contexts = [self.context(each) for each in history.contexts]
        if not contexts and self._shape is not None:
            contexts = [self._shape]
        return list(islice(filter(self._accepts, reversed(contexts)), count))[::-1]

    def _accepts(self, context: Any) -> bool:
        try:
            with self.lock:
                models.try_out(self.agent, context)
        except ManulError:
            return False
        return True

    def snapshot(self) -> Snapshot:
        """The current model. Its history fits the model only if this is called in the learner's thread."""
        # Only the copy of the arrays holds up decisions, not their encoding, which takes much longer.
        with self.lock:
            contents, trained_on = model_files.contents(self.agent), model_files.trained_on(self.agent)
            event, learned, refused = self.model, self.learned, self.refused
            rollout = b"" if self.rollout is None else self.rollout.to_bytes()
        model = model_files.encode(*contents, trained_on=trained_on)
        return Snapshot(event, model, learned, refused, self.history.to_bytes(), rollout)

    def _import(self, event: Event, read_model: Callable[[int], bytes]) -> None:
        with self._skip_on_error(event):
            agent = models.from_bytes(read_model(event.number))
            if self.first is not None:
                models.try_out(agent, self.first)
            with self.lock:
                self.agent, self.model = agent, event.number
                if self.rollout is not None:
                    self.rollout.restart(event)
            self.history.forget_judged()

    def _apply_act(self, event: Event, read_model: Callable[[int], bytes]) -> None:
        """Apply what the owner did to the rollout."""
        with self._skip_on_error(event):
            act = msgspec.json.decode(read_model(event.number), type=OwnerAct)
            with self.lock:
                if act.act == "start":
                    assert act.settings is not None
                    at: Any = {"event": event.number, "time": event.time, "again": self.rollout is not None}
                    self._follow(LoopRollout(self.settings, act.settings, first=act.first, owed=act.owed, **at))
                elif act.act == "end":
                    self._follow(None)
                elif self.rollout is not None:
                    self.rollout.apply(event, act)

    def _follow(self, rollout: LoopRollout | None) -> None:
        """Continue with a rollout, which may be another one than before."""
        if rollout is None or self.rollout is None or rollout.event != self.rollout.event:
            self.in_flight = InFlight()
        self.rollout = rollout
        if rollout is not None:
            note_arrived(self.in_flight, rollout)
            self.in_flight.forget_before(rollout.progress.next)

    def _learn_batch(self, facts: Sequence[Fact]) -> None:
        """Add events to the history, then learn those that are outcomes."""
        self.history.add(facts)
        outcomes = [fact for fact in facts if fact[0].kind in OUTCOMES]
        with self.lock:
            self._judge(outcomes)
            if outcomes and not self.learn_many(outcomes):
                for event, decision in outcomes:
                    with self._skip_on_error(event):
                        self.learn_one(event, decision)
                    self.model = event.number
            if self.rollout is not None:
                for event, decision in facts:
                    with self._skip_on_error(event):  # the model has learned them, and must not do so again
                        self.rollout.add(event, decision)
                    if event.kind in OUTCOMES and event.decision in self.rollout.progress.arrived:
                        self.in_flight.arrive(event.decision)
                self.in_flight.forget_before(self.rollout.progress.next)
            self.refused += sum(event.kind == "damaged" for event, _ in facts)
            self.model = facts[-1][0].number if facts else self.model

    def _judge(self, facts: Sequence[Fact]) -> None:
        """Note how likely the model was to take the caller's actions, before it learns from them."""
        for event, decision in facts:
            if decision is None or not decision.observed or decision.density is None or self.agent.width is None:
                continue
            with suppress(ManulError):
                density, largest = models.density_of(self.agent, decision.context, decision.action, decision.within)
                weight = density / decision.density
                bound = largest / decision.floor if decision.floor else UNKNOWN_BOUND
                if np.isfinite(weight):
                    self.history.judge(weight, max(min(bound, UNKNOWN_BOUND), weight), event.loss)

    def learn_many(self, facts: Sequence[Fact]) -> bool:
        """Learn outcomes in one call if their contexts are rows of one width; returns False if nothing was learned."""
        stored = [each for _, each in facts if each is not None and isinstance(each.context, list)]
        if len(stored) < len(facts) or len({len(each.context) for each in stored}) > 1:
            return False
        rows = np.array([each.context for each in stored], np.float64)
        losses = np.array([event.loss for event, _ in facts])
        try:
            self.agent.learn_many(rows, self.space.decisions(stored), **outcome_of(self.agent).told_many(losses))
        except ManulError:
            return False
        self.learned += len(facts)
        return True

    def learn_one(self, event: Event, stored: DecisionRow | None) -> None:
        if stored is None:
            raise LookupError(f"decision {event.decision} cannot be read from the store")
        self.agent.learn(stored.context, self.space.decision(stored), **outcome_of(self.agent).told(event.loss))
        self.learned += 1

    @contextmanager
    def _skip_on_error(self, event: Event) -> Iterator[None]:
        """Count and log an event that cannot be learned, and continue with the next one."""
        try:
            yield
        except (MemoryError, StoreFailure):
            raise
        except Exception as error:
            self.refused += 1
            why = f"{type(error).__name__}: {error}"
            log.warning(
                "event cannot be learned; skipping it",
                extra={"loop": self.name, "event": event.number, "decision": event.decision, "why": why},
            )


def refusal(error: ManulError) -> Invalid:
    """An error of the library as one of the service; a request has no other field that the library could reject."""
    if isinstance(error, Invalid):
        return error
    return Invalid(str(error), error.field if error.field in ("within", "action", "density", "loss") else "context")
