"""The time of a round as a function of bandwidth and leaves (the paper's second figure)."""
