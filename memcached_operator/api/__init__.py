"""Models of the Memcached resource, as a user writes it, one module for each version of the API."""
