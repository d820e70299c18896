"""Which arm makes a decision, and the density of the mixture of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from manul import _core
from manul.actions.decision import Decision
from manul.agents.rollout.baselines import BaselineArm

_STREAM = 0x9E3779B97F4A7C15  # other random numbers than those of the agent, which may have the same seed


class ArmDraw(NamedTuple):
    """An action, its density and the smallest density of any action, both of the mixture, and whether the learner drew it."""

    action: float
    density: float
    floor: float | None
    learner: bool


def draw(
    seed: int,
    key: int,
    share: float,
    baseline: BaselineArm,
    *,
    decide: Callable[[], Decision],
    look_up: Callable[[float], tuple[float, float | None]],
) -> ArmDraw:
    """Draw from the learner with a probability of `share`, otherwise from the baseline; `key` determines which.

    `decide` draws from the learner, and `look_up` returns the learner's density of an action, and its smallest density.
    """
    learner = _core.draw(seed ^ _STREAM, key)[0] < share
    if learner:
        action, density, _, floor, *_ = decide()
    else:
        action = baseline.draw((seed, key))
        density, floor = look_up(action)
    mixed = share * density + (1 - share) * baseline.distribution.density(action)
    return ArmDraw(action, mixed, None if floor is None else share * floor, learner)
