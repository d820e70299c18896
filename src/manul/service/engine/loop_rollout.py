"""The rollout of a loop: a function of what its owner did and of the outcomes of its decisions, in the order of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from manul.actions.decision import Decision, Narrowing, Within
from manul.actions.space import ActionSpace
from manul.agents.rollout import rollout_files
from manul.agents.rollout.baselines import CALLER, Baseline, PolicyBaseline, check_baseline, mixed_levels
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.predictions import predicted_loss
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Arrived, Progress, Ticket
from manul.errors import ManulError
from manul.service.engine.loop_agent import asked, from_bytes
from manul.service.engine.loop_space import LoopSpace
from manul.service.engine.losses import parts_of
from manul.service.errors import Invalid
from manul.service.loop_settings import NewLoop, agent_settings
from manul.service.rollout_schema import NewRollout, RolloutLook, RolloutMove, Step
from manul.service.store import OUTCOMES, Event
from manul.service.store.blocks import DecisionRow, RolloutTicket

# Looks that are kept for pictures; if there are more, every second one is dropped.
MAX_LOOKS = 400


class OwnerAct(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What an owner does to a rollout, as it is stored under an event; `first` is the first decision that it can judge.

    "notified" says that the webhook has received so many moves of the rollout that an event started. `owed` is what the learner
    had cost beyond the tolerance before the loop was reset, and `worse` says that a rollout was rolled back before that.
    """

    act: Literal["start", "pause", "resume", "abort", "end", "notified"]
    settings: NewRollout | None = None
    first: int = 0
    rollout: int = 0
    moves: int = 0
    owed: float = 0.0
    worse: bool = False


class _Saved(msgspec.Struct, kw_only=True):
    event: int
    started: float
    settings: NewRollout
    progress: dict[str, Any]
    paused: bool
    step_began: float
    counts: tuple[int, int]
    moves: list[RolloutMove]
    looks: list[RolloutLook]
    notified: int


_encode, _decoder = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(_Saved)


class LoopRollout:
    """A rollout that was started by an event of its loop, and its decisions that are not judged (`in_flight`). Its methods are
    called under the lock of the model."""

    def __init__(
        self,
        loop: NewLoop,
        settings: NewRollout,
        *,
        event: int,
        time: float,
        first: int,
        owed: float = 0.0,
        again: bool = False,
    ) -> None:
        self.settings, self.event, self.started = settings, event, time
        self.baseline, self.plan, losses = check(loop, settings)
        guards = self.plan.guards(loop.outcome)
        self.seed = agent_settings(loop)["seed"]
        self.progress = Progress(self.plan, losses, next=first, owed=owed, guards=guards)
        self.in_flight = InFlight()
        self.paused, self.step_began, self.notified = False, time, 0
        self.counts = [0, 0]
        self.moves: list[RolloutMove] = []
        self.looks: list[RolloutLook] = []
        self._note_move(Event(event, 0, "rollout", 0.0, time), "restarted" if again else "started", origin=0)

    def draw(
        self,
        agent: Any,
        key: int,
        context: Any,
        within: Narrowing | None,
        callers_action: Any,
        *,
        number: int,
        playing: bool,
    ) -> tuple[Decision, RolloutTicket]:
        """Draw the decision of a number from one of the arms; the learner gets no traffic unless it is `playing`."""
        if callers_action is not None and self.settings.baseline != CALLER:
            raise Invalid(
                'action is only for a rollout with the baseline "caller"; this one has another baseline. Leave it out.',
                "action",
            )
        baseline = self.baseline.arm(context, within, callers_action)
        learner = agent.decide_again(key, context, within, **asked(agent))
        if learner.floor is None:
            raise Invalid("The agent of this loop draws from single actions. A rollout needs a density.", "loop")
        # A number that is judged already was reserved before the rollout began, or given up because it was not used for long.
        playing = playing and number >= self.progress.next
        share = self.in_flight.share(self.progress, number) if playing else 0.0

        def look_up(action: Any) -> tuple[float, float | None]:
            narrowed = None if within is None else [within]
            return float(agent.distributions([context], narrowed).density([action])[0]), learner.floor

        predicted = predicted_loss(agent, context, within, baseline.action, share)
        drawn = baseline.draw(self.seed, key, share, decide=lambda: learner, look_up=look_up)
        ticket = self.progress.ticket(learner=drawn.arm == "learner", share=share, predicted=predicted)
        mixed = mixed_levels(agent.space, learner, baseline, share)
        if share > 0:
            self.in_flight.add(number, ticket)
        else:  # it costs nothing
            self.in_flight.note(number)
        return drawn._replace(within=within, drawn=mixed), RolloutTicket(self.event, *ticket)

    @property
    def stated_baseline(self) -> Any:
        """The action of the baseline, "caller" or "policy"."""
        return "policy" if isinstance(self.baseline, PolicyBaseline) else self.settings.baseline

    def add(self, event: Event, decision: DecisionRow | None) -> None:
        """Add an event: the outcome of a decision, that it is overdue, or a number that no decision has."""
        if event.kind not in ("void", "overdue", *OUTCOMES):
            return
        ticket = None if decision is None else self.own_ticket(decision)
        if ticket is not None and event.kind in OUTCOMES:
            self.counts[not ticket.learner] += 1
        self.progress.held = self.paused or event.time < self.not_before
        looks, moves = self.progress.judged // COHORT, len(self.progress.moves)
        parts = parts_of(event) if self.progress.guards else None
        loss = None if event.kind == "overdue" else event.loss
        self.progress.add(event.decision, ticket, loss, None if parts is None else parts.parts)
        for move in self.progress.moves[moves:]:
            self._note_move(event, move.reason, move.guard, origin=move.origin, low=move.low, high=move.high)
            self.step_began = event.time
        if self.progress.judged // COHORT > looks:
            self._look(event.time)
        if event.decision in self.progress.arrived:
            self._note(event.decision, self.progress.arrived[event.decision])

    def load_in_flight(self, stored: Mapping[int, Ticket | None]) -> None:
        """Take the decisions in flight from those that are stored, which are all."""
        known = {number: each for number, each in stored.items() if each is not None and number >= self.progress.next}
        self.in_flight = InFlight({number: each for number, each in known.items() if each.share > 0})
        self._note_arrived()

    def join(self, stored: Mapping[int, Ticket | None]) -> None:
        """Add decisions that were read from the store to those in flight; other replicas made some of them."""
        self.in_flight.join(stored, self.progress)

    def continue_from(self, before: LoopRollout | None, *, replicated: bool) -> None:
        """Keep the decisions in flight if the rollout before was the same one, at an earlier event. If the loop is `replicated`, the
        decisions of others are not known yet."""
        if before is not None and before.event == self.event:
            self.in_flight = before.in_flight
        elif replicated:
            self.in_flight = InFlight(known_to=self.progress.next - 1)
        self._note_arrived()
        self.forget_judged()

    def forget_judged(self) -> None:
        self.in_flight.forget_before(self.progress.next)

    def _note_arrived(self) -> None:
        """Note which decisions have losses, although they are not judged yet, and which there are not."""
        for number, arrived in self.progress.arrived.items():
            self._note(number, arrived)

    def _note(self, number: int, arrived: Arrived) -> None:
        if arrived.loss is not None:
            self.in_flight.arrive(number)
        elif arrived.ticket is None:
            self.in_flight.note(number)

    def own_ticket(self, decision: DecisionRow) -> Ticket | None:
        """The ticket of a decision of this rollout; None if another rollout made it, or none."""
        if decision.ticket is None or decision.ticket.rollout != self.event:
            return None
        return Ticket(*decision.ticket[1:])

    @property
    def not_before(self) -> float:
        return self.step_began + self.settings.least_seconds

    def apply(self, event: Event, act: OwnerAct) -> None:
        if act.act == "notified":
            if act.rollout == self.event:
                self.notified = max(self.notified, min(act.moves, len(self.moves)))
            return
        reasons: dict[str, Step] = {"pause": "paused", "resume": "resumed", "abort": "aborted"}
        origin = self.progress.level + 1
        if act.act == "abort":
            if self.progress.level < 0:
                return
            self.progress.go_back("worse" if act.worse else "aborted")
        self.paused = act.act == "pause"
        self._note_move(event, "worse" if act.worse else reasons[act.act], origin=origin)

    def restart(self, event: Event) -> None:
        """Begin again at the first step, because the model was replaced."""
        origin = self.progress.level + 1
        self.progress.restart()
        self.step_began = event.time
        self._note_move(event, "model replaced", origin=origin)

    @property
    def unsent(self) -> list[RolloutMove]:
        return [] if self.settings.webhook is None else self.moves[self.notified :]

    def to_bytes(self) -> bytes:
        return _encode(
            _Saved(
                event=self.event,
                started=self.started,
                settings=self.settings,
                progress=rollout_files.describe(self.progress),
                paused=self.paused,
                step_began=self.step_began,
                counts=(self.counts[0], self.counts[1]),
                moves=self.moves,
                looks=self.looks,
                notified=self.notified,
            )
        )

    @classmethod
    def from_bytes(cls, loop: NewLoop, saved: bytes) -> LoopRollout:
        state = _decoder.decode(saved)
        rollout = cls(loop, state.settings, event=state.event, time=state.started, first=0)
        progress = rollout.progress
        rollout.progress = rollout_files.restore(rollout.plan, progress.losses, state.progress, progress.guards)
        rollout.counts, rollout.paused = list(state.counts), state.paused
        rollout.step_began, rollout.notified = state.step_began, state.notified
        rollout.moves, rollout.looks = state.moves, state.looks
        return rollout

    def _note_move(
        self,
        event: Event,
        reason: Step,
        guard: str | None = None,
        *,
        origin: int,
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        self.moves.append(
            RolloutMove(
                time=event.time,
                event=event.number,
                judged=self.progress.judged,
                origin=origin,
                target=self.progress.level + 1,
                reason=reason,
                by="evidence" if reason in ("not worse", "worse") else "owner",
                low=low,
                high=high,
                guard=guard,
            )
        )

    def _look(self, time: float) -> None:
        low, high = (end if abs(end) < float("inf") else None for end in self.progress.bounds())
        learner, baseline = self.counts
        traffic = self.progress.share()
        self.looks.append(
            RolloutLook(time=time, learner=learner, baseline=baseline, traffic=traffic, low=low, high=high)
        )
        if len(self.looks) > MAX_LOOKS:
            del self.looks[1::2]


def check(loop: NewLoop, settings: NewRollout) -> tuple[Baseline, RolloutPlan, Within]:
    """The baseline, the plan and the range of losses of a rollout; an error names the setting that is wrong."""
    space = LoopSpace.of(loop)
    try:
        plan = settings.plan
        baseline = check_baseline(_baseline(settings.baseline, space), ActionSpace(space))
        plan.guards(loop.outcome)
        return baseline, plan, plan.loss_range(loop.outcome)
    except Invalid:
        raise
    except ManulError as error:
        raise Invalid(str(error), error.field) from None


def check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0) and url.isascii()
    except ValueError:
        usable = False
    if not usable:
        raise Invalid(f"webhook.url must be a URL such as https://example.com/moves, got {url!r}.", "webhook.url")


def _baseline(given: Any, space: LoopSpace) -> Any:
    """The baseline of a request: an object with a policy is one unless the loop has a knob of this name."""
    if not isinstance(given, dict) or {*given} != {"policy"} or space.names == ["policy"]:
        return given
    try:
        return from_bytes(msgspec.convert(given["policy"], bytes))
    except (Invalid, msgspec.ValidationError) as error:
        raise Invalid(str(error), "baseline") from None


def check_contexts(rollout: LoopRollout, context: Any) -> None:
    """Refuse a policy as the baseline that does not accept the contexts of the loop."""
    if not isinstance(rollout.baseline, PolicyBaseline):
        return
    try:
        rollout.baseline.arm(context, None, None)
    except ManulError as error:
        raise Invalid(f"The baseline does not accept this loop's contexts: {error}", "baseline") from None
