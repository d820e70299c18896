"""What callers ask of a loop: decisions, observations and losses. Each request is fulfilled as a whole, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from manul.actions.decision import Decisions
from manul.errors import ManulError
from manul.service import wire
from manul.service.configuration import Limits
from manul.service.engine.loop import Loop
from manul.service.engine.loop_agent import matrix_of, split, windows_of
from manul.service.engine.losses import ReportedLoss, stated
from manul.service.engine.model import refusal
from manul.service.errors import Conflict, Invalid
from manul.service.store.blocks import Block, DecisionRow, decision_rows, pack_columns

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
    """An action that the caller chose itself, and its loss if there is one."""

    count = 1

    def __init__(self, observation: wire.NewObservation) -> None:
        self._observation = observation

    def check(self, loop: Loop, limits: Limits) -> None:
        given = self._observation
        context = loop.model.context(given.context)
        check_context(loop, context, limits)
        self._stated = None
        if given.loss is not None or given.reward is not None or given.parts is not None:
            self._stated = stated(loop.settings.outcome, given)
        within = loop.space.check_within(given.within)
        loop.model.check(context, within)
        try:
            action = loop.space.check_action(given.action, within, context)
            density = loop.space.check_density(given.density, given.densities)
        except ManulError as error:
            raise refusal(error) from None
        if given.floor is not None and not given.floor <= (density or 0.0):
            raise Invalid(f"floor must be at most the density, got {given.floor:g}.", "floor")
        decided = (given.id, context, within, action, density)
        self._row = DecisionRow(
            0, *decided, 0.0, 0, observed=True, floor=given.floor, densities=given.densities, epoch=loop.epoch
        )

    def make(self, loop: Loop, number: int, time: float) -> None:
        given, row = self._observation, self._row._replace(number=number, time=time, model=loop.model.event)
        self.rows = [row]
        if self._stated is not None:
            loss, parts = self._stated
            self.losses = [ReportedLoss(row.public_id, loss, given.id, parts)]


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
    decisions, model, tickets = loop.model.draw(numbers, keys, contexts, withins, actions, matrix)
    chosen, densities, floors, by_knob, windows, levels = split(decisions)
    kept: Iterable[Any] = repeat(None)
    if named and tickets[0] is not None:
        kept = [None if id_ is None else action for id_, action in zip(ids, actions, strict=True)]
    first_half = (numbers, ids, contexts, withins, chosen, densities, repeat(time), repeat(model), repeat(False))
    last_half = (floors, by_knob, tickets, repeat(epoch), kept, windows, levels)
    rows = decision_rows(zip(*first_half, *last_half, strict=False))
    place = 0
    for request in requests:
        request.rows = rows[place : place + request.count]
        place += request.count
    if named or matrix is None or not isinstance(decisions, Decisions):
        return None
    columns = (numbers, decisions.actions, decisions.densities, matrix, withins, decisions.floors)
    return pack_columns(time, model, *columns, epoch, windows_of(decisions))


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
