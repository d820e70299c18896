"""Guards of a rollout: parts of the outcome that the learner must not make worse than the baseline does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from manul.actions.decision import Within
from manul.errors import ParameterError, remedy
from manul.outcomes import MOST_PARTS, Outcome
from manul.utils.validation import check_number, check_range

Relation = Literal["<=", ">="]
GuardRule = tuple[Relation, float] | tuple[Relation, float, tuple[float, float]]
_EXAMPLE = "Try guard={'returned': ('<=', 1.02)}."


@dataclass(frozen=True)
class Guard:
    """The mean of a part must be at most (or at least) `ratio` times that of the baseline; values beyond `ends` count as these.

    >>> guard = Guard("latency", "<=", 1.1, (0.0, 5.0))
    >>> guard.loss(2.0), guard.loss(7.0)
    (0.4, 1.0)
    """

    name: str
    relation: Relation
    ratio: float
    ends: Within

    @property
    def tolerance(self) -> float:
        return abs(self.ratio - 1)

    @property
    def losses(self) -> Within:
        """The range of the part as losses, in widths of it: if more is better, a value is a negative loss."""
        low, high = (end / self.width for end in self.ends)
        return (low, high) if self.relation == "<=" else (-high, -low)

    @property
    def width(self) -> float:
        return self.ends[1] - self.ends[0]

    def loss(self, value: float) -> float:
        """A value of the part as a loss in widths of the range."""
        scaled = min(max(value, self.ends[0]), self.ends[1]) / self.width
        return scaled if self.relation == "<=" else -scaled

    def value(self, loss: float) -> float:
        """The inverse of `loss`."""
        return self.width * (loss if self.relation == "<=" else -loss)

    def is_beyond(self, value: float) -> bool:
        return not self.ends[0] <= value <= self.ends[1]

    def __str__(self) -> str:
        return f"{'at most' if self.relation == '<=' else 'at least'} {self.ratio:g} times the baseline's"


def check_rules(given: Any) -> dict[str, GuardRule]:
    """Check the `guard` of a plan: relations, ratios and ranges by part."""
    if not isinstance(given, Mapping) or not 1 <= len(given) <= MOST_PARTS:
        raise ParameterError(f"guard must be 1 to {MOST_PARTS} rules by part, got {given!r:.60}. {_EXAMPLE}", "guard")
    rules = {name: _check_rule(name, rule) for name, rule in given.items()}
    return dict(sorted(rules.items()))  # members of JSON objects have no order


def _check_rule(name: Any, rule: Any) -> GuardRule:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"guard must have names of parts, got {name!r}. {_EXAMPLE}", "guard")
    if not isinstance(rule, Sequence) or isinstance(rule, str) or len(rule) not in (2, 3):
        raise ParameterError(f"guard of {name!r} must be ('<=', ratio) or ('>=', ratio), got {rule!r}.", "guard")
    relation, ratio, *ends = rule
    if relation not in get_args(Relation):
        raise ParameterError(f"guard of {name!r} must begin with '<=' or '>=', got {relation!r}.", "guard")
    if relation == "<=":
        ratio = check_number("guard", ratio, 1, 2, "To demand that a part falls, make it the outcome.", ends="[)")
    else:
        ratio = check_number("guard", ratio, 0, 1, "To demand that a part rises, make it the outcome.", ends="(]")
    return (relation, ratio, check_range("guard", ends[0])) if ends and ends[0] is not None else (relation, ratio)


def guards_of(rules: Mapping[str, GuardRule] | None, outcome: Outcome) -> tuple[Guard, ...]:
    """The guards of rules about parts of an `outcome`.

    >>> guards_of({"returned": ("<=", 1.02)}, Outcome(parts={"returned": "yes/no"}))
    (Guard(name='returned', relation='<=', ratio=1.02, ends=(0.0, 1.0)),)
    """
    guards = []
    for name, (relation, ratio, *ends) in (rules or {}).items():
        if name not in outcome.parts:
            declare = f"Declare it: manul.Outcome(parts={{{name!r}: 'yes/no'}})."
            advice = remedy(name, outcome.parts, declare)
            raise ParameterError(f"guard {name!r} must be a part of the outcome. {advice}", "guard")
        if not ends and outcome.parts[name] != "yes/no":
            rule = f"guard {name!r} is {'a count' if outcome.parts[name] == 'count' else 'an amount'} and needs a range"
            raise ParameterError(f"{rule}, such as ({relation!r}, {ratio:g}, (0, 5)).", "guard")
        guards.append(Guard(name, relation, ratio, ends[0] if ends else (0.0, 1.0)))
    return tuple(guards)
