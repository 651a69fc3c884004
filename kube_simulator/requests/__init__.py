"""Verbs: the path of a request from its target and body to the store."""
