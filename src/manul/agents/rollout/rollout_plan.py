"""The settings of a rollout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, TypedDict

from manul.agents.rollout.guards import Guard, GuardRule, check_rules, guards_of
from manul.errors import ParameterError
from manul.outcomes import Outcome, check_outcome_range
from manul.utils.validation import check_number, check_whole_number

MOST_STEPS = 20
MOST_LATER = 1_000_000  # decisions that may wait for the loss of an earlier one; their losses are kept in memory


class PlanSettings(TypedDict, total=False):
    """The settings of a `RolloutPlan`, as type checkers know them."""

    tolerance: float
    confidence: float
    steps: tuple[float, ...]
    holdout: float
    least_decisions: int
    budget: float
    patience: int
    patience_seconds: float | None
    outcome_range: tuple[float, float] | None
    guard: Mapping[str, GuardRule] | None


def _setting(default: Any, summary: str) -> Any:
    return field(default=default, metadata={"summary": summary})


@dataclass(frozen=True, kw_only=True)
class RolloutPlan:
    """What the owner allows, and how fast: the settings of `Rollout`, of `PUT /v1/loops/LOOP/rollout`, and of `manul rollout`.

    The learner's loss may be at most (1 + `tolerance`) times that of the baseline. `steps` are the shares of traffic
    that the learner gets, one after the other, each for at least `least_decisions` with losses; `holdout` is the share
    that the baseline keeps. `budget` is the start-up budget: the expected excess over the baseline never exceeds
    `tolerance` times the baseline's losses plus the budget, which is counted in widths of the range of losses. Decisions
    whose losses have not come yet count as the worst possible. After `patience` further decisions, or `patience_seconds` if
    that is given, a missing loss is no longer waited for. `outcome_range` is the range of the losses or rewards that are compared: by
    default that of the agent, and required if that is "auto". Those beyond it count as its ends. `guard` has rules for parts of the
    outcome, such as {"returned": ("<=", 1.02)}: the mean of the part may be at most 1.02 times that of the baseline. A step up needs all
    of them, and a step down any. Counts and amounts need a range, as in ("<=", 1.1, (0, 5)); values beyond it count as its ends.

    >>> RolloutPlan(steps=(0.05, 1)).shares
    (0.05, 0.98)
    """

    tolerance: float = _setting(0.05, "The loss may be this share above that of the baseline.")
    confidence: float = _setting(0.95, "Probability that each promise holds.")
    steps: tuple[float, ...] = _setting((0.05, 0.25, 1.0), "The learner's shares of the traffic.")
    holdout: float = _setting(0.02, "Share of the traffic that the baseline keeps.")
    least_decisions: int = _setting(200, "Least decisions with losses per step.")
    budget: float = _setting(100.0, "Start-up budget, in widths of the range of losses.")
    patience: int = _setting(10_000, "Further decisions to wait for a missing loss.")
    patience_seconds: float | None = _setting(None, "Time to wait for a missing loss, instead of --patience.")
    outcome_range: tuple[float, float] | None = _setting(
        None, "Range of the losses or rewards, such as 0,100; needed if it is auto."
    )
    guard: Mapping[str, GuardRule] | None = _setting(
        None, "Part that must not get worse, such as 'returned <= 1.02'; may be repeated."
    )

    def __post_init__(self) -> None:
        numbers: dict[str, Any] = {
            "tolerance": check_number("tolerance", self.tolerance, 0, 1, "Try 0.05.", ends="[)"),
            "confidence": check_number("confidence", self.confidence, 0.5, 1, "Try 0.95.", ends="[)"),
            "steps": _check_steps(self.steps),
            "holdout": check_number("holdout", self.holdout, 0, 0.5, "Try 0.02.", ends="(]"),
            "least_decisions": check_whole_number("least_decisions", self.least_decisions, 1, None, "Try 200."),
            "budget": check_number("budget", self.budget, 0, math.inf, "Try 100.", ends="()"),
            "patience": check_whole_number("patience", self.patience, 1, None, "Try 10000."),
        }
        if self.patience_seconds is not None:
            numbers["patience_seconds"] = check_number(
                "patience_seconds", self.patience_seconds, 0, math.inf, "Try 3600.", ends="()"
            )
        if self.outcome_range is not None:
            numbers["outcome_range"] = check_outcome_range("outcome_range", self.outcome_range)
        if self.guard is not None:
            numbers["guard"] = check_rules(self.guard)
        for name, value in numbers.items():
            object.__setattr__(self, name, value)

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The share of the learner in each step, below the holdout."""
        return tuple(min(step, 1 - self.holdout) for step in self.steps)

    @property
    def error(self) -> float:
        """The chance of an error that is accepted for each of: a wrong step up, a wrong step down, a broken guarantee."""
        return 1 - self.confidence

    @property
    def later_decisions(self) -> int:
        """How many decisions later a loss must have come for a missing one to be left out."""
        return self.patience if self.patience_seconds is None else MOST_LATER

    def describe(self) -> dict[str, Any]:
        settings = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        # Files of earlier versions do not have the settings that are None.
        return {name: value for name, value in settings.items() if value is not None}

    def guards(self, outcome: Outcome) -> tuple[Guard, ...]:
        """The guards, for an agent with this outcome."""
        return guards_of(self.guard, outcome)

    def loss_range(self, outcome: Outcome) -> tuple[float, float]:
        """The range of the losses that are compared, for an agent with this outcome."""
        if self.outcome_range is not None:
            return outcome.flip(self.outcome_range)
        if isinstance(outcome.losses, str):
            raise ParameterError(
                f"outcome_range must be given to a rollout of an agent with {outcome.keywords}='auto', because its guarantee needs a "
                f"range: pass outcome_range=(low, high); {outcome.plural} beyond it count as its ends.",
                "outcome_range",
            )
        return outcome.losses


def _check_steps(steps: Sequence[float]) -> tuple[float, ...]:
    try:
        shares = [check_number("steps", step, 0, 1, "Try (0.05, 0.25, 1).", ends="(]") for step in steps]
    except TypeError:
        raise ParameterError(f"steps must be shares of traffic, got {steps!r}. Try (0.05, 0.25, 1).", "steps") from None
    rising = all(earlier < later for earlier, later in pairwise(shares))
    if not (1 <= len(shares) <= MOST_STEPS and rising):
        raise ParameterError(
            f"steps must be 1 to {MOST_STEPS} increasing shares of traffic, got {tuple(steps)!r}. Try (0.05, 0.25, 1).",
            "steps",
        )
    return tuple(shares)
