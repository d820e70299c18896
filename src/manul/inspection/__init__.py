"""Shows what a saved agent or policy has learned."""
