"""The progress of a rollout in JSON values, for files and snapshots."""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import Any, get_args

from manul.actions.decision import Within
from manul.agents.rollout.confidence_bounds import NOTHING_UNKNOWN, Sums
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.left_out import ODDS, LeftOut
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Move, Progress, Reason, Side, Ticket
from manul.utils.model_files import MOST_ROUNDS, mismatch_error

_LARGEST = 1e200  # no rollout has such sums, and their multiples would overflow


def describe(progress: Progress) -> dict[str, Any]:
    """The state in JSON values; `restore` is the inverse."""
    return {
        "level": progress.level,
        "period": progress.period,
        "judged": progress.judged,
        "spent": progress.spent,
        "next": progress.next,
        "latest": progress.latest,
        "held": progress.held,
        "below": [_parts_of(progress.below.terms), progress.below.weight],
        "above": [_parts_of(progress.above.terms), progress.above.weight],
        "arms": [_parts_of(arm) for arm in progress.arms],
        "trials": progress.trials,
        "centres": progress.centres,
        "guarantee": [_parts_of(sums) for sums in progress.guarantee],
        "moves": [list(move) for move in progress.moves],
        "cohort": [[*ticket, loss] for ticket, loss in progress.cohort],
        "arrived": [[number, *_parts(ticket), loss] for number, (ticket, loss) in progress.arrived.items()],
        **_what_is_new(progress),
    }


def _what_is_new(progress: Progress) -> dict[str, Any]:
    """What files of earlier versions do not have; each is written only if it differs from what they mean."""
    values: dict[str, tuple[Any, Any]] = {
        "began": (progress.began, 0),
        "owed": (progress.owed, 0.0),
        "proven": (progress.proven, _reached(progress.plan, progress.level)),
        "left_shares": (progress.left_shares, 0.0),
        "beyond": (progress.beyond, 0),
        "earlier": ([_parts_of(sums) for sums in progress.earlier], []),
        "left_out": (list(astuple(progress.left_out)), list(astuple(LeftOut()))),
    }
    return {name: value for name, (value, usual) in values.items() if value != usual}


def _reached(plan: RolloutPlan, level: int) -> bool:
    """Whether the learner is in the last step of several."""
    return 0 < level == len(plan.steps) - 1


def restore(plan: RolloutPlan, losses: Within, saved: dict[str, Any]) -> Progress:
    """The progress of a description."""
    steps, period = len(saved["trials"]), _whole(saved["period"])
    opened = len(saved["guarantee"])
    if not steps == len(saved["centres"]) or not 1 <= opened <= steps <= len(plan.steps):
        raise mismatch_error()
    if len(saved["cohort"]) >= COHORT:
        raise mismatch_error()
    learner, baseline = map(_sums, saved["arms"])
    progress = Progress(
        plan,
        losses,
        level=_whole(saved["level"], -1, opened - 1),
        period=period,
        judged=_whole(saved["judged"]),
        spent=_number(saved["spent"]),
        next=_whole(saved["next"]),
        latest=_whole(saved["latest"], -1),
        held=_truth(saved["held"]),
        began=_whole(saved.get("began", 0), 0, period),
        owed=_number(saved.get("owed", 0.0), 0),
        proven=_truth(saved.get("proven", _reached(plan, saved["level"]))),
        left_shares=_number(saved.get("left_shares", 0.0), 0),
        beyond=_whole(saved.get("beyond", 0)),
        left_out=_left_out(*saved["left_out"]) if "left_out" in saved else LeftOut(),
        below=_side(saved["below"]),
        above=_side(saved["above"]),
        arms=(learner, baseline),
        trials=[_whole(trial, 1) for trial in saved["trials"]],
        guarantee=[_sums(sums) for sums in saved["guarantee"]],
        earlier=[_sums(sums) for sums in saved.get("earlier", [])],
        moves=[_move(move, len(plan.steps)) for move in saved["moves"]],
    )
    if bool(progress.began) != bool(progress.earlier) or len(progress.earlier) > steps:
        raise mismatch_error()
    if progress.level + 1 != (progress.moves[-1].target if progress.moves else 1):
        raise mismatch_error()
    progress.centres = [_number(centre, *progress.scaled) for centre in saved["centres"]]
    progress.cohort = [(ticket(progress, *parts), _number(loss, *losses)) for *parts, loss in saved["cohort"]]
    for decided, _ in progress.cohort:  # `sum` rounds in another way than single additions do
        progress.cohort_shares += decided.share
    for number, *parts, loss in saved["arrived"]:
        known = ticket(progress, *parts) if parts else None
        arrived = None if loss is None else _number(loss, *losses)
        last = MOST_ROUNDS if loss is None or known is None else progress.latest
        progress.arrived[_whole(number, progress.next, last)] = known, arrived
    progress.count_known()
    return progress


def ticket(progress: Progress, learner: Any, share: Any, level: Any, period: Any) -> Ticket:
    """The ticket of a file, checked against the progress."""
    made = _whole(period, 0, progress.period)
    steps = progress.guarantee if made >= progress.began else progress.earlier
    step = _whole(level, 0, len(steps) - 1)
    return Ticket(_truth(learner), _number(share, 0, progress.plan.shares[step]), step, made)


def restore_in_flight(progress: Progress, decisions: Any, tickets: list[list[Any]], total: Any) -> InFlight:
    """The decisions that are not judged; `decisions` is how many there were."""
    last = _whole(decisions) - 1
    restored = {_whole(number, progress.next, last): ticket(progress, *parts) for number, *parts in tickets}
    if not restored.keys() >= progress.arrived.keys():
        raise mismatch_error()
    if not math.isclose(_number(total), InFlight(restored).total, abs_tol=1e-6):
        raise mismatch_error()
    in_flight = InFlight(restored, total)
    for number, (_, loss) in progress.arrived.items():
        if loss is not None:
            in_flight.arrive(number)
    return in_flight


def restore_times(in_flight: InFlight, plan: RolloutPlan, times: list[list[Any]]) -> dict[int, float]:
    """The times of the decisions that are not judged, of a rollout with `patience_seconds`."""
    restored = {_whole(number): _number(time) for number, time in times}
    if restored.keys() != (in_flight.tickets.keys() if plan.patience_seconds is not None else set()):
        raise mismatch_error()
    return restored


def _parts(ticket: Ticket | None) -> tuple[Any, ...]:
    return () if ticket is None else ticket


def _parts_of(sums: Sums) -> list[Any]:
    """The sums in JSON values; files of earlier versions have no unknown losses."""
    unknown = [] if sums.unknown == NOTHING_UNKNOWN else [part for pair in sums.unknown for part in pair]
    return [sums.count, sums.total, sums.squares, *unknown]


def _left_out(judged: list[Any], left_out: list[Any], logs: list[Any]) -> LeftOut:
    if not len(judged) == len(left_out) == 2 or len(logs) != len(ODDS):
        raise mismatch_error()
    return LeftOut(
        [_whole(each) for each in judged], [_whole(each) for each in left_out], [_number(each) for each in logs]
    )


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
    count, *parts = saved
    ends = (-_LARGEST, 0) * 3  # sums may be negative, squares not
    total, squares, *unknown = (
        _number(part, low, _LARGEST) for part, low in zip(parts, ends[: len(parts)], strict=True)
    )
    low, low_squares, high, high_squares = unknown or (0.0,) * 4
    return Sums(_whole(count), total, squares, ((low, low_squares), (high, high_squares)))


def _whole(value: Any, low: int = 0, high: int = MOST_ROUNDS) -> int:
    if type(value) is not int or not low <= value <= high:
        raise mismatch_error()
    return value


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    if type(value) not in (int, float) or not (math.isfinite(value) and low <= value <= high):
        raise mismatch_error()
    return float(value)
