"""Small things that every part uses: checks of values, files, suggestions for misspelt names, plots."""
