"""Metrics of rollouts; loops without one have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from manul.service.rollout_schema import Rollout

GAUGES = {
    "traffic": "The learner's share of the decisions.",
    "step": "Number of the step; 0 after the rollout went back to the baseline.",
    "spent": "Upper bound of what the learner has cost beyond the tolerance, in units of the loss.",
    "budget": "Start-up budget of the rollout, in units of the loss.",
    "in_flight": "Decisions of the rollout that are not judged yet.",
    "uneven": "1 if the arms lack losses at different rates, so that the learner does not move up.",
    "unsent": "Moves that the webhook has not received yet.",
}
Samples = Mapping[str, float]


def rollout_metrics(rollouts: Sequence[Rollout]) -> Iterator[tuple[str, str, str, Samples]]:
    """Each metric with its name, kind, meaning and samples by labels."""
    if not rollouts:
        return
    for name, meaning in GAUGES.items():
        yield f"rollout_{name}", "gauge", meaning, {_labels(each): +getattr(each, name) for each in rollouts}
    by_arm = {
        "decisions": "Decisions with losses since the rollout began, by arm.",
        "left_out": "Decisions whose losses did not come within patience since the model was given, by arm.",
    }
    for name, meaning in by_arm.items():
        arms = ((each, arm) for each in rollouts for arm in ("learner", "baseline"))
        counts = {_labels(each, arm=arm): getattr(each, f"{arm}_{name}") for each, arm in arms}
        yield f"rollout_{name}", "counter", meaning, counts
    moves = {
        _labels(each, reason=reason): count
        for each in rollouts
        for reason, count in Counter(move.reason for move in each.moves).items()
    }
    yield "rollout_moves", "counter", "Moves of the rollout by reason.", moves


def _labels(rollout: Rollout, **more: str) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in {"loop": rollout.loop, **more}.items()) + "}"
