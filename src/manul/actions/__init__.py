"""The range of actions, and densities over it."""
