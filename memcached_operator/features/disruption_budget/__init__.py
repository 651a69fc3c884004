"""`spec.disruptionBudget`: how many servers an eviction may take."""
