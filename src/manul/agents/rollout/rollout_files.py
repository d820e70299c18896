"""The progress of a rollout in JSON values, for files and snapshots."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from manul.agents.rollout.confidence_bounds import Sums
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import Move, Progress, Side, Ticket
from manul.types import Within
from manul.utils.model_files import mismatch_error

_NUMBERS = ("level", "period", "judged", "spent", "unjudged")


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
    try:
        progress = Progress(
            plan,
            losses,
            **{name: saved[name] for name in _NUMBERS},
            below=_side(saved["below"]),
            above=_side(saved["above"]),
            arms=(Sums(*saved["arms"][0]), Sums(*saved["arms"][1])),
            trials=list(saved["trials"]),
            centres=list(saved["centres"]),
            guarantee=[Sums(*sums) for sums in saved["guarantee"]],
            moves=[Move(*move) for move in saved["moves"]],
            cohort=[(Ticket(*ticket), loss) for *ticket, loss in saved["cohort"]],
        )
    except (KeyError, TypeError, IndexError):
        raise mismatch_error() from None
    known = len(progress.trials)
    fits = known == len(progress.centres) == len(progress.guarantee) <= len(plan.steps)
    if not (fits and -1 <= progress.level < known):
        raise mismatch_error()
    return progress


def _side(saved: list[Any]) -> Side:
    terms, weight = saved
    return Side(Sums(*terms), weight)
