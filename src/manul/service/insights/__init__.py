"""What people see of a loop: its history, traffic, candidates and logs."""
