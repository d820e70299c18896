"""Limits in expectation: what may be spent in a period, and the mean of a second outcome that must be kept.

Both are formulas of the parts of an outcome, and outcomes themselves: a log with the parts has them too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Literal, NamedTuple, Self, get_args
from zoneinfo import ZoneInfo

from manul.errors import InputError, ParameterError, remedy
from manul.outcomes import Outcome
from manul.utils.formulas import Formula, parse
from manul.utils.validation import check_choice, check_number

Late = Literal["reserve", "carry"]
Sign = Literal[">=", "<="]
Period = Literal["hour", "day", "week"] | int
SECONDS = {"hour": 3600.0, "day": 86400.0, "week": 604800.0}
EXPLAIN_LATE = (
    "late='reserve' holds back the expected cost of each of them plus a margin: about a fifth of the budget stays unspent, and "
    "few periods go over it. late='carry' holds back the expected cost, and what it was wrong by goes to the next period: the "
    "budget is spent, and kept in total, but many single periods are a little over it."
)


class Moment(NamedTuple):
    """A time in a period: when that began, how long it lasts, and the share of it that is over; in seconds or decisions."""

    period: float
    length: float
    share: float


@dataclass(frozen=True)
class Budget:
    """At most `amount` of what `spending` computes is spent in each `period`.

    The period is an "hour", "day" or "week" in a time `zone`, or a number of decisions. `late` says how costs count that are not
    known yet, `carry` adds what a period leaves to the next one, and `decline` is an action that spends nothing.

    >>> from manul import Bid
    >>> Budget.of(Bid(), ("won * action", 2000, "day")).spending.formula
    'won * action'
    """

    spending: Outcome
    amount: float
    period: Period
    late: Late | None = None
    carry: bool = False
    decline: float | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        rule = "spend_at_most must have an amount above 0 as its second value"
        try:
            object.__setattr__(self, "amount", check_number("amount", self.amount, 0, 1e300, "", ends="(]"))
        except ParameterError:
            raise ParameterError(f"{rule}, got {self.amount!r:.60}. Try 2000.0.", "spend_at_most") from None
        counted = isinstance(self.period, int) and not isinstance(self.period, bool) and self.period >= 1
        if not (counted or (isinstance(self.period, str) and self.period in SECONDS)):
            rule = "spend_at_most must have the period 'hour', 'day' or 'week', or a number of decisions such as 500"
            raise ParameterError(f"{rule}, as its third value, got {self.period!r:.60}.", "spend_at_most")
        if self.late is not None:
            check_choice("late", self.late, get_args(Late))
        if not isinstance(self.carry, bool):
            raise ParameterError(f"carry must be True or False, got {self.carry!r:.60}.", "carry")
        self._time_zone()

    @classmethod
    def of(cls, outcome: Outcome, spend_at_most: Any, **settings: Any) -> Self:
        """The budget of the argument `spend_at_most` of an agent that learns from an `outcome`."""
        if not (isinstance(spend_at_most, tuple | list) and len(spend_at_most) == 3):
            rule = "spend_at_most must be a formula, an amount and a period, such as ('won * action', 2000.0, 'day')"
            raise ParameterError(f"{rule}, got {spend_at_most!r:.80}.", "spend_at_most")
        formula, amount, period = spend_at_most
        budget = cls(second_outcome("spent", outcome, formula, "spend_at_most"), amount, period, **settings)
        if outcome.wait is not None and budget.late is None:
            raise ParameterError(f"late must be given, because costs wait for the outcome. {EXPLAIN_LATE}", "late")
        return budget

    @property
    def argument(self) -> tuple[str, float, Period]:
        """The argument `spend_at_most`."""
        return str(self.spending.formula), self.amount, self.period

    def with_amount(self, spend_at_most: Any) -> Self:
        """The same with another amount; the rest of `spend_at_most` must be as it is."""
        changed = tuple(spend_at_most) if isinstance(spend_at_most, tuple | list) else ()
        if len(changed) != 3 or (changed[0], changed[2]) != (self.argument[0], self.period):
            rule = f"only the amount of spend_at_most can be changed, as in {(self.argument[0], 3000.0, self.period)}"
            raise ParameterError(f"{rule}, got {spend_at_most!r:.80}.", "spend_at_most")
        return replace(self, amount=changed[1])

    def moment(self, at: datetime | None, decisions: int) -> Moment:
        """The time of a decision that is made `at` a time, now by default, after so many `decisions`.

        A time without a zone is in that of the budget.

        >>> from manul import Bid
        >>> Budget.of(Bid(), ("won * action", 2000, "day")).moment(datetime(2024, 2, 29, 18), 0).share
        0.75
        """
        if at is not None and not isinstance(at, datetime):
            raise InputError(f"at must be a datetime, got {at!r:.60}.", "at")
        if isinstance(self.period, int):
            first = decisions // self.period * self.period
            return Moment(float(first), float(self.period), (decisions - first) / self.period)
        zone = self._time_zone()
        try:
            return self._moment_of_time(datetime.now(zone) if at is None else _in_zone(at, zone))
        except OverflowError:
            raise InputError(
                f"at must be in a year from 2 to 9998, so that its period has a beginning and an end, got {at}.", "at"
            ) from None

    def _moment_of_time(self, local: datetime) -> Moment:
        start = local.replace(minute=0, second=0, microsecond=0)
        if self.period != "hour":
            days = local.weekday() if self.period == "week" else 0
            start = start.replace(hour=0, fold=0) - timedelta(days=days)
            end = (start + timedelta(days=7 if self.period == "week" else 1)).timestamp()  # of the wall clock
        else:
            end = start.timestamp() + SECONDS["hour"]
        length = end - start.timestamp()
        return Moment(start.timestamp(), length, (local.timestamp() - start.timestamp()) / length)

    def periods_between(self, one: float, other: float) -> int:
        """How many periods after `one` the `other` began."""
        length = float(self.period) if isinstance(self.period, int) else SECONDS[self.period]
        return round((other - one) / length)

    def _time_zone(self) -> tzinfo:
        if self.zone is None:
            return UTC
        try:
            return ZoneInfo(self.zone)
        except (TypeError, ValueError, OSError, LookupError):
            raise ParameterError(
                f"zone must be a time zone such as 'Europe/Oslo', got {self.zone!r:.60}.", "zone"
            ) from None


def _in_zone(at: datetime, zone: tzinfo) -> datetime:
    return at.replace(tzinfo=zone) if at.tzinfo is None else at.astimezone(zone)


@dataclass(frozen=True)
class Kept:
    """The mean of `outcome`, a second one, is at least or at most a `value`.

    >>> from manul import Sale
    >>> Kept.of(Sale(), ("bought", ">=", 0.05)).argument
    ('bought', '>=', 0.05)
    """

    outcome: Outcome
    sign: Sign
    value: float

    @classmethod
    def of(cls, outcome: Outcome, keep: Any) -> Self:
        """What the argument `keep` of an agent that learns from an `outcome` says."""
        if not (isinstance(keep, tuple | list) and len(keep) == 3):
            rule = "keep must be a part or a formula, '>=' or '<=', and a number, such as ('bought', '>=', 0.05)"
            raise ParameterError(f"{rule}, got {keep!r:.80}.", "keep")
        formula, sign, value = keep
        if sign not in get_args(Sign):
            raise ParameterError(f"keep must have the sign '>=' or '<=' as its second value, got {sign!r:.60}.", "keep")
        try:
            number = check_number("keep", value, -1e300, 1e300, "")
        except ParameterError:
            rule = "keep must have a finite number as its third value"
            raise ParameterError(f"{rule}, got {value!r:.60}. Try 0.05.", "keep") from None
        better: Any = "high" if sign == ">=" else "low"
        return cls(second_outcome("kept", outcome, formula, "keep", better=better), sign, number)

    @property
    def argument(self) -> tuple[str, Sign, float]:
        """The argument `keep`."""
        return str(self.outcome.formula), self.sign, self.value

    def surplus(self, mean: float) -> float:
        """How much better a `mean` is than it must be; negative if it is worse."""
        return mean - self.value if self.sign == ">=" else self.value - mean

    def gain(self) -> Formula:
        """The formula of what must be high."""
        formula = parse(str(self.outcome.formula))
        return formula if self.sign == ">=" else Formula("negative", (formula,))


def second_outcome(
    name: str, outcome: Outcome, formula: Any, argument: str, *, better: Literal["low", "high"] = "low"
) -> Outcome:
    """An outcome beside another one, computed from some of its parts by a `formula`, which the `argument` of an agent says."""
    if outcome.formula is None:
        rule = f"{argument} needs an outcome with parts, such as outcome=manul.Bid()"
        raise ParameterError(f"{rule}, because a formula of parts says what is {name}.", argument)
    parsed = parse(formula, argument)
    recorded = [part for part in outcome.parts if part in parsed.names and part not in outcome.modelled]
    if recorded:
        rule = f"{argument} uses the part {recorded[0]!r}, which is only recorded"
        raise ParameterError(
            f"{rule}, because the formula of the outcome, {outcome.formula!r}, does not use it.", argument
        )
    used = {part: kind for part, kind in outcome.modelled.items() if part in parsed.names}
    if not used:
        known = f"The parts are {', '.join(outcome.modelled)}."
        advice = remedy(parsed.names[0] if parsed.names else "", outcome.modelled, known)
        raise ParameterError(f"{argument} must use a part of the outcome, got {formula!r}. {advice}", argument)
    try:
        return Outcome(name, better=better, range="auto", formula=str(parsed), parts=used)
    except ParameterError as error:
        raise ParameterError(str(error), argument) from None
