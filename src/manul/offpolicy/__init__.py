"""From a log to estimates that can be trusted."""

from manul.offpolicy.density_model import EstimatedLog, estimate_densities
from manul.offpolicy.doctor import Finding, doctor
from manul.offpolicy.estimators import evaluate

__all__ = ["EstimatedLog", "Finding", "doctor", "estimate_densities", "evaluate"]
