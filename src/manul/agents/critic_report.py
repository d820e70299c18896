"""The state of the critic of Auto, with one knob or several."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manul.actions.decision import Within
from manul.outcomes import AnyRange
from manul.utils.validation import Floats

MEMBERS = ("deep", "shallow", "sharp", "scout")


@dataclass(frozen=True)
class Member:
    """One network of the ensemble: its recent error, in units of the loss, and its share in the prediction."""

    name: str
    error: float
    weight: float


@dataclass(frozen=True)
class Report:
    """The state of an Auto, to explain its decisions.

    `members` are the networks; `forest` is the weight of the correction by `trees` regression trees, from 0 to 1.
    `bandwidth`, in action units, is narrower where the predicted loss is steep; with several knobs it is None, and
    `bandwidth_share` is the share of each range instead. `noise` is the standard deviation of the loss around the
    prediction. `epsilon` is the share of uniform exploration in the next decision. `alarms` counts the detected changes
    of the world: `last_alarm` is the round of the last one, and `memory` the number of rounds since. `clipped` counts
    the outliers among losses without a stated range, which were clipped. `early` is the share in the prediction of the
    models for the first rounds, and `constant` the share in the rest of the best constant action. `prior` is the share of a
    prior in the prediction: 0 after evidence has dropped it, and None without one. `actions` and `losses` are the predicted
    loss curve of one context, if given.
    """

    members: tuple[Member, ...]
    forest: float
    trees: int
    bandwidth: float | None
    noise: float
    epsilon: float
    rounds: int
    memory: int
    alarms: int
    last_alarm: int | None
    clipped: int = 0
    actions: Floats | None = None
    losses: Floats | None = None
    bandwidth_share: float | None = None
    early: float = 0.0
    constant: float = 0.0
    prior: float | None = None


def loss_unit(losses: AnyRange) -> Within:
    """The losses that the core calls 0 and 1."""
    return (0.0, 1.0) if isinstance(losses, str) else losses


def critic_report(state: Mapping[str, Any], unit: Within, epsilon: float, **curve: Any) -> Report:
    """The report of a critic's state in the core; `unit` are the losses that the core calls 0 and 1."""
    span = unit[1] - unit[0]
    errors = [error * span for error in state["errors"]]
    return Report(
        members=tuple(map(Member, MEMBERS, errors, state["weights"])),
        forest=state["forest"],
        trees=int(state["trees"]),
        bandwidth=state["bandwidth"],
        noise=state["noise"] * span,
        epsilon=epsilon,
        rounds=int(state["rounds"]),
        memory=int(state["memory"]),
        alarms=int(state["alarms"]),
        last_alarm=int(state["last_alarm"]) or None,
        clipped=int(state["clipped"]),
        early=state["early"],
        constant=state["constant"],
        prior=None if math.isnan(state["prior"]) else state["prior"],
        **curve,
    )
