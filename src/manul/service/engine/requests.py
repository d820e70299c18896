"""What callers ask of a loop: decisions, observations and losses. Each request is fulfilled as a whole, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import repeat
from typing import Any

from manul.actions.decision import Decisions
from manul.errors import ManulError
from manul.service import wire
from manul.service.configuration import Limits
from manul.service.engine.loop import Loop
from manul.service.engine.loop_agent import matrix_of, split, windows_of
from manul.service.engine.losses import ReportedLoss, Stated, stated
from manul.service.engine.model import refusal
from manul.service.errors import Conflict, Invalid
from manul.service.store.blocks import Block, DecisionRow, decision_rows, pack_columns

AHEAD_SECONDS = 60.0  # by which the clock of a caller may be ahead
NAMED = -1  # in place of the width of a context that is a mapping


class Request:
    """A request of `size` elements; `respond` is called once with its `answer`, a list or an exception.

    `count` is how many decision numbers it needs; its decisions are in `rows`, and its losses in `losses`. Of a request that is
    `alone`, and no batch, errors name fields without a place.
    """

    respond: Callable[[Any], None]
    answer: Any = None
    began = 0.0
    alone, size, count = True, 1, 0
    rows: Sequence[DecisionRow] = ()
    losses: Sequence[ReportedLoss] = ()

    def check(self, loop: Loop, limits: Limits) -> None:
        """Refuse what the loop cannot do; called before numbers are reserved."""
        raise NotImplementedError


class Decide(Request):
    """A request for one decision, or for a batch."""

    def __init__(self, asked: Sequence[wire.NewDecision], *, alone: bool = False) -> None:
        self.asked, self.alone = asked, alone
        self.size = self.count = len(asked)

    def check(self, loop: Loop, limits: Limits) -> None:
        if loop.apprentice and loop.model.rollout is None:
            raise Conflict(
                f"loop {loop.name!r} is an apprentice and does not decide. Report observations, start a rollout, or promote it.",
                "loop",
            )
        model = loop.model
        self.contexts = contexts = [model.context(each.context) for each in self.asked]
        widths = {len(each) if isinstance(each, list) else NAMED for each in contexts}
        if NAMED in widths or not model.has_shape or max(widths) > limits.features:
            for place, context in enumerate(contexts):
                check_context(loop, context, limits, "context" if self.alone else f"decisions[{place}].context")
        if len(widths - {NAMED}) > 1:
            raise Invalid("contexts of one batch must have the same number of values.", "context")
        self.withins = [None if each.within is None else loop.space.check_within(each.within) for each in self.asked]
        if loop.settings.spend_at_most is not None:
            loop.check_account()
        for place, each in enumerate(self.asked):
            if each.at is not None and loop.settings.spend_at_most is None:
                field = "at" if self.alone else f"decisions[{place}].at"
                raise Invalid("at is for a loop with spend_at_most, and this one has none. Leave it out.", field)


class Report(Request):
    """A report of one loss, or of a batch."""

    def __init__(self, reported: Sequence[wire.LossOf], *, alone: bool = False) -> None:
        self._reported, self.alone, self.size = reported, alone, len(reported)

    def check(self, loop: Loop, limits: Limits) -> None:  # noqa: ARG002
        outcome = loop.settings.outcome
        self.losses = []
        for place, each in enumerate(self._reported):
            loss, parts = stated(outcome, each, "" if self.alone else f"losses[{place}].")
            self.losses.append(ReportedLoss(each.id, loss, each.key, parts))


class Observe(Request):
    """Actions that the caller or a model that it downloaded chose, each with its loss if there is one."""

    def __init__(self, observations: Sequence[wire.NewObservation], *, alone: bool = False) -> None:
        self._observations, self.alone = observations, alone
        self.size = self.count = len(observations)

    def check(self, loop: Loop, limits: Limits) -> None:
        self._checked = [
            self._row(loop, limits, given, "" if self.alone else f"observations[{place}].")
            for place, given in enumerate(self._observations)
        ]
        self._with_losses = [place for place, (_, told) in enumerate(self._checked) if told is not None]

    def _row(
        self, loop: Loop, limits: Limits, given: wire.NewObservation, where: str
    ) -> tuple[DecisionRow, Stated | None]:
        """An observation as it is stored, but for its number and time, and its loss."""
        context = loop.model.context(given.context)
        check_context(loop, context, limits, f"{where}context")
        told: Stated | None = None
        if given.loss is not None or given.reward is not None or given.parts is not None:
            told = stated(loop.settings.outcome, given, where)
        try:
            within = loop.space.check_within(given.within)
            loop.model.check(context, within)
            action = loop.space.check_action(given.action, within, context)
            density = loop.space.check_density(given.density, given.densities)
        except ManulError as error:
            refused = refusal(error)
            raise Invalid(str(refused), None if refused.field is None else where + refused.field) from None
        if given.floor is not None and not given.floor <= (density or 0.0):
            raise Invalid(f"floor must be at most the density, got {given.floor:g}.", f"{where}floor")
        # Of a model, only the joint density was checked.
        densities = given.densities if given.model is None else None
        decided = (given.known_id, context, within, action, density)
        row = DecisionRow(0, *decided, 0.0, 0, observed=True, floor=given.floor, densities=densities, epoch=loop.epoch)
        return row, told

    def number(self, place: int) -> int | None:
        """The number of a decision in its copy of a downloaded model."""
        return self._observations[place].number

    def is_numbered(self, place: int) -> bool:
        """Whether an observation is known by the number of a decision of a downloaded model, and by no id of its own."""
        return self._observations[place].id is None and self._observations[place].known_id is not None

    def place_of_loss(self, place: int) -> int:
        """The place of the observation with a loss."""
        return self._with_losses[place]

    def make(self, loop: Loop, first: int, time: float) -> None:
        event = loop.model.event
        self.rows, self.losses = list[DecisionRow](), list[ReportedLoss]()
        for number, (row, told) in enumerate(self._checked, first):
            self.rows.append(row._replace(number=number, time=time, model=event))
            if told is not None:
                loss, parts = told
                self.losses.append(ReportedLoss(self.rows[-1].public_id, loss, row.id, parts))


def draw(loop: Loop, requests: Sequence[Decide], first: int, time: float) -> Block | None:
    """Draw the decisions of some requests from one state of the model, with consecutive numbers.

    Returns them as a block if they are plain numbers without ids of callers, which may be known already.
    """
    asked = [each for request in requests for each in request.asked]
    contexts = [each for request in requests for each in request.contexts]
    withins = [each for request in requests for each in request.withins]
    numbers, ids, actions = (
        range(first, first + len(asked)),
        [each.id for each in asked],
        [each.action for each in asked],
    )
    named = ids.count(None) < len(ids)
    keys: Sequence[int] = numbers
    if named:
        keys = [number if id_ is None else seed_of(loop.name, id_) for number, id_ in zip(numbers, ids, strict=True)]
    matrix, epoch = matrix_of(contexts), loop.epoch
    times = () if loop.model.limits is None else [time_of(each, time, loop.zone) for each in asked]
    decisions, model, tickets = loop.model.draw(numbers, keys, contexts, withins, actions, matrix, times)
    requested: Sequence[Any] = [None] * len(asked)
    if loop.model.limits is not None and isinstance(decisions, list):
        drawn_from = [each.within for each in decisions]
        requested = [
            None if drawn == within else list(within or ()) for drawn, within in zip(drawn_from, withins, strict=True)
        ]
        withins = drawn_from
    chosen, densities, floors, by_knob, windows, levels = split(decisions)
    kept: Iterable[Any] = repeat(None)
    if named and tickets[0] is not None:
        kept = [None if id_ is None else action for id_, action in zip(ids, actions, strict=True)]
    first_half = (numbers, ids, contexts, withins, chosen, densities, repeat(time), repeat(model), repeat(False))
    last_half = (floors, by_knob, tickets, repeat(epoch), kept, windows, levels, requested)
    rows = decision_rows(zip(*first_half, *last_half, strict=False))
    place = 0
    for request in requests:
        request.rows = rows[place : place + request.count]
        place += request.count
    if named or matrix is None or not isinstance(decisions, Decisions):
        return None
    columns = (numbers, decisions.actions, decisions.densities, matrix, withins, decisions.floors)
    return pack_columns(time, model, *columns, epoch, windows_of(decisions))


def time_of(asked: wire.NewDecision, now: float, zone: tzinfo) -> datetime:
    """The time of a decision. One in the future would begin a period that has not come, and end the current one."""
    if asked.at is None:
        return datetime.fromtimestamp(now, UTC)
    at = asked.at if asked.at.tzinfo is not None else asked.at.replace(tzinfo=zone)
    if at.timestamp() > now + AHEAD_SECONDS:
        raise Invalid(f"at must be at most a minute later than now, got {asked.at.isoformat()}.", "at")
    return at


def seed_of(loop: str, given: str) -> int:
    """The number that seeds the draw of a caller's id; numbers below 2^63 are those of the service itself."""
    digest = hashlib.blake2b(f"{loop}\0{given}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1 << 63


def check_context(loop: Loop, context: Any, limits: Limits, field: str = "context") -> None:
    """Refuse a context with too many features, or a first context for which the agent would need too much memory."""
    if count_features(context, limits.features) > limits.features:
        raise Invalid(
            f"context has more than {limits.features} features. Send fewer, or raise --max-features.",
            field,
        )
    if not loop.model.has_shape:
        needed = loop.model.expected_bytes(len(context) if isinstance(context, list) else None)
        if needed > limits.loop_bytes:
            raise Invalid(
                f"An agent for contexts of {len(context)} features needs {needed >> 20} MiB of memory, more than the limit "
                f"of {limits.loop_bytes >> 20} MiB (--max-loop-bytes). Send fewer features, or use fewer leaves.",
                field,
            )


def count_features(context: Any, enough: int) -> int:
    """Count the numbers, texts and booleans of a context; counting stops beyond `enough`."""
    if isinstance(context, list):
        return len(context)
    count, rest = 0, [context]
    while rest and count <= enough:
        value = rest.pop()
        if isinstance(value, dict):
            rest.extend(value.values())
        elif isinstance(value, list):
            rest.extend(value)
        else:
            count += 1
    return count
