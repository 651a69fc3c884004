"""Features of a Memcached beyond servers and their list, each in a room of its own."""
