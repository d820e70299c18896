"""Estimation of the loss of a policy from a log."""
