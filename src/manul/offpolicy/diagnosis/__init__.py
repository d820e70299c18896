"""Diagnosis of logs for off-policy evaluation."""
