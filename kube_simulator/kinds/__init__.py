"""What is particular to Kubernetes' own kinds: defaults, rules, columns."""
