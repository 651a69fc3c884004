"""The lab: a real Kubernetes, built once from Go modules and started in seconds: a control plane, or one node more."""
