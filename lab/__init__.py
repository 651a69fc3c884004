"""The lab: a real Kubernetes, built once from Go modules and started in seconds, alone or with a node of its own."""
