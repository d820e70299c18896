"""Inspection of saved agents and policies."""
