"""Rollout of a changed specification: what a change costs, and how it reaches the servers that run."""
