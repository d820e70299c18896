"""What users see of a loop: history, traffic, reports, policy views and logs."""
