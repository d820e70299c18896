"""The thread that learns: it applies events in the store's order and saves snapshots."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from itertools import chain

from manul.service.engine.following import Following
from manul.service.engine.group_commit import SpanMaker, Writer, no_span
from manul.service.engine.loop import Loop
from manul.service.errors import Problem, Unavailable
from manul.service.store import DAMAGED, Collision, Damaged, Event, Fact, Store, StoreFailure, Transaction

log = logging.getLogger("manul.service")
# Events of one loop before the next loop gets its turn.
EVENTS_PER_TURN = 512
# Snapshots kept of each loop: if the newest is damaged, the loop starts from an older one.
SNAPSHOTS_KEPT = 2
# Seconds between two reads of what other replicas did.
POLL_SECONDS = 0.05
# Seconds in which events gather: to learn many together costs less than one by one, and takes the interpreter's lock less often.
GATHER_SECONDS = 0.01
# Seconds to wait after the store could not be read or a loop failed.
FAILURE_SECONDS = 1.0
# The longest time between snapshots if other replicas follow them.
REPLICA_SNAPSHOT_SECONDS = 2.0
# The longest time until a failed snapshot is retried.
RETRY_SECONDS = 10.0
# The largest share of the time that the learner saves a large model, unless that is urgent. Other loops learn nothing meanwhile.
SAVING_SHARE = 0.05
# Time to learn what is queued and to save the last snapshots when the service stops; a loop that gets none replays its events
# at the next start.
LEARN_SECONDS, STOP_SECONDS = 2.0, 5.0


class Learner(threading.Thread):
    """Learns the events of all loops that are not paused, in turns."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        loops: Callable[[], Iterable[Loop]],
        *,
        seconds: float,
        events: int,
        following: Following | None = None,
    ) -> None:
        super().__init__(name="manul-learner", daemon=True)
        self._store, self._writer, self._loops = store, writer, loops
        self._seconds, self._events, self._following = seconds, events, following
        if following is not None:
            self._seconds = min(seconds, REPLICA_SNAPSHOT_SECONDS)
        self._woken, self._stopped = threading.Event(), threading.Event()
        self._has_more, self._deadline = False, math.inf
        self.span: SpanMaker = no_span

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        """Learn what is queued, save a snapshot of every loop, and stop."""
        self._deadline = time.monotonic() + STOP_SECONDS
        self._stopped.set()
        self.wake()
        self.join()

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._round()
            except StoreFailure as failure:
                log.warning("the store cannot be read (%s); retrying", failure)
                self._stopped.wait(FAILURE_SECONDS)
            except Exception:
                log.exception("cannot follow the other replicas; no loop learns here until this succeeds; retrying")
                self._stopped.wait(FAILURE_SECONDS)
        try:
            self._finish()
        except StoreFailure as failure:
            log.warning("the store cannot be read (%s); the last snapshots were not saved", failure)

    def _round(self) -> None:
        self._woken.clear()
        if self._stopped.is_set():
            return
        if self._following is not None:
            self._following.refresh()
        self._has_more = False
        busy = [self._guarded_turn(loop) for loop in self._loops()]
        if self._following is not None:
            # Events are read from the store, where large batches are cheaper.
            self._stopped.wait(0 if self._has_more else POLL_SECONDS)
            return
        if not any(busy):
            self._woken.wait(min(self._seconds, FAILURE_SECONDS) if self.failing else self._seconds)
        self._stopped.wait(0 if self._has_more else GATHER_SECONDS)

    def _finish(self) -> None:
        if self._following is not None:
            self._following.refresh()
        # The rest of the time is for snapshots: also one of a model that lacks the latest events shortens the next start.
        until = self._deadline - STOP_SECONDS + LEARN_SECONDS
        for loop in self._loops():
            while not loop.paused and time.monotonic() < until and self._guarded_turn(loop):
                pass
        own = [loop for loop in self._loops() if self.learns(loop)]
        unsaved = [loop.name for loop in own if time.monotonic() >= self._deadline or not self._save_snapshot(loop)]
        if unsaved:
            log.warning(
                "last snapshots not saved; the next start learns the latest events again: %s", ", ".join(unsaved)
            )

    def _guarded_turn(self, loop: Loop) -> bool:
        """Give a loop its turn. If it fails, the others continue, and this one reads its events again from the store."""
        if time.monotonic() < loop.feed.rests_until:
            return False
        try:
            busy = self._turn(loop)
        except StoreFailure:
            loop.feed.fall_behind()
            raise
        except Exception as error:
            if loop.feed.failure is None:
                log.exception("loop failed to learn; retrying every second", extra={"loop": loop.name})
            loop.feed.rests_until = time.monotonic() + FAILURE_SECONDS
            loop.feed.failure = DAMAGED if isinstance(error, Damaged) else "learning fails, and is retried every second"
            loop.feed.fall_behind()
            return False
        loop.feed.rests_until, loop.feed.failure = 0.0, None
        return busy

    @property
    def failing(self) -> list[str]:
        return sorted(loop.name for loop in self._loops() if loop.feed.rests_until)

    def leads(self) -> bool:
        return self._following is None or self._following.leads()

    def learns(self, loop: Loop) -> bool:
        """Whether this replica learns a loop; no other does."""
        return self._following is None or self._following.learns(loop.number)

    def catch_up(self, loop: Loop) -> None:
        """Learn everything in the store, in the caller's thread; a loop whose events cannot be read must not be served."""
        while loop.feed.behind and not loop.paused and self._guarded_turn(loop):
            pass
        if loop.feed.failure == DAMAGED:
            raise Damaged

    def _turn(self, loop: Loop) -> bool:
        """Learn the next events of a loop; returns whether there may be more."""
        if loop.paused or not self.learns(loop):
            return False
        if loop.feed.saved is None:
            loop.feed.saved = loop.model.event, time.monotonic()
        facts, moves = self._next(loop), _moves(loop)
        if (
            facts and self._following is not None
        ):  # so that the rollout knows the decisions before those that it learns of
            loop.read_others(max(event.decision for event, _ in facts))
        self._has_more = self._has_more or len(facts) == EVENTS_PER_TURN
        with (self.span if facts else no_span)("learn", loop=loop.name, events=len(facts)):
            loop.learn(facts, lambda event: self._store.model(loop.number, event))
        if loop.feed.behind:
            loop.feed.keep_up(loop.model.event, self._store.counts(loop.number).events)
        urgent = _moves(loop) != moves or any(event.kind in ("import", "rollout") for event, _ in facts)
        if self._following is not None and urgent:
            self._save_snapshot(loop)
        self._save_if_due(loop)
        return bool(facts) or loop.feed.behind

    def _next(self, loop: Loop) -> list[Fact]:
        """The next events: from the queue or, if other replicas may have added some, from the store."""
        if loop.feed.behind or (self._following is not None and self._following.has_new_events(loop)):
            facts = self._read(loop)
            if loop.model.first is None and any(decision is not None for _, decision in facts):
                loop.read_first()
            return facts
        return loop.feed.take(EVENTS_PER_TURN, loop.model.event)

    def _read(self, loop: Loop) -> list[Fact]:
        """The next events in the store; if events are missing, the loop continues after them."""
        facts = self._store.events(loop.number, loop.model.event, EVENTS_PER_TURN)
        if facts:
            return facts
        after, counted = loop.model.event, self._store.counts(loop.number).events
        facts = self._store.events(loop.number, after, EVENTS_PER_TURN)
        if not facts and counted > after:
            log.error("events are missing from the store", extra={"loop": loop.name, "after": after, "to": counted})
            return [(Event(counted, 0, "damaged", 0.0, 0.0), None)]
        return facts

    def _save_if_due(self, loop: Loop) -> None:
        event, at = loop.feed.saved or (0, 0.0)
        new, now = loop.model.event - event, time.monotonic()
        if now >= loop.feed.save_after and (new >= self._events or (new and now - at >= self._seconds)):
            self._save_snapshot(loop)

    def _save_snapshot(self, loop: Loop) -> bool:
        """Save a snapshot unless the newest one is of the same model; returns whether there is one then."""
        began = time.monotonic()
        try:
            if loop.model.event in self._store.snapshots(loop.number)[:1] or not loop.model.event:
                return True
            event, pieces = self._write_snapshot(loop)
        except (Problem, StoreFailure, Collision):
            loop.feed.save_after = time.monotonic() + min(RETRY_SECONDS, self._seconds)
            log.warning("could not save a snapshot; it will be retried", extra={"loop": loop.name})
            return False
        now = time.monotonic()
        loop.feed.saved, loop.feed.save_after = (event, now), now + (now - began) / SAVING_SHARE if pieces else 0.0
        log.info("saved a snapshot", extra={"loop": loop.name, "event": event})
        return True

    def _write_snapshot(self, loop: Loop) -> tuple[int, int]:
        """Write a snapshot; a large model is written in pieces, so that other writes do not wait for it. Returns its event and
        the number of pieces."""
        snapshot, pieces = loop.model.begin_snapshot()
        first, second = next(pieces), next(pieces, None)
        if second is None:
            snapshot = snapshot._replace(model=first)
            self._writer.call(lambda transaction: transaction.add_snapshot(loop.number, snapshot, keep=SNAPSHOTS_KEPT))
            return snapshot.event, 0
        beside = self._store.transaction_beside()
        with nullcontext() if beside is None else beside as own:

            def write(function: Callable[[Transaction], None]) -> None:
                if time.monotonic() > self._deadline:
                    raise Unavailable("There is no time for a snapshot.")
                self._writer.call(function) if own is None else function(own)

            count = 0
            for piece in chain((first, second), pieces):
                write(partial(_add_piece, loop.number, snapshot.event, count, piece))
                count += 1
            write(lambda tx: tx.add_snapshot(loop.number, snapshot, keep=SNAPSHOTS_KEPT, pieces=count))
        return snapshot.event, count


def _add_piece(loop: int, event: int, place: int, piece: bytes, transaction: Transaction) -> None:
    transaction.add_piece(loop, event, place, piece)


def _moves(loop: Loop) -> int:
    """The number of moves of a loop's rollout, which the other replicas should see at once."""
    return 0 if loop.model.rollout is None else len(loop.model.rollout.moves)
