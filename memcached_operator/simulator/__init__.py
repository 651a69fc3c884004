"""The room of an in-process Kubernetes API for the demo and the tests; still empty."""
