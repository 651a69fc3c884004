"""`spec.discovery`: the list of servers beyond the status."""
