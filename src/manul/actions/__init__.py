"""The range of actions and distributions over it."""
