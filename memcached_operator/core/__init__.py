"""The operation of one Memcached: its objects, what is observed, planned, rolled out and reported."""
