"""Rollout: servers come to their template one at a time, with their keys where that is possible."""
