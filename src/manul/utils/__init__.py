"""Utilities that all packages share: validation, files, plots."""
