"""Worlds, which produce contexts and the losses of actions."""

from manul.worlds import several
from manul.worlds.curves import Curves
from manul.worlds.hard_worlds import (
    cliff,
    drift,
    far_valley,
    noise,
    ranges,
    realizable,
    season,
    smooth,
    turning,
    valleys,
)
from manul.worlds.regression import Regression
from manul.worlds.reward_worlds import RewardWorld, bidding, dosing, pricing
from manul.worlds.simulation import Run, simulate_many
from manul.worlds.synthetic import Linear, ds, linear
from manul.worlds.world import NarrowedWorld, ScaledWorld, World

__all__ = [
    "Curves",
    "Linear",
    "NarrowedWorld",
    "Regression",
    "RewardWorld",
    "Run",
    "ScaledWorld",
    "World",
    "bidding",
    "cliff",
    "dosing",
    "drift",
    "ds",
    "far_valley",
    "linear",
    "noise",
    "pricing",
    "ranges",
    "realizable",
    "season",
    "several",
    "simulate_many",
    "smooth",
    "turning",
    "valleys",
]
