"""Explanations of agents and policies: the effects of features on the action, and what is played in a context."""

from manul.inspection.feature_effects import Effects, FeatureEffect, ValueEffect, effects
from manul.inspection.inspect import Inspection, plot_context

__all__ = ["Effects", "FeatureEffect", "Inspection", "ValueEffect", "effects", "plot_context"]
