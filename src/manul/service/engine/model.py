"""The model of a loop: its agent, its rollout, what they have learned, and the lock under which they draw and learn."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from manul.actions.decision import Decision, Decisions
from manul.agents.base import file_pieces, file_views
from manul.agents.player_host import expected_nbytes, seen_by
from manul.agents.rollout.rollout_progress import Ticket
from manul.contexts import dates
from manul.errors import ManulError
from manul.offpolicy.evaluation.empirical_likelihood import UNKNOWN_BOUND
from manul.outcomes import outcome_of
from manul.outcomes.parts import PartsReader
from manul.service.engine import loop_agent
from manul.service.engine.loop_limits import LoopLimits
from manul.service.engine.loop_rollout import LoopRollout, OwnerAct
from manul.service.engine.loop_space import LoopSpace
from manul.service.engine.losses import EventParts, parts_of
from manul.service.errors import Invalid
from manul.service.insights.history import History
from manul.service.loop_settings import NewLoop
from manul.service.store import OUTCOMES, Event, Fact, Snapshot, StoreFailure
from manul.service.store.blocks import DecisionRow, RolloutTicket
from manul.utils import model_files
from manul.utils.validation import Floats

log = logging.getLogger("manul.service")
# Outcomes that are learned per acquisition of the lock: at most so many, and fewer if they take longer than decisions should wait.
LEARN_BATCH, LEARN_SECONDS = 64, 0.002
# Seconds for which the learner lets a decision go first that waits for the lock, which is given to whoever asks for it next.
YIELD_SECONDS = 0.0002


class Drawn(NamedTuple):
    """Drawn decisions, the last event that the model contained, and their tickets if a rollout is running."""

    decisions: Decisions | list[Decision]
    model: int
    tickets: Sequence[RolloutTicket | None]


class Model:
    """An agent and a rollout that are a function of the settings and the events alone. Only this class takes their lock.

    `event` is the last event that the model contains. Rollouts that were started by events up to `stopped` were aborted, even if
    that is not learned yet. Of a `replicated` loop, other replicas make decisions too.
    """

    def __init__(self, settings: NewLoop, *, stopped: int = 0, replicated: bool = False) -> None:
        self.settings, self.space = settings, LoopSpace.of(settings)
        self.agent = loop_agent.make_agent(settings)
        self._reader = PartsReader.of(settings.learned, self.space)
        self.history = History(self.space.titled)
        self.event = self.learned = self.refused = 0
        self.limits = LoopLimits() if settings.limits else None
        self.rollout: LoopRollout | None = None
        self.stopped, self._replicated = stopped, replicated
        # The context of the first stored decision, and the one that contexts must be like.
        self.first: Any = None
        self._shape: Any = None
        self._expected_bytes: dict[int | None, int] = {}
        # The first is held by what changes the model, and by those who read it for longer than a decision may wait; it is taken
        # before the other one, which decisions take.
        self._learning, self._lock = threading.Lock(), threading.Lock()
        self._wanted, self._learn_batch_size = False, LEARN_BATCH

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._learning, self._lock:
            yield

    @contextmanager
    def hold(self) -> Iterator[Model]:
        """Nothing is drawn or learned inside the block."""
        with self._lock:
            yield self

    @property
    def has_shape(self) -> bool:
        return self._shape is not None

    def expected_bytes(self, width: int | None) -> int:
        """The memory of an agent for contexts of this width, or with names (None)."""
        if width not in self._expected_bytes:
            self._expected_bytes[width] = expected_nbytes(loop_agent.make_agent(self.settings), width)
        return self._expected_bytes[width]

    def context(self, context: Any) -> Any:
        """A context as it is stored: a missing one becomes an empty row or mapping, as the loop uses."""
        if context:
            if isinstance(context, dict):
                check_dates(context)
            return context
        return {} if isinstance(self._shape, dict) or seen_by(self.agent).named else []

    def set_first(self, context: Any) -> None:
        """Take the shape of contexts from the first stored decision; None if there is none, and the agent starts anew."""
        with self._lock:
            if self.event == 0:
                self.agent = loop_agent.make_agent(self.settings)
            self.first = self._shape = context
            self._start()

    def note_stored(self, numbers: Sequence[int], event: int) -> None:
        """Note the event that has what some decisions are expected to spend and keep."""
        assert self.limits is not None
        with self._lock:
            self.limits.stored(numbers, event)

    def release(self, numbers: Iterable[int]) -> None:
        """Give back what is held for decisions that were drawn but not made."""
        if self.limits is not None:
            with self._lock:
                self.limits.release(numbers)

    def forget_unstored(self) -> None:
        """Forget the shape of contexts if the decision it came from could not be stored."""
        if self.first is None:
            self.set_first(None)

    def check(self, context: Any, within: Any) -> None:
        """Refuse a context or a range in which the agent cannot decide."""
        with self._deciding(context):
            self.agent.decide_again(0, context, within)

    def accepts(self, context: Any) -> bool:
        try:
            with self._lock:
                self.agent.decide_again(0, context)
        except ManulError:
            return False
        return True

    def latest_contexts(self, count: int) -> list[Any]:
        """The latest contexts with an outcome that the agent accepts; before there are any, the first context."""
        with self.history.snapshot() as history:
            contexts = [self.context(each) for each in history.contexts]
        if not contexts and self._shape is not None:
            contexts = [self._shape]
        return list(islice(filter(self.accepts, reversed(contexts)), count))[::-1]

    def draw(
        self,
        numbers: Sequence[int],
        keys: Sequence[int],
        contexts: Sequence[Any],
        withins: Sequence[Any],
        callers_actions: Sequence[Any],
        matrix: Floats | None = None,
        times: Sequence[datetime] = (),
    ) -> Drawn:
        """Draw the actions of decisions with some numbers from one state of the model.

        `keys` seed the draws, `callers_actions` are what the callers would choose, `matrix` has the contexts if all are rows, and
        `times` are those of the decisions, for a budget.
        """
        with self._deciding(contexts[0]):
            if self.limits is not None and self.rollout is None:
                levels = loop_agent.asked(self.agent).get("levels", False)
                limited = self.limits.draw(self.agent, numbers, keys, contexts, withins, times, levels=levels)
                return Drawn(limited, self.event, [None] * len(numbers))
            if self.rollout is None:
                drawn = loop_agent.draw_many(self.agent, keys, contexts, matrix, withins)
                return Drawn(drawn, self.event, [None] * len(numbers))
            playing = not self.is_stopped(self.rollout)
            decisions, tickets = list[Decision](), list[RolloutTicket | None]()
            # One by one, because each decision changes what the guarantee leaves for the next one.
            for number, key, context, within, action in zip(
                numbers, keys, contexts, withins, callers_actions, strict=True
            ):
                # The core takes an array without a conversion.
                features = context if isinstance(context, dict) else np.array(context, np.float64)
                given: Any = {"number": number, "playing": playing}
                decision, ticket = self.rollout.draw(self.agent, key, features, within, action, **given)
                if self.limits is not None and ticket.learner:
                    self.limits.note(number, loop_agent.ledger_of(self.agent).expect(features, within))
                decisions.append(decision)
                tickets.append(ticket)
            return Drawn(decisions, self.event, tickets)

    def distribution(self, context: Any) -> Any:
        """The distribution that decisions are drawn from, without the rollout."""
        with self._lock:
            return self.agent.distribution(context)

    @contextmanager
    def _deciding(self, context: Any) -> Iterator[None]:
        """Hold the lock. The first context determines the shape of contexts, unless it is refused."""
        self._wanted = True
        with self._lock:
            self._wanted = False
            try:
                yield
            except ManulError as error:
                self._start()
                raise refusal(error) from None
            if self._shape is None:
                self._shape = context

    def _start(self) -> None:
        """Restore the shape of contexts of an agent that has learned nothing, so that a refused context leaves no trace."""
        if self.first is None and self.event == 0:
            self.agent = loop_agent.make_agent(self.settings)
        if self._shape is not None and seen_by(self.agent).width is None:
            # The first context may not fit any more, if a field was later learned with another type.
            with suppress(ManulError):
                self.agent.decide_again(0, self._shape)

    def is_stopped(self, rollout: LoopRollout) -> bool:
        """Whether a rollout was aborted, even if that is not learned yet."""
        return rollout.event <= self.stopped

    def stop(self, event: int) -> None:
        """Give the learner no more traffic in rollouts that were started by events up to this one."""
        self.stopped = max(self.stopped, event)

    def load_in_flight(self, rollout: LoopRollout, stored: Mapping[int, Ticket | None]) -> None:
        """Take the decisions in flight from the store, unless there is another rollout by now; if the loop is replicated, add those
        that are not known yet."""
        with self._lock:
            if self.rollout is not None and self.rollout.event == rollout.event:
                (self.rollout.join if self._replicated else self.rollout.load_in_flight)(stored)

    def note_unused(self, numbers: Sequence[int]) -> None:
        """Note numbers that no decision will get, so that they do not count as decisions of others."""
        with self._lock:
            if self.rollout is not None:
                for number in numbers:
                    self.rollout.in_flight.note(number)

    def restore(self, snapshot: Snapshot) -> None:
        agent = loop_agent.from_bytes(snapshot.model)
        rollout = LoopRollout.from_bytes(self.settings, snapshot.rollout) if snapshot.rollout else None
        with self._changing():
            self.agent = agent
            if self.limits is not None:
                self.limits.forget_until(snapshot.event)
            self._follow(rollout)
            # Last, as in all that follows: whoever waits for them finds them in the rollout too.
            self.learned, self.refused, self.event = snapshot.learned, snapshot.refused, snapshot.event
        self.history.restore(snapshot.history)

    def snapshot(self) -> Snapshot:
        """The current model; decisions go on meanwhile."""
        with self._learning:
            snapshot, pieces = self.begin_snapshot()
            return snapshot._replace(model=model_files.join(pieces))

    def begin_snapshot(self) -> tuple[Snapshot, Iterator[bytes]]:
        """A snapshot without its model, and the model in pieces, which are made one by one while decisions go on; called in the
        learner's thread, which must learn nothing until it has the last piece."""
        with self._lock:
            agent: Any = self.agent
            views = file_views(agent)
            # What an agent outside the core changes when it decides is unknown, so its contents are copied under the lock.
            contents = model_files.contents(agent) if views is None else None
            rollout = b"" if self.rollout is None else self.rollout.to_bytes()
            snapshot = Snapshot(self.event, b"", self.learned, self.refused, rollout=rollout)
        snapshot = snapshot._replace(history=self.history.to_bytes())
        if views is not None:
            return snapshot, file_pieces(agent, views)
        assert contents is not None
        return snapshot, model_files.pieces(*contents, trained_on=model_files.trained_on(agent))

    def learn(self, facts: Sequence[Fact], read_model: Callable[[int], bytes]) -> None:
        """Learn the next events, in order; `read_model` reads what is stored under an import or an act of the owner."""
        start = 0
        for place, (event, _) in enumerate(facts):
            if event.kind in ("import", "rollout"):
                self._learn_batches(facts[start:place])
                apply = self._import if event.kind == "import" else self._apply_act
                with self._skip_on_error(event):
                    apply(event, read_model(event.number))
                start = place
        self._learn_batches(facts[start:])

    def _learn_batches(self, facts: Sequence[Fact]) -> None:
        start = 0
        while start < len(facts):
            batch = facts[start : start + self._learn_batch_size]
            start += len(batch)
            began = time.thread_time()
            self._learn_batch(batch)
            seconds = (time.thread_time() - began) / len(batch)
            self._learn_batch_size = min(LEARN_BATCH, max(1, int(LEARN_SECONDS / max(seconds, 1e-9))))
            if self._wanted:
                time.sleep(YIELD_SECONDS)

    def _import(self, event: Event, body: bytes) -> None:
        agent = loop_agent.from_bytes(body)
        if self.first is not None:
            agent.decide_again(0, self.first)
        with self._changing():
            if self.limits is not None:  # money is spent, whatever the model is
                loop_agent.ledger_of(agent).take(loop_agent.ledger_of(self.agent))
            self.agent = agent
            if self.rollout is not None:
                self.rollout.restart(event)
            self.event = event.number
        self.history.forget_judged()

    def _apply_act(self, event: Event, body: bytes) -> None:
        act = msgspec.json.decode(body, type=OwnerAct)
        with self._changing():
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
        if rollout is not None:
            rollout.continue_from(self.rollout, replicated=self._replicated)
        self.rollout = rollout

    def _learn_batch(self, facts: Sequence[Fact]) -> None:
        """Add events to the history, then learn those that are outcomes."""
        self.history.add(facts)
        outcomes = [fact for fact in facts if fact[0].kind in OUTCOMES]
        with self._changing():
            self._judge(outcomes)
            together = self.limits is None and self.learn_many(outcomes)
            for event, decision in facts:
                if self.limits is not None:
                    with self._skip_on_error(event):  # apart from learning, so that no cost is lost if that fails
                        self.limits.count(self.agent, event, decision)
                learned = together and event.kind in OUTCOMES
                if not together and event.kind in OUTCOMES:
                    with self._skip_on_error(event):
                        self.learn_one(event, decision)
                        learned = True
                if self.rollout is not None:
                    with self._skip_on_error(event):  # the model has learned it, and must not do so again
                        self.rollout.add(event, decision)
                self.refused += event.kind == "damaged"
                self.learned += learned
                self.event = event.number
            if self.rollout is not None:
                self.rollout.forget_judged()

    def _judge(self, facts: Sequence[Fact]) -> None:
        """Note how likely the model was to take the caller's actions, before it learns from them."""
        for event, decision in facts if seen_by(self.agent).width is not None else ():
            if decision is None or not decision.observed or decision.density is None:
                continue
            with suppress(ManulError):
                density, largest = loop_agent.density_of(self.agent, decision.context, decision.action, decision.within)
                weight = density / decision.density
                bound = largest / decision.floor if decision.floor else UNKNOWN_BOUND
                if np.isfinite(weight):
                    self.history.judge(weight, max(min(bound, UNKNOWN_BOUND), weight), event.loss)

    def check_costs(self, decision: DecisionRow, parts: Mapping[str, float]) -> None:
        """Refuse parts that do not say what a decision has spent or kept."""
        if self.limits is not None:
            loop_agent.ledger_of(self.agent).costs(decision.action, decision.context, parts)

    def value(self, decision: DecisionRow, parts: Mapping[str, float]) -> float:
        """The value of the loop's formula for the parts of a decision; raises InputError if it has none."""
        assert self._reader is not None
        return self._reader.value(decision.action, decision.context, parts)

    def learn_many(self, facts: Sequence[Fact]) -> bool:
        """Learn outcomes in one call if their contexts are rows of one width; returns False if nothing was learned."""
        stored = [each for _, each in facts if each is not None]
        rows = loop_agent.matrix_of([each.context for each in stored])
        if rows is None or len(stored) < len(facts):
            return False
        losses = np.array([event.loss for event, _ in facts])
        parts: dict[str, Any] = {}
        if self._reader is not None:
            reported = [parts_of(event) for event, _ in facts]
            names = self._reader.modelled
            parts = {"parts": {name: [_part(each, name) for each in reported] for name in names}}
            losses[[each is not None and not each.judged for each in reported]] = (
                np.nan
            )  # the formula computes them again
        try:
            told = outcome_of(self.agent).told_many(losses)
            self.agent.learn_many(rows, self.space.decisions(stored), **told, **parts)
        except ManulError:
            return False
        return True

    def learn_one(self, event: Event, stored: DecisionRow | None) -> None:
        if stored is None:
            raise LookupError(f"decision {event.decision} cannot be read from the store")
        reported, told = parts_of(event), dict[str, Any](outcome_of(self.agent).told(event.loss))
        if reported is not None:
            modelled = () if self._reader is None else self._reader.modelled
            parts = {name: value for name, value in reported.parts.items() if name in modelled}
            told = {**(told if reported.judged else {}), **({"parts": parts} if modelled else {})}
        self.agent.learn(stored.context, self.space.decision(stored), **told)

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
                extra={"loop": self.settings.name, "event": event.number, "decision": event.decision, "why": why},
            )


def _part(reported: EventParts | None, name: str) -> float | None:
    return None if reported is None else reported.parts.get(name)


def check_dates(context: dict[str, Any]) -> None:
    """Refuse an object with a date or a time of day and more, which the core would take for a mapping."""
    rest = [value for value in context.values() if isinstance(value, dict | list)]
    while rest:
        value = rest.pop()
        if isinstance(value, dict) and len(value) > 1 and (dates.DATE in value or dates.CLOCK in value):
            key = dates.DATE if dates.DATE in value else dates.CLOCK
            others = ", ".join(name for name in value if name != key)[:80]
            raise Invalid(
                f"context has an object with {key} and other fields, {others}. Send {{{key!r}: ...}} alone.", "context"
            )
        within = value.values() if isinstance(value, dict) else value
        rest.extend(each for each in within if isinstance(each, dict | list))


def refusal(error: ManulError) -> Invalid:
    """An error of the library as one of the service; a request has no other field that the library could reject."""
    if isinstance(error, Invalid):
        return error
    fields = ("within", "action", "density", "loss", "at")
    return Invalid(str(error), error.field if error.field in fields else "context")
