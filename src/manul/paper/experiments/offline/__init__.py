"""Off-policy optimisation from the log of one setting (right panel of the paper's first figure)."""
