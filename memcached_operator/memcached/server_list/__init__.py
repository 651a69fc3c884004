"""Pure: the list of servers that clients read, servers that drain, and moves from one workload to another."""
