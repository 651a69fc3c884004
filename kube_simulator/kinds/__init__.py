"""Particularities of Kubernetes' own kinds: defaults and rules."""
