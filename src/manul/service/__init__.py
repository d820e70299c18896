"""Decisions over HTTP: a loop decides, waits for losses, learns, and loses nothing when it is killed."""
