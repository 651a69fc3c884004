"""What a Memcached can have beyond servers and their list, each in a room of its own."""
