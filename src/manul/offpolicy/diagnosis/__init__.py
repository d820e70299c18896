"""Whether a log is fit for off-policy work."""
