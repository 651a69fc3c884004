"""The lab: a real Kubernetes control plane, built once from Go modules and started on loopback in seconds."""
