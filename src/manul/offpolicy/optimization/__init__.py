"""Off-policy optimization: train policies on a log and choose the best."""
