"""Kubernetes Events: the recorder, and what one looks like."""
