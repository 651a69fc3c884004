"""Pure: which servers clients are told of, which of them drain, and from which workload to which they move."""
