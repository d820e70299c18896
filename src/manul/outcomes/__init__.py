"""What decisions lead to: losses or rewards, their range, when they are known, and how they are computed from parts.

Inside manul everything is a loss. An `Outcome` is used at the borders: `learn`, logs, requests and responses, and texts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from manul.errors import InputError, ParameterError, remedy
from manul.utils.formulas import Formula, parse
from manul.utils.validation import (
    Floats,
    are_within,
    check_choice,
    check_number,
    check_range,
    range_advice,
    reject,
    reject_nan,
)

Pair = tuple[float, float]
AnyRange = Pair | Literal["auto"]
Combination = Literal["first", "last", "sum", "mean"]
PartKind = Literal["yes/no", "count", "amount"]
Direction = Literal["rises", "falls"]
PartValue = bool | float | None
Values = TypeVar("Values", float, Floats)
_NUMBERS = (float, np.floating)  # others take the slow way: a timedelta64 is one of NumPy's integers
NUMERIC = "biuf"  # the kinds of NumPy's numbers; a boolean, such as whether somebody bought, is 0 or 1
LARGEST = sys.float_info.max  # a sum of outcomes without a range may be infinite
MOST_OF_FORMULA = (
    1e70  # sums of its fourth powers are finite: the variance of squared errors says how good a formula is
)
MOST_PARTS = 8  # of an outcome: each has models of its own
_COMBINATIONS = ("first", "last", "sum", "mean")
KIND_RULES: dict[str, str] = {
    "yes/no": "True or False",
    "count": "a whole number, 0 or more",
    "amount": "a finite number, 0 or more",
}


@dataclass(frozen=True)
class Wait:
    """An outcome matures `seconds` after its decision: reports until then are combined, and no report means `default`.

    Every outcome with a wait is learned when it matures, never earlier, so that sales and non-sales have the same age.
    `default` is a value of the outcome, such as 0 for a reward, or the values of parts that no report has, such as
    {"bought": False}; without it, a decision without a report has no outcome. `combine` takes the first report, the last, their
    sum or their mean; of parts, that of each part.

    >>> Wait(3600, default=0)
    Wait(seconds=3600.0, default=0.0, combine='first')
    """

    seconds: float
    default: float | Mapping[str, PartValue] | None = field(default=None, hash=False)
    combine: Combination = "first"

    def __post_init__(self) -> None:
        seconds = check_number("wait", self.seconds, 0, math.inf, "Try 3600, an hour.", ends="()")
        check_choice("combine", self.combine, _COMBINATIONS)
        object.__setattr__(self, "seconds", seconds)
        if isinstance(self.default, Mapping):
            object.__setattr__(self, "default", dict(self.default))
        elif self.default is not None:
            object.__setattr__(self, "default", outcome_number("default", self.default))

    def is_over(self, decided: float, now: float) -> bool:
        """Whether the wait of a decision that was made at the time `decided` has ended at the time `now`, both in seconds."""
        return decided < now - self.seconds  # as the store compares, to the bit


def check_outcome_range(name: str, value: tuple[float, float]) -> tuple[float, float]:
    """What a range of losses or rewards must be, under whatever `name` it is given."""
    return check_range(name, value)


@dataclass(frozen=True)
class Outcome:
    """What a decision led to: its `name`, whether low or high is `better`, its `range` or "auto", and when it is known.

    The name is by default "loss", or "reward" if high is better. `losses=` and `rewards=` of agents are short for
    `Outcome.of(losses=...)` and `Outcome.of(rewards=...)`. An agent learns when it is told an outcome; loops of the service keep
    the `wait`, and so does `mature`.

    A `formula` computes it from `parts`, which `learn` is told instead: "yes/no", a "count", or an "amount", which may be absent.
    It may also use the names of knobs, `action` if there is only one, and of numbers in the context. `hints` say that a part
    "rises" or "falls" with the action. The formula needs no absent amount that it multiplies by 0 or leaves out by `if`.
    Parts that no formula uses are only recorded, such as what the guards of a rollout watch: `learn` takes them beside the outcome.

    >>> Outcome("profit", better="high", range=(-20, 100), wait=Wait(3600, default=0)).losses
    (-100.0, 20.0)
    >>> profit = Outcome("profit", better="high", range="auto", formula="(action - cost) * bought", parts={"bought": "yes/no"})
    >>> profit.formula, profit.parts
    ('(action - cost) * bought', {'bought': 'yes/no'})
    >>> Outcome(parts={"returned": "yes/no"}).modelled
    {}
    """

    name: str = ""
    better: Literal["low", "high"] = "low"
    range: AnyRange = (0.0, 1.0)
    wait: Wait | None = None
    formula: str | None = None
    parts: Mapping[str, PartKind] = field(default_factory=dict, hash=False)
    hints: Mapping[str, Direction] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_choice("better", self.better, ("low", "high"))
        if not isinstance(self.name, str):
            raise ParameterError(f"name must be text, got {self.name!r}. Try 'profit'.", "name")
        if not self.name:
            object.__setattr__(self, "name", self.keyword)
        if isinstance(self.range, str) and self.range != "auto":
            rule = f"{self.keywords} must be two numbers (low, high) or 'auto'"
            raise ParameterError(f"{rule}, got {self.range!r}. Try 'auto'.", self.keywords)
        if not isinstance(self.range, str):
            object.__setattr__(self, "range", check_outcome_range(self.keywords, self.range))
        self._check_formula()
        default = None if self.wait is None else self.wait.default
        if isinstance(default, Mapping) and self.formula is None:
            raise ParameterError("default must be a number, because no formula computes it from parts.", "default")
        if isinstance(default, Mapping):
            checked = {name: self.part_number(name, value, ParameterError) for name, value in default.items()}
            known = {name: value for name, value in checked.items() if not math.isnan(value)}
            object.__setattr__(self, "wait", replace(self.wait, default=known))  # type: ignore[type-var]
        elif default is not None and not self.contains(default):
            raise ParameterError(f"default must be {self.rule}, got {default:g}.", "default")

    def _check_formula(self) -> None:
        parts, hints = self.parts, self.hints
        if not (isinstance(parts, Mapping) and len(parts) <= MOST_PARTS):
            rule = f"at most {MOST_PARTS} kinds by name, such as {{'bought': 'yes/no'}}"
            raise ParameterError(f"parts must be {rule}, got {parts!r:.80}.", "parts")
        if not isinstance(hints, Mapping):
            raise ParameterError(f"hints must be directions by part, got {hints!r:.80}.", "hints")
        object.__setattr__(self, "parts", dict(parts))
        object.__setattr__(self, "hints", dict(hints))
        for name, kind in parts.items():
            if not isinstance(name, str) or not name:
                raise ParameterError(f"names of parts must be text and not empty, got {name!r}.", "parts")
            if kind not in get_args(PartKind):
                rule = f"the part {name!r} must be 'yes/no', 'count' or 'amount'"
                raise ParameterError(f"{rule}, got {kind!r}.", "parts")
        for name, direction in hints.items():
            self._check_part(name, "hints", ParameterError)
            if self.formula is None:
                raise ParameterError(f"the hint of {name!r} needs a formula: other parts are only recorded.", "hints")
            if direction not in get_args(Direction):
                raise ParameterError(f"the hint of {name!r} must be 'rises' or 'falls', got {direction!r}.", "hints")
        if self.formula is not None:
            self._check_use(parse(self.formula))
        if self.wait is not None and self.wait.combine == "mean" and {*parts.values()} - {"amount"}:
            raise ParameterError("combine must not be 'mean' if parts are yes/no or counts. Try 'last'.", "combine")

    def _check_use(self, formula: Formula) -> None:
        object.__setattr__(self, "formula", str(formula))
        if not self.modelled:
            rule = (
                f"the formula {self.formula!r} must use a part, because it computes the outcome from what is reported"
            )
            raise ParameterError(
                f"{rule}, such as '(action - 20) * bought' with parts={{'bought': 'yes/no'}}.", "parts"
            )
        for part in formula:
            names = [str(each.constant) for each in part.parts if each.operation == "name"]
            if any(each.operation == "text" for each in part.parts) and names[0] in self.parts:
                raise ParameterError(f"the formula compares the part {names[0]!r}, a number, with a text.", "formula")

    def _check_part(self, name: Any, what: str, error: type[ParameterError | InputError]) -> None:
        if name not in self.parts:
            known = f"The parts are {', '.join(self.parts)}." if self.parts else "The outcome has no parts."
            raise error(f"{what} has an unknown part {name!r}. {remedy(str(name), self.parts, known)}", what)

    @cached_property
    def modelled(self) -> dict[str, PartKind]:
        """The parts that the formula uses; the others are only recorded."""
        used = () if self.formula is None else parse(self.formula).names
        return {name: kind for name, kind in self.parts.items() if name in used}

    def has_needed(self, parts: Mapping[str, float]) -> bool:
        """Whether `parts` say all that the formula needs, but for amounts, which may be absent."""
        needed = [name for name, kind in self.modelled.items() if kind != "amount"]
        return self.formula is not None and all(not math.isnan(parts.get(name, math.nan)) for name in needed)

    def part_number(self, name: str, value: Any, error: type[ParameterError | InputError] = InputError) -> float:
        """The `value` of the part of a `name` as a number: 1 for yes, NaN if it is absent; raises the `error`."""
        self._check_part(name, "parts" if error is InputError else "default", error)
        if value is None:
            return math.nan
        if isinstance(value, bool):
            return float(value)
        kind, number = self.parts[name], _part_number(value)
        allowed = number in (0, 1) if kind == "yes/no" else number >= 0 and (kind == "amount" or number.is_integer())
        if math.isnan(number) and isinstance(value, float | np.floating):
            return math.nan
        if not (math.isfinite(number) and allowed):
            raise error(f"the part {name!r} must be {KIND_RULES[kind]}, got {value!r:.60}.", "parts")
        return number

    @classmethod
    def of(
        cls, *, losses: AnyRange | None = None, rewards: AnyRange | None = None, outcome: Outcome | None = None
    ) -> Outcome:
        """The outcome of a constructor that takes one of `losses`, `rewards` and `outcome`; the default is losses in [0, 1]."""
        given = {"losses": losses, "rewards": rewards, "outcome": outcome}
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            one, other = names[:2]
            raise ParameterError(
                f"{one} and {other} exclude each other, got {given[one]!r} and {given[other]!r}.", other
            )
        if outcome is not None:
            if not isinstance(outcome, Outcome):
                raise ParameterError(f"outcome must be a manul.Outcome, got {outcome!r}.", "outcome")
            return outcome
        if rewards is not None:
            return cls(better="high", range=rewards)
        return cls(range=(0.0, 1.0) if losses is None else losses)

    @property
    def higher(self) -> bool:
        """Whether higher is better."""
        return self.better == "high"

    @property
    def keyword(self) -> str:
        """The argument of `learn`, the column of a log, and the member of a request that has one value."""
        return "reward" if self.higher else "loss"

    @property
    def keywords(self) -> str:
        """The argument of `learn_many` and of constructors."""
        return "rewards" if self.higher else "losses"

    @property
    def plural(self) -> str:
        """The word for several of them in texts."""
        return self.keywords if self.name == self.keyword else f"{self.name} values"

    @property
    def losses(self) -> AnyRange:
        """The range as one of losses."""
        return self.range if isinstance(self.range, str) else self.flip(self.range)

    @property
    def rewards(self) -> AnyRange | None:
        """The range if higher is better; None otherwise."""
        return self.range if self.higher else None

    @property
    def loss_bounds(self) -> Pair:
        """The range of losses as numbers: infinite if it is not known."""
        return (-math.inf, math.inf) if isinstance(self.losses, str) else self.losses

    @property
    def rule(self) -> str:
        """What a value must be, in words."""
        if isinstance(self.range, str) and self.formula is None:
            return "finite"
        low, high = self._ends
        return f"in [{low:g}, {high:g}]"

    @property
    def _ends(self) -> Pair:
        """The range, as far as the outcome can be learned."""
        most = LARGEST if self.formula is None else MOST_OF_FORMULA
        return (-most, most) if isinstance(self.range, str) else (max(self.range[0], -most), min(self.range[1], most))

    def contains(self, value: float) -> bool:
        """Whether a `value`, in the outcome's own sign, is in the range."""
        low, high = self._ends
        return low <= value <= high

    def with_losses(self, losses: AnyRange) -> Outcome:
        """The same with another range, which is one of `losses`."""
        return replace(self, range=losses if isinstance(losses, str) else self.flip(losses))

    def known_losses(self, purpose: str, advice: str = "") -> Pair:
        """The range of losses if it is known; otherwise an error that names the `purpose`, with `advice` at its end."""
        if isinstance(self.losses, str):
            rule = f"{self.keywords} must be two numbers (low, high) for {purpose}"
            raise ParameterError(f"{rule}, got {self.range!r}.{advice}", self.keywords)
        return self.losses

    def to_loss(self, values: Values) -> Values:
        """The `values` as losses; zero has no sign.

        >>> Outcome.of(rewards="auto").to_loss(0.25), Outcome.of(rewards="auto").to_loss(0.0)
        (-0.25, 0.0)
        """
        return 0.0 - values if self.higher else values

    def from_loss(self, losses: Values) -> Values:
        """The `losses` as values of the outcome, in its own sign."""
        return 0.0 - losses if self.higher else losses

    def flip(self, ends: Pair) -> Pair:
        """The `ends` of a range of losses as one of values, or the reverse."""
        return (0.0 - ends[1], 0.0 - ends[0]) if self.higher else ends

    def state(self, loss: float, digits: int = 4) -> str:
        """A `loss` as text with so many `digits`, in the outcome's own sign."""
        return f"{self.from_loss(loss):.{digits}g}"

    def check(self, losses: Floats, first_row: int = 0) -> None:
        """Check that `losses` are in the range, or finite if it is not known.

        Errors state them in their own sign, and their rows from `first_row` on.

        >>> Outcome.of(rewards=(0, 1)).check(np.array([-0.5, 3.0]))
        Traceback (most recent call last):
        manul.errors.InputError: reward must be in [0, 1], got -3 in row 1. Declare the range with rewards=(low, high).
        """
        values, name = self.from_loss(losses), self.keyword
        reject_nan(values, name, first_row)
        if isinstance(self.range, str):
            inside = are_within(values, *self._ends)
            reject(~inside, values, name, self.rule, "Limit or leave out infinite values.", first_row)
        else:
            inside = are_within(values, *self._ends)
            reject(~inside, values, name, self.rule, range_advice(self.keywords), first_row)

    def read(self, loss: Any, reward: Any) -> float:
        """The loss of the one outcome that `learn` was given, a `loss` or a `reward`."""
        value, other = (reward, loss) if self.better == "high" else (loss, reward)
        if other is not None or not isinstance(value, _NUMBERS):
            value = outcome_number(self.keyword, self._given("loss", loss, "reward", reward))
        return self.to_loss(float(value))

    def read_many(self, losses: Any, rewards: Any) -> Floats:
        """The losses of the outcomes that `learn_many` was given, `losses` or `rewards`."""
        values, name = self._given("losses", losses, "rewards", rewards), self.keywords
        reject_text(name, values)
        try:
            return self.to_loss(np.ascontiguousarray(values, dtype=np.float64))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name} must be numbers, got {values!r:.60}.", name) from None

    def _given(self, loss_name: str, loss: Any, reward_name: str, reward: Any) -> Any:
        pairs = (loss_name, loss), (reward_name, reward)
        (wanted, value), (other, surplus) = reversed(pairs) if self.higher else pairs
        if value is not None and surplus is not None:
            raise InputError(
                f"{loss_name} and {reward_name} exclude each other; this agent learns from {wanted}.", other
            )
        if surplus is not None:
            raise InputError(f"{other} must not be given to an agent made with {self.keywords}; pass {wanted}=.", other)
        if value is None:
            raise InputError(f"pass {wanted}= to learn; the agent was made with {self.keywords}.", wanted)
        return value

    def told(self, loss: float) -> dict[str, Any]:
        """A `loss` as the argument of `learn`."""
        return {self.keyword: self.from_loss(loss)}

    def told_many(self, losses: Floats) -> dict[str, Floats]:
        """The `losses` as the argument of `learn_many`."""
        return {self.keywords: self.from_loss(losses)}

    @property
    def arguments(self) -> dict[str, Any]:
        """The argument that makes an agent with this outcome: `losses` or `rewards` if they say it all, else `outcome`."""
        plain = self.name == self.keyword and self.wait is None and not self.parts
        return {self.keywords: self.range} if plain else {"outcome": self}

    def describe(self) -> dict[str, Any]:
        """The outcome as JSON: `losses` or `rewards`, as files always had them, unless there is more to say.

        >>> Outcome.of(rewards=(0, 100)).describe(), Outcome("profit", "high", "auto").describe()
        ({'rewards': (0.0, 100.0)}, {'outcome': {'name': 'profit', 'better': 'high', 'range': 'auto', 'wait': None}})
        """
        if "outcome" not in self.arguments:
            return self.arguments
        wait = None if self.wait is None else vars(self.wait)
        described: dict[str, Any] = {"name": self.name, "better": self.better, "range": self.range, "wait": wait}
        if self.parts:  # pairs, because members of JSON objects have no order
            described |= {"formula": self.formula, "parts": [*map(list, self.parts.items())], "hints": dict(self.hints)}
        return {"outcome": described}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Outcome:
        """The outcome of a `description`, as `describe` returned it."""
        if "outcome" not in description:
            return cls.of(**description)
        settings: dict[str, Any] = dict(description["outcome"])
        wait = settings.pop("wait")
        if "parts" in settings:
            settings["parts"] = dict(settings["parts"])
        return cls(**settings, wait=None if wait is None else Wait(**wait))


def outcome_of(agent: object) -> Outcome:
    """The outcome that an agent learns from; an agent of another package that does not say takes losses."""
    outcome: Outcome = getattr(agent, "outcome", LOSSES)
    return outcome


LOSSES = Outcome()


class Report(NamedTuple):
    """What was reported of a decision at one time: its loss, parts as numbers by name, or both."""

    loss: float | None = None
    parts: Mapping[str, float] | None = None


class Matured(NamedTuple):
    """The loss of a decision whose outcome is known; `reported` is False if it is the default.

    If only `parts` are known, the loss is None: the formula gives it. They are None if none were reported.
    """

    loss: float | None
    reported: bool
    parts: dict[str, float] | None = None


def mature(reports: Sequence[float | Report], outcome: Outcome, decided: float, now: float) -> Matured | None:
    """The outcome of a decision that was made at the time `decided`, or None if it is not known now.

    `reports` are losses, or have parts, in the order of their arrival.

    >>> sale = Outcome(better="high", range="auto", wait=Wait(60, default=0, combine="sum"))
    >>> mature([-5.0, -2.0], sale, decided=0, now=59), mature([-5.0, -2.0], sale, decided=0, now=61)
    (None, Matured(loss=-7.0, reported=True, parts=None))
    """
    wait = outcome.wait
    each = [report if isinstance(report, Report) else Report(report) for report in reports]
    if wait is None:
        return Matured(each[0].loss, True, _dict(each[0].parts)) if each else None
    if not wait.is_over(decided, now):
        return None
    losses = [report.loss for report in each if report.loss is not None]
    loss = _combined(losses, wait.combine, outcome.loss_bounds) if losses else None
    parts = _combined_parts(outcome, wait, [report.parts for report in each if report.parts is not None])
    if loss is not None or (parts is not None and outcome.has_needed(parts)):
        return Matured(loss, bool(each), parts)
    if wait.default is None or isinstance(wait.default, Mapping):
        return None
    return Matured(outcome.to_loss(wait.default), reported=False)


def _dict(parts: Mapping[str, float] | None) -> dict[str, float] | None:
    return None if parts is None else dict(parts)


def _combined_parts(outcome: Outcome, wait: Wait, reports: Sequence[Mapping[str, float]]) -> dict[str, float] | None:
    """The parts of several reports, with the defaults of those that none has; a sum of yes and no is yes if one is."""
    combined: dict[str, Any] = dict(wait.default) if isinstance(wait.default, Mapping) else {}
    for name, kind in outcome.parts.items():
        values = [report[name] for report in reports if name in report]
        if values:
            ends = (0.0, 1.0) if kind == "yes/no" else (0.0, math.inf)
            combined[name] = _combined(values, wait.combine, ends)
    return combined or None


def _combined(losses: Sequence[float], combine: Combination, bounds: Pair) -> float:
    """One loss for several; a sum is clipped to the range."""
    if combine in ("first", "last"):
        return losses[0 if combine == "first" else -1]
    low, high = (max(min(end, LARGEST), -LARGEST) for end in bounds)
    total = sum(losses)
    return min(max(total if combine == "sum" else total / len(losses), low), high)


def outcome_number(name: str, value: Any) -> float:
    """One loss or reward as a number; a boolean is 0 or 1, and text is refused, because it is most often another field."""
    try:
        if isinstance(value, float) or not _is_text(value):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{name} must be a number, got {value!r}.", name)


def _part_number(value: Any) -> float:
    try:
        return math.nan if _is_text(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def reject_text(name: str, values: Any) -> None:
    """Raise InputError if some of many losses or rewards are text."""
    column = values if isinstance(values, list | tuple) else np.asarray(values)
    if isinstance(column, np.ndarray) and column.dtype.kind in NUMERIC:
        return
    every = column.ravel().tolist() if isinstance(column, np.ndarray) else column
    if {*map(type, every)} <= {float, int, bool}:
        return
    for row, value in enumerate(every):
        if _is_text(value):
            raise InputError(f"{name} must be numbers, got {value!r} in row {row}.", name)


def _is_text(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in NUMERIC:
        return value.dtype.kind != "O" or (value.ndim == 0 and _is_text(value.item()))
    return isinstance(value, str | bytes | bytearray)
