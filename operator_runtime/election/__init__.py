"""Leader election: its rules, and what it is held by."""
