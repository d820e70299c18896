"""Worlds, which produce contexts and the losses of actions."""

from manul.worlds.curves import Curves
from manul.worlds.hard_worlds import cliff, drift, noise, ranges, realizable, smooth, valleys
from manul.worlds.regression import Regression
from manul.worlds.synthetic import Linear, ds, linear
from manul.worlds.world import ScaledWorld, World

__all__ = [
    "Curves",
    "Linear",
    "Regression",
    "ScaledWorld",
    "World",
    "cliff",
    "drift",
    "ds",
    "linear",
    "noise",
    "ranges",
    "realizable",
    "smooth",
    "valleys",
]
