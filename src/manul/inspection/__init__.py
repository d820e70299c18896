"""What a saved agent, policy or log holds."""
