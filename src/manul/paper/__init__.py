"""The paper in one room: its algorithms in plain NumPy, its theorems, its data sets and its experiments."""
