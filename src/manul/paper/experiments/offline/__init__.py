"""From a log of one setting to a better policy (right panel of the paper's first figure)."""
