"""From logged data to a better policy, with estimates that can be trusted."""

from manul.offpolicy.density_model import EstimatedLog, estimate_densities
from manul.offpolicy.doctor import Finding, doctor
from manul.offpolicy.estimators import evaluate
from manul.offpolicy.grid import Grid
from manul.offpolicy.optimize import Optimized, optimize

__all__ = ["EstimatedLog", "Finding", "Grid", "Optimized", "doctor", "estimate_densities", "evaluate", "optimize"]
