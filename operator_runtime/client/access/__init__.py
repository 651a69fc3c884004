"""Access to a cluster: which API server, through what, whom to trust, and as whom."""
