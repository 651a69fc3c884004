"""Particularities of Kubernetes' own kinds: defaults, rules, columns."""
