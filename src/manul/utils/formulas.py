"""Formulas of numbers, such as "1 - 9 / price" or "price > 20 and template == 'bold'", as data: parsed here, never evaluated as Python.

Formulas have numbers, names, quoted options, + - * / **, min, max, abs, exp, log, comparisons, `in (...)`, and, or, not, and
`a if condition else b`. A formula without a finite value, such as one that divides by zero, has the value NaN, also if a
part of it has none; `and`, `or` and `if` leave out what they do not need, and so does a product with a factor of 0.
`Formula.value` is the slow evaluator, `Formula.values` does the same for columns, and `Formula.program` is the postfix
program that the core runs (`src/core/knobs/formulas.hpp`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.errors import ParameterError

# Formulas come from strangers too. These are ten times what people write, and keep all recursion shallow.
MOST_CHARACTERS, MOST_PARTS, DEEPEST = 500, 200, 40
_TOKENS = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*(?:\.\w+)*)|`(?P<quoted>[^`]+)`"
    r"|(?P<text>'[^']*'|\"[^\"]*\")|(?P<sign>\*\*|<=|>=|==|!=|[-+*/<>(),]))"
)
_WORDS = {"and", "or", "not", "if", "else", "in"}
_CONSTANTS = {"True": 1.0, "False": 0.0}
_FUNCTIONS = {"min": (2, MOST_PARTS), "max": (2, MOST_PARTS), "abs": (1, 1), "exp": (1, 1), "log": (1, 1)}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_STRENGTH = {"if": 0, "or": 1, "and": 2, "not": 3, **dict.fromkeys(COMPARISONS, 4), "+": 5, "-": 5, "*": 6, "/": 6}
_STRENGTH |= {"negative": 7, "**": 8}
Instruction = tuple[str, float]


@dataclass(frozen=True)
class Formula:
    """A part of a formula: an operation on other parts, or `number`, `name` or `text` with its value.

    >>> formula = parse("(price - cost) * bought")
    >>> formula.names, formula.value({"price": 20, "cost": 9, "bought": 1})
    (('price', 'cost', 'bought'), 11.0)
    """

    operation: str
    parts: tuple[Formula, ...] = ()
    constant: float | str = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The names in order of appearance."""
        return tuple(dict.fromkeys(str(part.constant) for part in self if part.operation == "name"))

    def __iter__(self) -> Iterator[Formula]:
        yield self
        for part in self.parts:
            yield from part

    def value(self, values: Mapping[str, Any]) -> float:
        """The value for these values of the names, or NaN if it has none.

        >>> parse("9 / price").value({"price": 0})
        nan
        """
        if self.operation in ("number", "name"):
            number = self.constant if self.operation == "number" else values[str(self.constant)]
            return math.nan if isinstance(number, str) else _finite(float(number))
        if self.operation in ("==", "!=") and any(part.operation == "text" for part in self.parts):
            name, text = self.parts
            return float((values[str(name.constant)] == text.constant) == (self.operation == "=="))
        if self.operation in ("and", "or", "if"):
            first = self.parts[0].value(values)
            if math.isnan(first):
                return math.nan
            if self.operation == "if":
                return self.parts[1 if first else 2].value(values)
            return _truth(self.parts[1].value(values)) if bool(first) == (self.operation == "and") else _truth(first)
        arguments = [part.value(values) for part in self.parts]
        if any(map(math.isnan, arguments)):
            return 0.0 if self.operation == "*" and 0.0 in arguments else math.nan
        try:
            return _finite(float(_OPERATIONS[self.operation](*arguments)))
        except (ArithmeticError, ValueError):
            return math.nan

    def values(self, columns: Mapping[str, npt.NDArray[Any]], count: int) -> npt.NDArray[np.float64]:
        """The values of `count` rows for these columns of the names: to the bit what `value` gives for each row.

        >>> parse("9 / price").values({"price": np.array([3.0, 0.0])}, 2)
        array([ 3., nan])
        """
        with np.errstate(all="ignore"):
            return self._values(columns, count)

    def _values(self, columns: Mapping[str, npt.NDArray[Any]], count: int) -> npt.NDArray[np.float64]:
        if self.operation == "number":
            return np.full(count, _finite(float(self.constant)))
        if self.operation == "name":
            return _finite_column(_numbers(columns[str(self.constant)]))
        if self.operation in ("==", "!=") and any(part.operation == "text" for part in self.parts):
            name, text = self.parts
            same = [value == text.constant for value in columns[str(name.constant)].tolist()]
            return np.array(same, dtype=np.float64) if self.operation == "==" else 1.0 - np.array(same, np.float64)
        first, *others = (part._values(columns, count) for part in self.parts)
        if self.operation in _ELEMENTWISE:
            return _each(_OPERATIONS[self.operation], first, *others)
        if self.operation == "if":
            return np.where(np.isnan(first), np.nan, np.where(first != 0, others[0], others[1]))
        if self.operation in ("and", "or"):
            (second,) = others
            settled = (first == 0) if self.operation == "and" else (first != 0)
            result = np.where(settled, first != 0, np.where(np.isnan(second), np.nan, second != 0))
            return np.where(np.isnan(first), np.nan, result)
        missing = np.isnan(first) | (np.isnan(others[0]) if others else False)
        result = _finite_column(np.asarray(_COLUMN_OPERATIONS[self.operation](first, *others), dtype=np.float64))
        if self.operation == "*":
            return np.where(missing, np.where((first == 0) | (others[0] == 0), 0.0, np.nan), result)
        return np.where(missing, np.nan, result)

    def program(
        self, load: Callable[[str, bool], Instruction], option: Callable[[str, str], float]
    ) -> list[Instruction]:
        """The formula in postfix order. `load(name, is_text)` loads a name; `option(name, text)` is the number of a text.

        >>> parse("9 / price").program(lambda name, is_text: (name, 0), None)
        [('number', 9.0), ('price', 0), ('/', 0.0)]
        """
        if self.operation == "number":
            return [("number", float(self.constant))]
        if self.operation == "name":
            return [load(str(self.constant), False)]
        if any(part.operation == "text" for part in self.parts):
            name, text = (str(part.constant) for part in self.parts)
            return [load(name, True), ("number", option(name, text)), (self.operation, 0.0)]
        return [step for part in self.parts for step in part.program(load, option)] + [(self.operation, 0.0)]

    def __str__(self) -> str:
        """The formula as text, which has one form for each formula."""
        if self.operation == "number":
            return f"{self.constant:.17g}" if float(f"{self.constant:g}") != self.constant else f"{self.constant:g}"
        if self.operation == "name":
            name = str(self.constant)
            plain = re.fullmatch(r"[^\W\d]\w*(\.\w+)*", name) and name not in {*_WORDS, *_CONSTANTS, *_FUNCTIONS}
            return name if plain else f"`{name}`"
        if self.operation == "text":
            return f'"{self.constant}"' if "'" in str(self.constant) else f"'{self.constant}'"
        if self.operation in _FUNCTIONS:
            return f"{self.operation}({', '.join(map(str, self.parts))})"
        own = _STRENGTH[self.operation]
        if self.operation == "if":
            condition, then, otherwise = self.parts
            return f"{then._inside(own + 1)} if {condition._inside(own + 1)} else {otherwise._inside(own)}"
        if self.operation == "negative":
            return f"-{self.parts[0]._inside(own)}"
        if self.operation == "not":
            return f"not {self.parts[0]._inside(own)}"
        left, right = self.parts
        # Powers group from the right, and a comparison beside another one would be a chain.
        tight = own + (self.operation == "**" or self.operation in COMPARISONS)
        loose = own if self.operation == "**" else own + 1
        shown = right._inside(7 if self.operation == "**" else loose)
        return f"{left._inside(tight)} {self.operation} {shown}"

    def _inside(self, strength: int) -> str:
        return f"({self})" if _STRENGTH.get(self.operation, 9) < strength else str(self)


def parse(text: str, what: str = "formula") -> Formula:
    """The formula of a text; `what` names it in errors.

    >>> parse("price +")
    Traceback (most recent call last):
    manul.errors.ParameterError: formula 'price +' is incomplete at character 8: a number or a name is missing.
    """
    parser = _Parser(text, what)
    formula = parser.conditional()
    parser.end(formula)
    return formula


def parse_rule(text: str, what: str) -> tuple[Formula, Formula | None]:
    """A condition, and the condition after "if" under which it holds.

    >>> [str(part) for part in parse_rule("price >= 20 if template == 'bold'", "limit")]
    ['price >= 20', "template == 'bold'"]
    """
    parser = _Parser(text, what)
    rule = parser.disjunction()
    where = parser.disjunction() if parser.take("if") else None
    parser.end(rule, where)
    return rule, where


def conjuncts(formula: Formula | None) -> list[Formula]:
    """The conditions that a condition joins by `and`.

    >>> [str(part) for part in conjuncts(parse("a > 1 and b > 2"))]
    ['a > 1', 'b > 2']
    """
    if formula is None:
        return []
    return conjuncts(formula.parts[0]) + conjuncts(formula.parts[1]) if formula.operation == "and" else [formula]


def all_of(conditions: list[Formula]) -> Formula | None:
    """The conditions joined by `and`, or None if there are none."""
    joined = None
    for condition in conditions:
        joined = condition if joined is None else Formula("and", (joined, condition))
    return joined


class _Parser:
    """A recursive descent over the tokens of a text, each with its kind, its value and its place."""

    def __init__(self, text: str, what: str) -> None:
        if not isinstance(text, str):
            raise ParameterError(f"{what} must be a text, got {text!r:.60}.", what)
        self.text, self.what, self.at, self.depth, self.parts = text, what, 0, 0, 0
        if len(text) > MOST_CHARACTERS:
            raise ParameterError(
                f"{what} {self._shown} must have at most {MOST_CHARACTERS} characters, got {len(text)}.", what
            )
        self.tokens = list(self._tokens())

    def _tokens(self) -> Iterator[tuple[str, str, int]]:
        place = 0
        while self.text[place:].strip():
            token = _TOKENS.match(self.text, place)
            if token is None or token.lastgroup is None:
                place += len(self.text[place:]) - len(self.text[place:].lstrip())
                raise self._error(place, f"{self.text[place]!r} is not part of formulas")
            kind, value = token.lastgroup, token[token.lastgroup]
            start = token.start(kind)
            if kind == "number" and not math.isfinite(float(value)):
                raise self._error(start, f"{value} is too large")
            place = token.end()
            yield ("word" if kind == "name" and value in _WORDS else kind), value, start

    @property
    def _shown(self) -> str:
        return repr(self.text) if len(self.text) <= 80 else repr(self.text[:77] + "...")

    def _error(self, place: int, reason: str, state: str = "wrong") -> ParameterError:
        return ParameterError(f"{self.what} {self._shown} is {state} at character {place + 1}: {reason}.", self.what)

    def unexpected(self, wanted: str) -> ParameterError:
        if self.at == len(self.tokens):
            return self._error(len(self.text), f"{wanted} is missing", "incomplete")
        _, value, place = self.tokens[self.at]
        return self._error(place, f"{wanted} is expected, not {value!r}")

    def take(self, *values: str) -> str | None:
        """The next token if it is one of these words or signs."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] in ("word", "sign"):
            value = self.tokens[self.at][1]
            if value in values:
                self.at += 1
                return value
        return None

    def need(self, value: str) -> None:
        if not self.take(value):
            raise self.unexpected(repr(value))

    def end(self, *formulas: Formula | None) -> None:
        if self.at < len(self.tokens):
            raise self.unexpected("the end or an operator")
        self._check_values(*(formula for formula in formulas if formula is not None))

    def _check_values(self, *formulas: Formula) -> None:
        for formula in formulas:
            if formula.operation == "text":
                place = self.text.index(str(formula.constant))
                raise self._error(place, "a quoted option is compared with a name by ==, != or in")

    def _make(self, operation: str, *parts: Formula, constant: float | str = 0.0) -> Formula:
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise ParameterError(f"{self.what} {self._shown} must have at most {MOST_PARTS} parts.", self.what)
        self._check_values(*parts)
        return Formula(operation, parts, constant)

    def conditional(self) -> Formula:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ParameterError(f"{self.what} {self._shown} must be nested at most {DEEPEST} deep.", self.what)
        formula = self.disjunction()
        if self.take("if"):
            condition = self.disjunction()
            self.need("else")
            formula = self._make("if", condition, formula, self.conditional())
        self.depth -= 1
        return formula

    def disjunction(self) -> Formula:
        formula = self.conjunction()
        while self.take("or"):
            formula = self._make("or", formula, self.conjunction())
        return formula

    def conjunction(self) -> Formula:
        formula = self.negation()
        while self.take("and"):
            formula = self._make("and", formula, self.negation())
        return formula

    def negation(self) -> Formula:
        nots = 0
        while self.take("not"):
            nots += 1
        formula = self.comparison()
        for _ in range(nots):
            formula = self._make("not", formula)
        return formula

    def comparison(self) -> Formula:
        left = self.sum()
        if self.take("in"):
            return self._membership(left)
        if self.take("not"):
            self.need("in")
            return self._make("not", self._membership(left))
        formula: Formula | None = None
        while sign := self.take(*COMPARISONS):
            right = self.sum()
            each = self._compare(sign, left, right)
            formula = each if formula is None else self._make("and", formula, each)
            left = right
        return left if formula is None else formula

    def _compare(self, sign: str, left: Formula, right: Formula) -> Formula:
        if left.operation == "text" and right.operation == "name":
            left, right = right, left
        if left.operation == "name" and right.operation == "text" and sign in ("==", "!="):
            self._make("number")
            return Formula(sign, (left, right))
        return self._make(sign, left, right)

    def _membership(self, left: Formula) -> Formula:
        self.need("(")
        formula: Formula | None = None
        while formula is None or (self.take(",") and not self._closes()):
            each = self._compare("==", left, self.sum())
            formula = each if formula is None else self._make("or", formula, each)
        self.need(")")
        return formula

    def _closes(self) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][1] == ")"

    def sum(self) -> Formula:
        formula = self.term()
        while sign := self.take("+", "-"):
            formula = self._make(sign, formula, self.term())
        return formula

    def term(self) -> Formula:
        formula = self.signed()
        while sign := self.take("*", "/"):
            formula = self._make(sign, formula, self.signed())
        return formula

    def signed(self) -> Formula:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ParameterError(f"{self.what} {self._shown} must be nested at most {DEEPEST} deep.", self.what)
        sign = self.take("+", "-")
        formula = self.signed() if sign else self._power()
        self.depth -= 1
        return self._make("negative", formula) if sign == "-" else formula

    def _power(self) -> Formula:
        base = self._atom()
        return self._make("**", base, self.signed()) if self.take("**") else base

    def _atom(self) -> Formula:
        if self.take("("):
            formula = self.conditional()
            self.need(")")
            return formula
        if self.at == len(self.tokens) or self.tokens[self.at][0] in ("sign", "word"):
            raise self.unexpected("a number or a name")
        kind, value, place = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return self._make("number", constant=float(value))
        if kind == "text":
            return self._make("text", constant=value[1:-1])
        if kind == "name" and value in _CONSTANTS:
            return self._make("number", constant=_CONSTANTS[value])
        if kind == "name" and self.take("("):
            return self._call(value, place)
        return self._make("name", constant=value)

    def _call(self, name: str, place: int) -> Formula:
        if name not in _FUNCTIONS:
            raise self._error(place, f"{name} is not a function. The functions are {', '.join(_FUNCTIONS)}")
        arguments = [self.conditional()]
        while self.take(","):
            arguments.append(self.conditional())
        self.need(")")
        least, most = _FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            wanted = "one argument" if most == 1 else "at least two arguments"
            raise self._error(place, f"{name} takes {wanted}, not {len(arguments)}")
        formula = self._make(name, *arguments[:2])
        for argument in arguments[2:]:
            formula = self._make(name, formula, argument)
        return formula


def _finite(number: float) -> float:
    return number if math.isfinite(number) else math.nan


def _truth(number: float) -> float:
    return number if math.isnan(number) else float(number != 0)


_OPERATIONS: dict[str, Callable[..., float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": math.pow,
    "negative": lambda a: -a,
    "min": min,
    "max": max,
    "abs": abs,
    "exp": math.exp,
    "log": math.log,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "not": lambda a: not a,
}
# NumPy rounds these differently from the functions above.
_ELEMENTWISE = ("**", "exp", "log")
_COLUMN_OPERATIONS: dict[str, Callable[..., Any]] = {
    **_OPERATIONS,
    "min": lambda a, b: np.where(b < a, b, a),
    "max": lambda a, b: np.where(b > a, b, a),
    "abs": np.abs,
    "not": lambda a: a == 0,
}


def _each(function: Callable[..., float], *columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    def value(*arguments: float) -> float:
        if any(map(math.isnan, arguments)):
            return math.nan
        try:
            return _finite(float(function(*arguments)))
        except (ArithmeticError, ValueError):
            return math.nan

    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([value(*row) for row in rows], dtype=np.float64)


def _numbers(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    return np.array([math.nan if isinstance(value, str) else float(value) for value in column.tolist()], np.float64)


def _finite_column(column: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(np.isfinite(column), column, np.nan)
