"""From logged data to a better policy."""

from manul.offpolicy.grid import Grid
from manul.offpolicy.optimize import Optimized, optimize

__all__ = ["Grid", "Optimized", "optimize"]
