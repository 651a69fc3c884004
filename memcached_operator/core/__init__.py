"""What a Memcached is to the operator: its objects, what is observed, planned, rolled out and reported."""
