"""The progress of a rollout in JSON values, for files and snapshots."""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import Any, get_args

from manul.actions.decision import Within
from manul.agents.rollout.comparison import Comparison, Side, Tally
from manul.agents.rollout.confidence_bounds import BETS, Logs, Wealth
from manul.agents.rollout.guards import Guard
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.left_out import ODDS, LeftOut
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import (
    COHORT,
    Arrived,
    GuardProgress,
    Judged,
    Move,
    Progress,
    Reason,
    Ticket,
    Watched,
)
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
        **_sides_and_arms(progress.comparison),
        "trials": progress.trials,
        "centres": progress.centres,
        "guarantee": [_wealth_parts(wealth) for wealth in progress.guarantee],
        "moves": [list(move if move.guard is not None else move[:-1]) for move in progress.moves],
        "cohort": [_outcome_parts(*each) for each in progress.cohort],
        "arrived": [[number, *_outcome_parts(*each)] for number, each in progress.arrived.items()],
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
        "earlier": ([_wealth_parts(wealth) for wealth in progress.earlier], []),
        "guards": ([_guard_parts(each) for each in progress.watches], []),
        "bands": ([list(band) for band in progress.bands], [[centre, centre] for centre in progress.centres]),
        "fit": (list(progress.fit), [0.0, 0.0]),
        "left_out": (list(astuple(progress.left_out)), list(astuple(LeftOut()))),
    }
    return {name: value for name, (value, usual) in values.items() if value != usual}


def _reached(plan: RolloutPlan, level: int) -> bool:
    """Whether the learner is in the last step of several."""
    return 0 < level == len(plan.steps) - 1


def _sides_and_arms(comparison: Comparison) -> dict[str, Any]:
    return {
        "below": [_wealth_parts(comparison.below.terms), comparison.below.weight],
        "above": [_wealth_parts(comparison.above.terms), comparison.above.weight],
        "arms": [[arm.count, arm.total] for arm in comparison.arms],
    }


def _guard_parts(watch: GuardProgress) -> dict[str, Any]:
    left_out = list(astuple(watch.left_out))
    return {
        **_sides_and_arms(watch.comparison),
        "centre": watch.centre,
        "left_out": left_out,
        "beyond": watch.beyond,
    }


def _outcome_parts(ticket: Ticket | None, loss: float | None, watched: Watched) -> list[Any]:
    """A decision with its loss; what guards watch is a list at the end, which files of earlier versions do not have."""
    return [*(() if ticket is None else ticket_parts(ticket)), loss, *([list(watched)] if watched else [])]


def ticket_parts(ticket: Ticket) -> list[Any]:
    """A ticket in JSON values; files of earlier versions have no predictions."""
    return list(ticket if ticket.predicted is not None else ticket[:4])


def restore(plan: RolloutPlan, losses: Within, saved: dict[str, Any], guards: tuple[Guard, ...] = ()) -> Progress:
    """The progress of a description, which may be one of an earlier version."""
    steps, period = len(saved["trials"]), _whole(saved["period"])
    opened = len(saved["guarantee"])
    if not steps == len(saved["centres"]) or not 1 <= opened <= steps <= len(plan.steps):
        raise mismatch_error()
    if len(saved["cohort"]) >= COHORT:
        raise mismatch_error()
    progress = Progress(
        plan,
        losses,
        guards=guards,
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
        trials=[_whole(trial, 1) for trial in saved["trials"]],
        centres=[_number(centre, *(end / (losses[1] - losses[0]) for end in losses)) for centre in saved["centres"]],
        moves=[_move(move, len(plan.steps)) for move in saved["moves"]],
    )
    _restore_comparison(progress.comparison, saved)
    _restore_bands(progress, saved)
    progress.guarantee, progress.earlier = (
        [_wealth(each, progress.bound(level)) for level, each in enumerate(saved.get(name, []))]
        for name in ("guarantee", "earlier")
    )
    if bool(progress.began) != bool(progress.earlier) or len(progress.earlier) > steps:
        raise mismatch_error()
    if progress.level + 1 != (progress.moves[-1].target if progress.moves else 1):
        raise mismatch_error()
    _restore_guards(progress, saved.get("guards", []))
    for each in saved["cohort"]:
        decided, loss, watched = _arrived(progress, each)
        if decided is None or loss is None:
            raise mismatch_error()
        progress.cohort.append(Judged(decided, loss, watched))
        progress.cohort_shares += decided.share  # `sum` rounds in another way than single additions do
    for number, *parts in saved["arrived"]:
        arrived = _arrived(progress, parts)
        last = MOST_ROUNDS if arrived.loss is None or arrived.ticket is None else progress.latest
        progress.arrived[_whole(number, progress.next, last)] = arrived
    progress.count_known()
    return progress


def _arrived(progress: Progress, saved: list[Any]) -> Arrived:
    parts, values = (saved[:-1], saved[-1]) if saved and isinstance(saved[-1], list) else (saved, [])
    *parts, loss = parts
    known = ticket(progress, *parts) if parts else None
    watched = tuple(
        None if value is None else _number(value, *watch.guard.losses)
        for watch, value in zip(progress.watches, values or [None] * len(progress.watches), strict=True)
    )
    if known is None or loss is None:
        return Arrived(known, None if loss is None else _number(loss, *progress.losses))
    return Arrived(known, _number(loss, *progress.losses), watched)


def _restore_comparison(comparison: Comparison, saved: dict[str, Any]) -> None:
    (below, below_weight), (above, above_weight) = saved["below"], saved["above"]
    comparison.below = Side(_wealth(below, -1.0), _number(below_weight, 0))
    comparison.above = Side(_wealth(above), _number(above_weight, 0))
    learner, baseline = map(_tally, saved["arms"])
    comparison.arms = learner, baseline


def _restore_guards(progress: Progress, saved: list[dict[str, Any]]) -> None:
    for watch, each in zip(progress.watches, saved, strict=True):
        _restore_comparison(watch.comparison, each)
        watch.centre = _number(each["centre"], *watch.guard.losses)
        watch.left_out, watch.beyond = _left_out(*each["left_out"]), _whole(each["beyond"])


def _restore_bands(progress: Progress, saved: dict[str, Any]) -> None:
    for level, (low, high) in enumerate(saved.get("bands", [])):
        least, most = progress.scaled
        centre = progress.centres[level]
        progress.bands[level] = _number(low, least, centre), _number(high, centre, most)
    covariance, variance = saved.get("fit", (0.0, 0.0))
    progress.fit = _number(covariance, -_LARGEST, _LARGEST), _number(variance, 0, _LARGEST)


def ticket(
    progress: Progress,
    learner: Any,
    share: Any,
    level: Any,
    period: Any,
    predicted: Any = None,
    centre: Any = None,
) -> Ticket:
    """The ticket of a file, checked against the progress."""
    made = _whole(period, 0, progress.period)
    steps = progress.guarantee if made >= progress.began else progress.earlier
    step = _whole(level, 0, len(steps) - 1)
    own = None if predicted is None else _number(predicted, *progress.scaled)
    middle = None if centre is None else _number(centre, *progress.bands[step])
    return Ticket(_truth(learner), _number(share, 0, progress.plan.shares[step]), step, made, own, middle)


def restore_in_flight(progress: Progress, decisions: Any, tickets: list[list[Any]], total: Any) -> InFlight:
    """The decisions that are not judged; `decisions` is how many there were."""
    last = _whole(decisions) - 1
    restored = {_whole(number, progress.next, last): ticket(progress, *parts) for number, *parts in tickets}
    if not restored.keys() >= progress.arrived.keys():
        raise mismatch_error()
    if not math.isclose(_number(total), InFlight(restored).total, abs_tol=1e-6):
        raise mismatch_error()
    in_flight = InFlight(restored, total)
    for number, arrived in progress.arrived.items():
        if arrived.loss is not None:
            in_flight.arrive(number)
    return in_flight


def restore_times(in_flight: InFlight, plan: RolloutPlan, times: list[list[Any]]) -> dict[int, float]:
    """The times of the decisions that are not judged, of a rollout with `patience_seconds`."""
    restored = {_whole(number): _number(time) for number, time in times}
    if restored.keys() != (in_flight.tickets.keys() if plan.patience_seconds is not None else set()):
        raise mismatch_error()
    return restored


def _wealth_parts(wealth: Wealth) -> list[Any]:
    return [wealth.count, wealth.total, *map(list, (wealth.logs, *(wealth.unknown or ())))]


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
    judged, origin, target, reason, low, high, *guard = saved
    if reason not in get_args(Reason) or len(guard) > 1 or not all(isinstance(each, str) for each in guard):
        raise mismatch_error()
    least, most = (None if end is None else _number(end) for end in (low, high))
    places = _whole(judged), _whole(origin, 0, steps), _whole(target, 0, steps)
    return Move(*places, reason, least, most, *guard)


def _tally(saved: list[Any]) -> Tally:
    count, total, *_ = saved  # files of earlier versions also have squares
    return Tally(_whole(count), _number(total, -_LARGEST, _LARGEST))


def _wealth(saved: list[Any], bound: float = 1.0) -> Wealth:
    """The wealth of terms; earlier versions had their sums and the sums of their squares, in units in which `bound` is 1."""
    if len(saved) > 2 and not isinstance(saved[2], list):
        return _from_squares(saved, bound)
    count, total, logs, *unknown = saved
    if len(unknown) not in (0, 2):
        raise mismatch_error()
    pair = [_logs(each) for each in unknown]
    return Wealth(_whole(count), _number(total, -_LARGEST, _LARGEST), _logs(logs), (pair[0], pair[1]) if pair else None)


def _logs(saved: list[Any]) -> Logs:
    if len(saved) != len(BETS):
        raise mismatch_error()
    return tuple(_number(each, -_LARGEST, _LARGEST) for each in saved)


def _from_squares(saved: list[Any], bound: float) -> Wealth:
    """The least wealth of terms y of at most 1 with these sums: log(1 - r y) >= -r y - (-log(1 - r) - r) y^2 (Fan, Grama and Liu, 2015)."""
    count, *parts = saved
    ends = (-_LARGEST, 0) * 3  # sums may be negative, squares not
    if len(parts) not in (2, 6):
        raise mismatch_error()
    numbers = [_number(part, low, _LARGEST) for part, low in zip(parts, ends, strict=False)]
    pairs = [(total / bound, squares / bound**2) for total, squares in zip(numbers[::2], numbers[1::2], strict=True)]
    known, *unknown = (
        tuple(-bet * total - (-math.log1p(-bet) - bet) * squares for bet in BETS) for total, squares in pairs
    )
    return Wealth(_whole(count), pairs[0][0], known, (unknown[0], unknown[1]) if unknown else None)


def _whole(value: Any, low: int = 0, high: int = MOST_ROUNDS) -> int:
    if type(value) is not int or not low <= value <= high:
        raise mismatch_error()
    return value


def _number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    if type(value) not in (int, float) or not (math.isfinite(value) and low <= value <= high):
        raise mismatch_error()
    return float(value)
