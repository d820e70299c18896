"""Worlds: they give contexts, and a loss for an action."""

from manul.worlds.regression import Regression
from manul.worlds.synthetic import ds, linear

__all__ = ["Regression", "ds", "linear"]
