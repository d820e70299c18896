"""One decision problem while it is served: its agent, what it has learned, and what is still to be learned."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from manul.errors import InputError, ManulError
from manul.service import agents, schema
from manul.service.history import History
from manul.service.problems import Invalid
from manul.service.store import OUTCOMES, Event, LoopRow, Snapshot, Store
from manul.service.store.blocks import Decided
from manul.service.traffic import Traffic
from manul.types import Decision, Decisions, Floats, Within

Fact = tuple[Event, Decided | None]
AT_ONCE = 32
MOST_QUEUED = 20_000
_settings = msgspec.json.Decoder(schema.NewLoop)


class Loop:
    """A loop. Deciding and learning take turns under its lock; the model is a function of settings and events alone."""

    def __init__(self, row: LoopRow) -> None:
        self.row = row
        self.number, self.name, self.created = row.number, row.name, row.created
        self.paused, self.apprentice = row.paused, row.apprentice
        self.settings = _settings.decode(row.settings)
        self.agent = agents.made(self.settings)
        self.model = self.learned = self.refused = 0
        self.first: Any = None
        self._shape: Any = None
        self.history, self.traffic = History(self.settings.actions), Traffic()
        self.lock = threading.Lock()
        self.queue: deque[Fact] = deque()
        # Until it has caught up, a loop reads its events from the store and queues none.
        self.behind = True
        self._queueing = threading.Lock()

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot."""
        agent = agents.from_bytes(snapshot.model)
        with self.lock:
            self.agent, self.model = agent, snapshot.event
            self.learned, self.refused = snapshot.learned, snapshot.refused
        self.history.restore(snapshot.history)

    def meet(self, context: Any) -> None:
        """The context of the first stored decision fixes what contexts look like; without one, the agent starts anew."""
        with self.lock:
            if self.model == 0:
                self.agent = agents.made(self.settings)
            self.first = self._shape = context
            self._start()

    def meet_first(self, store: Store) -> None:
        """Meet the first decision that is durable; one that is not says nothing."""
        first = store.first_decision(self.number)
        self.meet(None if first is None else first.context)

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
        rows: agents.Rows | None,
        withins: Sequence[Within | None],
    ) -> tuple[Floats, Floats, int]:
        """Many decisions from one state of the model; `rows` is the matrix of the contexts where they have no names."""
        with self.lock, self._refusing():
            actions, densities = agents.draw_many(self.agent, numbers, contexts, rows, withins)
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
            self.agent = agents.made(self.settings)
        if self._shape is not None:
            self.agent.distribution(self._shape)

    def enqueue(self, facts: Sequence[Fact]) -> None:
        """Have events learned that are in the store now."""
        with self._queueing:
            if not self.behind and len(self.queue) + len(facts) > MOST_QUEUED:
                self.behind = True
                self.queue.clear()
            if not self.behind:
                self.queue.extend(facts)

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
        run: list[tuple[Event, Decided]] = []
        for event, decided in facts:
            if event.kind in OUTCOMES and decided is not None:
                run.append((event, decided))
            if event.kind == "import" or len(run) == AT_ONCE:
                self._learn_run(run)
                run = []
            if event.kind == "import":
                self._replace(agents.from_bytes(imported(event.number)), event.number)
        self._learn_run(run)
        self.history.add(facts)
        if facts:
            self.model = facts[-1][0].number

    def latest_contexts(self) -> list[Any]:
        """The contexts it learned in last; before that, the first it was asked in."""
        with self.history.settled() as settled:
            contexts = list(settled.contexts)
        return contexts or ([] if self._shape is None else [self._shape])

    def snapshot(self) -> Snapshot:
        """The model as it is now; to be called where it learns."""
        with self.lock:
            model = agents.to_bytes(self.agent)
            return Snapshot(self.model, model, self.learned, self.refused, self.history.to_bytes())

    def _replace(self, agent: agents.LoopAgent, event: int) -> None:
        with self.lock:
            self.agent, self.model = agent, event
            if self.first is not None:
                self.agent.distribution(self.first)

    def _learn_run(self, run: Sequence[tuple[Event, Decided]]) -> None:
        if not run:
            return
        contexts = [decided.context for _, decided in run]
        rows = None if isinstance(contexts[0], dict) else np.array(contexts, np.float64)
        losses = [event.loss for event, _ in run]
        outcomes = [self._outcome(decided) for _, decided in run]
        with self.lock:
            try:
                if rows is None:
                    raise InputError("one by one")
                self.agent.learn_many(rows, _columns(outcomes, self.settings.actions), losses)
                self.learned += len(run)
            except ManulError:
                self._learn_each(contexts, outcomes, losses)
            self.model = run[-1][0].number

    def _learn_each(self, contexts: Sequence[Any], outcomes: Sequence[Decision], losses: Sequence[float]) -> None:
        for each in zip(contexts, outcomes, losses, strict=True):
            try:
                self.agent.learn(*each)
                self.learned += 1
            except ManulError:
                self.refused += 1

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
