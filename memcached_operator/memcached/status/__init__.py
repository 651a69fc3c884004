"""What is reported of a Memcached, and when."""
