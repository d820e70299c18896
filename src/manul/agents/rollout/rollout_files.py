"""The progress of a rollout in JSON values, for files and snapshots."""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import Any, get_args

from manul.agents.rollout.confidence_bounds import Sums
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Move, Progress, Reason, Side, Ticket
from manul.types import Within
from manul.utils.model_files import MOST_ROUNDS, mismatch_error

_NUMBERS = ("level", "period", "judged", "spent", "unjudged")
_LARGEST = 1e200  # no rollout has such sums, and their multiples would overflow


def describe(progress: Progress) -> dict[str, Any]:
    """The state in JSON values; `restore` is the inverse."""
    numbers = {name: getattr(progress, name) for name in _NUMBERS}
    return numbers | {
        "below": astuple(progress.below),
        "above": astuple(progress.above),
        "arms": [astuple(arm) for arm in progress.arms],
        "trials": progress.trials,
        "centres": progress.centres,
        "guarantee": [astuple(sums) for sums in progress.guarantee],
        "moves": [list(move) for move in progress.moves],
        "cohort": [[*ticket, loss] for ticket, loss in progress.cohort],
    }


def restore(plan: RolloutPlan, losses: Within, saved: dict[str, Any]) -> Progress:
    """The progress of a description.

    >>> progress = Progress(RolloutPlan(), (0.0, 1.0))
    >>> restore(progress.plan, (0.0, 1.0), describe(progress)) == progress
    True
    """
    known, period = len(saved["trials"]), _whole(saved["period"])
    if not known == len(saved["centres"]) == len(saved["guarantee"]) or not 1 <= known <= len(plan.steps):
        raise mismatch_error()
    if len(saved["cohort"]) >= COHORT:
        raise mismatch_error()
    learner, baseline = map(_sums, saved["arms"])
    progress = Progress(
        plan,
        losses,
        level=_whole(saved["level"], -1, known - 1),
        period=period,
        judged=_whole(saved["judged"]),
        spent=_number(saved["spent"]),
        unjudged=_number(saved["unjudged"]),
        below=_side(saved["below"]),
        above=_side(saved["above"]),
        arms=(learner, baseline),
        trials=[_whole(trial, 1) for trial in saved["trials"]],
        guarantee=[_sums(sums) for sums in saved["guarantee"]],
        moves=[_move(move, len(plan.steps)) for move in saved["moves"]],
    )
    if progress.level + 1 != (progress.moves[-1].target if progress.moves else 1):
        raise mismatch_error()
    progress.centres = [_number(centre, *progress.scaled) for centre in saved["centres"]]
    progress.cohort = [(ticket(progress, *parts), _number(loss, *losses)) for *parts, loss in saved["cohort"]]
    return progress


def ticket(progress: Progress, learner: Any, share: Any, level: Any, period: Any) -> Ticket:
    """The ticket of a file, checked against the progress.

    >>> ticket(Progress(RolloutPlan(), (0.0, 1.0)), True, 0.05, 0, 0)
    Ticket(learner=True, share=0.05, level=0, period=0)
    """
    if not isinstance(learner, bool):
        raise mismatch_error()
    step = _whole(level, 0, len(progress.trials) - 1)
    return Ticket(learner, _number(share, 0, progress.plan.shares[step]), step, _whole(period, 0, progress.period))


def restore_waiting(
    progress: Progress, decisions: Any, saved: list[list[Any]]
) -> dict[int, tuple[Ticket, float | None]]:
    """The decisions that are not judged, by number, in order, and their losses; `decisions` is how many there were.

    >>> restore_waiting(Progress(RolloutPlan(), (0.0, 1.0)), 9, [[7, False, 0.05, 0, 0, None]])
    {7: (Ticket(learner=False, share=0.05, level=0, period=0), None)}
    """
    waiting: dict[int, tuple[Ticket, float | None]] = {}
    least = max(_whole(decisions) - progress.plan.patience, 0)
    for number, *parts, loss in saved:
        checked = None if loss is None else _number(loss, *progress.losses)
        waiting[_whole(number, least, decisions - 1)] = ticket(progress, *parts), checked
        least = number + 1
    return waiting


def _move(saved: list[Any], steps: int) -> Move:
    judged, origin, target, reason, low, high = saved
    if reason not in get_args(Reason):
        raise mismatch_error()
    return Move(_whole(judged), _whole(origin, 0, steps), _whole(target, 0, steps), reason, _number(low), _number(high))


def _side(saved: list[Any]) -> Side:
    terms, weight = saved
    return Side(_sums(terms), _number(weight, 0))


def _sums(saved: list[Any]) -> Sums:
    count, total, squares = saved
    return Sums(_whole(count), _number(total, -_LARGEST, _LARGEST), _number(squares, 0, _LARGEST))


def _whole(value: Any, low: int = 0, high: int = MOST_ROUNDS) -> int:
    if type(value) is not int or not low <= value <= high:
        raise mismatch_error()
    return value


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    if type(value) not in (int, float) or not (math.isfinite(value) and low <= value <= high):
        raise mismatch_error()
    return float(value)
