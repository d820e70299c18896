"""Contexts: rows of numbers or named fields, their encoding, and feature maps."""
