"""Off-policy evaluation and optimization: estimate and improve policies from logged data."""

from manul.offpolicy.diagnosis.doctor import Finding, doctor
from manul.offpolicy.evaluation.compare import Comparison, compare
from manul.offpolicy.evaluation.density_model import estimate_densities
from manul.offpolicy.evaluation.evaluate import evaluate
from manul.offpolicy.optimization.grid import Grid
from manul.offpolicy.optimization.optimize import Optimized, optimize

__all__ = [
    "Comparison",
    "Finding",
    "Grid",
    "Optimized",
    "compare",
    "doctor",
    "estimate_densities",
    "evaluate",
    "optimize",
]
