"""Progressive losses of every method over its settings (left panel of the paper's first figure)."""
