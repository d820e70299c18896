"""The paper: its algorithms in plain NumPy, its theorems, its data sets and its experiments."""
