"""The event that a reported loss becomes, and the one that its decision gets when its wait ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from manul.errors import InputError
from manul.outcomes import Combination, Outcome, Report, mature
from manul.service.errors import Conflict, Invalid
from manul.service.store import OUTCOMES, Event, Kind
from manul.service.wire import NewLoss, NewObservation

LossStatus = Literal["recorded", "waiting", "repeated", "late"]
Value = Callable[[Mapping[str, float]], float]
VALUE = ""  # the name of a reported loss or reward beside the parts


class ReportedLoss(NamedTuple):
    """A loss, which may be a negative reward, of the decision with an id; None if only `parts` are reported."""

    id: str
    loss: float | None
    key: str | None
    parts: dict[str, float] | None = None


Stated = tuple[float | None, dict[str, float] | None]  # a loss and parts that a caller states


class EventParts(msgspec.Struct, omit_defaults=True):
    """The parts of an event, as they are stored; `judged` says that the loss was reported beside them."""

    parts: dict[str, float]
    judged: bool = False


_parts_decoder = msgspec.json.Decoder(EventParts)


def parts_of(event: Event) -> EventParts | None:
    """The parts of an event, if some were reported."""
    return None if event.parts is None else _parts_decoder.decode(event.parts)


def parts_text(parts: Mapping[str, float] | None, *, judged: bool) -> str | None:
    """The parts of an event as text; None if there are none."""
    return None if parts is None else msgspec.json.encode(EventParts(dict(parts), judged)).decode()


def stated(outcome: Outcome, given: NewLoss | NewObservation, place: str = "") -> Stated:
    """The loss and the parts that a caller states; `place` precedes fields of errors."""
    parts = None if given.parts is None else stated_parts(outcome, given, place)
    computed = outcome.formula is not None or outcome.wait is not None  # or reported until the wait ends
    if parts is not None and computed and given.loss is None and given.reward is None:
        return None, parts
    return stated_loss(outcome, given, place), parts


def stated_parts(outcome: Outcome, given: NewLoss | NewObservation, place: str = "") -> dict[str, float]:
    """The parts that a caller states as numbers, without those that are absent."""
    if not outcome.parts:
        advice = f"report its {outcome.keyword}"
        raise Invalid(
            f"parts must not be reported to a loop that was created without parts; {advice}.", place + "parts"
        )
    try:
        parts = {name: outcome.part_number(name, value) for name, value in (given.parts or {}).items()}
    except InputError as error:
        raise Invalid(str(error), place + "parts") from None
    return {name: value for name, value in parts.items() if not math.isnan(value)}


def stated_loss(outcome: Outcome, given: NewLoss | NewObservation, place: str = "") -> float:
    """The loss that a caller states as a loss or as a reward, whichever the loop has; `place` precedes fields of errors.

    >>> stated_loss(Outcome.of(rewards=(0, 100)), NewLoss(reward=40))
    -40.0
    """
    name, value, surplus = "loss", given.loss, given.reward
    if outcome.higher:
        name, value, surplus = "reward", given.reward, given.loss
    if surplus is not None:
        other = "loss" if outcome.higher else "reward"
        raise Invalid(
            f"{other} must not be reported to a loop with {outcome.keywords}; report its {name}.", place + other
        )
    if value is None:
        other = " or parts are" if outcome.formula is not None else " is"
        raise Invalid(f"{name}{other} missing; the loop has {outcome.keywords}.", place + name)
    if not outcome.contains(value):
        rule = outcome.rule if outcome.range == "auto" else f"{outcome.rule}, the loop's range"
        raise Invalid(f"{name} must be {rule}, got {value:g}.", place + name)
    return outcome.to_loss(float(value))


def classify(
    before: Sequence[Event], loss: float, key: str | None, outcome: Outcome, *, matured: bool, field: str = "loss"
) -> tuple[LossStatus, Kind | None]:
    """The answer to a loss, and the kind of event to store, if any; `matured` if the wait of its decision is over.

    >>> classify([], 0.25, None, Outcome(), matured=False)
    ('recorded', 'loss')
    >>> from manul.outcomes import Wait
    >>> late = Outcome(wait=Wait(60, default=1))
    >>> classify([], 0.25, None, late, matured=False), classify([], 0.25, None, late, matured=True)
    (('waiting', 'part'), ('late', 'late'))
    """
    combine = "first" if outcome.wait is None else outcome.wait.combine
    counted = _counted(before, key, combine)
    if counted is not None:
        if counted.loss != loss:
            raise _conflict(outcome, counted.loss, loss, combine, field)
        return "repeated", None
    if outcome.wait is None:
        return "recorded", "loss"
    if matured or any(event.kind in OUTCOMES for event in before):
        known = any(event.loss == loss and event.key == key for event in before if event.kind in ("late", "part"))
        return "late", None if known else "late"
    # Also the first loss, which is final: if only zeros waited for the end, the model would learn sales before it learns zeros.
    return "waiting", "part"


def _counted(before: Sequence[Event], key: str | None, combine: Combination) -> Event | None:
    """The earlier report that a loss repeats or contradicts."""
    reported = [event for event in before if event.kind in ("loss", "part")]
    if combine == "first":
        return reported[0] if reported else None
    return next((event for event in reported if key is not None and event.key == key), None)


def _conflict(outcome: Outcome, before: float, now: float, combine: Combination, field: str) -> Conflict:
    reported, got = (f"{outcome.from_loss(loss):g}" for loss in (before, now))
    if combine == "first":
        remedy = "To report several, create the loop with combine='last', 'sum' or 'mean'."
        message = f"was already reported for this decision, got {got}. {remedy}"
    else:
        message = f"was already reported with this key, got {got}. Use another key."
    return Conflict(f"A {outcome.keyword} of {reported} {message}", field)


def classify_parts(
    before: Sequence[Event], report: ReportedLoss, outcome: Outcome, *, matured: bool, field: str = "parts"
) -> tuple[LossStatus, Kind | None]:
    """The same for a loop with parts: each part, and the loss itself, is reported first, last or several times.

    >>> from manul.outcomes import Wait
    >>> won = Outcome(formula="2 - won", parts={"won": "yes/no"}, wait=Wait(60, default={"won": False}))
    >>> classify_parts([], ReportedLoss("a", None, None, {"won": 1.0}), won, matured=False)
    ('waiting', 'part')
    """
    said, key = _contents(report.loss, report.parts), report.key
    reported = [event for event in before if event.kind in ("loss", "part")]
    combine = "first" if outcome.wait is None else outcome.wait.combine
    if combine == "first":
        known: dict[str, float] = {}
        for event in reported:
            known = _said(event) | known
        if outcome.wait is None and known:
            _reject_others(outcome, known, said, field)
        _check_same(outcome, known, said, combine, field)
        if known and said.keys() <= known.keys():
            return "repeated", None
    else:
        same = next((event for event in reported if key is not None and event.key == key), None)
        if same is not None:
            _check_same(outcome, _said(same), said, combine, field)
            _reject_others(outcome, _said(same), said, field)
            return "repeated", None
    if outcome.wait is None:
        return "recorded", "loss"
    if matured or any(event.kind in OUTCOMES for event in before):
        late = [event for event in before if event.kind in ("late", "part")]
        return "late", None if any(_said(event) == said and event.key == key for event in late) else "late"
    return "waiting", "part"


def _contents(loss: float | None, parts: Mapping[str, float] | None) -> dict[str, float]:
    return {**(parts or {}), **({} if loss is None else {VALUE: loss})}


def _said(event: Event) -> dict[str, float]:
    """What a report said: parts by name, and the loss unless the formula has computed it."""
    parts = parts_of(event)
    return _contents(event.loss if parts is None or parts.judged else None, None if parts is None else parts.parts)


def _check_same(
    outcome: Outcome, known: Mapping[str, float], said: Mapping[str, float], combine: Combination, field: str
) -> None:
    for name, value in said.items():
        if name not in known or known[name] == value:
            continue
        if name == VALUE:
            raise _conflict(outcome, known[name], value, combine, field.replace("parts", outcome.keyword))
        how = "for this decision" if combine == "first" else "with this key"
        raise Conflict(f"The part {name!r} was already reported as {known[name]:g} {how}, got {value:g}.", field)


def _reject_others(outcome: Outcome, known: Mapping[str, float], said: Mapping[str, float], field: str) -> None:
    """Refuse what a repeated report did not say before."""
    for name in said.keys() - known.keys():
        what = outcome.keyword if name == VALUE else f"part {name!r}"
        raise Conflict(f"The outcome of this decision was already reported without its {what}.", field)


def settle(
    before: Sequence[Event], outcome: Outcome, decided: float, now: float, value: Value | None = None
) -> tuple[Kind, float, str | None] | None:
    """The event of a decision whose wait has ended, with its parts, or None if it has an outcome already, which earlier versions
    stored as soon as the first loss came, or none at all. `value` computes the formula.

    >>> from manul.outcomes import Wait
    >>> settle([], Outcome(wait=Wait(60, default=1)), decided=0, now=61)
    ('default', 1.0, None)
    """
    if any(event.kind in OUTCOMES for event in before):
        return None
    reports = [_report(event) for event in before if event.kind == "part"]
    matured = mature(reports, outcome, decided, now)
    if matured is None:
        return None
    loss = matured.loss
    if loss is None:
        assert value is not None
        assert matured.parts is not None
        try:
            loss = outcome.to_loss(value(matured.parts))
        except InputError:  # such as an amount that never came
            return None
        low, high = outcome.loss_bounds
        loss = min(max(loss, low), high)
    text = parts_text(matured.parts, judged=matured.loss is not None)
    return "combined" if matured.reported else "default", loss, text


def _report(event: Event) -> Report:
    parts = parts_of(event)
    return Report(event.loss) if parts is None else Report(event.loss if parts.judged else None, parts.parts)
