"""The progress of a rollout in JSON values, for files and snapshots."""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import Any, get_args

from manul.agents.rollout.confidence_bounds import Sums
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Move, Progress, Reason, Side, Ticket
from manul.types import Within
from manul.utils.model_files import MOST_ROUNDS, mismatch_error

_NUMBERS = ("level", "period", "judged", "spent", "next", "latest", "held")
_LARGEST = 1e200  # no rollout has such sums, and their multiples would overflow


def describe(progress: Progress) -> dict[str, Any]:
    """The state in JSON values; `restore` is the inverse."""
    numbers = {name: getattr(progress, name) for name in _NUMBERS}
    return {
        **numbers,
        "below": astuple(progress.below),
        "above": astuple(progress.above),
        "arms": [astuple(arm) for arm in progress.arms],
        "trials": progress.trials,
        "centres": progress.centres,
        "guarantee": [astuple(sums) for sums in progress.guarantee],
        "moves": [list(move) for move in progress.moves],
        "cohort": [[*ticket, loss] for ticket, loss in progress.cohort],
        "arrived": [[number, *_parts(ticket), loss] for number, (ticket, loss) in progress.arrived.items()],
    }


def restore(plan: RolloutPlan, losses: Within, saved: dict[str, Any]) -> Progress:
    """The progress of a description.

    >>> progress = Progress(RolloutPlan(), (0.0, 1.0))
    >>> restore(progress.plan, (0.0, 1.0), describe(progress)) == progress
    True
    """
    steps, period = len(saved["trials"]), _whole(saved["period"])
    if not steps == len(saved["centres"]) == len(saved["guarantee"]) or not 1 <= steps <= len(plan.steps):
        raise mismatch_error()
    if len(saved["cohort"]) >= COHORT:
        raise mismatch_error()
    learner, baseline = map(_sums, saved["arms"])
    progress = Progress(
        plan,
        losses,
        level=_whole(saved["level"], -1, steps - 1),
        period=period,
        judged=_whole(saved["judged"]),
        spent=_number(saved["spent"]),
        next=_whole(saved["next"]),
        latest=_whole(saved["latest"], -1),
        held=_truth(saved["held"]),
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
    for decided, _ in progress.cohort:  # `sum` rounds in another way than single additions do
        progress.cohort_shares += decided.share
    for number, *parts, loss in saved["arrived"]:
        known = ticket(progress, *parts) if parts else None
        progress.arrived[_whole(number, progress.next, progress.latest)] = known, _number(loss, *losses)
    progress.count_known()
    return progress


def ticket(progress: Progress, learner: Any, share: Any, level: Any, period: Any) -> Ticket:
    """The ticket of a file, checked against the progress.

    >>> ticket(Progress(RolloutPlan(), (0.0, 1.0)), True, 0.05, 0, 0)
    Ticket(learner=True, share=0.05, level=0, period=0)
    """
    step = _whole(level, 0, len(progress.trials) - 1)
    return Ticket(
        _truth(learner), _number(share, 0, progress.plan.shares[step]), step, _whole(period, 0, progress.period)
    )


def restore_in_flight(progress: Progress, decisions: Any, tickets: list[list[Any]], total: Any) -> InFlight:
    """The decisions that are not judged; `decisions` is how many there were.

    >>> restore_in_flight(Progress(RolloutPlan(), (0.0, 1.0)), 9, [[7, False, 0.05, 0, 0]], 0.05).tickets
    {7: Ticket(learner=False, share=0.05, level=0, period=0)}
    """
    last = _whole(decisions) - 1
    restored = {_whole(number, progress.next, last): ticket(progress, *parts) for number, *parts in tickets}
    if not restored.keys() >= progress.arrived.keys():
        raise mismatch_error()
    if not math.isclose(_number(total), InFlight(restored).total, abs_tol=1e-6):
        raise mismatch_error()
    in_flight = InFlight(restored, total)
    for number in progress.arrived:
        in_flight.arrive(number)
    return in_flight


def _parts(ticket: Ticket | None) -> tuple[Any, ...]:
    return () if ticket is None else ticket


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise mismatch_error()
    return value


def _move(saved: list[Any], steps: int) -> Move:
    judged, origin, target, reason, low, high = saved
    if reason not in get_args(Reason):
        raise mismatch_error()
    bounds = [None if end is None else _number(end) for end in (low, high)]
    return Move(_whole(judged), _whole(origin, 0, steps), _whole(target, 0, steps), reason, *bounds)


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
