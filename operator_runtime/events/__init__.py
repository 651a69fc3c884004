"""Kubernetes Events: the recorder, and the form of an event."""
