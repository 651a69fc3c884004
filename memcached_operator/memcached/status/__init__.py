"""Status of a Memcached: its contents, and when they are written."""
