"""Decisions: drawn in the event loop, and answered as soon as the writer has stored them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np

from manul.actions.decision import Decisions
from manul.agents.player_host import expected_nbytes
from manul.errors import ManulError
from manul.service import wire
from manul.service.configuration import Limits
from manul.service.engine.group_commit import Writer
from manul.service.engine.loop import Loop
from manul.service.engine.loop_agent import make_agent, split
from manul.service.engine.losses import stated_loss
from manul.service.engine.model import refusal
from manul.service.engine.write_operations import Future, Learn, WriteBlock, WriteDecisions
from manul.service.errors import Conflict, Invalid
from manul.service.store.blocks import DecisionRow, pack_columns
from manul.utils.validation import Floats


class Decider:
    """Draws decisions and submits them to the writer."""

    def __init__(
        self,
        writer: Writer,
        limits: Limits,
        now: Callable[[], float],
        learn: Learn,
    ) -> None:
        self._writer, self._limits, self._now, self._learn = writer, limits, now, learn
        self._open: dict[int, WriteDecisions] = {}

    def decide(self, loop: Loop, request: wire.NewDecision) -> Future | None:
        """A future of the stored decision; None if decision numbers have to be read from the store first."""
        check_deciding(loop)
        number = loop.numbers.take(1)
        return None if number is None else self._decide(loop, request, number)

    async def decide_later(self, loop: Loop, request: wire.NewDecision) -> DecisionRow:
        """The stored decision; reads decision numbers from the store if necessary."""
        check_deciding(loop)
        decision: DecisionRow = await self._decide(loop, request, await loop.numbers.reserve(1))
        return decision

    def _decide(self, loop: Loop, request: wire.NewDecision, number: int) -> Future:
        try:
            return self._enqueue(loop, self._draw(loop, request, number))
        except Exception:
            loop.numbers.void([number])
            raise

    def _draw(self, loop: Loop, request: wire.NewDecision, number: int) -> DecisionRow:
        context = loop.model.context(request.context)
        check_context(loop, context, self._limits)
        within = loop.space.check_within(request.within)
        key = number if request.id is None else seed_of(loop.name, request.id)
        drawn, model, ticket = loop.model.draw(number, key, context, within, request.action)
        decided = (within, drawn.action, drawn.density, self._now(), model, False, drawn.floor)
        return DecisionRow(number, request.id, context, *decided, drawn.densities, ticket, loop.epoch)

    async def decide_many(self, loop: Loop, requests: Sequence[wire.NewDecision]) -> list[wire.Decision]:
        """Decide in many contexts; the decisions are stored together."""
        check_deciding(loop)
        contexts = [loop.model.context(each.context) for each in requests]
        for place, context in enumerate(contexts):
            check_context(loop, context, self._limits, f"decisions[{place}].context")
        withins = [loop.space.check_within(each.within) for each in requests]
        if loop.model.rollout is not None:
            return await self._decide_by_rollout(loop, requests)
        matrix = matrix_of(contexts)
        first, now = await loop.numbers.reserve(len(requests)), self._now()
        numbers, named = range(first, first + len(requests)), any(each.id is not None for each in requests)
        keys: Sequence[int] = numbers
        if named:
            pairs = zip(numbers, requests, strict=True)
            keys = [number if each.id is None else seed_of(loop.name, each.id) for number, each in pairs]
        decisions, model = loop.model.draw_many(keys, contexts, matrix, withins)
        epoch, drawn = loop.epoch, zip(numbers, requests, contexts, withins, split(decisions), strict=True)
        rows = [
            DecisionRow(
                number, each.id, context, within, action, density, now, model, False, floor, by_knob, None, epoch
            )
            for number, each, context, within, (action, density, floor, by_knob) in drawn
        ]
        future = asyncio.get_running_loop().create_future()
        self._measure(loop, future, rows, now)
        if named or not isinstance(decisions, Decisions):
            self._writer.submit(WriteDecisions(loop, rows, [future], self._learn, together=True))
            return [wire.Decision.of(each) for each in await future]
        columns = (numbers, decisions.actions, decisions.densities, contexts if matrix is None else matrix, withins)
        block = pack_columns(now, model, *columns, decisions.floors, epoch=loop.epoch)
        self._writer.submit(WriteBlock(loop, block, future))
        await future
        return [wire.Decision.of(each) for each in rows]

    async def _decide_by_rollout(self, loop: Loop, requests: Sequence[wire.NewDecision]) -> list[wire.Decision]:
        """Decide one by one, because each decision changes what the guarantee leaves for the next one."""
        first = await loop.numbers.reserve(len(requests))
        numbers = range(first, first + len(requests))
        try:
            rows = [self._draw(loop, each, number) for number, each in zip(numbers, requests, strict=True)]
        except Exception:
            loop.numbers.void(numbers)
            raise
        future = asyncio.get_running_loop().create_future()
        self._measure(loop, future, rows, rows[0].time)
        self._writer.submit(WriteDecisions(loop, rows, [future], self._learn, together=True))
        return [wire.Decision.of(each) for each in await future]

    async def observe(self, loop: Loop, observation: wire.NewObservation) -> DecisionRow:
        context = loop.model.context(observation.context)
        check_context(loop, context, self._limits)
        if observation.loss is not None or observation.reward is not None:
            stated_loss(loop.settings.outcome, observation)
        within = loop.space.check_within(observation.within)
        loop.model.check(context, within)
        try:
            action = loop.space.check_action(observation.action, within, context)
            density = loop.space.check_density(observation.density, observation.densities)
        except ManulError as error:
            raise refusal(error) from None
        if observation.floor is not None and not observation.floor <= (density or 0.0):
            raise Invalid(f"floor must be at most the density, got {observation.floor:g}.", "floor")
        number = await loop.numbers.reserve(1)
        decided = (within, action, density, self._now(), loop.model.event, True, observation.floor)
        row = DecisionRow(number, observation.id, context, *decided, observation.densities, None, loop.epoch)
        stored: DecisionRow = await self._enqueue(loop, row)
        return stored

    def _enqueue(self, loop: Loop, decision: DecisionRow) -> Future:
        """Decisions that are made before the writer begins its next transaction are written together."""
        future = asyncio.get_running_loop().create_future()
        group = self._open.get(loop.number)
        if group is None or not group.add(decision, future):
            decisions = [decision]
            group = self._open[loop.number] = WriteDecisions(loop, decisions, [future], self._learn, together=False)
            self._measure(loop, future, decisions, decision.time)
            self._writer.submit(group)
        return future

    def _measure(self, loop: Loop, written: Future, decided: Sized, time: float) -> None:
        def add(future: Future) -> None:
            if not future.cancelled() and future.exception() is None:
                now = self._now()
                loop.traffic.add(now, len(decided), now - time)

        written.add_done_callback(add)


def check_deciding(loop: Loop) -> None:
    if loop.apprentice and loop.model.rollout is None:
        raise Conflict(
            f"loop {loop.name!r} is an apprentice and does not decide. Report observations, start a rollout, or promote it.",
            "loop",
        )


def seed_of(loop: str, given: str) -> int:
    """The number that seeds the draw of a caller's id; numbers below 2^63 are those of the service itself."""
    digest = hashlib.blake2b(f"{loop}\0{given}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1 << 63


def matrix_of(contexts: Sequence[Any]) -> Floats | None:
    """Contexts as a matrix; None if any is a mapping."""
    if not all(isinstance(context, list) for context in contexts):
        return None
    try:
        return np.array(contexts, np.float64)
    except ValueError:
        raise Invalid("contexts of one batch must have the same number of values.", "context") from None


def check_context(loop: Loop, context: Any, limits: Limits, field: str = "context") -> None:
    """Refuse a context with too many features, or a first context for which the agent would need too much memory."""
    if count_features(context, limits.features) > limits.features:
        raise Invalid(
            f"context has more than {limits.features} features. Send fewer, or raise --max-features.",
            field,
        )
    if not loop.model.has_shape:
        needed = expected_nbytes(make_agent(loop.settings), len(context) if isinstance(context, list) else None)
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
