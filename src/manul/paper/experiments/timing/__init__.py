"""What a round costs in time, against bandwidth and leaves (the paper's second figure)."""
