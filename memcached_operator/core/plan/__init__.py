"""Plan of the workloads, and the list of servers."""
