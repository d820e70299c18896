"""Tables of numbers and text as worlds to play in."""
