"""Logs of decisions: the table, its formats, and passes over logs larger than memory."""
