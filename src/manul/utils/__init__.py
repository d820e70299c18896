"""Utilities that all packages share: validation, files, suggestions for misspelt names, plots."""
