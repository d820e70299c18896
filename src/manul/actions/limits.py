"""Limits between knobs, as data: "discount <= 1 - 9 / price", "price >= 20 if template == 'bold'".

Each limit bounds one knob by formulas of the knobs that are set before it and of numeric context fields; the core runs the
formulas while it draws and while it seeks the best action (`src/core/knobs/limits.hpp`).

The order in which knobs are set follows from the limits: choices first, then the others as declared, but a knob after
those that its limits mention. A limit of a choice by a number, "template in ('sale',) if discount > 15", allows the same
actions as the limit of the number, "discount <= 15 if not template in ('sale',)", so it is turned round.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.decision import Within
from manul.actions.kinds.knob import NARROWEST, Knob, KnobValue, Option
from manul.errors import InputError, ParameterError, remedy
from manul.utils.formulas import COMPARISONS, Formula, Instruction, all_of, conjuncts, parse, parse_rule
from manul.utils.validation import Floats

MOST_LIMITS = 64
_DRAWS = 1024  # by which limits are tried: what fails in 1 % of the decisions is found almost certainly
_ALIKE = 0.7  # of names: a field may be missing indeed, and be no knob that was misspelt
_STEP_ROUNDING = 1e-6  # of a step: values of steps, such as 3 * 0.1, are rounded
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "!=": "=="}
_SIDES = {"<=": ("most",), ">=": ("least",), "<": ("below",), ">": ("above",), "==": ("least", "most")}
_SIGNS = {"least": ">=", "most": "<=", "above": ">", "below": "<"}
Bound = float | str
LimitsFunction = Callable[[dict[str, KnobValue]], Mapping[str, Any]]
Flags = npt.NDArray[np.bool_]
Pairs = Sequence[tuple[str, Knob]]


class Limit(NamedTuple):
    """A limit of one knob: `least`, `most`, `above` and `below` are numbers or formulas, `only` are options of a choice, and
    `where` is the condition under which it applies.

    >>> from manul.actions.kinds.span import Span
    >>> Limit.parse("price >= 20 if template == 'bold'", [("price", Span(10.0, 50.0))])
    Limit(knob='price', least='20', most=None, only=None, where="template == 'bold'", above=None, below=None)
    >>> str(Limit("discount", most="1 - 9 / price"))
    'discount <= 1 - 9 / price'
    """

    knob: str
    least: Bound | None = None
    most: Bound | None = None
    only: Sequence[Option] | None = None
    where: str | None = None
    above: Bound | None = None
    below: Bound | None = None

    @classmethod
    def parse(cls, text: str, knobs: Pairs) -> Limit:
        """The limit of a text. It compares one knob with a formula, or says which options of a choice are allowed."""
        rule, where = parse_rule(text, "limit")
        condition = None if where is None else str(where)
        for name, knob in knobs:
            if knob.is_option and rule.names == (name,):
                return cls(name, only=_allowed(rule, name, knob), where=condition)
        knob_name, bounds = _bounds(text, conjuncts(rule), {name for name, _ in knobs})
        return cls(knob_name, where=condition, **bounds)

    @property
    def bounds(self) -> dict[str, Bound]:
        """The bounds of a number by their sides."""
        sides = {"least": self.least, "most": self.most, "above": self.above, "below": self.below}
        return {side: bound for side, bound in sides.items() if bound is not None}

    def __str__(self) -> str:
        """The limit as text."""
        name = str(Formula("name", (), self.knob))
        parts = [f"{name} {_SIGNS[side]} {bound}" for side, bound in self.bounds.items()]
        if self.only is not None:
            options = ", ".join(_quote(option) for option in self.only)
            parts.append(f"{name} in ({options}{',' * (len(self.only) == 1)})")
        return " and ".join(parts) + ("" if self.where is None else f" if {self.where}")


class DeclaredLimits:
    """Limits of knobs as data.

    >>> from manul.actions.space import ActionSpace
    >>> knobs = ActionSpace({"price": (10, 50), "discount": (0, 0.5)}).knobs
    >>> DeclaredLimits(knobs, ["discount<=1-9/price"]).describe()
    ['discount <= 1 - 9 / price']
    """

    def __init__(self, knobs: Pairs, limits: Iterable[str | Limit | Mapping[str, Any]]) -> None:
        self.knobs = tuple(knobs)
        self._numbers = {name: number for number, (name, _) in enumerate(self.knobs)}
        self._choices = {name: knob for name, knob in self.knobs if knob.is_option}
        self.fields: tuple[str, ...] = ()  # of the context
        given = [limits] if isinstance(limits, str | Limit) else limits
        if isinstance(given, Mapping) or not isinstance(given, Iterable):
            raise ParameterError(f"limits must be a list of texts, or a function, got {limits!r:.60}.", "limits")
        self.limits = tuple(map(self._check, given))
        if len(self.limits) > MOST_LIMITS:
            raise ParameterError(f"limits must be at most {MOST_LIMITS}, got {len(self.limits)}.", "limits")
        self._clauses = [clause for limit in self.limits for clause in self._compile(limit)]
        names = (name for clause in self._clauses for name in clause.names)
        self.fields = tuple(dict.fromkeys(name for name in names if name not in self._numbers))
        self.order = self._drawing_order()
        self.core = self._build()
        self._try()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeclaredLimits) and (self.knobs, self.limits) == (other.knobs, other.limits)

    def __hash__(self) -> int:
        return hash(tuple(map(str, self.limits)))

    def __reduce__(self) -> tuple[type[DeclaredLimits], tuple[Any, ...]]:
        return DeclaredLimits, (self.knobs, self.limits)  # the core's object is made again

    def describe(self) -> list[str]:
        """The limits as texts, for files and HTTP."""
        return list(map(str, self.limits))

    def lengths(self, lows: Floats, highs: Floats, positions: Floats, fields: Floats | None) -> tuple[Floats, Flags]:
        """What is left of the range of each knob, or of its steps and options, and whether the action is inside, by rows.

        Narrows `lows` and `highs` to what is left.
        """
        self.core.ranges_left(lows, highs, positions, fields)
        lengths, inside = np.empty(lows.shape), np.ones(len(lows), np.bool_)
        for number, (_, knob) in enumerate(self.knobs):
            low, high, place = lows[:, number], highs[:, number], positions[:, number]
            if knob.is_option:
                masks = low.astype(np.int64)
                lengths[:, number] = np.bitwise_count(masks)
                inside &= (masks >> place.astype(np.int64) & 1).astype(np.bool_)
            else:
                lengths[:, number] = np.maximum(high - low, 0.0) * knob.volume
                inside &= (place >= low - NARROWEST) & (place <= high + NARROWEST)
        return lengths, inside

    def explain(self, nothing: _core.NothingLeft) -> InputError:
        """The error of a decision for which nothing is left."""
        return InputError(
            self._nothing_left(*nothing.args) + " Narrow what it depends on, or change the limits.", "limits"
        )

    def _check(self, given: Any) -> Limit:
        """A limit with formulas in their one form; raises ParameterError if the knobs do not have it."""
        if isinstance(given, Mapping):
            try:
                given = Limit(**given)
            except TypeError:
                known = ", ".join(Limit._fields)
                raise ParameterError(
                    f"a limit must have knob and some of {known}, got {given!r:.80}.", "limits"
                ) from None
        try:
            return self._normalise(given if isinstance(given, Limit) else Limit.parse(given, self.knobs))
        except (ParameterError, InputError) as error:
            raise ParameterError(str(error), "limits") from None

    def _normalise(self, limit: Limit) -> Limit:
        if limit.knob not in self._numbers:
            advice = remedy(str(limit.knob), list(self._numbers), f"The knobs are {', '.join(self._numbers)}.")
            raise ParameterError(f"limits have an unknown knob {limit.knob!r}. {advice}", "limits")
        where = None if limit.where is None else str(self._formula(limit.where))
        if limit.knob in self._choices:
            if limit.only is None or limit.bounds:
                raise ParameterError(f"a limit of {limit.knob} must list its options: only, or 'in (...)'.", "limits")
            choice = self._choices[limit.knob]
            options = tuple(choice.value(choice.position(option, limit.knob)) for option in limit.only)
            if not options:
                raise ParameterError(f"limits leave no option of {limit.knob}.", "limits")
            return Limit(limit.knob, only=options, where=where)
        if limit.only is not None or not limit.bounds:
            raise ParameterError(f"a limit of {limit.knob} must have least, most, above or below.", "limits")
        bounds: dict[str, Any] = {side: str(self._formula(bound)) for side, bound in limit.bounds.items()}
        return Limit(limit.knob, where=where, **bounds)

    def _formula(self, text: Bound) -> Formula:
        """A formula whose quoted options exist, and whose choices are numbers where numbers are needed."""
        formula = parse(text if isinstance(text, str) else repr(float(text)), "limit")
        formula.program(self._load, self._option)
        return formula

    def _compile(self, limit: Limit) -> list[_Clause]:
        where = None if limit.where is None else parse(limit.where)
        knob = self._numbers[limit.knob]
        if limit.only is None:
            return [_Clause(knob, side, parse(str(bound)), where) for side, bound in limit.bounds.items()]
        choice = self._choices[limit.knob]
        allowed = sum(1 << int(choice.position(option, limit.knob)) for option in limit.only)
        clauses = []
        for case in _cases(where):
            names = () if case is None else case.names
            others = [name for name, _ in self.knobs if name in names and name not in self._choices]
            clauses += self._turned(limit, case, others) if others else [_Clause(knob, "only", None, case, allowed)]
        return clauses

    def _turned(self, limit: Limit, where: Formula | None, others: list[str]) -> list[_Clause]:
        """A limit of a choice that depends on numbers, as a limit of the last of these numbers."""
        conditions = conjuncts(where)
        for name in reversed(others):
            for condition in conditions:
                if condition.operation not in _NEGATED or not _is_bare(condition, name):
                    continue
                sign, bound = _bare(condition, name)
                excluded = Formula("not", (_any_of(limit.knob, limit.only or ()),))
                rest = all_of([each for each in conditions if each is not condition] + [excluded])
                return [_Clause(self._numbers[name], side, bound, rest) for side in _SIDES[_NEGATED[sign]]]
        raise ParameterError(
            f"limit {str(limit)!r} bounds a choice by {' and '.join(others)}, which are set after it. "
            f"Write it as a limit of {others[-1]}, such as '{others[-1]} <= ... if {limit.knob} == ...'.",
            "limits",
        )

    def _drawing_order(self) -> list[int]:
        """Choices first, then as declared, but each knob after those that its limits mention."""
        needs: dict[int, set[int]] = {number: set() for number in range(len(self.knobs))}
        for clause in self._clauses:
            needs[clause.knob] |= {self._numbers[name] for name in clause.names if name in self._numbers}
        for number, before in needs.items():
            if number in before:
                raise ParameterError(f"a limit of {self.knobs[number][0]} must not depend on it itself.", "limits")
        order: list[int] = []
        while len(order) < len(self.knobs):
            free = [number for number in needs if number not in order and needs[number] <= set(order)]
            if not free:
                circle = " and ".join(self.knobs[number][0] for number in needs if number not in order)
                raise ParameterError(
                    f"limits of {circle} depend on each other, so none can be set first. Write them as limits of one of them.",
                    "limits",
                )
            order.append(min(free, key=lambda number: (not self.knobs[number][1].is_option, number)))
        return order

    def _load(self, name: str, is_text: bool) -> Instruction:  # noqa: FBT001 - a callback
        if name not in self._numbers:
            if is_text:
                raise ParameterError(f"limits compare {name} with a text, but it is not a choice.", "limits")
            return "field", float(self.fields.index(name)) if name in self.fields else 0.0
        choice = self._choices.get(name)
        if is_text and choice is None:
            raise ParameterError(f"limits compare {name} with a text, but it is not a choice.", "limits")
        if choice is not None and not is_text and any(isinstance(option, str) for option in _options(choice)):
            raise ParameterError(f"limits use {name} as a number, but its options are texts. Quote them.", "limits")
        return "option" if is_text else "value", float(self._numbers[name])

    def _option(self, name: str, text: str) -> float:
        options = _options(self._choices[name])
        if text not in options:
            known = [str(option) for option in options]
            advice = remedy(text, known, f"The options are {', '.join(known)}.")
            raise ParameterError(f"limits have an unknown option {text!r} of {name}. {advice}", "limits")
        return float(options.index(text))

    def _build(self) -> _core.DeclaredLimits:
        def program(formula: Formula | None) -> list[Instruction]:
            return [] if formula is None else formula.program(self._load, self._option)

        scales = [_scale(knob) for _, knob in self.knobs]
        limits = [
            (
                clause.knob,
                getattr(_core.Side, clause.side),
                clause.allowed,
                program(clause.bound),
                program(clause.where),
            )
            for clause in self._clauses
        ]
        return _core.DeclaredLimits(scales, limits, self.order, len(self.fields))

    def _try(self) -> None:
        """Reject limits that leave nothing for some draws, unless they depend on the context."""
        if self.fields or not self._clauses:
            return
        ends = np.array([knob.narrow(None, name) for name, knob in self.knobs])
        lows, highs = (np.tile(ends[:, side], (_DRAWS, 1)) for side in (0, 1))
        positions = np.random.default_rng(0).random(lows.shape)
        try:
            self.core.place(lows, highs, positions)
            self.core.ranges_left(lows, highs, positions)
            for number, (_, knob) in enumerate(self.knobs):
                narrow = np.flatnonzero(highs[:, number] - lows[:, number] < NARROWEST)
                if len(narrow) and not knob.is_option:
                    raise _core.NothingLeft(number, positions[narrow[0]].tolist())
        except _core.NothingLeft as nothing:
            number = nothing.args[0]
            before = [name for name in self._mentioned(number) if name in self._numbers]
            advice = f" Limit {' and '.join(before)} too, so that all values leave some." if before else ""
            raise ParameterError(self._nothing_left(*nothing.args) + advice, "limits") from None

    def _mentioned(self, number: int) -> list[str]:
        return list(dict.fromkeys(name for clause in self._clauses if clause.knob == number for name in clause.names))

    def _nothing_left(self, number: int, positions: Sequence[float]) -> str:
        name, knob = self.knobs[number]
        knobs = dict(self.knobs)
        values = [
            f"{each} is {_shown(knobs[each].value(positions[self._numbers[each]]))}"
            for each in self._mentioned(number)
            if each in knobs
        ]
        given = f" if {' and '.join(values)}" if values else ""
        fields = [each for each in self._mentioned(number) if each not in knobs]
        context = f" with this {' and '.join(fields)}" if fields else ""
        what = "option" if knob.is_option else "value" if knob.is_discrete else "range"
        return f"The limits leave no {what} of {name}{given}{context}."


class FunctionLimits:
    """Limits that a user wrote as a function of the knobs that are set, choices first and then as declared.

    >>> from manul.actions.space import ActionSpace
    >>> knobs = ActionSpace({"price": (10, 50), "discount": (0, 0.5)}).knobs
    >>> FunctionLimits(knobs, lambda chosen: {"discount": (0, 0.25)})._narrow(1, [0.5, 0.0], 0.0, 1.0)
    (0.0, 0.5)
    """

    fields: tuple[str, ...] = ()

    def __init__(self, knobs: Pairs, function: LimitsFunction) -> None:
        self.knobs, self.function = tuple(knobs), function
        choices = [knob.is_option for _, knob in self.knobs]
        self.order = sorted(range(len(choices)), key=lambda number: not choices[number])
        self.core: _core.KnobLimits = _core.FunctionLimits(self._narrow, choices)

    def explain(self, nothing: _core.NothingLeft) -> InputError:
        """The error of a decision for which nothing is left."""
        number, positions = nothing.args
        name, knob = self.knobs[number]
        what = "option" if knob.is_option else "value"
        return InputError(f"limits leave no {what} of {name}, got {self._ranges(number, positions)[name]!r}.", "limits")

    def _ranges(self, number: int, positions: Sequence[float]) -> Mapping[str, Any]:
        before = self.order[: self.order.index(number)]
        chosen = {self.knobs[each][0]: self.knobs[each][1].value(positions[each]) for each in before}
        ranges = self.function(chosen)
        if not isinstance(ranges, Mapping):
            raise InputError(f"limits must return a mapping of knobs to ranges, got {ranges!r}.", "limits")
        unknown = [name for name in ranges if name not in dict(self.knobs)]
        if unknown:
            names = [name for name, _ in self.knobs]
            advice = remedy(str(unknown[0]), names, f"The knobs are {', '.join(names)}.")
            raise InputError(f"limits has an unknown knob {unknown[0]!r}. {advice}", "limits")
        return ranges

    def _narrow(self, number: int, positions: Sequence[float], low: float, high: float) -> Within:
        name, knob = self.knobs[number]
        limit = self._ranges(number, positions).get(name)
        if limit is None:
            return low, high
        if knob.is_option:
            return float(int(knob.narrow(limit, name)[0]) & int(low)), 0.0
        first, last = _positions(knob, name, limit)
        return (max(first, low), min(last, high)) if last - first >= NARROWEST else (1.0, 0.0)


class _Clause(NamedTuple):
    """One bound of one knob, by its number, as the core takes it."""

    knob: int
    side: str
    bound: Formula | None
    where: Formula | None
    allowed: int = 0

    @property
    def names(self) -> list[str]:
        return [name for formula in (self.bound, self.where) if formula is not None for name in formula.names]


def field_values(
    names: Sequence[str], context: Mapping[str, Any] | None, who: str = "The limits need", known: Iterable[str] = ()
) -> Floats:
    """The numbers of a context, a mapping or None if it has no names, that have these `names`; `who` needs them.

    `known` are names that a missing one may be meant for.

    >>> field_values(["cost"], {"cost": 9})
    array([9.])
    """
    if context is None:
        raise InputError(
            f"{who} the number {names[0]!r}, so contexts must have names, but this one has none.", "context"
        )
    return np.array([_number(name, _find(name, context), who, known) for name in names])


def _find(name: str, context: Mapping[str, Any]) -> Any:
    """A field by its name, or by the names of nested ones joined by dots."""
    if name in context:
        return context[name]
    first, dot, rest = name.partition(".")
    inner = context.get(first)
    return _find(rest, inner) if dot and isinstance(inner, Mapping) else None


def _number(name: str, value: Any, who: str, known: Iterable[str]) -> float:
    if isinstance(value, numbers.Real | np.bool_) and math.isfinite(float(value)):
        return float(value)
    got = "none" if value is None else f"{value!r:.60}"
    advice = remedy(name, known, "", _ALIKE) if value is None else ""
    raise InputError(f"{who} the number {name!r} in the context, which has {got}. {advice}".rstrip(), name)


def _bounds(text: str, conditions: list[Formula], names: set[str]) -> tuple[str, dict[str, Any]]:
    """The knob that all conditions bound, and its bounds by side."""
    sides = [
        [str(part.constant) for part in each.parts if part.operation == "name" and part.constant in names]
        if each.operation in COMPARISONS
        else []
        for each in conditions
    ]
    common = [name for name in sides[0] if all(name in side for side in sides)]
    if not common:
        raise ParameterError(
            f"limit {text!r} must compare one knob with a formula, such as 'discount <= 1 - 9 / price'.", "limits"
        )
    bounds: dict[str, Any] = {}
    for condition in conditions:
        sign, bound = _bare(condition, common[0])
        for side in _SIDES.get(sign, ()):
            bounds[side] = _stricter(side, bounds[side], str(bound)) if side in bounds else str(bound)
        if sign not in _SIDES:
            raise ParameterError(
                f"limit {text!r} must use <=, <, >=, > or ==, because {common[0]} is a number.", "limits"
            )
    return common[0], bounds


def _stricter(side: str, one: str, other: str) -> str:
    return f"{'max' if side in ('least', 'above') else 'min'}({one}, {other})"


def _is_bare(condition: Formula, name: str) -> bool:
    return any(part.operation == "name" and part.constant == name for part in condition.parts)


def _bare(condition: Formula, name: str) -> tuple[str, Formula]:
    """The sign and the other side of a comparison, with the name on the left."""
    left, right = condition.parts
    if left.operation == "name" and left.constant == name:
        return condition.operation, right
    return _MIRRORED[condition.operation], left


def _cases(where: Formula | None) -> list[Formula | None]:
    """The conditions that a condition joins by `or`."""
    if where is not None and where.operation == "or":
        return [case for part in where.parts for case in _cases(part)]
    return [where]


def _options(choice: Knob) -> list[Option]:
    return choice.sweep(0)


def _allowed(rule: Formula, name: str, choice: Knob) -> tuple[Option, ...]:
    """The options for which a condition on a choice holds."""
    for part in rule:
        if part.operation == "text":
            choice.position(part.constant, name)
    return tuple(option for option in _options(choice) if rule.value({name: option}) == 1)


def _any_of(name: str, options: Sequence[Option]) -> Formula:
    condition: Formula | None = None
    for option in options:
        value = Formula("text" if isinstance(option, str) else "number", (), option)
        each = Formula("==", (Formula("name", (), name), value))
        condition = each if condition is None else Formula("or", (condition, each))
    assert condition is not None
    return condition


def _quote(option: Option) -> str:
    if not isinstance(option, str):
        return str(option)
    if "'" in option and '"' in option:
        raise ParameterError(f"limits cannot quote the option {option!r}, which has both kinds of quotes.", "limits")
    return str(Formula("text", (), option))


def _scale(knob: Knob) -> tuple[Any, ...]:
    """How the core turns the positions of a knob into values."""
    if knob.scale_in_core is None:
        raise ParameterError(f"limits take ranges, steps and options, got {knob!r}, whose scale is bent.", "limits")
    low, high, step, options = knob.scale_in_core
    return *knob.core, low, high, step, _STEP_ROUNDING, options, []


def _positions(knob: Any, name: str, limit: Any) -> Within:
    """The positions of a range that a function returned; the low end is above the high one if it leaves nothing."""
    try:
        low, high = limit
        low, high = max(float(low), knob.low), min(float(high), knob.high)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"limits of {name} must be (low, high), got {limit!r:.60}.", "limits") from None
    if not low <= high:
        return 1.0, 0.0
    if not knob.is_discrete:
        return knob.position(low, name), knob.position(high, name)
    try:
        narrowed: Within = knob.narrow((low, high), name)
    except InputError:
        return 1.0, 0.0
    return narrowed


def _shown(value: KnobValue) -> str:
    return repr(value) if isinstance(value, str) else f"{value:.4g}"


class Left(NamedTuple):
    """What limits leave of each knob in each row: its length or number of options, and the ends of ranges of numbers."""

    lengths: dict[str, Floats]
    ends: dict[str, tuple[Floats, Floats]]
    inside: Flags  # whether the action is


def what_is_left(
    space: Any, actions: Any, within: Any = None, contexts: Iterable[Mapping[str, Any] | None] = ()
) -> Left:
    """What a narrower range and the limits of a space leave, given the other knobs and the contexts."""
    positions = space.table(space.wrap_columns(actions))
    lows, highs = space.boxes(within, len(positions))
    if space.limited is None:
        sizes = [
            [knob.size(each) for each in zip(*ends, strict=True)]
            for (_, knob), ends in zip(space.knobs, zip(lows.T, highs.T, strict=True), strict=True)
        ]
        return Left(dict(zip(space.names, map(np.array, sizes), strict=True)), {}, np.ones(len(positions), np.bool_))
    fields = [field_values(space.limited.fields, context) for context in contexts] if space.limited.fields else None
    lengths, inside = space.limited.lengths(lows, highs, positions, None if fields is None else np.array(fields))
    left = {
        name: (knob.column(lows[:, number]), knob.column(highs[:, number]))
        for number, (name, knob) in enumerate(space.knobs)
        if not knob.is_discrete
    }
    return Left(dict(zip(space.names, lengths.T, strict=True)), left, inside)


def check_limits(space: Any, action: Any, within: Any, context: Any) -> None:
    """Raise InputError if an action breaks a limit of its space in a context, which has fields if it is a mapping."""
    columns = space.unwrap(space.columns_of([action]))
    contexts = [context if isinstance(context, Mapping) else None]
    if space.limited is None or what_is_left(space, columns, [within], contexts).inside[0]:
        return
    broken = [each for each in space.limits if not _keeps(space.with_limits([each]), columns, contexts)]
    raise InputError(
        f"action must keep the limit {str((broken or space.limits)[0])!r}, got {action!r}. Choose an action that does, "
        "or change the limits.",
        "action",
    )


def _keeps(space: Any, columns: Any, contexts: Any) -> bool:
    return bool(what_is_left(space, columns, None, contexts).inside[0])
