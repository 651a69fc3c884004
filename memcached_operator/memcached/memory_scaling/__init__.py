"""Growth of servers' memory: their evictions, the decision, and the report."""
