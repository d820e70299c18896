"""From a log to a better policy."""
