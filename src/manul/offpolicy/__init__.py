"""Off-policy evaluation and optimization: estimate and improve policies from logged data."""

from manul.logs.density_models import estimate_densities
from manul.offpolicy.diagnosis.doctor import Finding, doctor
from manul.offpolicy.estimate import Estimate, Objection
from manul.offpolicy.evaluation.compare import compare
from manul.offpolicy.evaluation.comparison_table import Comparison
from manul.offpolicy.evaluation.evaluate import evaluate
from manul.offpolicy.optimization.grid import Grid
from manul.offpolicy.optimization.optimize import Optimized, optimize
from manul.offpolicy.optimization.pessimism import Restrained, optimize_without_densities

__all__ = [
    "Comparison",
    "Estimate",
    "Finding",
    "Grid",
    "Objection",
    "Optimized",
    "Restrained",
    "compare",
    "doctor",
    "estimate_densities",
    "evaluate",
    "optimize",
    "optimize_without_densities",
]
