"""The loss of a policy, estimated from a log."""
